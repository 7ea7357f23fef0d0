#pragma once
/* What compose*.c share: a file in the making. */
#include "cli/compose.h"

struct composer {
	struct ctx *c;
	const struct compose_source *s;
	const char *id;   /* of the sandbox, or "" */
	const char *name; /* of the sandbox, for people */
	struct buf *out, *notes;
	struct buf envs;
	size_t n; /* uses in out */
	struct err *e;
};

/* The entry of a sandbox (id "": only global), else the one of all. NULL: none. */
const struct store_entry *compose_entry(const struct compose_source *s, const char *id,
					const char *kind, const char *name);
/* A use from a pattern; its id is made of what it says. One that is there already is not said twice. */
int compose_use(struct composer *m, const struct cred_use *pattern, const char *origin,
		const char *service, const char *key, enum cred_state state) _must_check_;
/* The placeholder of a custom secret in this sandbox: "{rand}" in the pattern is random, made once and kept in the sandbox's directory. On the heap. */
int compose_placeholder(struct composer *m, const char *variable, const char *pattern, char **ret)
	_must_check_;

/* The uses that a sandbox has had since it was started: kept, and what is gone of them. */
int compose_given_keep(struct composer *m) _must_check_;
int compose_given_gone(struct composer *m) _must_check_;
