#pragma once
/* The cache's directories: templates/, kernels/ and layers/ (image/layer.h), and in each one directory for each digest.
 *
 * Each of them has a lock (".lock"), held by whoever builds there. Under the lock, whatever is called
 * .tmp-* is left over from a builder that was killed, and is removed. */
#include <jansson.h>

#include "image/image.h"

#define IMAGE_TEMPLATES "templates"
#define IMAGE_KERNELS   "kernels"

enum { IMAGE_TMP_MAX = 32 };

/* Open (make) cache/kind. */
int image_store_open(const char *cache, const char *kind, int *ret_dir, struct err *e) _must_check_;

/* Make .tmp-XXXXXX, mode 0700. */
int image_store_tmp(int dir, char name[IMAGE_TMP_MAX], struct err *e) _must_check_;

/* Write dir/name/file from a JSON value, and free the value. */
int image_store_json(int dir, const char *name, const char *file, json_t *j, struct err *e)
	_must_check_;

/* dir/name/meta as a JSON value (the caller's), or NULL. */
json_t *image_store_meta(int dir, const char *name, const char *meta);

/* dir/tmp becomes dir/digest (of dir to): synced first. What stood there is put aside if it is damaged
 * (its file meta is not to be read), else it stays and tmp is left. */
int image_store_commit(int from, const char *tmp, int to, const char *digest, const char *meta,
		       struct err *e) _must_check_;

/* Remove a directory of ours, also if other users' ids own what is in it. 0 or -errno. */
int image_store_remove(const char *cache, const char *kind, const char *name);

/* Remove all .tmp-* of one kind. The caller holds its lock. */
void image_store_clear(const char *cache, const char *kind);

/* Remove the layers that no template has. The caller holds the lock of the templates. *ret_freed: bytes; may be NULL. */
int image_layers_orphaned(const char *cache, uint64_t *ret_freed, struct err *e) _must_check_;

/* The newest template, or kernel, made from these inputs. 0 and *ret, or 1 if there is none. */
int image_template_made_from(const char *cache, const char *inputs, struct image_template *ret,
			     struct err *e) _must_check_;
int image_kernel_made_from(const char *cache, const char *inputs, struct image_kernel *ret,
			   struct err *e) _must_check_;

/* The kernel that image_kernel_find() means, without its initrd. */
int image_kernel_pick(const char *cache, const char *want, const char *paired,
		      struct image_kernel *ret, struct err *e) _must_check_;
