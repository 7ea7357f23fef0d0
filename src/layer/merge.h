#pragma once
/* The trees of an image's layers become one file system. */
#include "base/err.h"

struct merge_result {
	uint64_t bytes; /* of the image, without the blobs that follow it */
	uint64_t inodes;
};

/* n trees (1 to LAYER_LAYERS_MAX), the lowest first, into out, an EROFS image that is to be followed by their blobs in the same order.
 * The same trees make the same image. 0 or -errno with *e. */
int merge_layers(const int *trees, size_t n, int out, struct merge_result *ret, struct err *e)
	_must_check_;
