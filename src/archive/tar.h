#pragma once
/* A copy stream (docs/protocol/ctl.md) turned into a tar archive, and the reverse, for "bac cp -".
 *
 * Neither touches the file system. Both block until the input ends. SIGPIPE must be ignored. */
#include "io/tree.h"

/* Write the tree that comes in as a pax archive. The stream is taken for hostile. If it fails the
 * archive is left without its end. Holes are written out: the place of each is known only after
 * the header that would name it. 0, or -errno with *e set, as for tree_recv(). */
int tar_from_copy(int in_fd, int out_fd, struct tree_count *ret_count, struct err *e) _must_check_;

/* Send what is in a tar archive (any tar, also with gzip, bzip2, xz, zstd, lz4) as a stream that is
 * content only. Names lose leading slashes and "." components; ".." is refused. Devices, FIFOs and
 * sockets are skipped and counted. 0, or -errno with *e set and an ERROR record sent. */
int tar_to_copy(int in_fd, int out_fd, struct tree_count *ret_count, struct err *e) _must_check_;
