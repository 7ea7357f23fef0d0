/* Byte queue. Grows by doubling; moves to the front only when it would have to grow. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

enum { KEEP = 64 * 1024 };

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf)BUF_INIT(max);
}

void buf_done(struct buf *b)
{
	free(b->p);
	*b = (struct buf)BUF_INIT(b->max);
}

void *buf_room(struct buf *b, size_t len)
{
	size_t cap;
	uint8_t *p;

	if (len > b->max - b->n || len > SIZE_MAX / 4 - b->n)
		return NULL;
	if (b->cap - b->off - b->n >= len && b->p)
		return b->p + b->off + b->n;
	if (b->off && b->p) {
		memmove(b->p, b->p + b->off, b->n);
		b->off = 0;
	}
	if (b->cap - b->n >= len && b->p)
		return b->p + b->n;

	cap = b->cap ? b->cap : 256;
	while (cap - b->n < len)
		cap *= 2;
	p = realloc(b->p, cap);
	if (!p)
		return NULL;
	b->p = p;
	b->cap = cap;
	return b->p + b->n;
}

void buf_added(struct buf *b, size_t len)
{
	b->n += len;
}

int buf_add(struct buf *b, const void *p, size_t len)
{
	void *to;

	if (len > b->max - b->n)
		return -ENOBUFS;
	to = buf_room(b, len);
	if (!to)
		return -ENOMEM;
	if (len)
		memcpy(to, p, len);
	b->n += len;
	return 0;
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	size_t max = b->max;
	va_list ap;
	char *to;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -EINVAL;
	if ((size_t)n > b->max - b->n)
		return -ENOBUFS;
	/* the NUL of vsnprintf() is no content: it may lie behind the maximum */
	b->max = max == SIZE_MAX ? max : max + 1;
	to = buf_room(b, (size_t)n + 1);
	b->max = max;
	if (!to)
		return -ENOMEM;
	va_start(ap, fmt);
	(void)vsnprintf(to, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->n += (size_t)n;
	return 0;
}

void buf_consume(struct buf *b, size_t len)
{
	b->off += len;
	b->n -= len;
	if (b->n)
		return;
	b->off = 0;
	if (b->cap > KEEP)
		buf_done(b);
}

const char *buf_str(struct buf *b)
{
	size_t max = b->max;
	char *end;

	b->max = max == SIZE_MAX ? max : max + 1;
	end = buf_room(b, 1);
	b->max = max;
	if (!end)
		return NULL;
	*end = '\0';
	return (const char *)b->p + b->off;
}
