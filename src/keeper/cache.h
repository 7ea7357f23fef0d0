#pragma once
/* Values by their keys, for as long as they are good, and who waits for them. However many wait for a key, it is asked for once.
 *
 * Makes no system call and sends nothing: it says what is to be asked, and is told the answers. Times are monotonic nanoseconds. What waits is the caller's: this
 * links it up and hands it back, once. */
#include "base/base.h"

enum {
	CACHE_KEYS_MAX = 1024,
	CACHE_WAITS_MAX = 4096,
	CACHE_VALUE_MAX = 16 * 1024,
	CACHE_TEXT_MAX = 255,
	CACHE_FAILED_MS =
		2000, /* a failure is remembered: a guest that asks on and on starts no command each time */
};

enum cache_answer {
	CACHE_HAVE = 1, /* value and n are set, until the next call */
	CACHE_FAILED,   /* text is set, likewise */
	CACHE_ASK,      /* number is set: the key is to be asked for with it */
	CACHE_WAIT,     /* it has been asked for */
};

/* At the head of the caller's own struct, from the heap. */
struct cache_wait {
	struct cache_wait *next;
};

struct cache_reply {
	const uint8_t *value;
	size_t n;
	const char *text;
	uint32_t number;
};

struct cache;

int cache_new(struct cache **ret) _must_check_; /* 0, -ENOMEM */
/* What waits must have been taken out. */
struct cache *cache_free(struct cache *c);
DEFINE_FREEP(struct cache, cache_free)

/* An enum cache_answer; with ASK and WAIT, w is linked up. -E2BIG (too many keys, too many wait), -ENOMEM: nothing was done. */
int cache_want(struct cache *c, const char *key, uint64_t now, struct cache_wait *w,
	       struct cache_reply *ret) _must_check_;

/* The value is wanted if it need not be made first. CACHE_ASK: to be peeked for; CACHE_WAIT: it is on its way; CACHE_HAVE; -E2BIG, -ENOMEM. */
int cache_peek(struct cache *c, const char *key, struct cache_reply *ret) _must_check_;
/* How many peeks have no answer yet. */
size_t cache_peeking(const struct cache *c);

/* An answer came. *ret is who waited, in the order they came; *ret_key is the key, borrowed, or NULL: nobody asked with that number any
 * more. seconds: UINT64_MAX, until it is forgotten; 0: for those who wait. A value that there is no memory for is not kept. */
void cache_got(struct cache *c, uint32_t number, const uint8_t *value, size_t n, uint64_t seconds,
	       uint64_t now, const char **ret_key, struct cache_wait **ret);
/* There is none. why "": to a peek, it must be made first; for those who wait meanwhile it then is CACHE_ASK, with *ret_number; else 0. */
int cache_not(struct cache *c, uint32_t number, const char *why, uint64_t now, const char **ret_key,
	      struct cache_wait **ret, uint32_t *ret_number);

/* It was changed by us: good until forgotten or saved, and an answer that is on its way is not any more. *ret is who waits. 0, -E2BIG;
 * -ENOMEM: it is not kept. */
int cache_put(struct cache *c, const char *key, const uint8_t *value, size_t n,
	      struct cache_wait **ret) _must_check_;

/* What was put is where it is asked for, too: from now on that goes. */
void cache_saved(struct cache *c, const char *key);
/* Was it put, and not saved since? Then *ret has it, until the next call. */
bool cache_unsaved(const struct cache *c, const char *key, struct cache_reply *ret);

/* It may be another by now: it is asked for again when it is wanted. What was put and is not saved stays. */
void cache_doubt(struct cache *c, const char *key);

/* All values and failures go. What is on its way is not good any more: cache_again() says what to ask anew. */
void cache_forget(struct cache *c);
/* The next key that must be asked for again, with *ret_number; NULL: none. *ret_peek: it is a peek. */
const char *cache_again(struct cache *c, uint32_t *ret_number, bool *ret_peek);

/* All who wait. asked: whoever answers is gone too, and what was on its way is not. */
struct cache_wait *cache_take_all(struct cache *c, bool asked);
