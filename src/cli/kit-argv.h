#pragma once
/* The command of an agent. */
#include "kit/kit.h"

/* The entrypoint, then the tail: that of a terminal, or the default one. extra is added behind if its first is an option, and takes the tail's place otherwise. kit NULL, or one that says nothing of
 * it: a login shell. On the heap, NULL-terminated, at least one; the texts are borrowed. NULL: no memory. */
const char **kit_argv(const struct kit *kit, bool tty, const char *const *extra, size_t n_extra,
		      size_t *ret_n);
