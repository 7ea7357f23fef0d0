#pragma once
/* Which module files a kernel needs for a list of modules, in the order of loading. Parses texts only. */
#include "base/err.h"

enum { IMAGE_MODULES_MAX = 256, IMAGE_MODULES_FILE_MAX = 4 << 20 };

struct image_modules {
	char *v[IMAGE_MODULES_MAX]; /* paths below /usr/lib/modules/RELEASE */
	size_t n;
};
void image_modules_done(struct image_modules *m);

/* wanted: names, one a line, '#' begins a comment. dep and builtin: the texts of modules.dep and
 * modules.builtin. A wanted module that is built in adds nothing; one that the kernel has not at all
 * is -ENOENT with a message. Paths are checked: relative, no "..". */
int image_modules(const char *wanted, const char *dep, const char *builtin,
		  struct image_modules *ret, struct err *e) _must_check_;

/* The name of a module's file without directory and compression, "x.ko", into dst. 0 or
 * -ENAMETOOLONG. */
int image_modules_name(const char *path, char *dst, size_t max) _must_check_;
