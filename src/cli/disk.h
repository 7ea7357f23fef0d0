#pragma once
/* A sandbox's disk: ext4 in a sparse file. */
#include "base/err.h"

/* Make path (which must not exist): a file system of size bytes, and behind it one of docker bytes for the Docker Engine (0: none). Both
 * are rounded down to MiB. Nothing is left of it on failure. 0, or -Exxx with a message: a file system that cannot keep the file sparse is
 * refused. */
int disk_make(const char *path, uint64_t size, uint64_t docker, struct err *e) _must_check_;

/* A copy of the disk of a machine that does not run, to a path that must not exist: reflinked where the file system can, else without its holes. -ENOENT:
 * there is no such disk. Nothing is left of it on failure. 0, or -Exxx with a message. */
int disk_copy(const char *from, const char *to, struct err *e) _must_check_;
