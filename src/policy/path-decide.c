/* Walk the tree of rules along a path.
 *
 * At each component there is a set of nodes that the path so far has led to: those of the last
 * component (now), and every "**" that was ever reached (many), which stay. Each looks among its
 * children for the next component. A node has one parent and each set is walked once a component, so
 * none is reached twice. Rules that end at a node that is reached are noted: a rule that matches a
 * directory covers what is below, so it stays noted. Exceptions have a tree of their own, which is
 * walked only if a rule was met: most paths meet none. The memory for all this is not cleared
 * beforehand (it would cost more than the walk): only what the numbers say is filled is ever read. */
#include "policy/path-part.h"
#include "policy/path-priv.h"

#define WORDS(n) (((n) + 63) / 64)

struct set {
	uint16_t ids[PATH_PARTS_MAX];
	size_t n;
};

struct walk {
	const struct path_rules *r;
	struct set sets[2], many;
	unsigned now;   /* which of sets */
	bool hits_some; /* a rule that is no exception */
	uint64_t hits[WORDS(PATH_RULES_MAX)];
	uint64_t reached[WORDS(PATH_PARTS_MAX)]; /* those in many */
};

static void bit_set(uint64_t *bits, size_t i)
{
	bits[i / 64] |= 1ULL << i % 64;
}

static bool bit_get(const uint64_t *bits, size_t i)
{
	return bits[i / 64] >> i % 64 & 1;
}

uint16_t path_node_find(const struct path_rules *r, size_t parent, uint32_t h, const char *s,
			size_t len)
{
	const struct path_node *node;
	size_t slot, i;

	for (slot = h & r->mask; r->table[slot]; slot = (slot + 1) & r->mask) {
		node = &r->nodes[r->table[slot]];
		if (node->hash != h || node->parent != parent || node->len != len)
			continue;
		for (i = 0; i < len; i++)
			if (node->exact ? node->s[i] != s[i]
					: path_fold(node->s[i]) != path_fold(s[i]))
				break;
		if (i == len)
			return r->table[slot];
	}
	return 0;
}

static void arrive(struct walk *w, struct set *next, uint16_t id)
{
	const struct path_node *node = &w->r->nodes[id];
	size_t rule;

	for (rule = node->rule; rule; rule = w->r->same[rule - 1]) {
		bit_set(w->hits, rule - 1);
		w->hits_some |= !node->exact;
	}
	if (node->texts || node->glob || node->many)
		next->ids[next->n++] = id;
}

/* A component of the path. */
struct name {
	const char *s;
	size_t len;
	uint32_t hash;
};

static void visit(struct walk *w, struct set *next, size_t id, const struct name *name)
{
	const struct path_node *node = &w->r->nodes[id], *glob;
	const unsigned char first = path_fold(name->s[0]), last = path_fold(name->s[name->len - 1]);
	uint16_t to;

	if (node->texts) {
		to = path_node_find(w->r, id, path_hash_node(name->hash, id), name->s, name->len);
		if (to)
			arrive(w, next, to);
	}
	for (to = node->glob; to; to = glob->next) {
		glob = &w->r->nodes[to];
		if ((glob->first && glob->first != first) || (glob->last && glob->last != last))
			continue;
		if (path_part_matches(glob->s, glob->len, name->s, name->len, !glob->exact))
			arrive(w, next, to);
	}
}

/* From each node on without a component, if a "**" comes next. */
static void reach_many(struct walk *w)
{
	const struct set *now = &w->sets[w->now];
	size_t i;

	for (i = 0; i < now->n; i++) {
		uint16_t id = w->r->nodes[now->ids[i]].many;

		if (id && !bit_get(w->reached, id)) {
			bit_set(w->reached, id);
			w->many.ids[w->many.n++] = id;
		}
	}
}

static void step(struct walk *w, const struct name *name)
{
	const struct set *now = &w->sets[w->now];
	struct set *next = &w->sets[!w->now];
	size_t i;

	next->n = 0;
	for (i = 0; i < now->n; i++)
		visit(w, next, now->ids[i], name);
	for (i = 0; i < w->many.n; i++)
		visit(w, next, w->many.ids[i], name);
	w->now = !w->now;
	reach_many(w);
}

static void start(struct walk *w, const struct path_rules *r)
{
	w->r = r;
	w->hits_some = false;
	memset(w->hits, 0, WORDS(r->n_rules) * sizeof(w->hits[0]));
	memset(w->reached, 0, WORDS(r->n_nodes) * sizeof(w->reached[0]));
}

static bool is_dots(const char *s, size_t len)
{
	return len <= 2 && s[0] == '.' && s[len - 1] == '.';
}

/* From a root along rel. False if rel is no plain path. */
static bool walk(struct walk *w, uint16_t root, const char *rel, size_t len)
{
	size_t at = 0;

	w->now = 0;
	w->many.n = 0;
	w->sets[0].ids[0] = root;
	w->sets[0].n = 1;
	reach_many(w);
	while (at < len) {
		struct name name = { .s = rel + at, .hash = PATH_HASH_INIT };

		for (; at < len && rel[at] != '/'; at++) {
			if (!rel[at])
				return false;
			name.hash = path_hash_byte(name.hash, rel[at]);
		}
		name.len = (size_t)(rel + at - name.s);
		if (!name.len || is_dots(name.s, name.len))
			return false;
		step(w, &name);
		if (at < len && ++at == len)
			return false;
	}
	return true;
}

static bool is_freed(const struct walk *w, size_t rule)
{
	const struct path_frees *f = &w->r->freed[rule];
	size_t i;

	for (i = 0; i < f->n; i++)
		if (bit_get(w->hits, w->r->frees[f->at + i]))
			return true;
	return false;
}

/* The strictest of the rules that were met and from which nothing frees. */
static struct path_answer strictest(const struct walk *w)
{
	struct path_answer a = { .kind = PATH_FREE };
	size_t word, i;
	uint64_t bits;

	for (word = 0; word < WORDS(w->r->n_rules); word++) {
		for (bits = w->hits[word]; bits; bits &= bits - 1) {
			const struct path_rule *rule;

			i = 64 * word + (size_t)__builtin_ctzll(bits);
			rule = w->r->rules[i];
			if (rule->kind == PATH_ALLOW || rule->kind <= a.kind || is_freed(w, i))
				continue;
			a = (struct path_answer) { rule->kind, rule->text, rule->origin };
		}
	}
	return a;
}

static const struct path_answer no_path = { PATH_HIDE, "(not a path)", "built in" };

#define _uninitialized_ __attribute__((uninitialized))

/* What a walk of rules came to; the sets are those of the exceptions afterwards. */
static struct path_answer answer(struct walk *w, const char *rel, size_t len)
{
	if (!w->hits_some)
		return (struct path_answer) { .kind = PATH_FREE };
	return walk(w, ROOT_ALLOW, rel, len) ? strictest(w) : no_path;
}

struct path_answer path_rules_decide(const struct path_rules *r, const char *rel, size_t len)
{
	struct walk w _uninitialized_;

	if (!r->ready)
		return no_path;
	start(&w, r);
	return walk(&w, ROOT_STRICT, rel, len) ? answer(&w, rel, len) : no_path;
}

static enum path_rule_kind on_the_way(const struct walk *w, const struct set *set)
{
	enum path_rule_kind kind = PATH_FREE;
	size_t i;

	for (i = 0; i < set->n; i++) {
		const struct path_node *node = &w->r->nodes[set->ids[i]];

		if (node->somewhere)
			kind = MAX(kind, (enum path_rule_kind)node->below);
	}
	return kind;
}

enum path_rule_kind path_rules_below(const struct path_rules *r, const char *rel, size_t len)
{
	struct walk w _uninitialized_;
	enum path_rule_kind kind;

	if (!r->ready)
		return PATH_HIDE;
	start(&w, r);
	if (!walk(&w, ROOT_STRICT, rel, len))
		return PATH_HIDE;
	if (!len)
		return r->strictest;
	kind = MAX(on_the_way(&w, &w.sets[w.now]), on_the_way(&w, &w.many));
	return MAX(kind, answer(&w, rel, len).kind);
}

/* Where a walk has led to, as sets that can be compared. */
struct place {
	uint64_t hits[WORDS(PATH_RULES_MAX)];
	uint64_t nodes[WORDS(PATH_PARTS_MAX)];
};

static __attribute__((noinline)) bool place_of(struct place *p, const struct path_rules *r,
					       const char *rel, size_t len)
{
	struct walk w _uninitialized_;
	size_t i;

	if (!r->ready)
		return false;
	start(&w, r);
	if (!walk(&w, ROOT_STRICT, rel, len))
		return false;
	memset(p->nodes, 0, WORDS(r->n_nodes) * sizeof(p->nodes[0]));
	for (i = 0; i < w.sets[w.now].n; i++)
		bit_set(p->nodes, w.sets[w.now].ids[i]);
	if (!walk(&w, ROOT_ALLOW, rel, len))
		return false;
	for (i = 0; i < w.sets[w.now].n; i++)
		bit_set(p->nodes, w.sets[w.now].ids[i]);
	for (i = 0; i < WORDS(r->n_nodes); i++)
		p->nodes[i] |= w.reached[i];
	memcpy(p->hits, w.hits, WORDS(r->n_rules) * sizeof(p->hits[0]));
	return true;
}

bool path_rules_may_move(const struct path_rules *r, const char *from, size_t from_len,
			 const char *to, size_t to_len)
{
	struct place a _uninitialized_, b _uninitialized_;

	return place_of(&a, r, from, from_len) && place_of(&b, r, to, to_len) &&
	       !memcmp(a.hits, b.hits, WORDS(r->n_rules) * sizeof(a.hits[0])) &&
	       !memcmp(a.nodes, b.nodes, WORDS(r->n_nodes) * sizeof(a.nodes[0]));
}
