#include "policy/net-priv.h"

#include <stdio.h>

int net_builder_new(struct net_builder **ret)
{
	struct net_builder *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	*ret = b;
	return 0;
}

struct net_builder *net_builder_free(struct net_builder *b)
{
	if (!b)
		return NULL;
	while (b->n)
		free(b->rules[--b->n]);
	free(b->rules);
	free(b->ids);
	free(b);
	return NULL;
}

static uint32_t id_hash(const char *id)
{
	uint32_t h = NET_HASH_INIT;

	while (*id)
		h = net_hash_byte(h, (uint8_t)*id++);
	return net_hash_end(h);
}

/* The slot of an id: free, or of the rule that has it. */
static uint32_t *id_slot(const struct net_builder *b, const char *id)
{
	size_t mask = 2 * b->cap - 1, i;

	for (i = id_hash(id) & mask; b->ids[i]; i = (i + 1) & mask)
		if (streq(b->rules[b->ids[i] - 1]->id, id))
			break;
	return &b->ids[i];
}

static int grow(struct net_builder *b)
{
	size_t cap = b->cap ? 2 * b->cap : 64, i;
	void *rules;
	uint32_t *ids;

	if (b->n < b->cap)
		return 0;
	rules = reallocarray(b->rules, cap, sizeof(struct net_built *));
	if (!rules)
		return -ENOMEM;
	b->rules = rules;
	ids = calloc(2 * cap, sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	free(b->ids);
	b->ids = ids;
	b->cap = cap;
	for (i = 0; i < b->n; i++)
		*id_slot(b, b->rules[i]->id) = (uint32_t)i + 1;
	return 0;
}

static int check_id(const char *id, struct err *e)
{
	static const char may[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-";
	size_t n = id ? strlen(id) : 0;

	if (!n || n > NET_ID_MAX || strspn(id, may) != n)
		return err_set(e, -EINVAL,
			       "a rule's id has 1 to %d letters, digits, '.', '_', ':' or '-'",
			       NET_ID_MAX);
	return 0;
}

/* The HTTP part of a rule, and where it may stand. */
static int check_http(const struct net_rule *r, const struct net_pattern *p, uint16_t *ret_method,
		      struct err *e)
{
	char method[16];
	int ret;

	*ret_method = 0;
	if (!r->method)
		return r->path ? err_set(e, -EINVAL, "a path needs a method; ANY is every method")
			       : 0;
	if (p->kind == PAT_RANGE)
		return err_set(e, -EINVAL, "a method goes with a name, not with an address");
	ret = net_method_check(r->method, method, sizeof(method), e);
	if (ret < 0)
		return err_ctx(e, "method");
	*ret_method = net_method_bit(method, strlen(method));
	ret = r->path ? net_path_check(r->path, e) : 0;
	return ret < 0 ? err_ctx(e, "path '%.100s'", r->path) : 0;
}

static struct net_built *make(const struct net_rule *r, const struct net_pattern *p,
			      const char *text, uint16_t method)
{
	bool any = !r->path || streq(r->path, "/**");
	size_t n_id = strlen(r->id) + 1, n_text = strlen(text) + 1;
	size_t n_path = any ? 0 : strlen(r->path) + 1;
	struct net_built *built = malloc(sizeof(*built) + n_id + n_text + n_path);

	if (!built)
		return NULL;
	built->pattern = *p;
	built->method = method;
	built->scope = r->scope;
	built->allow = r->allow;
	memcpy(built->id, r->id, n_id);
	memcpy(built->id + n_id, text, n_text);
	built->text = built->id + n_id;
	if (n_path)
		memcpy(built->id + n_id + n_text, r->path, n_path);
	built->path = n_path ? built->id + n_id + n_text : NULL;
	return built;
}

int net_builder_add(struct net_builder *b, const struct net_rule *r, struct err *e)
{
	char text[NET_RESOURCE_MAX + 1];
	struct net_pattern p = { 0 };
	uint16_t method;
	uint32_t *slot;
	int ret;

	ret = check_id(r->id, e);
	if (ret < 0)
		return ret;
	if (r->scope < NET_GLOBAL || r->scope > NET_KIT)
		return err_set(e, -EINVAL, "rule %s has no scope", r->id);
	if (b->n == NET_RULES_MAX)
		return err_set(e, -E2BIG, "a policy has %d rules at most", NET_RULES_MAX);
	ret = net_resource_check(r->resource, text, sizeof(text), e);
	if (ret == 0)
		ret = net_pattern_parse(&p, text, e);
	if (ret < 0)
		return err_ctx(e, "resource '%.100s'", r->resource);
	ret = check_http(r, &p, &method, e);
	if (ret < 0)
		return ret;
	if (grow(b) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	slot = id_slot(b, r->id);
	if (*slot)
		return err_set(e, -EEXIST, "rule %s is there already", r->id);
	b->rules[b->n] = make(r, &p, text, method);
	if (!b->rules[b->n])
		return err_set(e, -ENOMEM, "out of memory");
	*slot = (uint32_t)++b->n;
	return 0;
}
