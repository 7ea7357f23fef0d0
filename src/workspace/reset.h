#pragma once
/* Forget what the guest had: all of it, or what was reached through one share. */
#include "workspace/fs-priv.h"

/* A guest that begins anew has no handle, lock or node but the shares'. */
void reset_all(struct fs *f);
/* A new share's root, top, was known as another's: what that one knew at and below it answers ESTALE. */
void reset_below(struct fs *f, struct node *top);
/* All of a share that goes: what is left of it answers ESTALE. */
void reset_share(struct fs *f, struct share *s);
