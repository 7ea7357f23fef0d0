/* Resources: what may be written, and what is kept of it. */
#include <arpa/inet.h>
#include <stdio.h>

#include "policy/net-priv.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A message about a byte of the resource; column from 0. */
#define FAULT(e, at, ...) \
	(err_set(e, -EINVAL, __VA_ARGS__), err_ctx(e, "column %zu", (size_t)(at) + 1))

/* ---- ports ---- */
static int parse_port(const char *s, size_t n, size_t *at, uint16_t *ret, struct err *e)
{
	size_t start = *at;
	uint32_t v = 0;

	for (; *at < n && is_digit(s[*at]) && v <= UINT16_MAX; (*at)++)
		v = 10 * v + (uint32_t)(s[*at] - '0');
	if (*at == start || !v || v > UINT16_MAX)
		return FAULT(e, start, "a port is a number from 1 to 65535");
	*ret = (uint16_t)v;
	return 0;
}

static int parse_range(const char *s, size_t n, size_t *at, struct net_ports *ret, struct err *e)
{
	size_t start = *at;
	int r;

	r = parse_port(s, n, at, &ret->lo, e);
	if (r < 0)
		return r;
	ret->hi = ret->lo;
	if (*at == n || s[*at] != '-')
		return 0;
	(*at)++;
	r = parse_port(s, n, at, &ret->hi, e);
	if (r < 0)
		return r;
	if (ret->hi < ret->lo)
		return FAULT(e, start, "the range is empty; write %u-%u", ret->hi, ret->lo);
	return 0;
}

static int by_lo(const void *a, const void *b)
{
	const struct net_ports *x = a, *y = b;

	return x->lo != y->lo ? (x->lo < y->lo ? -1 : 1) : (int)x->hi - (int)y->hi;
}

/* Sorted, and what touches made one; all ports are none. */
static void join_ports(struct net_pattern *p)
{
	size_t i, n = 0;

	qsort(p->ports, p->n_ports, sizeof(p->ports[0]), by_lo);
	for (i = 0; i < p->n_ports; i++) {
		if (n && p->ports[i].lo <= p->ports[n - 1].hi + 1)
			p->ports[n - 1].hi = MAX(p->ports[n - 1].hi, p->ports[i].hi);
		else
			p->ports[n++] = p->ports[i];
	}
	p->n_ports = (uint8_t)n;
	if (n == 1 && p->ports[0].lo == 1 && p->ports[0].hi == UINT16_MAX)
		p->n_ports = 0;
}

/* s[at] is behind the colon. */
static int parse_ports(struct net_pattern *p, const char *s, size_t n, size_t at, struct err *e)
{
	int r;

	if (n - at == 1 && s[at] == '*')
		return 0;
	for (;;) {
		if (p->n_ports == NET_PORTS_MAX)
			return FAULT(e, at, "a rule has %d ports and ranges at most",
				     NET_PORTS_MAX);
		r = parse_range(s, n, &at, &p->ports[p->n_ports], e);
		if (r < 0)
			return r;
		p->n_ports++;
		if (at == n)
			break;
		if (s[at] != ',')
			return FAULT(e, at, "behind a port stands ',', '-' or nothing");
		at++;
	}
	join_ports(p);
	return 0;
}

/* ---- addresses ---- */
static void set_name(struct net_pattern *p, const struct host *h)
{
	p->kind = PAT_NAME;
	p->suffix = 0;
	memcpy(p->host, h->text, sizeof(p->host));
}

/* A range that lies in the host's own loopback is "localhost". */
static bool is_loopback_range(const struct net_pattern *p)
{
	static const uint8_t zero[16];

	if (p->n_addr == 4)
		return (p->addr[0] == 127 && p->bits >= 8) ||
		       (!memcmp(p->addr, zero, 4) && p->bits == 32);
	return !memcmp(p->addr, zero, 15) && p->addr[15] <= 1 && p->bits >= 127;
}

static void set_range(struct net_pattern *p, const uint8_t *addr, size_t n, unsigned bits)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct host localhost = { .kind = HOST_NAME, .text = "localhost" };

	if (n == 16 && bits >= 96 && !memcmp(addr, mapped, sizeof(mapped))) {
		addr += sizeof(mapped);
		n = 4;
		bits -= 96;
	}
	p->kind = PAT_RANGE;
	p->n_addr = (uint8_t)n;
	p->bits = (uint8_t)bits;
	memset(p->addr, 0, sizeof(p->addr));
	memcpy(p->addr, addr, n);
	if (is_loopback_range(p))
		set_name(p, &localhost);
}

void net_addr_mask(uint8_t *addr, size_t n, unsigned bits)
{
	size_t i;

	for (i = 0; i < n; i++) {
		unsigned keep = bits > 8 * i ? MIN(bits - 8 * (unsigned)i, 8U) : 0;

		addr[i] &= (uint8_t)(0xff00 >> keep);
	}
}

static int parse_cidr(struct net_pattern *p, const char *s, size_t slash, size_t end, struct err *e)
{
	char text[INET6_ADDRSTRLEN + 8], base[INET6_ADDRSTRLEN];
	size_t from = s[0] == '[' ? 1 : 0, to = slash, i;
	uint8_t addr[16], masked[16];
	unsigned bits = 0, most;
	int family;

	if (from && to > from && s[to - 1] == ']')
		to--;
	if (to - from >= sizeof(text))
		return FAULT(e, 0, "an address stands before '/'");
	memcpy(text, s + from, to - from);
	text[to - from] = '\0';
	family = strchr(text, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(family, text, addr) != 1)
		return FAULT(e, from, "'%s' is not an address; a rule has no path: use --path",
			     text);
	most = family == AF_INET ? 32 : 128;
	for (i = slash + 1; i < end && is_digit(s[i]) && bits <= most; i++)
		bits = 10 * bits + (unsigned)(s[i] - '0');
	if (i == slash + 1 || i < end || bits > most)
		return FAULT(e, slash + 1, "behind '/' stands the length of the prefix, 0 to %u",
			     most);
	memcpy(masked, addr, sizeof(masked));
	net_addr_mask(masked, most / 8, bits);
	if (memcmp(masked, addr, most / 8) != 0)
		return FAULT(e, from, "the address has bits behind the prefix; write %s/%u",
			     inet_ntop(family, masked, base, sizeof(base)), bits);
	p->cidr = true;
	set_range(p, addr, most / 8, bits);
	return 0;
}

/* ---- names ---- */
static bool is_glob_byte(char c)
{
	return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_' || c == '*';
}

static int check_label(const char *s, size_t at, size_t n, struct err *e)
{
	size_t i;

	if (!n)
		return FAULT(e, at, "an empty label");
	if (n > HOST_LABEL_MAX)
		return FAULT(e, at, "a label has %d bytes at most", HOST_LABEL_MAX);
	if (n == 2 && !memcmp(s + at, "**", 2))
		return at ? FAULT(e, at, "'**' stands only in front; write '*' for one label") : 0;
	for (i = at; i < at + n; i++) {
		if (!is_glob_byte(s[i]))
			return FAULT(e, i, "'%c' is part of no name", s[i]);
		if (s[i] == '*' && i > at && s[i - 1] == '*')
			return FAULT(e, i, "'**' is a label of its own; write '*' within one");
	}
	if (s[at] == '-' || s[at + n - 1] == '-')
		return FAULT(e, s[at] == '-' ? at : at + n - 1,
			     "a label neither begins nor ends with '-'");
	return 0;
}

/* 10.0.*: what someone writes who means a CIDR. */
static bool is_address_like(const char *s)
{
	return strspn(s, "0123456789.*") == strlen(s) && strcspn(s, "0123456789") < strlen(s);
}

/* Where the labels without '*' at the end begin. */
static size_t suffix_of(const char *s)
{
	const char *star = strrchr(s, '*');
	const char *dot = star ? strchr(star, '.') : NULL;

	return dot ? (size_t)(dot + 1 - s) : strlen(s);
}

static void set_glob_kind(struct net_pattern *p)
{
	p->suffix = (uint16_t)suffix_of(p->host);
	if (streq(p->host, "*") || streq(p->host, "**"))
		p->kind = PAT_ALL;
	else if (p->suffix == 2 && p->host[1] == '.')
		p->kind = PAT_ONE;
	else if (p->suffix == 3 && starts_with(p->host, "**."))
		p->kind = PAT_MANY;
	else
		p->kind = PAT_GLOB;
}

static int parse_glob(struct net_pattern *p, const char *s, size_t n, struct err *e)
{
	size_t i, at = 0;
	int r;

	if (n > 1 && s[n - 1] == '.')
		n--;
	if (n > HOST_NAME_MAX_LEN)
		return FAULT(e, HOST_NAME_MAX_LEN, "a name has %d bytes at most",
			     HOST_NAME_MAX_LEN);
	for (i = 0; i < n; i++) {
		p->host[i] = s[i];
		if (s[i] >= 'A' && s[i] <= 'Z')
			p->host[i] = (char)(s[i] - 'A' + 'a');
		if ((uint8_t)s[i] >= 0x80)
			return FAULT(e, i, "'*' goes with ASCII only; write the name's xn-- form");
	}
	p->host[n] = '\0';
	if (is_address_like(p->host))
		return FAULT(e, 0, "a range of addresses is written as CIDR: 10.0.0.0/8");
	for (i = 0; i <= n; i++) {
		if (i < n && p->host[i] != '.')
			continue;
		r = check_label(p->host, at, i - at, e);
		if (r < 0)
			return r;
		at = i + 1;
	}
	set_glob_kind(p);
	return 0;
}

static int parse_host(struct net_pattern *p, const char *s, size_t n, struct err *e)
{
	struct host h;
	int r;

	r = host_parse(&h, s, n, e);
	if (r < 0)
		return r;
	if (h.kind == HOST_NAME)
		set_name(p, &h);
	else
		set_range(p, h.addr, h.kind == HOST_V4 ? 4 : 16, h.kind == HOST_V4 ? 32 : 128);
	return 0;
}

/* ---- a resource ---- */
/* Where the host ends: the colon before the ports, or the end. A bare IPv6 address has no ports. */
static size_t host_end(const char *s, size_t n)
{
	const char *slash = memchr(s, '/', n), *bracket, *colon;

	if (n && s[0] == '[') {
		bracket = memchr(s, ']', n);
		colon = bracket ? memchr(bracket, ':', (size_t)(s + n - bracket)) : NULL;
	} else if (slash) {
		colon = memchr(slash, ':', (size_t)(s + n - slash));
	} else {
		colon = memchr(s, ':', n);
		if (colon && memchr(colon + 1, ':', (size_t)(s + n - colon - 1)))
			return n;
	}
	return colon ? (size_t)(colon - s) : n;
}

static int check_shape(const char *s, size_t n, struct err *e)
{
	const char *scheme = strstr(s, "://");
	size_t i;

	if (!n)
		return FAULT(e, 0, "the resource is empty");
	if (n > NET_RESOURCE_MAX)
		return FAULT(e, NET_RESOURCE_MAX, "a resource has %d bytes at most",
			     NET_RESOURCE_MAX);
	if (scheme)
		return FAULT(e, 0, "a resource has no scheme; write %.*s",
			     (int)MIN(strcspn(scheme + 3, "/"), (size_t)60), scheme + 3);
	if (s[0] == ':' && s[1] != ':')
		return FAULT(e, 0, "a host stands before the port; for every host write '**%.20s'",
			     s);
	for (i = 0; i < n; i++)
		if ((uint8_t)s[i] <= ' ' || s[i] == 0x7f)
			return FAULT(e, i, "%s is part of no resource",
				     s[i] == ' ' ? "a space" : "a control byte");
	return 0;
}

/* [::/64]:443 and [::]/64:443 alike: a slash within brackets ends at the bracket. */
static int parse_where(struct net_pattern *p, const char *s, size_t end, struct err *e)
{
	const char *slash = memchr(s, '/', end);

	if (slash && s[0] == '[' && s[end - 1] == ']')
		end--;
	if (slash)
		return parse_cidr(p, s, (size_t)(slash - s), end, e);
	if (memchr(s, '*', end))
		return parse_glob(p, s, end, e);
	return parse_host(p, s, end, e);
}

int net_pattern_parse(struct net_pattern *ret, const char *text, struct err *e)
{
	struct net_pattern p = { 0 };
	size_t n = strlen(text), end;
	int r;

	r = check_shape(text, n, e);
	if (r < 0)
		return r;
	end = host_end(text, n);
	r = parse_where(&p, text, end, e);
	p.ported = end < n;
	if (r == 0 && p.ported)
		r = parse_ports(&p, text, n, end + 1, e);
	if (r == 0)
		*ret = p;
	return r;
}

/* ---- and back ---- */
static void write_host(const struct net_pattern *p, char *ret, size_t max)
{
	char addr[INET6_ADDRSTRLEN] = "";
	bool v6 = p->n_addr == 16, slash = p->bits < 8 * p->n_addr;
	bool bracket = v6 && (!slash || p->n_ports);

	if (p->kind == PAT_ALL)
		(void)snprintf(ret, max, "**");
	else if (p->kind != PAT_RANGE)
		(void)snprintf(ret, max, "%s", p->host);
	if (p->kind != PAT_RANGE)
		return;
	(void)inet_ntop(v6 ? AF_INET6 : AF_INET, p->addr, addr, sizeof(addr));
	if (slash)
		(void)snprintf(ret, max, bracket ? "[%s/%u]" : "%s/%u", addr, p->bits);
	else
		(void)snprintf(ret, max, bracket ? "[%s]" : "%s", addr);
}

int net_resource_check(const char *text, char *ret, size_t ret_max, struct err *e)
{
	char out[NET_RESOURCE_MAX + 1 + 12 * NET_PORTS_MAX];
	struct net_pattern p = { 0 };
	size_t i, n;
	int r;

	r = net_pattern_parse(&p, text, e);
	if (r < 0)
		return r;
	write_host(&p, out, sizeof(out));
	n = strlen(out);
	for (i = 0; i < p.n_ports; i++) {
		bool one = p.ports[i].lo == p.ports[i].hi;

		(void)snprintf(out + n, sizeof(out) - n, one ? "%c%u" : "%c%u-%u", i ? ',' : ':',
			       p.ports[i].lo, p.ports[i].hi);
		n += strlen(out + n);
	}
	if (n > NET_RESOURCE_MAX || n >= ret_max)
		return FAULT(e, 0, "a resource has %d bytes at most", NET_RESOURCE_MAX);
	memcpy(ret, out, n + 1);
	return 0;
}

/* ---- matching ---- */
static bool label_match(const char *g, const char *g_end, const char *s, const char *s_end)
{
	const char *star = NULL, *again = NULL;

	while (s < s_end) {
		if (g < g_end && *g == '*') {
			star = ++g;
			again = s;
		} else if (g < g_end && *g == *s) {
			g++;
			s++;
		} else if (star) {
			g = star;
			s = ++again;
		} else {
			return false;
		}
	}
	while (g < g_end && *g == '*')
		g++;
	return g == g_end;
}

/* Cut the last label off; false if there is none. */
static bool last_label(const char *s, size_t *n, const char **ret, size_t *ret_n)
{
	const char *dot = memrchr(s, '.', *n);

	if (!*n)
		return false;
	*ret = dot ? dot + 1 : s;
	*ret_n = (size_t)(s + *n - *ret);
	*n = dot ? (size_t)(dot - s) : 0;
	return true;
}

bool net_glob_match(const char *glob, size_t n_glob, const char *labels, size_t n)
{
	const char *g, *s;
	size_t g_len, s_len;

	while (last_label(glob, &n_glob, &g, &g_len)) {
		if (!last_label(labels, &n, &s, &s_len))
			return false;
		if (g_len == 2 && !memcmp(g, "**", 2))
			return true; /* it stands in front: whatever is left */
		if (!label_match(g, g + g_len, s, s + s_len))
			return false;
	}
	return !n;
}

static bool match_name(const struct net_pattern *p, const char *name)
{
	size_t n = strlen(name), n_suffix = strlen(p->host + p->suffix), front;

	if (p->kind == PAT_NAME)
		return streq(p->host, name);
	if (n <= n_suffix || !streq(name + n - n_suffix, p->host + p->suffix))
		return false;
	front = n - n_suffix;
	if (n_suffix && name[--front] != '.')
		return false;
	switch (p->kind) {
	case PAT_ONE:
		return front && !memchr(name, '.', front);
	case PAT_MANY:
		return front;
	default:
		return front &&
		       net_glob_match(p->host, p->suffix - (n_suffix ? 1 : 0), name, front);
	}
}

static bool match_addr(const struct net_pattern *p, const uint8_t *addr, size_t n)
{
	uint8_t masked[16];

	if (p->kind == PAT_ALL)
		return !host_addr_class(addr, n);
	if (p->kind != PAT_RANGE || p->n_addr != n)
		return false;
	memcpy(masked, addr, n);
	net_addr_mask(masked, n, p->bits);
	return !memcmp(masked, p->addr, n);
}

bool net_pattern_match(const struct net_pattern *p, const struct host *h)
{
	if (h->kind == HOST_V4 || h->kind == HOST_V6)
		return match_addr(p, h->addr, h->kind == HOST_V4 ? 4 : 16);
	if (h->kind != HOST_NAME || p->kind == PAT_RANGE)
		return false;
	if (streq(h->text, "localhost"))
		return p->kind == PAT_NAME && streq(p->host, "localhost");
	return p->kind == PAT_ALL || match_name(p, h->text);
}
