/* What bac-keeper hears and says, from each side: any bytes. */
#include "wire/keeper.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char from[] = "SMPFK";
	static uint8_t out[KEEPER_MSG_MAX];
	struct keeper_msg m;

	for (size_t i = 0; i < sizeof(from) - 1; i++)
		for (size_t fds = 0; fds < 2; fds++)
			if (keeper_parse(&m, from[i], data, size, fds) == WIRE_OK &&
			    (keeper_put(&m, out, sizeof(out)) != (ssize_t)size ||
			     memcmp(out, data, size)))
				abort();
	return 0;
}
