#pragma once
/* Compressed data to plain: gzip, bzip2, xz, lzma, lz4 (also the kernel's old form), zstd. The data is
 * not trusted: what it unpacks to is bounded, and no program is ever run for it. */
#include "base/buf.h"
#include "base/err.h"

/* Unpack n bytes at p to the end of out. Data that is in none of the forms is copied as it is. -EFBIG
 * past out's maximum, -EINVAL if it is damaged (with a message each). */
int archive_unpack(const void *p, size_t n, struct buf *out, struct err *e) _must_check_;
