#pragma once
/* A sandbox's disk: an ext4 file system in a sparse file. */
#include "base/err.h"

/* Make path (which must not exist) of this many bytes. Nothing is left of it on failure. 0, or -Exxx with a
 * message: a file system that cannot keep the file sparse is refused. */
int disk_make(const char *path, uint64_t size, struct err *e) _must_check_;
