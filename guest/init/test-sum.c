/* SHA-1 and base64, by the vectors of their RFCs. */
#include "base/check.h"
#include "guest/init/sum.h"

#include <stdio.h>

static void is_sum(const char *p, size_t n, size_t step, const char *want)
{
	struct sum_sha1 s;
	uint8_t sum[SHA1_SIZE];
	char hex[2 * SHA1_SIZE + 1];
	size_t i;

	sum_sha1_init(&s);
	for (i = 0; i < n; i += MIN(step, n - i))
		sum_sha1_add(&s, p + i, MIN(step, n - i));
	sum_sha1_end(&s, sum);
	for (i = 0; i < SHA1_SIZE; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", sum[i]);
	check(streq(hex, want));
}

static void sha1(void)
{
	static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
	static const struct {
		size_t n;
		const char *want;
	} zeros[] = {
		{ 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709" },
		{ 55, "8e8832c642a6a38c74c17fc92ccedc266c108e6c" },
		{ 56, "9438e360f578e12c0e0e8ed28e2c125c1cefee16" },
		{ 63, "0b8bf9fc37ad802cefa6733ec62b09d5f43a1b75" },
		{ 64, "c8d7d0ef0eedfa82d2ea1aa592845b9a6d4b02b7" },
		{ 65, "f0fa45906bd0f4c3668fcd0d8f68d4b298b30e5b" },
		{ 119, "85634f17f58bda0e4f0515dfb68bc1af922a031f" },
		{ 120, "b110a88a11436b215220486c1081dec2fb0f389a" },
		{ 1000, "c577f7a37657053275f3e3ecc06ec22e6b909366" },
	};
	static char big[1000000], none[1000];
	size_t i;

	is_sum("abc", 3, 3, "a9993e364706816aba3e25717850c26c9cd0d89d");
	is_sum(two, sizeof(two) - 1, 100, "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
	memset(big, 'a', sizeof(big));
	is_sum(big, sizeof(big), sizeof(big), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
	is_sum(big, sizeof(big), 63, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
	for (i = 0; i < ARRAY_SIZE(zeros); i++)
		is_sum(none, zeros[i].n, 17, zeros[i].want);
}

static const struct {
	const char *plain, *text;
} vectors[] = {
	{ "", "" },
	{ "f", "Zg==" },
	{ "fo", "Zm8=" },
	{ "foo", "Zm9v" },
	{ "foob", "Zm9vYg==" },
	{ "fooba", "Zm9vYmE=" },
	{ "foobar", "Zm9vYmFy" },
	{ "\xff\xfe\xfd\xfb\xef\xbf", "//79+++/" },
};

static void base64(void)
{
	uint8_t back[16];
	char text[16] = "";
	size_t i;

	for (i = 0; i < ARRAY_SIZE(vectors); i++) {
		size_t n = strlen(vectors[i].plain), k = strlen(vectors[i].text);

		check(sum_base64_size(n) == k);
		sum_base64(text, vectors[i].plain, n);
		check(!memcmp(text, vectors[i].text, k));
		check(sum_from_base64(back, n, text, k) == (ssize_t)n);
		check(!memcmp(back, vectors[i].plain, n));
		check(!n || sum_from_base64(back, n - 1, text, k) == -ENOBUFS);
	}
	check(sum_from_base64(back, 16, " Zm\r\n9v\tYg\n==\n", 14) == 4);
}

static void bad(void)
{
	static const char *const texts[] = { "Z",    "Zg",       "Zg=",      "=",
					     "====", "Z===",     "Zg==Zg==", "Zg==\nZ",
					     "Zm=v", "Zm9v-_==", "Zm9v!",    "Zg===" };
	uint8_t back[16];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(texts); i++)
		check(sum_from_base64(back, sizeof(back), texts[i], strlen(texts[i])) < 0);
	check(sum_from_base64(back, sizeof(back), "Zm9\0", 4) == -EBADMSG);
}

int main(void)
{
	sha1();
	base64();
	bad();
	return 0;
}
