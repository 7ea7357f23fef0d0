#pragma once
/* Has a secret gone by? Asked of streams by processes that must not hold the secret: they hold marks of it.
 *
 * A mark is the length of a secret's bytes in one of their forms and two keyed hashes: of its first LEAK_WINDOW bytes and of all. The key is of one
 * sandbox and random. A scanner rolls a hash over the last LEAK_WINDOW bytes; where that is a mark's, it goes on to hash until the length is
 * full, and compares: so that what begins alike (sk-ant-api03-...) is no hit. Hashes are polynomials modulo 2^61-1.
 * Forms of a value: as it is; base64, standard and url-safe, at each of the three alignments (the part that does not depend on its neighbours); percent-encoded where that
 * differs; hex in both cases. A value, and a form, shorter than LEAK_WINDOW bytes has no mark: it could be anything.
 * About a nanosecond a byte; a set without marks costs nothing. */
#include "base/buf.h"

enum {
	LEAK_WINDOW = 16,
	LEAK_MARKS_MAX = 2048,
	LEAK_NAME_MAX = 63,
	LEAK_OPEN_MAX = 16,
	LEAK_SET_MAX = 256 * 1024
};

struct leak_mark {
	uint64_t head, all;
	uint32_t length;
	char name[LEAK_NAME_MAX + 1]; /* what people are told: "anthropic" */
};

struct leak_set {
	uint64_t key; /* 1 to 2^61-2 */
	uint32_t n;
	struct leak_mark *v; /* sorted by head */
	uint64_t power;      /* key^(LEAK_WINDOW-1) */
	uint8_t filter[512]; /* a bit for each head: most windows are none */
};

/* For the holder of values: marks of all forms of one into an array of at least 16. How many. */
size_t leak_marks(uint64_t key, const char *name, const uint8_t *value, size_t n,
		  struct leak_mark *ret, size_t max);
/* Takes v over. 0, -E2BIG, -ENOMEM (then v is the caller's). */
int leak_set_init(struct leak_set *s, uint64_t key, struct leak_mark *v, size_t n) _must_check_;
void leak_set_done(struct leak_set *s);
/* As bytes, for other processes. 0, -ENOBUFS, -ENOMEM; parse: 0, -EPROTO, -ENOMEM. Hostile bytes are fine. */
int leak_set_put(struct buf *out, const struct leak_set *s) _must_check_;
int leak_set_parse(struct leak_set *ret, const uint8_t *p, size_t n) _must_check_;

/* One stream. Zeros: at its beginning. A set may be replaced by another between two calls. */
struct leak_scan {
	uint64_t roll;
	uint64_t seen; /* bytes so far */
	uint8_t last[LEAK_WINDOW];
	uint8_t n_open;
	struct {
		uint64_t start, hash;
		uint32_t mark;
	} open[LEAK_OPEN_MAX];
	const struct leak_set *set; /* that the open ones are of */
};
struct leak_hit {
	uint64_t start; /* offset in the stream */
	uint32_t length;
	const char *name;
};
/* Goes through n bytes; stops behind the last byte of the first hit: *ret is set, and the bytes used are returned. No hit: returns n, and ret->length is 0. */
size_t leak_scan(struct leak_scan *c, const struct leak_set *s, const uint8_t *p, size_t n,
		 struct leak_hit *ret);
/* The offset in the stream from which on bytes may still turn out to be one; what is seen is behind it (== c->seen: none). Who blanks holds these back. */
uint64_t leak_held(const struct leak_scan *c);
