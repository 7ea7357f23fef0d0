#pragma once
/* A folder or file of the host, taken as a mount of its own, to be given to a caged server.
 *
 * Above the root of such a mount there is nothing: ".." stays where it is, whoever asks. So a server that
 * holds the descriptor can reach what lies in the share and no more, even once it is somebody else's.
 * Linux 5.12 (open_tree(2), mount_setattr(2)). */
#include <stdbool.h>

#include "base/err.h"

/* Take what lies at path: absolute, without links (a link at its end or on the way is -ELOOP). Mounts that
 * lie below it come along. read_only: nothing of it can be changed through the descriptor, by anybody. The
 * caller owns *ret_fd (O_PATH, close-on-exec). 0, or -Exxx with a message. */
int share_take(const char *path, bool read_only, int *ret_fd, struct err *e) _must_check_;
