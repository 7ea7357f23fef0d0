#pragma once
/* The tree of a layer, entry by entry, from a file. It is hostile: a cache may have been changed since it was written. */
#include "base/err.h"
#include "layer/hash.h"

struct tree {
	int fd;
	uint64_t at;       /* of the file, behind what is in b */
	uint8_t *b;        /* TREE_BUFFER bytes */
	size_t n, off;     /* in b; used up */
	uint64_t entries;  /* so far */
	uint64_t blob;     /* the end of the last file in the blob; after the end: its size */
	struct hash *hash; /* takes every byte; may be NULL */
};
enum { TREE_BUFFER = 512 * 1024 };

int tree_open(struct tree *t, int fd, struct hash *hash, struct err *e) _must_check_;
/* 1 and the next entry, which borrows from the buffer; 0 at the end (t->blob is the size of the blob then); or -errno. */
int tree_next(struct tree *t, struct layer_entry *ret, struct err *e) _must_check_;
void tree_done(struct tree *t);
