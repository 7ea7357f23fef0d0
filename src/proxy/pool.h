#pragma once
/* Connections to servers whose TLS we speak: dialled, verified, kept for the next request of whichever guest connection.
 *
 * A connection that is not used is closed after a minute, by a timer that sleeps; one that its server closes is gone at once. Of more than POOL_IDLE_H1 that wait unused for one
 * destination the others are closed after POOL_EXTRA_MS. A connection whose address the policy does not allow any more is cut when that changes. */
#include "proxy/dial.h"
#include "proxy/xchg.h"

enum {
	POOL_IDLE_MS = 60 * 1000,
	POOL_IDLE_H1 = 16,
	POOL_EXTRA_MS = 2000,
	POOL_H2_MAX = 4,      /* connections of HTTP/2 to one destination */
	POOL_CONNS_MAX = 256, /* to one destination, of any kind */
	POOL_HOSTS_MAX = 512, /* destinations; those without a connection go when there are more */
	POOL_SHAKE_MS = 10 * 1000,
};

struct pool;

/* Why there is no connection. */
struct pool_fault {
	bool refused;   /* by the policy */
	bool untrusted; /* the server's certificate is not accepted */
	const char *rule, *reason;
	const char *note; /* for people */
};

/* Who waits for a connection with room. A member of the waiter's struct; zeroed: waits for nothing. */
struct pool_wait {
	struct pool_wait *next, **link;
	bool h2;    /* HTTP/2 would be welcome */
	bool h1;    /* only HTTP/1 (an upgrade) */
	bool fresh; /* only one that has carried nothing */
	/* One of them, once, never from within pool_get(). b: begin at once, or leave it. address: whom it is to, as text. */
	void (*got)(struct pool_wait *w, struct back *b, const char *address);
	void (*failed)(struct pool_wait *w, const struct pool_fault *why);
};

int pool_new(struct proxy *p, struct pool **ret) _must_check_;
void pool_get(struct pool *pool, const struct host *host, uint16_t port, struct pool_wait *w);
void pool_cancel(struct pool_wait *w);
/* What the server speaks is known. *ret_h2: HTTP/2; *ret_connect: and extended CONNECT. */
bool pool_knows(struct pool *pool, const struct host *host, uint16_t port, bool *ret_h2,
		bool *ret_connect);
/* An exchange on b has begun; is over. */
void pool_began(struct back *b);
void pool_ended(struct back *b);
/* The policy has changed: what it does not allow any more is cut. */
void pool_judge(struct pool *pool);
/* The trusted authorities have changed: no connection of before is used for another request. */
void pool_renew(struct pool *pool);
