#pragma once
/* A sandbox's disk: ext4 in a sparse file. */
#include "base/err.h"

/* Make path (which must not exist): a file system of size bytes, and behind it one of docker bytes for the Docker Engine (0: none). Both
 * are rounded down to MiB. Nothing is left of it on failure. 0, or -Exxx with a message: a file system that cannot keep the file sparse is
 * refused. */
int disk_make(const char *path, uint64_t size, uint64_t docker, struct err *e) _must_check_;
