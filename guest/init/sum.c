/* SHA-1 and base64. */
#include "guest/init/sum.h"

void sum_sha1_init(struct sum_sha1 *s)
{
	*s = (struct sum_sha1) { .h = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
					0xc3d2e1f0 } };
}

static inline uint32_t turn(uint32_t v, unsigned by)
{
	return v << by | v >> (32 - by);
}

/* The four functions of RFC 3174, section 5. */
static inline uint32_t mix(unsigned round, uint32_t b, uint32_t c, uint32_t d)
{
	static const uint32_t k[4] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
	uint32_t f = round == 0   ? (b & c) | (~b & d)
		     : round == 2 ? (b & c) | (b & d) | (c & d)
				  : b ^ c ^ d;

	return f + k[round];
}

static void one_block(struct sum_sha1 *s, const uint8_t *p)
{
	uint32_t w[80], a = s->h[0], b = s->h[1], c = s->h[2], d = s->h[3], e = s->h[4];
	size_t i;

	for (i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
		       (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (; i < 80; i++)
		w[i] = turn(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (i = 0; i < 80; i++) {
		uint32_t t = turn(a, 5) + mix(i / 20, b, c, d) + e + w[i];

		e = d;
		d = c;
		c = turn(b, 30);
		b = a;
		a = t;
	}
	s->h[0] += a;
	s->h[1] += b;
	s->h[2] += c;
	s->h[3] += d;
	s->h[4] += e;
}

void sum_sha1_add(struct sum_sha1 *s, const void *p, size_t n)
{
	const uint8_t *at = p;

	while (n) {
		size_t have = (size_t)(s->n % 64), k = MIN(n, 64 - have);

		if (k == 64) {
			one_block(s, at);
		} else {
			memcpy(s->block + have, at, k);
			if (have + k == 64)
				one_block(s, s->block);
		}
		s->n += k;
		at += k;
		n -= k;
	}
}

void sum_sha1_end(struct sum_sha1 *s, uint8_t ret[SHA1_SIZE])
{
	uint8_t tail[72] = { 0x80 };
	uint64_t bits = s->n * 8;
	size_t n = 1 + (size_t)((119 - s->n % 64) % 64), i;

	for (i = 0; i < 8; i++)
		tail[n + i] = (uint8_t)(bits >> (56 - 8 * i));
	sum_sha1_add(s, tail, n + 8);
	for (i = 0; i < SHA1_SIZE; i++)
		ret[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

/* ---- base64 ---- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void sum_base64(char *dst, const void *p, size_t n)
{
	const uint8_t *s = p;

	for (; n; dst += 4) {
		size_t k = MIN(n, (size_t)3);
		uint32_t v = (uint32_t)s[0] << 16 | (k > 1 ? (uint32_t)s[1] << 8 : 0) |
			     (k > 2 ? s[2] : 0);

		dst[0] = digits[v >> 18];
		dst[1] = digits[v >> 12 & 63];
		dst[2] = '=';
		dst[3] = '=';
		if (k > 1)
			dst[2] = digits[v >> 6 & 63];
		if (k > 2)
			dst[3] = digits[v & 63];
		s += k;
		n -= k;
	}
}

enum { SPACE = 64, PAD = 65, BAD = 66 };

static inline unsigned value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (unsigned)(c - 'A');
	if (c >= 'a' && c <= 'z')
		return (unsigned)(c - 'a') + 26;
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0') + 52;
	if (c == '+' || c == '/')
		return c == '+' ? 62 : 63;
	if (c == ' ' || c == '\n' || c == '\r' || c == '\t')
		return SPACE;
	return c == '=' ? PAD : BAD;
}

ssize_t sum_from_base64(uint8_t *dst, size_t max, const char *p, size_t n)
{
	uint32_t bits = 0;
	size_t out = 0, have = 0, pads = 0, i;

	for (i = 0; i < n; i++) {
		unsigned v = value_of(p[i]);

		if (v == SPACE)
			continue;
		if (v == BAD || (v == PAD ? have < 2 : pads > 0))
			return -EBADMSG;
		pads += v == PAD;
		bits = bits << 6 | (v == PAD ? 0 : v);
		if (++have < 4)
			continue;
		if (max - out < 3 - pads)
			return -ENOBUFS;
		dst[out++] = (uint8_t)(bits >> 16);
		if (pads < 2)
			dst[out++] = (uint8_t)(bits >> 8);
		if (pads < 1)
			dst[out++] = (uint8_t)bits;
		have = 0;
		bits = 0;
		if (pads)
			max = out; /* nothing may follow */
	}
	return have ? -EBADMSG : (ssize_t)out;
}
