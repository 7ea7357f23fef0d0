#pragma once
/* Trees of an sbxenv.yaml before they mean anything: references replaced, paths made absolute, several made one. */
#include "kit/sbxenv.h"
#include "kit/take.h"

/* In every value of a tree but its `args`. Faults are in the report. 0 or -ENOMEM. */
int sbxenv_fill(struct take *t, struct yaml *tree, const struct sbxenv_file *f, const char *project,
		const struct kit_args *values) _must_check_;
/* Paths of workspaces and kits, from the folder of their file. 0 or -ENOMEM. */
int sbxenv_resolve(struct yaml *tree, const char *dir) _must_check_;
/* from goes into *into and is empty then. 0 or -ENOMEM. */
int sbxenv_merge(struct yaml *into, struct yaml *from) _must_check_;
/* dir/path, without "." and "..", on the heap; an absolute path stands for itself. NULL: no memory. */
char *sbxenv_join(const char *dir, const char *path);
