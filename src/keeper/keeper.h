#pragma once
/* One keeper: what its files share. */
#include "base/err.h"
#include "keeper/ca.h"
#include "keeper/cache.h"
#include "keeper/judge.h"
#include "keeper/marks.h"
#include "keeper/peer.h"
#include "keeper/turn.h"

struct tokens;

struct keeper {
	struct peer supervisor, minder, proxy, fetch;
	struct judge judge;
	struct ca *ca;
	struct scope scope; /* of the authority's certificate */
	struct cache *cache;
	struct marks *marks;
	struct tokens *tokens;         /* that are being written: asks.c */
	struct turn *turns;            /* turn.c; the oldest first */
	bool certified;                /* scope is of a certificate */
	bool fetch_lost;               /* it could not be asked */
	bool marks_due;                /* the supervisor has not been told of the newest */
	uint32_t last_put;             /* or turn */
	char why[KEEPER_TEXT_MAX + 1]; /* the proxy did what it must not; asks_take() */
};

/* asks.c: the requests of the proxy, and what bac-fetch answers. */

/* One message of the proxy. 0; -EPROTO: it must not ask that, k->why says what. -errno: it is gone or does not read. */
int asks_take(struct keeper *k, const struct keeper_msg *m) _must_check_;
/* One of bac-fetch. 0, or -EPROTO. */
int asks_answer(struct keeper *k, const struct keeper_msg *m) _must_check_;
/* The credentials are others: forget all, and have a look at the values that are there. */
void asks_credentials(struct keeper *k);
/* Nobody waits any more: the proxy is gone. */
void asks_proxy_gone(struct keeper *k);
/* What was not answered has failed: bac-fetch is gone. */
void asks_fetch_gone(struct keeper *k);

/* A question to bac-fetch. Where that is not possible, all that was asked has failed: at the end of the turn. */
void asks_fetch(struct keeper *k, uint8_t type, uint32_t number, const char *key);
/* A number for one that is none of the cache's. */
uint32_t asks_number(struct keeper *k);

/* serve.c */

/* 0, -ENOMEM, -EIO. The descriptors are taken over. */
int keeper_open(struct keeper *k, const char *sandbox, int supervisor, int minder) _must_check_;
void keeper_done(struct keeper *k);
/* One message of the supervisor or the minder ('S', 'M'), with fd or -1, which is taken over. 0, or -errno: it is the end. */
int keeper_order(struct keeper *k, char from, const struct keeper_msg *m, int fd) _must_check_;
/* Until the supervisor hangs up: 0; -errno: a message of it was not understood. */
int keeper_serve(struct keeper *k) _must_check_;
/* A line for the sandbox's log. */
void keeper_say(struct keeper *k, const char *fmt, ...) _printf_(2, 3);
/* The newest marks, if there are any and no others are on their way. */
void keeper_tell_marks(struct keeper *k);
