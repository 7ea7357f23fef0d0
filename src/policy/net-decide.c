/* Decisions.
 *
 * A look walks every node that the host may hang at and notes, for each sort of rule, the one that matches at the
 * narrowest node. What the sorts come to is settled at the end, by the order in net.h.
 *
 * "localhost" is a name here, and at the same time 127.0.0.1, ::1, 0.0.0.0 and ::, for a deny that names a range. An
 * IPv6 address that carries an IPv4 address is denied with that one. */
#include "policy/net-priv.h"

#define NO_ITEM NULL

struct hit {
	const struct net_item *item;
	unsigned depth;
};

struct look {
	const struct net_policy *p;
	const struct net_request *q; /* host, and for HTTP method and path */
	bool any_port;               /* every port is asked about: ports are gathered */
	bool special;                /* only rules that name the address can allow */
	bool deny_only;
	unsigned need; /* special: how many bits name it */
	unsigned depth;
	struct hit deny, allow;
	struct hit http; /* any HTTP rule that speaks of this host and port */
	struct hit http_deny, http_allow, method;
	bool bad_deny, bad_allow; /* a rule whose path cannot be compared with the request's */
	int8_t clean;             /* the path: 0 not looked at, 1 fine, -1 not */
	char path[NET_PATH_MAX + 1];
	struct port_set *ports;
};

/* ---- sets of ports, for net_may_look_up() ---- */
struct port_set {
	bool allow_all, deny_all, allow_some, deny_some;
	uint64_t allow[1024], deny[1024];
};

static void set_ports(uint64_t *set, const struct net_ports *ports)
{
	uint32_t i;

	for (i = ports->lo; i <= ports->hi;) {
		if (!(i % 64) && i + 63 <= ports->hi) {
			set[i / 64] = UINT64_MAX;
			i += 64;
		} else {
			set[i / 64] |= 1ULL << (i % 64);
			i++;
		}
	}
}

static void gather(struct look *k, const struct net_item *item)
{
	struct port_set *s = k->ports;
	bool *all = item->allow ? &s->allow_all : &s->deny_all;
	bool *some = item->allow ? &s->allow_some : &s->deny_some;
	uint64_t *set = item->allow ? s->allow : s->deny;
	size_t i;

	if (item->http && !item->allow)
		return;
	if (!item->n_ports) {
		*all = true;
		return;
	}
	if (!*some)
		memset(set, 0, sizeof(s->allow));
	*some = true;
	for (i = 0; i < item->n_ports; i++)
		set_ports(set, &k->p->ports[item->ports + i]);
}

static bool some_port(const struct port_set *s)
{
	size_t i;

	if (s->deny_all || (!s->allow_all && !s->allow_some))
		return false;
	if (!s->deny_some)
		return true;
	for (i = 0; i < ARRAY_SIZE(s->deny); i++) {
		uint64_t real = i ? UINT64_MAX : UINT64_MAX - 1; /* there is no port 0 */
		uint64_t allow = s->allow_all ? real : s->allow[i];

		if (allow & ~s->deny[i])
			return true;
	}
	return false;
}

/* ---- one rule ---- */
static bool has_port(const struct look *k, const struct net_item *item)
{
	const struct net_ports *ports = k->p->ports + item->ports;
	size_t i;

	if (!item->n_ports || k->any_port)
		return true;
	for (i = 0; i < item->n_ports; i++)
		if (k->q->port >= ports[i].lo && k->q->port <= ports[i].hi)
			return true;
	return false;
}

/* Whether an allow may count for what is asked about. */
static bool may_allow(const struct look *k, const struct net_item *item)
{
	if (k->deny_only)
		return false;
	if (!k->special)
		return true;
	return item->kind == PAT_NAME || (item->kind == PAT_RANGE && item->bits >= k->need);
}

static void note(const struct look *k, struct hit *h, const struct net_item *item)
{
	if (!h->item || k->depth > h->depth)
		*h = (struct hit) { item, k->depth };
}

static bool is_clean(struct look *k)
{
	if (!k->clean)
		k->clean = net_path_clean(k->q->path, k->path) ? 1 : -1;
	return k->clean > 0;
}

static void meet_http(struct look *k, const struct net_item *item)
{
	const struct net_frozen *rule = &k->p->rules[item->rule];
	const char *method = k->q->method;

	note(k, &k->http, item);
	if (item->allow)
		note(k, &k->method, item);
	if (!method)
		return;
	if (rule->method != NET_METHOD_ANY &&
	    !(rule->method & net_method_bit(method, strlen(method))))
		return;
	if (rule->path && !is_clean(k)) {
		*(item->allow ? &k->bad_allow : &k->bad_deny) = true;
		return;
	}
	if (!rule->path || net_path_match(rule->path, k->path))
		note(k, item->allow ? &k->http_allow : &k->http_deny, item);
}

static void meet(struct look *k, const struct net_item *item)
{
	if (!has_port(k, item) || (item->allow && !may_allow(k, item)))
		return;
	if (k->any_port)
		gather(k, item);
	else if (item->http)
		meet_http(k, item);
	else
		note(k, item->allow ? &k->allow : &k->deny, item);
}

/* ---- names ---- */
/* labels: the n bytes in front of the node's suffix, without the dot. */
static bool fits(const struct look *k, const struct net_item *item, const char *labels, size_t n)
{
	const struct net_frozen *rule = &k->p->rules[item->rule];

	switch (item->kind) {
	case PAT_ALL:
		return true;
	case PAT_NAME:
		return !n;
	case PAT_ONE:
		return n && !memchr(labels, '.', n);
	case PAT_MANY:
		return n;
	default:
		return n && net_glob_match(rule->glob, rule->n_glob, labels, n);
	}
}

static void look_node(struct look *k, uint32_t id, const char *labels, size_t n)
{
	const struct net_node *node = &k->p->nodes[id];
	const struct net_item *item = k->p->items + node->first;
	size_t i;

	for (i = 0; i < node->n; i++)
		if (fits(k, &item[i], labels, n))
			meet(k, &item[i]);
}

static void look_name(struct look *k, const char *s)
{
	struct net_node key = { 0 };
	uint32_t h = NET_HASH_INIT, id;
	size_t n = strlen(s), i;

	k->depth = 0;
	look_node(k, 0, s, n);
	for (i = n; i-- > 0;) {
		h = net_hash_byte(h, (uint8_t)s[i]);
		if (i && s[i - 1] != '.')
			continue;
		key.key = s + i;
		key.len = (uint16_t)(n - i);
		key.hash = net_hash_end(h);
		id = net_node_find(k->p, &key);
		if (!id)
			return;
		k->depth++;
		look_node(k, id, s, i ? i - 1 : 0);
	}
}

/* ---- addresses ---- */
static bool has_length(const struct net_policy *p, size_t n, unsigned bits)
{
	return n == 4 ? p->lens4 >> bits & 1 : p->lens6[bits / 64] >> (bits % 64) & 1;
}

static void look_ranges(struct look *k, const uint8_t *addr, size_t n)
{
	uint8_t masked[16];
	struct net_node key = { .key = (char *)masked, .len = (uint16_t)n, .family = (uint8_t)n };
	unsigned bits;
	uint32_t id;
	size_t i;

	memcpy(masked, addr, n);
	for (bits = 8 * (unsigned)n + 1; bits-- > 0;) {
		const struct net_node *node;

		if (!has_length(k->p, n, bits))
			continue;
		net_addr_mask(masked, n, bits);
		key.bits = (uint8_t)bits;
		key.hash = net_addr_hash(masked, n, bits);
		id = net_node_find(k->p, &key);
		node = &k->p->nodes[id];
		k->depth = bits + 1;
		for (i = 0; id && i < node->n; i++)
			meet(k, &k->p->items[node->first + i]);
	}
}

/* "**" and its ports and methods, for an address. */
static void look_all(struct look *k)
{
	const struct net_node *root = &k->p->nodes[0];
	size_t i;

	k->depth = 0;
	for (i = 0; i < root->n; i++)
		if (k->p->items[root->first + i].kind == PAT_ALL)
			meet(k, &k->p->items[root->first + i]);
}

static void look_address(struct look *k, const uint8_t *addr, size_t n)
{
	uint8_t inner[HOST_INNER_MAX][4];
	size_t i, n_inner = n == 16 ? host_addr_inner(addr, inner) : 0;

	k->special = host_addr_range(addr, n, &k->need);
	look_ranges(k, addr, n);
	look_all(k);
	k->deny_only = true;
	for (i = 0; i < n_inner; i++)
		look_ranges(k, inner[i], 4);
}

/* The host's own loopback. */
static void look_localhost(struct look *k)
{
	static const uint8_t v4[] = { 127, 0, 0, 1 }, v6[16] = { [15] = 1 }, zero[16];

	k->special = true;
	k->need = UINT8_MAX;
	look_name(k, "localhost");
	k->deny_only = true;
	look_ranges(k, v4, sizeof(v4));
	look_ranges(k, zero, 4);
	look_ranges(k, v6, sizeof(v6));
	look_ranges(k, zero, sizeof(zero));
}

static void look_host(struct look *k, const struct host *h)
{
	if (h->kind == HOST_V4 || h->kind == HOST_V6)
		look_address(k, h->addr, h->kind == HOST_V4 ? 4 : 16);
	else if (streq(h->text, "localhost"))
		look_localhost(k);
	else if (h->kind == HOST_NAME)
		look_name(k, h->text);
}

/* ---- what it comes to ---- */
static struct net_answer by_rule(const struct look *k, enum net_verdict verdict, struct hit hit,
				 const char *reason)
{
	const struct net_frozen *rule = hit.item ? &k->p->rules[hit.item->rule] : NULL;

	return (struct net_answer) { .verdict = (uint8_t)verdict,
				     .rule = rule ? rule->id : NULL,
				     .text = rule ? rule->text : NULL,
				     .reason = reason };
}

static const struct hit nobody;

static struct net_answer settle_http(const struct look *k, const char *allowed)
{
	if (k->http_deny.item)
		return by_rule(k, NET_DENY, k->http_deny, "method-blocked");
	if (k->bad_deny)
		return by_rule(k, NET_DENY, nobody, "not-a-path");
	if (k->http_allow.item)
		return by_rule(k, NET_ALLOW, k->http_allow, "method-allowed");
	if (k->allow.item)
		return by_rule(k, NET_ALLOW, k->allow, allowed);
	return by_rule(k, NET_DENY, nobody, k->bad_allow ? "not-a-path" : "method-blocked");
}

static struct net_answer settle(const struct look *k, bool address)
{
	const char *allowed = address ? "address-allowed" : "domain-allowed";

	if (k->deny.item)
		return by_rule(k, NET_DENY, k->deny,
			       address ? "address-blocked" : "domain-blocked");
	if (!k->allow.item && !k->method.item)
		return by_rule(k, NET_DENY, nobody,
			       k->special ? "private-address" : "default-deny");
	if (!k->http.item)
		return by_rule(k, NET_ALLOW, k->allow, allowed);
	if (k->q->method)
		return settle_http(k, allowed);
	return by_rule(k, NET_NEEDS_HTTP, k->http, "method-allowed");
}

static const struct net_answer no_policy = { .verdict = NET_DENY, .reason = "no-policy" };

#define _uninitialized_ __attribute__((uninitialized))

static void start(struct look *k, const struct net_policy *p, const struct net_request *q)
{
	memset(k, 0, offsetof(struct look, path));
	k->ports = NULL;
	k->p = p;
	k->q = q;
}

struct net_answer net_decide(const struct net_policy *p, const struct net_request *q)
{
	struct look k _uninitialized_;

	if (!p || !p->ready || !q->host || q->host->kind == HOST_NONE)
		return no_policy;
	start(&k, p, q);
	look_host(&k, q->host);
	return settle(&k, q->host->kind != HOST_NAME);
}

struct net_answer net_decide_addr(const struct net_policy *p, const uint8_t *addr, size_t n,
				  uint16_t port)
{
	struct host h;
	struct net_request q = { .host = &h, .port = port };
	struct look k _uninitialized_;

	host_from_addr(&h, addr, n);
	if (!p || !p->ready || h.kind == HOST_NONE)
		return no_policy;
	start(&k, p, &q);
	look_host(&k, &h);
	if (k.deny.item)
		return by_rule(&k, NET_DENY, k.deny, "address-blocked");
	/* a rule about requests to this machine says nothing of other names that lead here */
	if (k.special && !k.allow.item)
		return by_rule(&k, NET_DENY, nobody, "private-address");
	return by_rule(&k, NET_ALLOW, k.allow, "address-allowed");
}

bool net_may_look_up(const struct net_policy *p, const struct host *h)
{
	struct net_request q = { .host = h };
	struct look k _uninitialized_;
	struct port_set ports _uninitialized_;

	if (!p || !p->ready || h->kind == HOST_NONE)
		return false;
	ports.allow_all = ports.deny_all = ports.allow_some = ports.deny_some = false;
	start(&k, p, &q);
	k.any_port = true;
	k.ports = &ports;
	look_host(&k, h);
	return some_port(&ports);
}
