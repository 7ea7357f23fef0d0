#pragma once
/* The kernel proper (an ELF file) out of a bzImage, so that no boot has to decompress it. */
#include "base/buf.h"
#include "base/err.h"

enum { IMAGE_BZIMAGE_MAX = 128 << 20, IMAGE_VMLINUX_MAX = 512 << 20 };

/* Where the compressed kernel lies in a bzImage; *ret borrows from p, and is at least 8 bytes. */
int image_vmlinux_payload(const uint8_t *p, size_t n, const uint8_t **ret, size_t *ret_n,
			  struct err *e) _must_check_;

/* n bytes at p are a bzImage of boot protocol 2.08 or later for x86-64; the ELF file is put at the end of
 * out. -EINVAL with a message if it is anything else. The input is not trusted. */
int image_vmlinux(const void *p, size_t n, struct buf *out, struct err *e) _must_check_;
