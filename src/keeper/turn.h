#pragma once
/* Turns with a refresh token (wire/keeper.h): who may show it to its provider, one after the other. bac-fetch sees to it between sandboxes, with a lock; this within
 * one: of each key one turn is asked for, the others wait behind it, so that a few children of bac-fetch are enough whatever a guest asks. */
#include "keeper/cache.h"
#include "policy/cred.h"

struct keeper;

enum { TURNS_MAX = 64, TURNS_ASKED_MAX = 4 };

struct turn {
	struct turn *next;
	struct cache_wait *wait; /* NULL: it has been told */
	uint32_t number;         /* the proxy's */
	uint32_t asked;          /* bac-fetch's; 0: another is before it */
	char key[CRED_KEY_MAX + 1];
};

/* A VALUE of that number waits for its turn; the wait is taken over. 0; -E2BIG, -ENOMEM: nothing was done. */
int turn_new(struct keeper *k, uint32_t number, const char *key, struct cache_wait *w) _must_check_;
/* The one that bac-fetch was asked for by that number, or NULL. Borrowed, until it ends. */
struct turn *turn_asked(const struct keeper *k, uint32_t number);
/* It is over, and the next begins. Its wait, if there is one, is freed: nobody hears of it. */
void turn_end(struct keeper *k, struct turn *t);
/* Those with that number of the proxy's. */
void turn_over(struct keeper *k, uint32_t number);
/* All of them: the proxy is gone. */
void turns_drop(struct keeper *k);
