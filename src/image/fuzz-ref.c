/* Any text as the name of an image: what is taken has one spelling, which is taken for the same again. */
#include "base/check.h"
#include "image/ref.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char one[IMAGE_REF_MAX + 1], two[IMAGE_REF_MAX + 1];
	_free_ char *s = calloc(1, size + 1);
	struct image_ref r, again;
	struct err e;

	check(s);
	if (size)
		memcpy(s, data, size);
	if (image_ref_parse(s, &r, &e) != 0)
		return 0;
	check(r.domain[0] != '-' && r.path[0] != '-' && r.tag[0] != '-');
	(void)image_ref_text(&r, one);
	check(image_ref_parse(one, &again, &e) == 0);
	check(streq(image_ref_text(&again, two), one));
	check(image_ref_loopback(&r) == image_ref_loopback(&again));
	return 0;
}
