/* Any text as a number, a size, a duration, a name; and what is made of it stays within bounds. */
#include "base/check.h"
#include "base/err.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static char *fuzz_text(const uint8_t *p, size_t n)
{
	char *s = text_dup(p, n);

	check(s);
	return s;
}

static void values(const char *s)
{
	char b[32];
	uint64_t v;

	if (text_u64(s, 1000000, &v) == 0)
		check(v <= 1000000 && *s >= '0' && *s <= '9');
	if (text_size(s, &v) == 0)
		check(text_from_size(b, sizeof(b), v)[0]);
	if (text_duration_ms(s, &v) == 0) {
		check(v <= 10ULL * 366 * 86400 * 1000);
		check(text_from_ms(b, sizeof(b), v)[0]);
	}
}

static void names(const char *s)
{
	const char *list[] = { "exec", "create", s, NULL };
	char name[64], small[8];

	text_to_name(name, sizeof(name), s);
	check(!text_name_fault(name));
	if (text_name_fault(s) == NULL)
		check(strlen(s) <= 63 && *s);
	check(text_copy(small, sizeof(small), s) ==
	      (strlen(s) < sizeof(small) ? 0 : -ENAMETOOLONG));
	check(text_distance(s, s) == (strlen(s) <= 63 ? 0 : 255));
	check(text_distance(s, "create") == text_distance("create", s));
	(void)text_nearest(s, list, ARRAY_SIZE(list), sizeof(list[0]));
}

static void errors(const char *s)
{
	struct err e;
	const char *at;

	(void)err_set(&e, -EIO, "%s", s);
	(void)err_ctx(&e, "%s", s);
	check(text_is_utf8(e.msg, strlen(e.msg)));
	for (at = e.msg; *at; at++)
		check((unsigned char)*at >= 0x20 && *at != 0x7f &&
		      !(at[0] == '\302' && (unsigned char)at[1] < 0xa0));
	(void)err_errno(&e, -ENOENT, "%s", s);
	check(strlen(e.msg) < sizeof(e.msg) && strstr(e.msg, ": No such file or directory"));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	_free_ char *s = fuzz_text(p, n);

	check(s);
	(void)text_is_utf8((const char *)p, n);
	values(s);
	names(s);
	errors(s);
	return 0;
}
