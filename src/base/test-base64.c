/* RFC 4648, section 10, and what is none. */
#include "base/base64.h"
#include "base/check.h"

static const struct {
	const char *plain, *std, *url;
} rows[] = {
	{ "", "", "" },
	{ "f", "Zg==", "Zg" },
	{ "fo", "Zm8=", "Zm8" },
	{ "foo", "Zm9v", "Zm9v" },
	{ "foob", "Zm9vYg==", "Zm9vYg" },
	{ "fooba", "Zm9vYmE=", "Zm9vYmE" },
	{ "foobar", "Zm9vYmFy", "Zm9vYmFy" },
	{ "\xfb\xef\xff", "++//", "--__" },
};

static void both_ways(const char *plain, const char *text, enum base64_kind kind)
{
	char to[64];
	uint8_t back[64];
	size_t n = 99;

	*base64_put(to, plain, strlen(plain), kind) = '\0';
	check(streq(to, text));
	check(base64_get(back, text, strlen(text), kind, &n) == 0);
	check(n == strlen(plain) && !memcmp(back, plain, n));
}

int main(void)
{
	static const char *const wrong[] = { "A",    "AAAAA", "AA A",    "A=AA",
					     "-_-_", "AA\n=", "\x80\x80" };
	uint8_t to[64], all[256];
	char text[BASE64_SIZE(sizeof(all))];
	size_t n = 99;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		both_ways(rows[i].plain, rows[i].std, BASE64);
		both_ways(rows[i].plain, rows[i].url, BASE64_URL);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		check(base64_get(to, wrong[i], strlen(wrong[i]), BASE64, &n) == -EINVAL && n == 99);
	check(base64_get(to, "+/+/", 4, BASE64_URL, &n) == -EINVAL);
	check(base64_get(to, "Zg==", 4, BASE64_URL, &n) == -EINVAL);
	check(base64_get(to, "Zg", 2, BASE64, &n) == 0 && n == 1);
	check(base64_get(to, "A\0AA", 4, BASE64, &n) == -EINVAL);
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (uint8_t)i;
	check(base64_put(text, all, sizeof(all), BASE64) == text + sizeof(text));
	return 0;
}
