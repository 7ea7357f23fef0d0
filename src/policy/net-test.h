#pragma once
/* For tests: what a policy decides, once more, as plainly as net.h says it: every rule is asked. */
#include "policy/net-priv.h"

static bool slow_label(const char *g, const char *g_end, const char *s, const char *s_end)
{
	if (g == g_end)
		return s == s_end;
	if (*g == '*')
		return slow_label(g + 1, g_end, s, s_end) ||
		       (s < s_end && slow_label(g, g_end, s + 1, s_end));
	return s < s_end && *g == *s && slow_label(g + 1, g_end, s + 1, s_end);
}

/* From the left, label by label. */
static bool slow_name(const char *g, const char *s)
{
	const char *g_end = strchrnul(g, '.'), *s_end = strchrnul(s, '.');

	if (starts_with(g, "**.")) /* one or more labels go */
		return *s_end && (slow_name(g + 3, s_end + 1) || slow_name(g, s_end + 1));
	if (!slow_label(g, g_end, s, s_end))
		return false;
	if (!*g_end || !*s_end)
		return !*g_end && !*s_end;
	return slow_name(g_end + 1, s_end + 1);
}

static bool slow_in(const struct net_pattern *p, const uint8_t *addr, size_t n)
{
	uint8_t masked[16];

	if (p->n_addr != n)
		return false;
	memcpy(masked, addr, n);
	net_addr_mask(masked, n, p->bits);
	return !memcmp(masked, p->addr, n);
}

static bool slow_localhost(const struct net_pattern *p, bool allow)
{
	static const uint8_t one[16] = { [15] = 1 }, zero[16], v4[4] = { 127, 0, 0, 1 };

	if (allow)
		return p->kind == PAT_NAME && streq(p->host, "localhost");
	if (p->kind != PAT_RANGE)
		return p->kind == PAT_ALL || slow_name(p->host, "localhost");
	return slow_in(p, v4, 4) || slow_in(p, zero, 4) || slow_in(p, one, 16) ||
	       slow_in(p, zero, 16);
}

static bool slow_address(const struct net_pattern *p, bool allow, const struct host *h)
{
	size_t n = h->kind == HOST_V4 ? 4 : 16, i, n_inner = 0;
	uint8_t inner[HOST_INNER_MAX][4];
	unsigned need;
	bool special = host_addr_range(h->addr, n, &need);

	if (p->kind == PAT_ALL)
		return !allow || !special;
	if (p->kind != PAT_RANGE)
		return false;
	if (slow_in(p, h->addr, n))
		return !allow || !special || p->bits >= need;
	if (n == 16 && !allow)
		n_inner = host_addr_inner(h->addr, inner);
	for (i = 0; i < n_inner; i++)
		if (slow_in(p, inner[i], 4))
			return true;
	return false;
}

static bool slow_host(const struct net_pattern *p, bool allow, const struct host *h)
{
	if (h->kind != HOST_NAME)
		return slow_address(p, allow, h);
	if (streq(h->text, "localhost"))
		return slow_localhost(p, allow);
	return p->kind == PAT_ALL || (p->kind != PAT_RANGE && slow_name(p->host, h->text));
}

static bool slow_port(const struct net_pattern *p, uint16_t port)
{
	size_t i;

	for (i = 0; i < p->n_ports; i++)
		if (port >= p->ports[i].lo && port <= p->ports[i].hi)
			return true;
	return !p->n_ports;
}

static bool slow_path(const char *g, const char *s)
{
	const char *g_end, *s_end;

	if (!*g)
		return !*s;
	g_end = strchrnul(g + 1, '/');
	if (g_end == g + 3 && !memcmp(g, "/**", 3))
		return slow_path(g_end, s) || (*s && slow_path(g, strchrnul(s + 1, '/')));
	if (!*s)
		return false;
	s_end = strchrnul(s + 1, '/');
	return slow_label(g + 1, g_end, s + 1, s_end) && slow_path(g_end, s_end);
}

struct slow {
	bool deny, allow, http, http_maybe, http_deny, http_allow, bad_deny, bad_allow;
};

static void slow_http(struct slow *w, const struct net_frozen *f, bool allow,
		      const struct net_request *q)
{
	char path[NET_PATH_MAX + 1];
	bool clean;

	w->http = true;
	w->http_maybe |= allow;
	if (!q->method ||
	    !(f->method & (net_method_bit(q->method, strlen(q->method)) | NET_METHOD_ANY)))
		return;
	clean = !f->path || net_path_clean(q->path, path);
	if (!clean)
		*(allow ? &w->bad_allow : &w->bad_deny) = true;
	else if (!f->path ||
		 slow_path(streq(f->path, "/") ? "" : f->path, streq(path, "/") ? "" : path))
		*(allow ? &w->http_allow : &w->http_deny) = true;
}

/* The verdict of net_decide(). */
static enum net_verdict slow_decide(const struct net_policy *p, const struct net_request *q)
{
	struct slow w = { 0 };
	size_t i;

	for (i = 0; i < p->n_rules; i++) {
		const struct net_item *item = &p->items[i];
		const struct net_frozen *f = &p->rules[item->rule];
		struct net_pattern pat;
		struct err e;

		if (net_pattern_parse(&pat, f->text, &e) < 0)
			abort();
		if (!slow_host(&pat, item->allow, q->host) || !slow_port(&pat, q->port))
			continue;
		if (item->http)
			slow_http(&w, f, item->allow, q);
		else
			*(item->allow ? &w.allow : &w.deny) = true;
	}
	if (w.deny || (!w.allow && !w.http_maybe))
		return NET_DENY;
	if (!w.http)
		return NET_ALLOW;
	if (!q->method)
		return NET_NEEDS_HTTP;
	if (w.http_deny || w.bad_deny)
		return NET_DENY;
	return w.http_allow || w.allow ? NET_ALLOW : NET_DENY;
}
