#pragma once
/* Defaults of every command's environment: a list that does not change any more, and lives as long as somebody holds it. A command that
 * is being started works in our memory (spawn.c) and holds its own. */
#include "base/base.h"

struct env {
	unsigned holders;
	uint32_t n;
	const char **v; /* NAME=value, each name once */
	char *mem;
};

/* a, then b; of two with one name the later. The texts are copied. NULL: no memory. */
struct env *env_new(const char *const *a, size_t n_a, const char *const *b, size_t n_b)
	_must_check_;
struct env *env_hold(struct env *e); /* NULL is fine */
struct env *env_drop(struct env *e); /* NULL */

/* True if both assign to one variable. */
bool env_same_name(const char *a, const char *b);
