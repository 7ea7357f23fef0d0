#pragma once
/* Files with more than one name, on the sender's side: where each was sent first. An entry goes when
 * all its names have been seen, and only files among the first COPY_LINKS_MAX are noted; others are
 * sent as files of their own. */
#include <sys/stat.h>

#include "base/base.h"

struct tree_links;

/* The path under which this file was sent before, owned by *l and good until the next call; or
 * NULL, and from now on it is this one. *l is NULL at first. Lack of memory makes it a file of its
 * own. */
const char *tree_links_seen(struct tree_links **l, const struct stat *st, const char *path);

struct tree_links *tree_links_free(struct tree_links *l);
