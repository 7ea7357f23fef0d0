/* The examples of FIPS 180-4 and lengths about the edges of a block. */
#include "base/sha256.h"

#include "base/check.h"

static const struct {
	const char *text;
	unsigned times;
	uint8_t first[8];
} rows[] = {
	{ "", 1, { 0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14 } },
	{ "abc", 1, { 0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea } },
	{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	  1,
	  { 0x24, 0x8d, 0x6a, 0x61, 0xd2, 0x06, 0x38, 0xb8 } },
	{ "a", 55, { 0x9f, 0x43, 0x90, 0xf8, 0xd3, 0x0c, 0x2d, 0xd9 } },
	{ "a", 56, { 0xb3, 0x54, 0x39, 0xa4, 0xac, 0x6f, 0x09, 0x48 } },
	{ "a", 64, { 0xff, 0xe0, 0x54, 0xfe, 0x7a, 0xe0, 0xcb, 0x6d } },
	{ "a", 1000000, { 0xcd, 0xc7, 0x6e, 0x5c, 0x99, 0x14, 0xfb, 0x92 } },
};

static void known(void)
{
	uint8_t out[SHA256_SIZE];
	struct sha256 s;
	size_t i;
	unsigned k;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		sha256_init(&s);
		for (k = 0; k < rows[i].times; k++)
			sha256_add(&s, rows[i].text, strlen(rows[i].text));
		sha256_end(&s, out);
		check(memcmp(out, rows[i].first, sizeof(rows[i].first)) == 0);
	}
}

/* In pieces of any size it is the same. */
static void pieces(void)
{
	uint8_t in[200], whole[SHA256_SIZE], cut[SHA256_SIZE];
	struct sha256 s;
	size_t n, at;

	memset(in, 7, sizeof(in));
	for (n = 0; n <= sizeof(in); n++) {
		sha256_init(&s);
		sha256_add(&s, in, n);
		sha256_end(&s, whole);
		for (at = 0; at <= n; at += 13) {
			sha256_init(&s);
			sha256_add(&s, in, at);
			sha256_add(&s, in + at, n - at);
			sha256_end(&s, cut);
			check(memcmp(whole, cut, sizeof(cut)) == 0);
		}
	}
}

int main(void)
{
	known();
	pieces();
	return 0;
}
