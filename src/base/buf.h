#pragma once
/* A growing byte queue with a maximum that is named when it is made.
 *
 * Bytes are appended at the end and consumed at the front. An append that would pass the
 * maximum fails as a whole and leaves the buffer as it was. */
#include "base/base.h"

struct buf {
	uint8_t *p;
	size_t off; /* consumed bytes before the first valid one */
	size_t n;   /* valid bytes */
	size_t cap;
	size_t max;
};

#define BUF_INIT(m) \
	{ \
		.max = (m) \
	}

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b); /* frees; the buffer may be used again */

static inline const uint8_t *buf_data(const struct buf *b)
{
	return b->p ? b->p + b->off : NULL;
}

static inline size_t buf_space(const struct buf *b)
{
	return b->max - b->n;
}

/* len bytes of room at the end, not yet valid: fill some and call buf_added(). Returns NULL on
 * lack of memory or when the maximum would be passed. */
void *buf_room(struct buf *b, size_t len) _must_check_;
void buf_added(struct buf *b, size_t len);

/* 0, -ENOBUFS (maximum) or -ENOMEM. */
int buf_add(struct buf *b, const void *p, size_t len) _must_check_;
int buf_printf(struct buf *b, const char *fmt, ...) _printf_(2, 3) _must_check_;

/* Drop len bytes at the front. An empty buffer gives its memory back above 64 KiB. */
void buf_consume(struct buf *b, size_t len);

/* The content as a C string, owned by the buffer and valid until the next call; NULL on lack
 * of memory. The NUL is not part of the content. */
const char *buf_str(struct buf *b);
