#pragma once
/* Putting kernels into the cache. */
#include "base/buf.h"
#include "image/image.h"

/* Of kernel.json. Raised when a sandbox comes to rely on something that minimal kernels built before
 * have not got (2: a mounted disk whose second half is written by the engine): those are "outdated",
 * and taken only by who asks for one by its digest. */
enum { IMAGE_KERNEL_VERSION = 2 };

struct image_kernel_parts {
	const void *vmlinux; /* an ELF file */
	size_t n_vmlinux;
	const void *modules; /* a cpio archive */
	size_t n_modules;
	const char *release, *kind, *inputs;
};

/* Put it there, if it is not. 0 and its digest. */
int image_kernel_install(const char *cache, const struct image_kernel_parts *p,
			 char digest[IMAGE_DIGEST_MAX + 1], struct err *e) _must_check_;

/* Take kernel and modules out of the root of a Debian system (boot/vmlinuz, boot/release,
 * usr/lib/modules) and install them. wanted: the list of modules that boot loads. */
int image_kernel_from_root(const char *cache, int root, const char *wanted,
			   char digest[IMAGE_DIGEST_MAX + 1], struct err *e) _must_check_;

/* No module at all, for a kernel that has everything built in: an archive into out. */
int image_kernel_no_modules(struct buf *out) _must_check_;
