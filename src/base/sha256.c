/* SHA-256 as FIPS 180-4 writes it. Plain rather than fast: what it is used for is short. */
#include "base/sha256.h"

static const uint32_t rounds[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t turn(uint32_t x, unsigned by)
{
	return x >> by | x << (32 - by);
}

static void widen(uint32_t w[64], const uint8_t *p)
{
	uint32_t a, b;
	size_t i;

	for (i = 0; i < 16; i++, p += 4)
		w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
	for (; i < 64; i++) {
		a = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
		b = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;
		w[i] = w[i - 16] + a + w[i - 7] + b;
	}
}

static void mix(uint32_t h[8], const uint8_t *p)
{
	uint32_t w[64], v[8], a, b;
	size_t i;

	widen(w, p);
	memcpy(v, h, sizeof(v));
	for (i = 0; i < 64; i++) {
		a = v[7] + (turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25)) +
		    ((v[4] & v[5]) ^ (~v[4] & v[6])) + rounds[i] + w[i];
		b = (turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22)) +
		    ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += a;
		v[0] = a + b;
	}
	for (i = 0; i < 8; i++)
		h[i] += v[i];
}

void sha256_init(struct sha256 *s)
{
	static const uint32_t first[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	memcpy(s->h, first, sizeof(first));
	s->n = 0;
}

void sha256_add(struct sha256 *s, const void *p, size_t n)
{
	const uint8_t *from = p;
	size_t at = s->n % SHA256_BLOCK, one;

	s->n += n;
	while (n) {
		one = MIN(n, SHA256_BLOCK - at);
		memcpy(s->block + at, from, one);
		from += one;
		n -= one;
		at += one;
		if (at < SHA256_BLOCK)
			return;
		mix(s->h, s->block);
		at = 0;
	}
}

void sha256_end(struct sha256 *s, uint8_t ret[SHA256_SIZE])
{
	const uint64_t bits = s->n * 8;
	uint8_t tail[SHA256_BLOCK + 8] = { 0x80 };
	size_t fill = (SHA256_BLOCK + 55 - s->n % SHA256_BLOCK) % SHA256_BLOCK + 1, i;

	for (i = 0; i < 8; i++)
		tail[fill + i] = (uint8_t)(bits >> (56 - 8 * i));
	sha256_add(s, tail, fill + 8);
	for (i = 0; i < SHA256_SIZE; i++)
		ret[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}
