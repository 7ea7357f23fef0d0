#pragma once
/* Compressed data to plain, done by bac-archive: libarchive, and what it makes of hostile bytes, stays out
 * of this process, and out of the start-up time of commands that never need it. */
#include "base/buf.h"
#include "base/err.h"

/* Unpack n bytes at p (gzip, bzip2, xz, lzma, lz4, zstd; anything else is copied) to the end of out.
 * -EFBIG past out's maximum, -EINVAL if it is damaged, -Exxx if bac-archive cannot be run; each with a
 * message. */
int image_unpack(const void *p, size_t n, struct buf *out, struct err *e) _must_check_;
