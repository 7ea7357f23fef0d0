/* Two hash tables with chains through the nodes, and chunks of nodes with a free list. */
#include "workspace/node.h"

#include <sys/stat.h>

#include "workspace/dircache.h"
#include "workspace/share.h"

#define NODE_CHUNK  1024U
#define BUCKETS_MIN 1024U

static uint64_t mix(uint64_t h)
{
	h ^= h >> 32;
	h *= 0x9e3779b97f4a7c15U;
	return h ^ h >> 29;
}

static struct node **key_bucket(const struct node_table *t, const struct share *s,
				const struct node_key *k)
{
	uint64_t h = mix(k->ino ^ mix(k->dev) ^ (uintptr_t)s);

	return &t->by_key[h & (t->buckets - 1)];
}

static struct node **name_bucket(const struct node_table *t, const struct node *parent,
				 const char *name, size_t len)
{
	uint64_t h = (uintptr_t)parent;
	size_t i;

	for (i = 0; i < len; i++)
		h = (h ^ (uint8_t)name[i]) * 0x100000001b3U;
	return &t->by_name[mix(h) & (t->buckets - 1)];
}

const char *node_name(const struct node *n)
{
	return n->name_len < NODE_INLINE_NAME ? n->text.small : n->text.big;
}

static bool key_equal(const struct node_key *a, const struct node_key *b)
{
	return a->ino == b->ino && a->dev == b->dev;
}

static void key_link(struct node_table *t, struct node *n)
{
	struct node **b = key_bucket(t, n->share, &n->key);

	n->key_next = *b;
	*b = n;
}

void node_unkey(struct node_table *t, struct node *n)
{
	struct node **b = key_bucket(t, n->share, &n->key);

	for (; *b; b = &(*b)->key_next)
		if (*b == n) {
			*b = n->key_next;
			n->key_next = NULL;
			return;
		}
}

static void name_link(struct node_table *t, struct node *n)
{
	struct node **b = name_bucket(t, n->parent, node_name(n), n->name_len);

	n->name_next = *b;
	*b = n;
}

static void name_unlink(struct node_table *t, struct node *n)
{
	struct node **b = name_bucket(t, n->parent, node_name(n), n->name_len);

	for (; *b; b = &(*b)->name_next)
		if (*b == n) {
			*b = n->name_next;
			n->name_next = NULL;
			return;
		}
}

int node_table_init(struct node_table *t, size_t max, struct dircache *dirs)
{
	*t = (struct node_table) { .dirs = dirs,
				   .max_chunks = (max + NODE_CHUNK - 1) / NODE_CHUNK,
				   .buckets = BUCKETS_MIN };
	t->chunks = calloc(t->max_chunks, sizeof(struct node *));
	t->by_key = calloc(t->buckets, sizeof(struct node *));
	t->by_name = calloc(t->buckets, sizeof(struct node *));
	if (!t->chunks || !t->by_key || !t->by_name) {
		node_table_done(t);
		return -ENOMEM;
	}
	return 0;
}

static void text_free(struct node *n)
{
	if (n->name_len >= NODE_INLINE_NAME)
		free(n->text.big);
	n->name_len = 0;
}

void node_table_done(struct node_table *t)
{
	struct node *c;
	size_t i, k;

	for (i = 0; t->chunks && i < t->n_chunks; i++) {
		c = t->chunks[i];
		for (k = 0; c && k < NODE_CHUNK; k++)
			text_free(&c[k]);
		free(c);
	}
	free(t->chunks);
	free(t->by_key);
	free(t->by_name);
	*t = (struct node_table) { 0 };
}

uint64_t node_id(const struct node *n)
{
	return (uint64_t)n->gen << 32 | n->index;
}

static struct node *slot(const struct node_table *t, size_t index)
{
	return &t->chunks[index / NODE_CHUNK][index % NODE_CHUNK];
}

struct node *node_get(const struct node_table *t, uint64_t id)
{
	uint32_t index = (uint32_t)id;
	struct node *n;

	if (index / NODE_CHUNK >= t->n_chunks)
		return NULL;
	n = slot(t, index);
	return n->used && n->gen == id >> 32 ? n : NULL;
}

struct node *node_by_key(const struct node_table *t, const struct share *s,
			 const struct node_key *k)
{
	struct node *n;

	for (n = *key_bucket(t, s, k); n; n = n->key_next)
		if (n->share == s && key_equal(&n->key, k))
			return n;
	return NULL;
}

struct node *node_by_name(const struct node_table *t, const struct node *parent, const char *name)
{
	size_t len = strlen(name);
	struct node *n;

	for (n = *name_bucket(t, parent, name, len); n; n = n->name_next)
		if (n->parent == parent && n->name_len == len && !memcmp(node_name(n), name, len))
			return n;
	return NULL;
}

/* Twice the buckets; where there is no memory for it, chains grow instead. */
static void grow(struct node_table *t)
{
	size_t buckets = t->buckets * 2, i, k;
	struct node **key = calloc(buckets, sizeof(struct node *));
	struct node **name = calloc(buckets, sizeof(struct node *));
	struct node *n, *next;

	if (!key || !name) {
		free(key);
		free(name);
		return;
	}
	for (k = 0; k < 2; k++)
		for (i = 0; i < t->buckets; i++)
			for (n = k ? t->by_name[i] : t->by_key[i]; n; n = next) {
				struct node_table to = { .by_key = key,
							 .by_name = name,
							 .buckets = buckets };

				next = k ? n->name_next : n->key_next;
				if (k)
					name_link(&to, n);
				else
					key_link(&to, n);
			}
	free(t->by_key);
	free(t->by_name);
	t->by_key = key;
	t->by_name = name;
	t->buckets = buckets;
}

static bool chunk_new(struct node_table *t)
{
	struct node *c;
	size_t i;

	if (t->n_chunks == t->max_chunks)
		return false;
	c = calloc(NODE_CHUNK, sizeof(*c));
	if (!c)
		return false;
	t->chunks[t->n_chunks] = c;
	for (i = NODE_CHUNK; i-- > 0;) {
		c[i].index = (uint32_t)(t->n_chunks * NODE_CHUNK + i);
		if (!c[i].index)
			continue; /* 0 is no node */
		c[i].key_next = t->free;
		t->free = &c[i];
	}
	t->n_chunks++;
	t->memory += NODE_CHUNK * sizeof(*c);
	return true;
}

struct node *node_new(struct node_table *t, struct share *s, const struct node_key *k,
		      uint16_t type)
{
	struct node *n;
	uint32_t index, gen;

	if (!t->free && !chunk_new(t))
		return NULL;
	if (t->used >= t->buckets)
		grow(t);
	n = t->free;
	t->free = n->key_next;
	index = n->index;
	gen = n->gen;
	*n = (struct node) { .key = *k,
			     .share = s,
			     .index = index,
			     .gen = gen,
			     .fd = -1,
			     .type = type,
			     .used = true,
			     .gone = true };
	if (s)
		share_node_added(s);
	key_link(t, n);
	t->used++;
	return n;
}

/* The host may have turned the tree over so that the new parent, as we last saw it, lies below n. Then
 * what we knew of the way down is wrong: cut it. */
static void cut_loop(struct node_table *t, struct node *n, struct node *parent)
{
	struct node *p, *below = NULL;

	for (p = parent; p && p != n; p = p->parent)
		below = p;
	if (p == n && below)
		node_unplace(t, below);
}

int node_place(struct node_table *t, struct node *n, struct node *parent, const char *name)
{
	size_t len = strlen(name);
	struct node *stale;
	char *big = NULL;

	if (!n->gone && n->parent == parent && n->name_len == len &&
	    !memcmp(node_name(n), name, len))
		return 0;
	if (n == parent || len > 255)
		return -ELOOP;
	if (len >= NODE_INLINE_NAME) {
		big = strdup(name);
		if (!big)
			return -ENOMEM;
	}
	node_ref(parent); /* before the old one might be freed, which may be above it */
	node_ref(n);
	if (S_ISDIR(n->type))
		cut_loop(t, n, parent);
	node_unplace(t, n);
	n->refs--;
	stale = node_by_name(t, parent, name); /* what was there is not any more */
	n->parent = parent;
	n->name_len = (uint8_t)len;
	if (big)
		n->text.big = big;
	else
		memcpy(n->text.small, name, len + 1);
	n->gone = false;
	n->rule_epoch = 0;
	if (stale && stale != n) {
		node_unplace(t, stale);
		node_drop(t, stale);
	}
	name_link(t, n);
	return 0;
}

void node_unplace(struct node_table *t, struct node *n)
{
	struct node *parent = n->parent;

	n->gone = true;
	n->rule_epoch = 0;
	if (!parent)
		return;
	name_unlink(t, n);
	text_free(n);
	n->parent = NULL;
	node_unref(t, parent);
}

void node_ref(struct node *n)
{
	n->refs++;
}

void node_unref(struct node_table *t, struct node *n)
{
	n->refs--;
	node_drop(t, n);
}

void node_forget(struct node_table *t, struct node *n, uint64_t lookups)
{
	n->nlookup -= MIN(lookups, n->nlookup);
	node_drop(t, n);
}

void node_drop(struct node_table *t, struct node *n)
{
	struct node *parent;

	/* up the tree in a loop: a guest can make it as deep as the table is large */
	for (; n && !n->refs && !n->nlookup; n = parent) {
		parent = n->parent;
		if (parent) {
			name_unlink(t, n);
			parent->refs--;
		}
		text_free(n);
		node_unkey(t, n);
		dircache_drop(t->dirs, n);
		if (n->share)
			share_node_gone(n->share);
		n->used = false;
		n->gen++;
		n->key_next = t->free;
		t->free = n;
		t->used--;
	}
}

struct node *node_each(const struct node_table *t, size_t *at)
{
	struct node *n;

	while (*at < t->n_chunks * NODE_CHUNK) {
		n = slot(t, (*at)++);
		if (n->used)
			return n;
	}
	return NULL;
}
