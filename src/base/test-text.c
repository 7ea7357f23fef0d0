/* Text to values and back, by tables. */
#include "base/text.h"

#include <inttypes.h>

#include "base/check.h"

enum { UNSET = 0xabcd };

struct row {
	const char *text;
	int r;
	uint64_t v;
};

static void numbers(void)
{
	static const struct row rows[] = {
		{ "0", 0, 0 },
		{ "007", 0, 7 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "99999999999999999999999999", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "1 ", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "1e3", -EINVAL, 0 },
		{ "\3011", -EINVAL, 0 },
	};
	uint64_t v;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		v = UNSET;
		check(text_u64(rows[i].text, UINT64_MAX, &v) == rows[i].r);
		check(v == (rows[i].r ? UNSET : rows[i].v));
	}
	check(text_u64("255", 255, &v) == 0 && v == 255);
	check(text_u64("256", 255, &v) == -ERANGE && v == 255);
	check(text_u64("1", 0, &v) == -ERANGE);
}

static void sizes(void)
{
	static const struct row rows[] = {
		{ "0", 0, 0 },
		{ "17", 0, 17 },
		{ "17b", 0, 17 },
		{ "1k", 0, 1024 },
		{ "1K", 0, 1024 },
		{ "1kb", 0, 1024 },
		{ "1KiB", 0, 1024 },
		{ "512m", 0, 512ULL << 20 },
		{ "8g", 0, 8ULL << 30 },
		{ "8GB", 0, 8ULL << 30 },
		{ "16777215t", 0, 16777215ULL << 40 },
		{ "16777216t", -ERANGE, 0 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551615k", -ERANGE, 0 },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "99999999999999999999999999999999", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "m", -EINVAL, 0 },
		{ "-1g", -EINVAL, 0 },
		{ "1.5g", -EINVAL, 0 },
		{ "1 g", -EINVAL, 0 },
		{ "1gg", -EINVAL, 0 },
		{ "1gibs", -EINVAL, 0 },
		{ "1bb", -EINVAL, 0 },
		{ "1bib", -EINVAL, 0 },
		{ "1p", -EINVAL, 0 },
	};
	uint64_t v;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		v = UNSET;
		if (text_size(rows[i].text, &v) != rows[i].r)
			fprintf(stderr, "row %zu: %s\n", i, rows[i].text);
		check(text_size(rows[i].text, &v) == rows[i].r);
		check(v == (rows[i].r ? UNSET : rows[i].v));
	}
}

static void durations(void)
{
	static const struct row rows[] = {
		{ "0", 0, 0 },
		{ "0s", 0, 0 },
		{ "90", 0, 90000 },
		{ "90s", 0, 90000 },
		{ "1.5s", 0, 1500 },
		{ "1.0005s", 0, 1000 },
		{ "1.9999999999999999999s", 0, 1999 },
		{ "250ms", 0, 250 },
		{ "1500us", 0, 1 },
		{ "1h30m", 0, 5400000 },
		{ "1d", 0, 86400000 },
		{ "1h1m1s1ms", 0, 3661001 },
		{ "3660d", 0, 316224000000 },
		{ "3660d1us", -ERANGE, 0 },
		{ "3661d", -ERANGE, 0 },
		{ "316224000", 0, 316224000000 },
		{ "316224001", -ERANGE, 0 },
		{ "99999999999999999999h", -ERANGE, 0 },
		{ "999999999999d", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "s", -EINVAL, 0 },
		{ ".5s", -EINVAL, 0 },
		{ "1.5", -EINVAL, 0 },
		{ "1x", -EINVAL, 0 },
		{ "-1s", -EINVAL, 0 },
		{ "1s ", -EINVAL, 0 },
		{ "1 s", -EINVAL, 0 },
		{ "1h30", -EINVAL, 0 },
		{ "1min", -EINVAL, 0 },
	};
	uint64_t v;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		v = UNSET;
		if (text_duration_ms(rows[i].text, &v) != rows[i].r)
			fprintf(stderr, "row %zu: %s\n", i, rows[i].text);
		check(text_duration_ms(rows[i].text, &v) == rows[i].r);
		check(v == (rows[i].r ? UNSET : rows[i].v));
	}
}

static void shown(void)
{
	char b[32], small[4];

	check(streq(text_from_size(b, sizeof(b), 0), "0 B"));
	check(streq(text_from_size(b, sizeof(b), 1023), "1023 B"));
	check(streq(text_from_size(b, sizeof(b), 1024), "1 KiB"));
	check(streq(text_from_size(b, sizeof(b), 1536), "1.5 KiB"));
	check(streq(text_from_size(b, sizeof(b), 10752), "10 KiB"));
	check(streq(text_from_size(b, sizeof(b), 512ULL << 20), "512 MiB"));
	check(streq(text_from_size(b, sizeof(b), UINT64_MAX), "15 EiB"));
	check(streq(text_from_size(small, sizeof(small), 123456), "120"));
	check(streq(text_from_ms(b, sizeof(b), 0), "0 seconds"));
	check(streq(text_from_ms(b, sizeof(b), 999), "0 seconds"));
	check(streq(text_from_ms(b, sizeof(b), 1000), "1 second"));
	check(streq(text_from_ms(b, sizeof(b), 119999), "1 minute"));
	check(streq(text_from_ms(b, sizeof(b), 7200000), "2 hours"));
	check(streq(text_from_ms(b, sizeof(b), 3 * 86400000), "3 days"));
	check(streq(text_from_ms(small, sizeof(small), UINT64_MAX), "213"));
}

static void copies(void)
{
	char b[4] = "old";

	check(text_copy(b, sizeof(b), "new") == 0 && streq(b, "new"));
	check(text_copy(b, sizeof(b), "four") == -ENAMETOOLONG && streq(b, "new"));
	check(text_copy(b, 1, "") == 0 && streq(b, ""));
	check(text_copy(b, 0, "") == -ENAMETOOLONG);
}

static void distances(void)
{
	char a[65], b[65];

	check(text_distance("", "") == 0);
	check(text_distance("abc", "abc") == 0);
	check(text_distance("abc", "") == 3);
	check(text_distance("network", "netwrok") == 1); /* swapped */
	check(text_distance("kitten", "sitting") == 3);
	check(text_distance("ab", "ba") == 1);
	memset(a, 'a', sizeof(a));
	memset(b, 'b', sizeof(b));
	a[63] = b[63] = '\0';
	check(text_distance(a, b) == 63);
	a[63] = 'a';
	a[64] = '\0';
	check(text_distance(a, b) == 255 && text_distance("", a) == 255);
}

static void suggestions(void)
{
	static const struct {
		const char *name;
		int more;
	} list[] = { { "exec", 1 }, { "create", 2 }, { "inspect", 3 }, { NULL, 0 }, { "ls", 4 } };
	const size_t n = ARRAY_SIZE(list), stride = sizeof(list[0]);

	check(streq(text_nearest("exce", list, n, stride), "exec"));
	check(streq(text_nearest("insp", list, n, stride), "inspect"));
	check(streq(text_nearest("crate", list, n, stride), "create"));
	check(streq(text_nearest("sl", list, n, stride), "ls"));
	check(!text_nearest("frobnicate", list, n, stride));
	check(!text_nearest("", list, 0, stride));
	check(!text_nearest("xyz", list, n, stride));
}

static void names(void)
{
	char longest[65];

	memset(longest, 'a', sizeof(longest));
	longest[63] = '\0';
	check(!text_name_fault(longest));
	longest[63] = 'a';
	longest[64] = '\0';
	check(text_name_fault(longest));
	check(!text_name_fault("ab") && !text_name_fault("a-b") && !text_name_fault("A.1"));
	check(text_name_fault("") && text_name_fault("-a") && text_name_fault("a-"));
	check(text_name_fault(".a") && text_name_fault("a.") && text_name_fault(".."));
	check(text_name_fault("a_b") && text_name_fault("a b") && text_name_fault("a/b"));
	check(text_name_fault("gr\303\274n") && text_name_fault("default"));
}

static void made_names(void)
{
	static const char *const any[] = {
		"",           ".",       "..",   "-",        "default",
		"my project", "--x--",   "a",    "\303\274", "Caf\303\251 2",
		"x/y/z",      "...a...", "a..b", "123",      "\n\t",
	};
	char dst[64], longer[200];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(any); i++) {
		text_to_name(dst, sizeof(dst), any[i]);
		check(!text_name_fault(dst));
	}
	text_to_name(dst, sizeof(dst), "my project");
	check(streq(dst, "my-project"));
	text_to_name(dst, sizeof(dst), "default");
	check(streq(dst, "sandbox-default"));
	text_to_name(dst, sizeof(dst), "--");
	check(streq(dst, "sandbox"));
	memset(longer, 'x', sizeof(longer));
	longer[62] = '-';
	longer[199] = '\0';
	text_to_name(dst, sizeof(dst), longer);
	check(!text_name_fault(dst) && strlen(dst) == 62);
}

static bool utf8(const char *s)
{
	return text_is_utf8(s, strlen(s));
}

static void utf8s(void)
{
	check(text_is_utf8("", 0) && text_is_utf8("a\0b", 3));
	check(utf8("\177\302\200\337\277\340\240\200\357\277\277\360\220\200\200\364\217\277\277"));
	check(utf8("\355\237\277") && utf8("\356\200\200")); /* around the surrogates */
	check(!utf8("\355\240\200") && !utf8("\355\277\277"));
	check(!utf8("\300\200") && !utf8("\301\277") && !utf8("\340\237\277") &&
	      !utf8("\360\217\277\277"));
	check(!utf8("\364\220\200\200") && !utf8("\365\200\200\200") && !utf8("\377"));
	check(!utf8("\200") && !utf8("\302") && !utf8("\340\240") && !utf8("\360\220\200"));
	check(!utf8("\302a") && !utf8("\340\240a") && !utf8("\302\300"));
	check(!text_is_utf8("\342\202\254", 2));
}

int main(void)
{
	numbers();
	sizes();
	durations();
	shown();
	copies();
	distances();
	suggestions();
	names();
	made_names();
	utf8s();
	return 0;
}
