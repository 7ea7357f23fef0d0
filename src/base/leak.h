#pragma once
/* Has a secret gone by? Asked of streams by processes that must not hold the secret: they hold marks of it.
 *
 * A mark is the length of a secret's bytes in one of their forms and keyed hashes: `head` of its first LEAK_WINDOW bytes, `all` of all, and `word`s of
 * the eight bytes at each of its first LEAK_WORDS places. The key is of one sandbox and random. Wherever a window lies in a stream, it holds one whole
 * word of every eighth place: so a scanner asks only these whether they are a mark's, rolls a hash over the windows about one that is, and where that is a
 * head, goes on to hash until the length is full, and compares: so that what begins alike (sk-ant-api03-...) is no hit.
 *
 * What marks give away. Words and a hash that rolls are linear: who has key and marks can compute the first LEAK_WINDOW bytes of a value. `all` is
 * SHA-256 (cut), so that the rest stays unknown; a value of less than some 24 random bytes can be guessed from it. So marks go to processes, never into a file or a log.
 *
 * Forms of a value: as it is; base64, standard and url-safe, at each of the three alignments (the part that does not depend on its neighbours); percent-encoded
 * and as a JSON string where those differ; hex in both cases. A value, and a form, shorter than LEAK_WINDOW bytes has no mark: it could be anything. Not
 * found: what is cut into lines, compressed, encrypted, encoded twice.
 * Some 0.15 ns a byte; a set without marks costs nothing. */
#include "base/buf.h"
#include "base/sha256.h"

enum {
	LEAK_WINDOW = 16,
	LEAK_WORD = 8, /* bytes */
	LEAK_WORDS = LEAK_WINDOW - LEAK_WORD,
	LEAK_MARKS_MAX = 2048,
	LEAK_NAME_MAX = 63,
	LEAK_OPEN_MAX = 16,
	LEAK_FORMS_MAX = 16,
	LEAK_LENGTH_MAX = 128 * 1024, /* of a form */
	LEAK_SET_MAX = 128 * 1024     /* bytes of leak_set_put() */
};

struct leak_mark {
	uint64_t head, all;
	uint32_t length;
	uint16_t word[LEAK_WORDS];
	char name[LEAK_NAME_MAX + 1]; /* what people are told: "anthropic" */
};

struct leak_set {
	uint64_t key;   /* odd */
	uint64_t stamp; /* of its content: two sets of the same stamp are the same; never 0 */
	uint32_t n;
	struct leak_mark *v;   /* sorted by head */
	uint64_t gone[256];    /* what a byte that leaves the window takes with it */
	uint64_t filter[1024]; /* a bit for each head: most windows are none */
	uint64_t words[1024];  /* a bit for each word: so are most words */
};

/* For the holder of values: marks of all forms of one into an array of LEAK_FORMS_MAX. How many. Any key will do (its lowest bit does not count); of 64 random bits. A
 * name is cut, and bytes that do not print become '?'. */
size_t leak_marks(uint64_t key, const char *name, const uint8_t *value, size_t n,
		  struct leak_mark *ret, size_t max);
/* Takes v (from the heap, or NULL) over. 0, or -E2BIG (then v is the caller's). */
int leak_set_init(struct leak_set *s, uint64_t key, struct leak_mark *v, size_t n) _must_check_;
/* Wipes. Zeros are fine, and what it leaves is an empty set. */
void leak_set_done(struct leak_set *s);
/* As bytes, for other processes: be64 key, be32 count, then for each be64 head, be64 all, be32 length, LEAK_WORDS times be16 word, u8 and as many bytes of name. At most LEAK_SET_MAX.
 * 0, -ENOBUFS, -ENOMEM; parse: 0, -EPROTO, -ENOMEM. Hostile bytes are fine. */
int leak_set_put(struct buf *out, const struct leak_set *s) _must_check_;
int leak_set_parse(struct leak_set *ret, const uint8_t *p, size_t n) _must_check_;

/* One stream. Zeros: at its beginning. A set may be replaced by another between two calls: what had begun is forgotten. Owns nothing. */
struct leak_scan {
	uint64_t roll;
	uint64_t seen; /* bytes so far */
	uint64_t set;  /* stamp of the set that the rest is of, 0: none */
	uint8_t last[LEAK_WINDOW];
	uint8_t n_open;
	struct leak_open {
		uint64_t start;
		uint32_t mark;
		struct sha256 hash;
	} open[LEAK_OPEN_MAX]; /* more than these at once (a secret of one repeated pattern): the later ones are not looked at */
};
struct leak_hit {
	uint64_t start; /* offset in the stream */
	uint32_t length;
	const char *name; /* the set's */
};
/* Goes through n bytes; stops behind the last byte of the first hit (of several that end there: the longest): *ret is set, and the bytes used are returned. No
 * hit: returns n, and ret->length is 0. s may be NULL. */
size_t leak_scan(struct leak_scan *c, const struct leak_set *s, const uint8_t *p, size_t n,
		 struct leak_hit *ret);
/* The offset in the stream from which on bytes have begun like a secret, with LEAK_WINDOW bytes or more, and may turn out to be one; c->seen: none. Who blanks holds these back. Less
 * than LEAK_WINDOW bytes are not held: a stream that pauses anywhere would stall. */
uint64_t leak_held(const struct leak_scan *c);
