#pragma once
/* What the sandbox's authority may certify: the hosts that are opened, as X.509's name constraints can say it.
 *
 * The list is as short as it can be: what lies below something that is there is not there. One that would still be too long to be shown in every
 * handshake is made coarser: names by their last two labels, and if that is not enough, all names. */
#include "policy/cred.h"
#include "policy/net.h"

enum { SCOPE_BYTES_MAX = 6 * 1024 }; /* of all names and ranges */

struct scope {
	bool all; /* every name; then there are none in the list */
	size_t n_names, n_ranges;
	char **names; /* each with all below it; sorted */
	struct net_span *ranges;
};

/* Of the uses and the rules with a method; either may be NULL. 0: exact; 1: it was made coarser; -ENOMEM. */
int scope_make(const struct cred_set *cred, const struct net_policy *net, struct scope *ret)
	_must_check_;
bool scope_same(const struct scope *a, const struct scope *b);
/* Zeros are fine. */
void scope_done(struct scope *s);
