#pragma once
/* The files that one copy made, so that a hard link can be refused to any other: a stream that
 * could name any file in the destination could give a second name, in a folder shared with a
 * sandbox, to one that the sandbox must not see. Only the first COPY_LINKS_MAX files are kept. */
#include <sys/types.h>

#include "base/base.h"

struct tree_made;

/* *m is NULL at first. 0 or -ENOMEM. */
int tree_made_add(struct tree_made **m, dev_t dev, ino_t ino) _must_check_;
bool tree_made_has(const struct tree_made *m, dev_t dev, ino_t ino);

/* The file is gone, and its number may soon be another's. */
void tree_made_forget(struct tree_made *m, dev_t dev, ino_t ino);

struct tree_made *tree_made_free(struct tree_made *m);
