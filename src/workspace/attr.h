#pragma once
/* Attributes: the host's as the guest sees them. */
#include "workspace/fs-priv.h"

#define ATTR_MASK (STATX_BASIC_STATS | STATX_BTIME)

struct node_key attr_key(const struct statx *s);
/* True if these are the attributes of this very node. */
bool attr_is(const struct node *n, const struct statx *s);
struct node_seen attr_seen(const struct statx *s);

/* Owners are mapped: ours are the agent's. */
void attr_fill(struct fs *f, struct node *n, const struct statx *s, struct fuse_attr *ret);
/* For how many seconds the guest may believe them. */
uint64_t attr_valid(const struct node *n);
uint64_t attr_ino(struct fs *f, uint64_t dev, uint64_t ino);
uint32_t attr_uid(const struct fs *f, uint32_t host_uid);
uint32_t attr_gid(const struct fs *f, uint32_t host_gid);

/* The answer to GETATTR and SETATTR. */
ssize_t attr_put(struct fs *f, const struct call *c, const struct statx *s);
