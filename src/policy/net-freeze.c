/* From a list of rules to the index that decides.
 *
 * Names hang at nodes, one for each suffix of labels: "*.a.example" at "a.example", a name without '*'
 * at itself. There is also a node for each suffix above (here "example"), so that a walk from the
 * right ends at the first suffix that no rule has. Addresses hang at (length of prefix, prefix). One hash table
 * finds both. The rules of a node lie in a row. */
#include "policy/net-priv.h"

uint32_t net_addr_hash(const uint8_t *masked, size_t n, unsigned bits)
{
	uint32_t h = net_hash_byte(NET_HASH_INIT, (uint8_t)bits);
	size_t i;

	for (i = 0; i < n; i++)
		h = net_hash_byte(h, masked[i]);
	return net_hash_end(h);
}

static bool is_node(const struct net_node *a, const struct net_node *b)
{
	return a->hash == b->hash && a->family == b->family && a->bits == b->bits &&
	       a->len == b->len && !memcmp(a->key, b->key, a->len);
}

uint32_t net_node_find(const struct net_policy *p, const struct net_node *key)
{
	size_t i;

	for (i = key->hash & p->mask; p->table[i]; i = (i + 1) & p->mask)
		if (is_node(&p->nodes[p->table[i] - 1], key))
			return p->table[i] - 1;
	return 0;
}

static uint32_t add_node(struct net_policy *p, const struct net_node *key)
{
	uint32_t id = net_node_find(p, key);
	size_t i;

	if (id)
		return id;
	id = (uint32_t)p->n_nodes++;
	p->nodes[id] = *key;
	for (i = key->hash & p->mask; p->table[i]; i = (i + 1) & p->mask)
		;
	p->table[i] = id + 1;
	return id;
}

/* The node of a suffix, and those of all suffixes above it. */
static uint32_t add_suffix(struct net_policy *p, const char *s)
{
	struct net_node key = { 0 };
	uint32_t h = NET_HASH_INIT, id = 0;
	size_t n = strlen(s), i;

	for (i = n; i-- > 0;) {
		h = net_hash_byte(h, (uint8_t)s[i]);
		if (i && s[i - 1] != '.')
			continue;
		key.key = s + i;
		key.len = (uint16_t)(n - i);
		key.hash = net_hash_end(h);
		id = add_node(p, &key);
	}
	return id;
}

static uint32_t add_range(struct net_policy *p, const struct net_pattern *pat, const char *addr)
{
	struct net_node key = {
		.key = addr, .len = pat->n_addr, .family = pat->n_addr, .bits = pat->bits
	};

	key.hash = net_addr_hash((const uint8_t *)addr, pat->n_addr, pat->bits);
	if (pat->n_addr == 4)
		p->lens4 |= 1ULL << pat->bits;
	else
		p->lens6[pat->bits / 64] |= 1ULL << (pat->bits % 64);
	return add_node(p, &key);
}

struct sizes {
	size_t texts, ports, nodes;
};

static struct sizes measure(const struct net_builder *b)
{
	struct sizes s = { .nodes = 1 };
	size_t i;

	for (i = 0; i < b->n; i++) {
		const struct net_built *r = b->rules[i];
		const char *c;

		s.texts += strlen(r->id) + strlen(r->text) + 2 + sizeof(r->pattern.addr);
		s.texts += strlen(r->pattern.host) + 1 + (r->path ? strlen(r->path) + 1 : 0);
		s.ports += r->pattern.n_ports;
		s.nodes++;
		for (c = r->pattern.host; *c; c++)
			s.nodes += *c == '.';
	}
	return s;
}

static const char *keep(char **at, const void *p, size_t n)
{
	char *to = *at;

	memcpy(to, p, n);
	*at += n;
	return to;
}

/* Copy rule i; yields its node. */
static uint32_t plant(struct net_policy *p, const struct net_built *r, size_t i, char **at)
{
	const struct net_pattern *pat = &r->pattern;
	struct net_frozen *f = &p->rules[i];
	const char *host;

	f->method = r->method;
	f->id = keep(at, r->id, strlen(r->id) + 1);
	f->text = keep(at, r->text, strlen(r->text) + 1);
	f->path = r->path ? keep(at, r->path, strlen(r->path) + 1) : NULL;
	memcpy(p->ports + p->n_ports, pat->ports, pat->n_ports * sizeof(pat->ports[0]));
	p->n_ports += pat->n_ports;
	if (pat->kind == PAT_RANGE)
		return add_range(p, pat, keep(at, pat->addr, sizeof(pat->addr)));
	host = keep(at, pat->host, strlen(pat->host) + 1);
	f->glob = host;
	f->n_glob = pat->suffix;
	if (pat->kind == PAT_ALL)
		return 0;
	if (host[pat->suffix] && pat->suffix)
		f->n_glob--;
	return add_suffix(p, host + pat->suffix);
}

/* Put the items in rows: first how many a node has, then where they begin, then themselves. */
static void line_up(struct net_policy *p, const struct net_builder *b, const uint32_t *node_of)
{
	uint32_t at = 0, ports = 0;
	size_t i;

	for (i = 0; i < b->n; i++)
		p->nodes[node_of[i]].n++;
	for (i = 0; i < p->n_nodes; i++) {
		p->nodes[i].first = at;
		at += p->nodes[i].n;
		p->nodes[i].n = 0;
	}
	for (i = 0; i < b->n; i++) {
		const struct net_built *r = b->rules[i];
		struct net_node *node = &p->nodes[node_of[i]];
		struct net_item *item = &p->items[node->first + node->n++];

		item->rule = (uint32_t)i;
		item->ports = ports;
		item->n_ports = r->pattern.n_ports;
		item->kind = r->pattern.kind;
		item->bits = r->pattern.bits;
		item->allow = r->allow;
		item->http = r->method;
		ports += r->pattern.n_ports;
	}
}

static int make(struct net_policy *p, const struct net_builder *b)
{
	struct sizes size = measure(b);
	_free_ uint32_t *node_of = NULL;
	size_t slots = 16, i;
	char *at;

	while (slots < 2 * size.nodes)
		slots *= 2;
	p->mask = slots - 1;
	p->rules = calloc(b->n + 1, sizeof(*p->rules));
	p->items = calloc(b->n + 1, sizeof(*p->items));
	p->ports = calloc(size.ports + 1, sizeof(*p->ports));
	p->nodes = calloc(size.nodes, sizeof(*p->nodes));
	p->table = calloc(slots, sizeof(*p->table));
	p->texts = malloc(size.texts + 1);
	node_of = calloc(b->n + 1, sizeof(*node_of));
	if (!p->rules || !p->items || !p->ports || !p->nodes || !p->table || !p->texts || !node_of)
		return -ENOMEM;
	p->n_nodes = 1;
	p->n_rules = b->n;
	at = p->texts;
	for (i = 0; i < b->n; i++)
		node_of[i] = plant(p, b->rules[i], i, &at);
	line_up(p, b, node_of);
	return 0;
}

int net_freeze(struct net_builder *b, struct net_policy **ret)
{
	_cleanup_(net_policy_freep) struct net_policy *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	r = make(p, b);
	if (r < 0)
		return r;
	p->ready = true;
	*ret = take_ptr(p);
	return 0;
}

struct net_policy *net_policy_free(struct net_policy *p)
{
	if (!p)
		return NULL;
	free(p->rules);
	free(p->items);
	free(p->ports);
	free(p->nodes);
	free(p->table);
	free(p->texts);
	free(p);
	return NULL;
}
