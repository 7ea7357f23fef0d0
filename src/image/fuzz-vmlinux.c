/* The setup header of a bzImage, in any bytes. */
#include "base/check.h"
#include "image/vmlinux.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *pay = NULL;
	size_t len = 0;
	struct err e;

	if (image_vmlinux_payload(data, size, &pay, &len, &e) < 0)
		return 0;
	check(len >= 8 && pay >= data && pay <= data + size);
	check(len <= size - (size_t)(pay - data));
	return 0;
}
