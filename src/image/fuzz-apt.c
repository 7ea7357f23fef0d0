/* An apt configuration in any bytes; the first byte chooses the form. */
#include "base/check.h"
#include "image/apt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_free_ char *s = calloc(1, size + 1);
	struct image_apt a = { 0 };
	char name[32];

	check(s);
	if (!size)
		return 0;
	memcpy(s, data + 1, size - 1);
	image_apt_read(&a, s, data[0] & 1, "bookworm");
	check(!a.mirror[0] || starts_with(a.mirror, "mirror+file:") || image_apt_is_uri(a.mirror));
	check(!a.security[0] || starts_with(a.security, "mirror+file:") ||
	      image_apt_is_uri(a.security));
	if (image_apt_codename(s, name, sizeof(name)))
		check(strlen(name) < sizeof(name));
	return 0;
}
