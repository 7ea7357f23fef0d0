#pragma once
/* Telling sandboxes that run something that has changed: a policy, credentials. */
#include "cli/ctx.h"
#include "cli/door.h"

struct push {
	/* What to tell this one, as a sealed memory file. */
	int (*file)(struct ctx *c, const struct sandbox *b, void *arg, int *ret_fd, struct err *e);
	/* Hand it over and wait until it holds: door_policy(), door_credentials(). */
	int (*tell)(struct door *d, const char *name, int fd, uint64_t deadline, struct err *e);
	void *arg;
	const char
		*kept; /* what is true all the same if one cannot be told: "the rules are kept" */
};

/* b, or with NULL all that run. Ends when each applies it. A sandbox that does not take it is said and named in the error; the
 * others are told all the same. The caller holds a lock that keeps what is told in order. */
int push_change(struct ctx *c, const struct push *p, const struct sandbox *b, struct err *e)
	_must_check_;

/* A memory file that nobody can change any more; the caller owns it. 0 or -errno. */
int push_seal(const char *name, const struct buf *text, int *ret_fd) _must_check_;
