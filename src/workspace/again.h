#pragma once
/* Files that the guest was told to look up again. */
#include "workspace/fs-priv.h"

/* The request at hand is answered with ESTALE: its thread is going to look again. */
void again_stale(struct fs *f);

/* LOOKUP of a name in dir, a descriptor. If the thread at hand is looking again: the attributes of what is there
 * now, which is held for it until it is opened; the guest may not keep the entry. 1: it is not; 0 with *ret_slot; -errno. */
int again_lookup(struct fs *f, const char *name, int dir, struct statx *ret,
		 struct again **ret_slot);
/* The node that it became. */
void again_found(struct again *a, const struct node *n);

/* What is held for this node, borrowed until the next request; -1: nothing. */
int again_peek(struct fs *f, const struct node *n);
/* The same, no longer held: the caller's to close. */
int again_take(struct fs *f, const struct node *n);

void again_drop_all(struct fs *f);
