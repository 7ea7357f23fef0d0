#pragma once
/* POSIX record locks of the guest, held as open file description locks on the host: one description for
 * each (node, lock owner), so that they exclude host processes, other sandboxes and other owners alike.
 *
 * released: the guest closed the file while one of its threads still waits: the locks are given back at
 * once, the description when the wait has ended. */
#include "base/base.h"
#include "workspace/node.h"

#define LOCK_OWNERS_MAX 4096U
#define LOCK_BUCKETS    256U

struct lock_owner {
	struct node *node; /* holds a ref */
	uint64_t owner;
	struct lock_owner *next;
	unsigned busy; /* jobs */
	int fd;
	bool released;
};

struct lock_table {
	struct lock_owner *bucket[LOCK_BUCKETS];
	size_t n;
};

struct lock_owner *lock_get(const struct lock_table *t, const struct node *n, uint64_t owner);
/* fd is taken, also on failure: NULL: too many, or no memory. */
struct lock_owner *lock_new(struct lock_table *t, struct node *n, uint64_t owner, int fd);
/* Give back all its locks, and it. */
void lock_release(struct lock_table *t, struct node_table *nodes, struct lock_owner *l);
void lock_busy(struct lock_owner *l);
void lock_idle(struct lock_table *t, struct node_table *nodes, struct lock_owner *l);
/* All owners on nodes of this share (NULL: all): released. */
void lock_release_share(struct lock_table *t, struct node_table *nodes, const struct share *s);
