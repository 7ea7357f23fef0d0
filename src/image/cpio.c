/* Documentation/driver-api/early-userspace/buffer-format.rst: a header of thirteen numbers of eight hex
 * digits, the name with a NUL, the data; header with name, and data, are padded to four bytes. */
#include "image/cpio.h"

enum { BLOCK = 512, DIR_MODE = 040755, FILE_MODE = 0100000 };

void image_cpio_init(struct image_cpio *c, size_t max)
{
	*c = (struct image_cpio) { .ino = 1 };
	buf_init(&c->out, max);
}

static void pad(struct image_cpio *c, size_t to)
{
	static const char zero[BLOCK];

	if (c->r == 0 && c->out.n % to)
		c->r = buf_add(&c->out, zero, to - c->out.n % to);
}

static void entry(struct image_cpio *c, const char *name, unsigned mode, const void *p, size_t n)
{
	if (c->r == 0 && n > UINT32_MAX)
		c->r = -EFBIG;
	if (c->r == 0)
		c->r = buf_printf(&c->out,
				  "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
				  c->ino++, mode, 0U, 0U, 1U, 0U, (unsigned)n, 0U, 0U, 0U, 0U,
				  (unsigned)strlen(name) + 1, 0U);
	if (c->r == 0)
		c->r = buf_add(&c->out, name, strlen(name) + 1);
	pad(c, 4);
	if (c->r == 0 && n)
		c->r = buf_add(&c->out, p, n);
	pad(c, 4);
}

void image_cpio_dir(struct image_cpio *c, const char *name)
{
	entry(c, name, DIR_MODE, NULL, 0);
}

void image_cpio_file(struct image_cpio *c, const char *name, unsigned mode, const void *p, size_t n)
{
	entry(c, name, FILE_MODE | mode, p, n);
}

int image_cpio_end(struct image_cpio *c)
{
	c->ino = 0;
	entry(c, "TRAILER!!!", 0, NULL, 0);
	pad(c, BLOCK);
	return c->r;
}

void image_cpio_done(struct image_cpio *c)
{
	buf_done(&c->out);
}
