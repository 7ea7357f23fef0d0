#pragma once
/* A "newc" cpio archive, as the kernel unpacks it into the initramfs. Owner root, time 0: the same
 * files make the same bytes. */
#include "base/buf.h"

struct image_cpio {
	struct buf out;
	uint32_t ino;
	int r; /* the first failure */
};

void image_cpio_init(struct image_cpio *c, size_t max);
void image_cpio_dir(struct image_cpio *c, const char *name);
void image_cpio_file(struct image_cpio *c, const char *name, unsigned mode, const void *p,
		     size_t n);

/* The trailer, padded so that another archive may follow. 0, -ENOBUFS or -ENOMEM; the bytes are in
 * c->out. */
int image_cpio_end(struct image_cpio *c) _must_check_;
void image_cpio_done(struct image_cpio *c);
