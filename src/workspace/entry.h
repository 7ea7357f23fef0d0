#pragma once
/* What a name in a directory is: the node for it, counted once more by the guest. */
#include "workspace/fs-priv.h"

/* name in parent was just seen to have these attributes: its node, with one lookup more, and what the
 * guest is told. The root of another share is that share's. 0, -ENFILE (the table is full), -ENOMEM. */
int entry_make(struct fs *f, struct node *parent, const char *name, const struct statx *s,
	       struct fuse_entry_out *ret, struct node **ret_node);
/* A new file of the parent's share that has no name (O_TMPFILE). */
int entry_nameless(struct fs *f, struct node *parent, const struct statx *s,
		   struct fuse_entry_out *ret, struct node **ret_node);
/* Attributes of n were seen: note whether it has other names. */
void entry_links(struct node *n, const struct statx *s);
/* The root's entry "7": the share of this number. 0, -ENOENT, or -errno of its statx(). */
int entry_share(struct fs *f, const char *name, struct fuse_entry_out *ret);
/* Look the name up on the host and put the entry as the answer. */
ssize_t entry_put(struct fs *f, struct call *c, const char *name);
