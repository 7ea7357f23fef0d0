#pragma once
/* SHA-256 over a list of parts. Each part is told apart from its neighbours, so that moving bytes from
 * one to the next changes the digest. The first failure is kept and answered at the end. */
#include "image/image.h"

struct image_digest {
	void *ctx;
	int r;
};

void image_digest_init(struct image_digest *d);
void image_digest_bytes(struct image_digest *d, const void *p, size_t n);
void image_digest_text(struct image_digest *d, const char *s); /* NULL differs from "" */
void image_digest_file(struct image_digest *d, int dir, const char *path); /* its content */

/* 0 and the digest in hex digits, or the first -errno. Frees in any case. */
int image_digest_end(struct image_digest *d, char hex[IMAGE_DIGEST_MAX + 1]) _must_check_;

/* SHA-256 of some bytes and nothing else, as others compute it. 0 or -EIO. */
int image_digest_plain(const void *p, size_t n, char hex[IMAGE_DIGEST_MAX + 1]) _must_check_;
