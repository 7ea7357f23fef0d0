/* From a list of rules to the tree that decides.
 *
 * Which exception frees from which rule is settled here once, by asking whether all that the
 * exception can match lies in what the rule can match. Both are rows of components, and the question
 * is walked like a match: "**" of the rule swallows any components of the exception, a component of
 * the rule must include the one it meets (path_part_includes()), and when the rule is used up, the
 * rest lies below what it covers. Against a "**" of the exception only a component that is '*' helps,
 * and then both with one directory less and with none: the answer 'no' is always safe. */
#include "policy/path-priv.h"

static bool is_star(const struct path_rule *rule, size_t i)
{
	const struct path_part *p = &rule->parts[i];
	size_t n;

	for (n = 0; n < p->len; n++)
		if (rule->text[p->at + n] != '*')
			return false;
	return p->kind == PART_GLOB;
}

static bool part_includes(const struct path_rule *wide, size_t i, const struct path_rule *narrow,
			  size_t j)
{
	const struct path_part *w = &wide->parts[i], *n = &narrow->parts[j];

	return path_part_includes(wide->text + w->at, w->len, narrow->text + n->at, n->len);
}

/* row[j]: whether the rule from part i on includes the exception from part j on; from the last part
 * of the rule to the first, in place. */
static void include_part(const struct path_rule *rule, size_t i, const struct path_rule *exc,
			 bool *row)
{
	bool diagonal = row[exc->n_parts], below;
	size_t j;

	row[exc->n_parts] = false;
	for (j = exc->n_parts; j-- > 0; diagonal = below) {
		below = row[j];
		if (rule->parts[i].kind == PART_MANY)
			row[j] = below || row[j + 1];
		else if (exc->parts[j].kind == PART_MANY)
			row[j] = is_star(rule, i) && below && row[j + 1];
		else
			row[j] = diagonal && part_includes(rule, i, exc, j);
	}
}

static bool includes(const struct path_rule *rule, const struct path_rule *exc)
{
	bool row[PATH_PATTERN_MAX / 2 + 3];
	size_t i;

	for (i = 0; i <= exc->n_parts; i++)
		row[i] = true;
	for (i = rule->n_parts; i-- > 0;)
		include_part(rule, i, exc, row);
	return row[0];
}

/* Whether both have the same pattern, in whatever form it was written. */
static bool same_pattern(const struct path_rule *a, const struct path_rule *b)
{
	size_t i;

	if (a->n_parts != b->n_parts)
		return false;
	for (i = 0; i < a->n_parts; i++) {
		const struct path_part *x = &a->parts[i], *y = &b->parts[i];

		if (x->kind != y->kind || x->len != y->len ||
		    memcmp(a->text + x->at, b->text + y->at, x->len) != 0)
			return false;
	}
	return true;
}

/* Whether rule i of the builder cannot decide anything. */
static bool is_off(const struct path_builder *b, size_t i)
{
	size_t j;

	if (b->rules[i]->kind == PATH_ALLOW)
		return false;
	for (j = i + 1; j < b->n; j++)
		if (b->rules[j]->kind == PATH_ALLOW && same_pattern(b->rules[i], b->rules[j]))
			return true;
	return false;
}

static int copy_rules(struct path_rules *r, const struct path_builder *b)
{
	size_t i;

	for (i = 0; i < b->n; i++) {
		if (is_off(b, i))
			continue;
		r->rules[r->n_rules] = path_rule_copy(b->rules[i]);
		if (!r->rules[r->n_rules])
			return -ENOMEM;
		r->n_rules++;
	}
	return 0;
}

static int add_free(struct path_rules *r, size_t *n, size_t *cap, size_t exception)
{
	size_t more = *cap ? 2 * *cap : 64;
	uint16_t *list;

	if (*n == *cap) {
		list = reallocarray(r->frees, more, sizeof(*list));
		if (!list)
			return -ENOMEM;
		r->frees = list;
		*cap = more;
	}
	r->frees[(*n)++] = (uint16_t)exception;
	return 0;
}

static int find_frees(struct path_rules *r)
{
	size_t i, j, n = 0, cap = 0;

	for (i = 0; i < r->n_rules; i++) {
		if (r->rules[i]->kind == PATH_ALLOW)
			continue;
		r->freed[i].at = (uint32_t)n;
		for (j = i + 1; j < r->n_rules; j++)
			if (r->rules[j]->kind == PATH_ALLOW && includes(r->rules[i], r->rules[j]) &&
			    add_free(r, &n, &cap, j) < 0)
				return -ENOMEM;
		r->freed[i].n = (uint16_t)(n - r->freed[i].at);
	}
	return 0;
}

static size_t count_parts(const struct path_rules *r)
{
	size_t i, n = 2;

	for (i = 0; i < r->n_rules; i++)
		n += r->rules[i]->n_parts;
	return n;
}

static uint16_t find_glob(const struct path_rules *r, size_t parent, const char *s, size_t len)
{
	uint16_t g;

	for (g = r->nodes[parent].glob; g; g = r->nodes[g].next)
		if (r->nodes[g].len == len && !memcmp(r->nodes[g].s, s, len))
			return g;
	return 0;
}

static uint32_t hash_of(size_t parent, const char *s, size_t len)
{
	uint32_t h = PATH_HASH_INIT;
	size_t i;

	for (i = 0; i < len; i++)
		h = path_hash_byte(h, s[i]);
	return path_hash_node(h, parent);
}

/* What a name must have there to match; 0 for anything. */
static uint8_t pinned(char c)
{
	return c == '*' || c == '?' ? 0 : path_fold(c);
}

static void link_node(struct path_rules *r, uint16_t id, enum part_kind kind)
{
	struct path_node *node = &r->nodes[id], *up = &r->nodes[node->parent];
	size_t slot;

	if (kind == PART_MANY) {
		up->many = id;
	} else if (kind == PART_GLOB) {
		node->first = pinned(node->s[0]);
		node->last = pinned(node->s[node->len - 1]);
		node->next = up->glob;
		up->glob = id;
	} else {
		node->hash = hash_of(node->parent, node->s, node->len);
		up->texts = true;
		for (slot = node->hash & r->mask; r->table[slot]; slot = (slot + 1) & r->mask)
			;
		r->table[slot] = id;
	}
}

/* The child of parent for a part of a rule, made if need be; 0 if there are too many. */
static uint16_t child(struct path_rules *r, size_t parent, const char *s, struct path_part part)
{
	struct path_node *node;
	uint16_t id;

	if (part.kind == PART_MANY)
		id = r->nodes[parent].many;
	else if (part.kind == PART_GLOB)
		id = find_glob(r, parent, s, part.len);
	else
		id = path_node_find(r, parent, hash_of(parent, s, part.len), s, part.len);
	if (id || r->n_nodes == PATH_PARTS_MAX)
		return id;
	id = (uint16_t)r->n_nodes++;
	node = &r->nodes[id];
	node->s = s;
	node->len = part.len;
	node->parent = (uint16_t)parent;
	node->exact = parent == ROOT_ALLOW || r->nodes[parent].exact;
	node->somewhere = part.kind != PART_MANY || r->nodes[parent].somewhere;
	link_node(r, id, part.kind);
	return id;
}

static int plant(struct path_rules *r, size_t i)
{
	const struct path_rule *rule = r->rules[i];
	size_t at = rule->kind == PATH_ALLOW ? ROOT_ALLOW : ROOT_STRICT, n;
	struct path_node *node;

	for (n = 0; n < rule->n_parts; n++) {
		node = &r->nodes[at];
		if (rule->kind != PATH_ALLOW)
			node->below = MAX(node->below, (uint8_t)rule->kind);
		at = child(r, at, rule->text + rule->parts[n].at, rule->parts[n]);
		if (!at)
			return -E2BIG;
	}
	node = &r->nodes[at];
	r->same[i] = node->rule;
	node->rule = (uint16_t)(i + 1);
	return 0;
}

static int make(struct path_rules *r, const struct path_builder *b)
{
	size_t i, parts, slots = 16;
	int ret;

	r->rules = calloc(b->n + 1, sizeof(struct path_rule *));
	r->same = calloc(b->n + 1, sizeof(*r->same));
	r->freed = calloc(b->n + 1, sizeof(*r->freed));
	if (!r->rules || !r->same || !r->freed)
		return -ENOMEM;
	ret = copy_rules(r, b);
	if (ret < 0)
		return ret;
	parts = MIN(count_parts(r), (size_t)PATH_PARTS_MAX);
	while (slots < 2 * parts)
		slots *= 2;
	r->mask = slots - 1;
	r->nodes = calloc(parts, sizeof(*r->nodes));
	r->table = calloc(slots, sizeof(*r->table));
	if (!r->nodes || !r->table)
		return -ENOMEM;
	r->n_nodes = 2;
	for (i = 0; i < r->n_rules && ret == 0; i++)
		ret = plant(r, i);
	r->strictest = r->nodes[ROOT_STRICT].below;
	return ret < 0 ? ret : find_frees(r);
}

int path_rules_freeze(struct path_builder *b, struct path_rules **ret)
{
	_cleanup_(path_rules_freep) struct path_rules *r = calloc(1, sizeof(*r));
	int done;

	if (!r)
		return -ENOMEM;
	done = make(r, b);
	if (done < 0)
		return done;
	r->ready = true;
	*ret = take_ptr(r);
	return 0;
}

struct path_rules *path_rules_free(struct path_rules *r)
{
	if (!r)
		return NULL;
	while (r->n_rules)
		free(r->rules[--r->n_rules]);
	free(r->rules);
	free(r->same);
	free(r->freed);
	free(r->frees);
	free(r->nodes);
	free(r->table);
	free(r);
	return NULL;
}
