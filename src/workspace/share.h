#pragma once
/* The shares: one subtree of the host each, by a descriptor of its root. A share that was removed is
 * dead, and freed with its last node. */
#include "base/base.h"
#include "workspace/node.h"

#define SHARE_MAX 4096U /* at a time */

struct share {
	uint32_t id;
	unsigned flags;    /* FS_SHARE_* */
	int fd;            /* of the root, O_PATH or more */
	char *path;        /* where it is in the guest */
	struct node *root; /* pinned with a ref while the share lives */
	size_t nodes;      /* that belong to it */
	bool dead;
	bool nodev; /* its mount has no device files: opening by name has no effects */
	bool nests; /* another share lies inside, by its path */
	struct share *next;
};

struct share_list {
	struct share *first;
	size_t n;
};

/* fd is taken on success. 0, -EEXIST, -ENOSPC or -ENOMEM. */
int share_new(struct share_list *l, uint32_t id, unsigned flags, int fd, const char *path,
	      struct share **ret);
struct share *share_by_id(const struct share_list *l, uint32_t id);
/* The live share whose root is this file, or NULL. */
struct share *share_by_root(const struct share_list *l, const struct node_key *k);
/* Take it off the list and close its descriptor; it is freed here, or with its last node. */
void share_kill(struct share_list *l, struct share *s);

/* Say of each share whether another lies inside. */
void share_nest(struct share_list *l);
/* The other share's path below s, "" if it is the same, NULL if it is not inside. */
const char *share_below(const struct share *s, const struct share *other);

/* For node.c: the count of a share's nodes. */
void share_node_added(struct share *s);
void share_node_gone(struct share *s);
