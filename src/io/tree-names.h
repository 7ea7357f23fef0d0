#pragma once
/* The names in a directory, in the order of their bytes. */
#include "base/base.h"

struct tree_names {
	char **v; /* without "." and ".." */
	size_t n;
	char *text; /* what they point into */
};

/* Read them from the start. fd stays the caller's; its position moves. 0 or -errno, and then there
 * is nothing to be freed. */
int tree_names_read(struct tree_names *ret, int fd) _must_check_;
void tree_names_done(struct tree_names *n);
