#pragma once
/* One layer: its archive taken apart into a blob (what its files hold) and a tree (what else it says). */
#include "layer/source.h"

struct apply_result {
	char digest[LAYER_HEX + 1], diff[LAYER_HEX + 1]; /* SHA-256 as it came, and unpacked */
	uint64_t came;                                   /* bytes */
	uint64_t blob, tree;                             /* bytes */
	uint64_t entries;                                /* of the tree */
	uint64_t dropped; /* extended attributes that images may not set */
};

/* size bytes of fd from offset on (UINT64_MAX: to its end; then it may be a pipe). The tree is written as it comes: memory does not
 * depend on the archive's size. 0 or -errno with *e. */
int apply_layer(int fd, uint64_t offset, uint64_t size, int blob, int tree,
		const struct layer_limits *limits, void (*on_progress)(struct source *s),
		struct apply_result *ret, struct err *e) _must_check_;
