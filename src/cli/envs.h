#pragma once
/* Environment of a command, from -e, --env-file and what bac adds. */
#include "base/opt.h"

struct envs {
	char **v; /* NULL-terminated, "NAME=value", owned */
	size_t n;
};

/* Add "NAME=value", replacing an earlier one of that name. 0 or -Exxx. */
int envs_add(struct envs *s, const char *entry, struct err *e) _must_check_;

/* Files first (later wins), then the options: "NAME=value", or "NAME" to copy ours (left out if we have none). */
int envs_collect(struct envs *s, const struct opt_list *files, const struct opt_list *entries,
		 struct err *e) _must_check_;

void envs_done(struct envs *s);
