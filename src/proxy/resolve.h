#pragma once
/* Names to addresses, by the host's own configuration: its hosts file and its name servers (c-ares).
 *
 * Everything asked here is allowed: who asks has decided before. Answers are kept as long as they say, at most a minute. */
#include "policy/host.h"
#include "proxy/loop.h"

enum { ADDRS_MAX = 32 };

struct addr {
	uint8_t len; /* 4 or 16 */
	uint8_t b[16];
};

struct addrs {
	size_t n;
	struct addr v[ADDRS_MAX];
};

struct resolver;
struct lookup;

/* For the whole life of the process. Reads files: before the seal. */
int resolver_new(struct loop *l, struct resolver **ret) _must_check_;
/* The texts of resolv.conf and of hosts; copied. */
void resolver_set(struct resolver *r, const char *conf, const char *hosts);

/* 1 and *ret: known already. 0: resolver_look() has to ask. */
int resolver_known(struct resolver *r, const struct host *name, struct addrs *ret) _must_check_;
/* done is called later, once: code 0 and addresses (at least one), -ENOENT (there is no such name, or it has no address), -ETIMEDOUT,
 * -EIO. NULL: no memory, or too many at once. */
struct lookup *resolver_look(struct resolver *r, const struct host *name,
			     void (*done)(void *arg, int code, const struct addrs *a), void *arg)
	_must_check_;
void resolver_cancel(struct lookup *k);
