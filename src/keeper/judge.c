#include "keeper/judge.h"

void judge_cred(struct judge *j, struct cred_set *s)
{
	(void)cred_set_free(j->cred_before);
	j->cred_before = j->cred;
	j->cred = s;
}

void judge_net(struct judge *j, struct net_policy *p)
{
	(void)net_policy_free(j->net_before);
	j->net_before = j->net;
	j->net = p;
}

void judge_done(struct judge *j)
{
	(void)cred_set_free(j->cred);
	(void)cred_set_free(j->cred_before);
	(void)net_policy_free(j->net);
	(void)net_policy_free(j->net_before);
	memset(j, 0, sizeof(*j));
}

static bool opens(const struct cred_set *s, const struct net_policy *p, const struct host *h,
		  uint16_t port)
{
	const struct net_request q = { .host = h, .port = port };

	return cred_opens(s, h, port) || net_decide(p, &q).verdict == NET_NEEDS_HTTP;
}

enum judge_verdict judge_leaf(const struct judge *j, const struct host *h, uint16_t port)
{
	if (opens(j->cred, j->net, h, port))
		return JUDGE_YES;
	return opens(j->cred_before, j->net_before, h, port) ? JUDGE_LONGER : JUDGE_NEVER;
}

static const struct cred_use *use_of(const struct cred_set *s, const char *id, const struct host *h,
				     uint16_t port)
{
	const struct cred_use *u = cred_find(s, id);

	return u && cred_matches(u, h, port) ? u : NULL;
}

enum judge_verdict judge_use(const struct judge *j, const char *id, const struct host *h,
			     uint16_t port, const struct cred_use **ret_use)
{
	const struct cred_use *u = use_of(j->cred, id, h, port);

	if (u)
		*ret_use = u;
	if (u)
		return JUDGE_YES;
	return use_of(j->cred_before, id, h, port) ? JUDGE_LONGER : JUDGE_NEVER;
}
