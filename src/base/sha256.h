#pragma once
/* SHA-256 (FIPS 180-4), for rooms that have no library. A state of zeros is not a beginning: sha256_init(). */
#include "base/base.h"

enum { SHA256_SIZE = 32, SHA256_BLOCK = 64 };

struct sha256 {
	uint32_t h[8];
	uint64_t n; /* bytes so far */
	uint8_t block[SHA256_BLOCK];
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *p, size_t n);
/* The state is used up. */
void sha256_end(struct sha256 *s, uint8_t ret[SHA256_SIZE]);
