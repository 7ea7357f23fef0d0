#pragma once
/* What all that makes a new name has in common. */
#include "workspace/fs-priv.h"

/* Mode bits that a new file may have: no setuid, and setgid for directories alone. */
#define MAKE_MODE 01777U

/* May this name come to be in the call's directory? Its descriptor (place_dir()), or -errno. */
int make_in(struct fs *f, struct call *c, const char *name);
/* The guest's umask of this request becomes ours: the host's kernel applies it, or a default ACL. */
void make_umask(struct fs *f, uint32_t mask);
