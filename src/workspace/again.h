#pragma once
/* Files that the guest was told to look up again. */
#include "workspace/fs-priv.h"

/* A request for what has, or had, this name is answered with ESTALE. */
void again_stale(struct fs *f, const struct node *parent, const char *name);

/* LOOKUP of a name that was: the attributes of what is there now, which is held until it is opened. 1: not one of
 * these; 0 with *ret_slot; -errno. dir: the parent's descriptor. */
int again_lookup(struct fs *f, const struct node *parent, const char *name, int dir,
		 struct statx *ret, struct again **ret_slot);
/* The node that it became. */
void again_found(struct again *a, const struct node *n);

/* What is held for this node, borrowed until the next request; -1: nothing. */
int again_peek(struct fs *f, const struct node *n);
/* The same, no longer held: the caller's to close. */
int again_take(struct fs *f, const struct node *n);

void again_drop_all(struct fs *f);
