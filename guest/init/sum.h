#pragma once
/* Two codes that trust stores are written in: SHA-1 (RFC 3174; here a checksum, no protection) and base64 (RFC 4648, section 4).
 * Neither allocates nor makes a system call. */
#include <sys/types.h>

#include "base/base.h"

enum { SHA1_SIZE = 20 };

struct sum_sha1 {
	uint32_t h[5];
	uint64_t n; /* bytes so far */
	uint8_t block[64];
};

void sum_sha1_init(struct sum_sha1 *s);
void sum_sha1_add(struct sum_sha1 *s, const void *p, size_t n);
void sum_sha1_end(struct sum_sha1 *s, uint8_t ret[SHA1_SIZE]);

/* Bytes of the text of n bytes, without a NUL. */
static inline size_t sum_base64_size(size_t n)
{
	return (n + 2) / 3 * 4;
}

/* dst has room for sum_base64_size(n) bytes and gets no NUL. */
void sum_base64(char *dst, const void *p, size_t n);

/* Spaces and line ends are passed over. Bytes; -EBADMSG: not base64, or padded wrongly; -ENOBUFS: more than max. dst may have been
 * written to in any case. */
ssize_t sum_from_base64(uint8_t *dst, size_t max, const char *p, size_t n) _must_check_;
