#pragma once
/* Layers of images in the cache: cache/layers/<diff id>/{blob,tree,layer.json}. Each is there once, whatever images have it, and whole: it is
 * made in a directory that gets its name at last. bac-layer does all that reads foreign bytes (docs/protocol/layer.md).
 *
 * Digests are 64 hex digits, without "sha256:". A diff id is the SHA-256 of a layer's archive, unpacked.
 *
 * SIGINT, SIGTERM and SIGHUP end each of these with -EINTR when nothing half made is left; the signal itself is delivered on return, or
 * when the caller's own image_signals_release() lets it. */
#include "image/image.h"

#define IMAGE_LAYERS "layers"

enum { IMAGE_LAYERS_MAX = 128 }; /* of one image */

struct image_member {
	char *name;   /* without leading "./"; no "..", no empty part */
	char *target; /* of 'l': any text; else NULL */
	uint64_t offset, size;
	uint8_t type; /* 'f', 'd', 'l' */
};
void image_members_free(struct image_member *v, size_t n);

/* What an archive holds (tar, also with gzip, zstd, xz, bzip2), in its order; a name may come twice. *ret_fd is where the offsets count: fd
 * itself if that is a plain file, else a file without a name in the cache that holds the unpacked bytes, which the caller closes
 * (*ret_fd != fd). At most 65,536 members; anything but files, folders and symbolic links is refused. */
int image_layer_list(const struct image_build *b, int fd, struct image_member **ret, size_t *ret_n,
		     int *ret_fd, struct err *e) _must_check_;

struct image_layer {
	char diff[IMAGE_DIGEST_MAX + 1];
	char digest[IMAGE_DIGEST_MAX + 1]; /* of what it came as, the first time */
	uint64_t blob, tree;               /* bytes; blob: in whole blocks of 4,096, or 0 */
	uint64_t entries;
	uint64_t dropped; /* extended attributes that were left out */
};

/* The layer that size bytes of fd from offset on are (UINT64_MAX: to its end; fd may then be a pipe). digest and diff: what they must
 * be, or NULL; -EBADMSG if they are not. If diff is given and the layer is there, nothing is read. Another process that applies one is
 * waited for. Progress goes to b->progress. */
int image_layer_apply(const struct image_build *b, int fd, uint64_t offset, uint64_t size,
		      const char *digest, const char *diff, struct image_layer *ret, struct err *e)
	_must_check_;

/* 0 and *ret, or 1 if it is not there. */
int image_layer_get(const char *cache, const char *diff, struct image_layer *ret) _must_check_;

/* The path of its file "blob" or "tree", on the heap, or NULL. */
char *image_layer_path(const char *cache, const char *diff, const char *name);

/* The image of these layers, the lowest first, into the (empty) file out: EROFS, whole blocks of 4,096 bytes. Together with the
 * layers' blobs behind it, in their order (an empty one takes no room), it is the disk that mounts. -ENOENT if a layer is not in the cache. */
int image_layer_merge(const struct image_build *b, const char *const *diffs, size_t n, int out,
		      struct err *e) _must_check_;

/* Remove the layers that are none of these n. The caller holds the lock of the templates, so that no build counts on one that is not yet in
 * a template. *ret_freed: bytes on disk; may be NULL. */
int image_layer_prune(const char *cache, const char *const *keep, size_t n, uint64_t *ret_freed,
		      struct err *e) _must_check_;
