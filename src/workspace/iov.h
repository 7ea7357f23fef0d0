#pragma once
/* Arrays of pieces of guest memory: how long, copy out of, copy into, cut. */
#include <sys/uio.h>

#include "base/base.h"

size_t iov_len(const struct iovec *v, size_t n); /* saturates at SIZE_MAX */
/* Copy up to len bytes from or to offset skip; how many were there. */
size_t iov_get(const struct iovec *v, size_t n, size_t skip, void *dst, size_t len);
size_t iov_put(const struct iovec *v, size_t n, size_t skip, const void *src, size_t len);
/* The pieces of [skip, skip + len), at most max of them, into dst; *ret_len: bytes they cover. */
size_t iov_cut(struct iovec *dst, size_t max, const struct iovec *v, size_t n, size_t skip,
	       size_t len, size_t *ret_len);
