/* What a resource could ever match, in words that a certificate has. */
#include "policy/net-priv.h"

int net_resource_span(const char *resource, struct net_span *ret)
{
	struct net_span s = { 0 };
	struct net_pattern p;
	struct err e;
	int r = net_pattern_parse(&p, resource, &e);

	if (r < 0)
		return r;
	if (p.kind == PAT_RANGE) {
		s.n_addr = p.n_addr;
		s.bits = p.bits;
		memcpy(s.addr, p.addr, p.n_addr);
	} else if (p.kind == PAT_NAME) {
		memcpy(s.name, p.host, sizeof(s.name));
	} else {
		const char *below = p.kind == PAT_ALL ? "" : p.host + p.suffix;

		s.all = !*below; /* there is no whole label at its end */
		memcpy(s.name, below, strlen(below) + 1);
	}
	*ret = s;
	return 0;
}

const char *net_http_resource(const struct net_policy *p, size_t *at)
{
	if (!p || !p->ready)
		return NULL;
	while (*at < p->n_rules) {
		const struct net_frozen *f = &p->rules[(*at)++];

		if (f->method)
			return f->text;
	}
	return NULL;
}
