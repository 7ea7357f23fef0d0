/* What is opened by a credential alone. */
#include <stdio.h>

#include "kit/kit.h"
#include "policy/net.h"

static int add_rules(struct net_builder *b, const struct kit_texts *t, bool allow)
{
	struct err e;
	char id[32];
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < t->n; i++) {
		struct net_rule rule = {
			.id = id, .scope = NET_KIT, .allow = allow, .resource = t->v[i]
		};

		(void)snprintf(id, sizeof(id), "%s-%zu", allow ? "a" : "d", i);
		r = net_builder_add(b, &rule, &e);
	}
	return r;
}

static int policy_of(const struct kit *k, struct net_policy **ret)
{
	_cleanup_(net_builder_freep) struct net_builder *b = NULL;
	int r = net_builder_new(&b);

	if (r == 0)
		r = add_rules(b, &k->allow, true);
	if (r == 0)
		r = add_rules(b, &k->deny, false);
	return r == 0 ? net_freeze(b, ret) : r;
}

/* One destination that a resource matches: a label for each '*', its first port. */
static bool sample(const char *resource, struct host *ret, uint16_t *ret_port)
{
	const char *port = *resource == '[' ? strchr(resource, ']') : resource;
	char name[NET_RESOURCE_MAX + 1];
	size_t n = 0, all;
	struct err e;

	port = port ? strchr(port, ':') : NULL;
	all = port ? (size_t)(port - resource) : strlen(resource);
	for (; all && n < sizeof(name) - 1; resource++, all--) {
		if (*resource == '*' && n && name[n - 1] == 'x')
			continue;
		name[n++] = (char)(*resource == '*' ? 'x' : *resource);
	}
	*ret_port = 443;
	if (port && port[1] >= '0' && port[1] <= '9')
		*ret_port = (uint16_t)strtoul(port + 1, NULL, 10);
	return host_parse(ret, name, n, &e) == 0;
}

static bool is_open(const struct net_policy *p, const char *resource)
{
	struct net_request q = { 0 };
	struct host h;

	q.host = &h;
	return sample(resource, &h, &q.port) && net_decide(p, &q).verdict == NET_ALLOW;
}

int kit_unlisted(const struct kit *k,
		 int (*each)(void *arg, const char *service, const char *resource), void *arg)
{
	_cleanup_(net_policy_freep) struct net_policy *p = NULL;
	size_t i, j, before;
	int r = policy_of(k, &p);

	for (i = 0; r >= 0 && i < k->credentials.n; i++) {
		const struct declared *one = &k->credentials.v[i];

		for (j = 0; r >= 0 && j < one->n; j++) {
			for (before = 0; before < j; before++)
				if (streq(one->v[before].resource, one->v[j].resource))
					break;
			if (before == j && !is_open(p, one->v[j].resource))
				r = each(arg, one->service, one->v[j].resource);
		}
	}
	return r < 0 ? r : 0;
}
