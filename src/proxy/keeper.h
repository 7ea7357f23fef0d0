#pragma once
/* The proxy's side of the conversation with bac-keeper (wire/keeper.h): what it asks, and certificates that it was given. Values are handed on and wiped; none is kept.
 *
 * A keeper may be missing, or go at any time: then everything that was asked is answered with NULL, and what is asked from then on fails at once, until there is another. */
#include "policy/host.h"
#include "proxy/loop.h"
#include "wire/keeper.h"

struct keeper;
struct tls_leaf;

/* A question, a member of the asker's own struct; zeroed: nothing is asked. What it points to stays until done(). */
struct keeper_ask {
	struct keeper_ask *prev, *next;
	bool sent;
	bool shared; /* a VALUE that may be answered together with others of this round that ask for the same: each hears the one answer */
	struct keeper_msg m;
	/* m: LEAF_IS, VALUE_IS, NO or KEPT, gone when it returns; NULL: there is no keeper (any more). Not called from within keeper_ask(). */
	void (*done)(struct keeper_ask *a, const struct keeper_msg *m);
};

int keeper_new(struct loop *l, void (*say)(void *arg, const char *line), void *arg,
	       struct keeper **ret) _must_check_;
/* The conversation from now on. Takes fd over. What had been asked is answered with NULL. */
void keeper_set(struct keeper *k, int fd);
bool keeper_there(const struct keeper *k);

/* m.type is LEAF, VALUE or TOKENS; the number is given by this, and is another later if it is shared. Goes at the end of the round. 0, or -ENOTCONN. */
int keeper_ask(struct keeper *k, struct keeper_ask *a) _must_check_;
void keeper_cancel(struct keeper *k, struct keeper_ask *a);
/* The turn of a VALUE with that number is over (wire/keeper.h), answered or not. If that cannot be said it ends by itself, later. */
void keeper_over(struct keeper *k, uint32_t number);

/* A certificate for this destination that is good for a while, or NULL: ask for one, and give the answer (LEAF_IS) to keeper_leaf_is(). Owned by the keeper, of use until the
 * next call. */
const struct tls_leaf *keeper_leaf(struct keeper *k, const char *host, uint16_t port);
const struct tls_leaf *keeper_leaf_is(struct keeper *k, const char *host, uint16_t port,
				      const struct keeper_msg *m);
/* Certificates of before are not used any more: what may be opened has changed. */
void keeper_forget_leaves(struct keeper *k);
