#pragma once
/* Changing a tree that YAML was read into: nodes move, keep their line and the name they had, and get another key. All may fail for lack of memory: then `failed` is set,
 * and what was to be moved is gone. */
#include "kit/yaml.h"

struct tree {
	bool failed;
};

/* Out of a map, if it is there and not null (null is dropped). What it returns in *ret is the caller's: put it somewhere, or yaml_done(). */
bool tree_take(struct yaml *map, const char *key, struct yaml *ret) _must_check_;
/* Into a map (key) or a list (key NULL), at the end. *node becomes nothing. */
void tree_put(struct tree *t, struct yaml *into, const char *key, struct yaml *node);
/* A new node with the place and name of another one. */
struct yaml tree_text(struct tree *t, const char *text, const struct yaml *like);
struct yaml tree_new(struct tree *t, enum yaml_kind kind, const struct yaml *like);
/* The map or list at a key, made if it is not there; NULL on lack of memory. If something else is there, it stays, and is returned. */
struct yaml *tree_at(struct tree *t, struct yaml *map, const char *key, enum yaml_kind kind,
		     const struct yaml *like);
/* Both are lists: the items of one behind those of the other at a key. *list becomes nothing. */
void tree_append(struct tree *t, struct yaml *map, const char *key, struct yaml *list);
