#pragma once
/* A connection of the guest's whose TLS we open: since a credential belongs on its requests, or rules speak of them.
 *
 *   HELLO   the ClientHello is read
 *   SERVER  what the server speaks is not known: it is dialled (pool.h)
 *   LEAF    the keeper is asked for a certificate
 *   SHAKE   the rest of the handshake
 *   HTTP    a front serves requests (xchg.h) */
#include "proxy/flow.h"
#include "proxy/keeper.h"
#include "proxy/pool.h"

enum open_stage { OPEN_HELLO, OPEN_SERVER, OPEN_LEAF, OPEN_SHAKE, OPEN_HTTP };

enum {
	OPEN_SHAKE_MS = 60 * 1000, /* a guest may be an emulated one that is busy */
	OPEN_SERVER_MS = 25 * 1000 /* while it is dialled */,
	OPEN_FIRST_MS = 60 * 1000,
	OPEN_IDLE_MS = 10 * 60 * 1000
};

struct open {
	struct flow *f;
	uint8_t stage;
	bool h2;        /* the client speaks it */
	struct chan *c; /* until there is a front */
	struct front *front;
	struct pool_wait wait;
	struct keeper_ask ask;
	struct xchg *xchgs; /* under way */
	unsigned n_xchgs;
};

/* Is this destination's TLS opened? answer: what the policy says of the connection. */
bool open_wanted(const struct flow *f, const struct net_answer *answer);
/* The ClientHello is in the client's socket. False: no memory, or no keeper (*ret_why): nothing has changed. */
bool open_begin(struct flow *f, const char **ret_why) _must_check_;
void open_done(struct flow *f); /* of one that is not opened too */
void open_late(struct flow *f); /* the timer */
/* Policy or credentials have changed: what is not allowed any more is cut. */
void open_recheck(struct flow *f);
/* The credentials become these; those of before are still there. */
void open_credentials(struct flow *f, const struct cred_set *now);

/* Of all connections: made at the first use. NULL: no memory. */
struct tls *proxy_tls(struct proxy *p);
/* Another list of authorities has come. */
void proxy_trust(struct proxy *p);
struct back *open_back(struct loop *l, struct chan *c, void *owner, void (*changed)(void *owner))
	_must_check_;

/* ---- of xchg.c, for open.c ---- */
void xchg_recheck(struct xchg *x);
void xchg_credentials(struct xchg *x, const struct cred_set *now);
struct xchg *xchg_next(struct xchg *x);
