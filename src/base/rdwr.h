#pragma once
/* The door through which untrusted bytes come in, and the one through which ours go out.
 *
 * A reader never moves backwards, never allocates, and once a read fails every later read
 * yields zero. Callers read everything they need and ask rd_done() once. A writer likewise:
 * it fills a fixed array, remembers that it ran over, and is asked once with wr_ok().
 * All numbers are big endian. */
#include "base/base.h"

struct rd {
	const uint8_t *p;
	size_t n;
	bool bad;
};

static inline struct rd rd_init(const void *p, size_t n)
{
	struct rd r = { .p = p, .n = n };

	return r;
}

/* The next len bytes, borrowed, or NULL. */
static inline const uint8_t *rd_take(struct rd *r, size_t len)
{
	const uint8_t *p = r->p;

	if (r->bad || r->n < len) {
		r->bad = true;
		return NULL;
	}
	r->p += len;
	r->n -= len;
	return p;
}

static inline uint8_t rd_u8(struct rd *r)
{
	const uint8_t *p = rd_take(r, 1);

	return p ? p[0] : 0;
}

static inline uint16_t rd_be16(struct rd *r)
{
	const uint8_t *p = rd_take(r, 2);

	return p ? (uint16_t)(p[0] << 8 | p[1]) : 0;
}

static inline uint32_t rd_be32(struct rd *r)
{
	const uint8_t *p = rd_take(r, 4);

	return p ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3] : 0;
}

static inline uint64_t rd_be64(struct rd *r)
{
	uint64_t hi = rd_be32(r);

	return hi << 32 | rd_be32(r);
}

/* A text: be32 length, the bytes, one NUL that the length does not count. Borrowed, and
 * usable as a C string: a NUL inside makes the reader bad. max is the longest length taken. */
const char *rd_str(struct rd *r, size_t max);

/* True if every read fitted and nothing is left over. */
static inline bool rd_done(const struct rd *r)
{
	return !r->bad && r->n == 0;
}

struct wr {
	uint8_t *p; /* start of the array; owned by the caller */
	size_t n;   /* bytes written */
	size_t max;
	bool bad;
};

static inline struct wr wr_init(void *p, size_t max)
{
	struct wr w = { .p = p, .max = max };

	return w;
}

/* len bytes to be filled by the caller, or NULL. */
static inline uint8_t *wr_room(struct wr *w, size_t len)
{
	uint8_t *p;

	if (w->bad || w->max - w->n < len) {
		w->bad = true;
		return NULL;
	}
	p = w->p + w->n;
	w->n += len;
	return p;
}

static inline void wr_bytes(struct wr *w, const void *src, size_t len)
{
	uint8_t *p = wr_room(w, len);

	if (p && len)
		memcpy(p, src, len);
}

static inline void wr_u8(struct wr *w, uint8_t v)
{
	wr_bytes(w, &v, 1);
}

static inline void wr_be16(struct wr *w, uint16_t v)
{
	uint8_t b[2] = { (uint8_t)(v >> 8), (uint8_t)v };

	wr_bytes(w, b, sizeof(b));
}

static inline void wr_be32(struct wr *w, uint32_t v)
{
	wr_be16(w, (uint16_t)(v >> 16));
	wr_be16(w, (uint16_t)v);
}

static inline void wr_be64(struct wr *w, uint64_t v)
{
	wr_be32(w, (uint32_t)(v >> 32));
	wr_be32(w, (uint32_t)v);
}

/* The counterpart of rd_str(); NULL is written as the empty text. */
void wr_str(struct wr *w, const char *s);
/* The same for a text of at most max bytes: what rd_str(max) would not take is not written, and the writer is bad. */
void wr_text(struct wr *w, const char *s, size_t max);
/* And for people: no more than max bytes of it, cut on a character's border (UTF-8), so that a long name
 * cannot keep a message from them. */
void wr_cut(struct wr *w, const char *s, size_t max);

static inline bool wr_ok(const struct wr *w)
{
	return !w->bad;
}
