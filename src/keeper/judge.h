#pragma once
/* What the proxy may have, by the keeper's own copies of what was decided: those in force, and those before, which the proxy may still have. */
#include "policy/cred.h"
#include "policy/net.h"

struct judge { /* zeros: nothing */
	struct cred_set *cred, *cred_before;
	struct net_policy *net, *net_before;
};

enum judge_verdict {
	JUDGE_NEVER = 0, /* neither copy allows it */
	JUDGE_LONGER,    /* the copy before did */
	JUDGE_YES,
};

/* What comes takes the place of what is in force, and that the place of the one before. Takes it over; NULL: nothing is allowed by it. */
void judge_cred(struct judge *j, struct cred_set *s);
void judge_net(struct judge *j, struct net_policy *p);
void judge_done(struct judge *j);

/* A certificate for this destination? */
enum judge_verdict judge_leaf(const struct judge *j, const struct host *h, uint16_t port);
/* The use of this id, at this destination. *ret_use is set with YES, in whatever state it is; owned by j, until the next judge_cred(). */
enum judge_verdict judge_use(const struct judge *j, const char *id, const struct host *h,
			     uint16_t port, const struct cred_use **ret_use);
