#pragma once
/* The user's word for a folder to share, as a checked share. */
#include "cli/ctx.h"

/* PATH, PATH:ro or PATH:rw. Links are resolved once; the name with links, if it is another, becomes the alias. What
 * would give the host away (the root, a home, bac's own folders, sockets, what the guest itself is made of) is
 * refused with a reason and what to do. On success *ret's texts are on the heap: path_done(). */
int path_take(const struct ctx *c, const char *word, struct box_share *ret, struct err *e)
	_must_check_;
void path_done(struct box_share *p);

/* The name under which a folder that may be gone is shared: as path_take() resolves it, or the
 * word itself made absolute. Index into s, or -1. */
ssize_t path_find(const struct box_shares *s, const char *word);

/* Add to the shares of a sandbox. -EEXIST: it is there. */
int path_add(struct box_shares *s, const struct box_share *p, struct err *e) _must_check_;
