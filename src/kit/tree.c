#include "kit/tree.h"

bool tree_take(struct yaml *map, const char *key, struct yaml *ret)
{
	const struct yaml *y = yaml_get(map, key);
	size_t i = y ? (size_t)(y - map->v) : 0;

	if (!y)
		return false;
	*ret = *y;
	memmove(map->v + i, map->v + i + 1, (map->n - i - 1) * sizeof(*y));
	map->n--;
	if (!yaml_is_null(ret))
		return true;
	yaml_done(ret);
	return false;
}

void tree_put(struct tree *t, struct yaml *into, const char *key, struct yaml *node)
{
	struct yaml *v = reallocarray(into->v, into->n + 1, sizeof(*v));
	char *name = key ? strdup(key) : NULL;

	if (v)
		into->v = v;
	if (!v || (key && !name)) {
		t->failed = true;
		free(name);
		yaml_done(node);
		return;
	}
	free(node->key);
	node->key = name;
	v[into->n++] = *node;
	*node = (struct yaml) { 0 };
}

struct yaml tree_new(struct tree *t, enum yaml_kind kind, const struct yaml *like)
{
	struct yaml y = { .kind = kind,
			  .line = like->line,
			  .column = like->column,
			  .at_line = like->at_line,
			  .at_column = like->at_column };

	if (like->path) {
		y.path = strdup(like->path);
		t->failed |= !y.path;
	}
	return y;
}

struct yaml tree_text(struct tree *t, const char *text, const struct yaml *like)
{
	struct yaml y = tree_new(t, YAML_TEXT, like);

	y.text = strdup(text);
	t->failed |= !y.text;
	if (!y.text)
		y.kind = YAML_NONE;
	return y;
}

struct yaml *tree_at(struct tree *t, struct yaml *map, const char *key, enum yaml_kind kind,
		     const struct yaml *like)
{
	struct yaml *there = (struct yaml *)yaml_get(map, key), new;

	if (there)
		return there;
	new = tree_new(t, kind, like);
	tree_put(t, map, key, &new);
	return (struct yaml *)yaml_get(map, key);
}

void tree_append(struct tree *t, struct yaml *map, const char *key, struct yaml *list)
{
	struct yaml *there = (struct yaml *)yaml_get(map, key);
	size_t i;

	if (!there || there->kind != YAML_LIST || list->kind != YAML_LIST) {
		if (there && there->kind == YAML_LIST)
			tree_put(t, there, NULL, list); /* where it is told that it is no item */
		else if (!there)
			tree_put(t, map, key, list);
		else
			yaml_done(list);
		return;
	}
	for (i = 0; i < list->n; i++)
		tree_put(t, there, NULL, &list->v[i]);
	yaml_done(list);
}
