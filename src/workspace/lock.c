#include "workspace/lock.h"

#include <fcntl.h>

#include "io/fd.h"

static struct lock_owner **bucket(const struct lock_table *t, const struct node *n, uint64_t owner)
{
	uint64_t h = (owner ^ n->index) * 0x9e3779b97f4a7c15U;

	return (struct lock_owner **)&t->bucket[h >> 32 & (LOCK_BUCKETS - 1)];
}

struct lock_owner *lock_get(const struct lock_table *t, const struct node *n, uint64_t owner)
{
	struct lock_owner *l;

	if (!n->locks)
		return NULL;
	for (l = *bucket(t, n, owner); l; l = l->next)
		if (l->node == n && l->owner == owner && !l->released)
			return l;
	return NULL;
}

struct lock_owner *lock_new(struct lock_table *t, struct node *n, uint64_t owner, int fd)
{
	struct lock_owner *l = t->n < LOCK_OWNERS_MAX ? calloc(1, sizeof(*l)) : NULL;
	struct lock_owner **b = bucket(t, n, owner);

	if (!l) {
		fd_close(fd);
		return NULL;
	}
	*l = (struct lock_owner) { .node = n, .owner = owner, .fd = fd, .next = *b };
	*b = l;
	node_ref(n);
	n->locks++;
	t->n++;
	return l;
}

static void end(struct lock_table *t, struct node_table *nodes, struct lock_owner *l)
{
	struct lock_owner **at = bucket(t, l->node, l->owner);

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	fd_close(l->fd);
	l->node->locks--;
	t->n--;
	node_unref(nodes, l->node);
	free(l);
}

void lock_release(struct lock_table *t, struct node_table *nodes, struct lock_owner *l)
{
	struct flock all = { .l_type = F_UNLCK, .l_whence = SEEK_SET };

	l->released = true;
	if (!l->busy)
		end(t, nodes, l);
	else
		(void)fcntl(l->fd, F_OFD_SETLK, &all);
}

void lock_busy(struct lock_owner *l)
{
	l->busy++;
}

void lock_idle(struct lock_table *t, struct node_table *nodes, struct lock_owner *l)
{
	l->busy--;
	if (!l->busy && l->released)
		end(t, nodes, l);
}

void lock_release_share(struct lock_table *t, struct node_table *nodes, const struct share *s)
{
	struct lock_owner *l, *next;
	size_t i;

	for (i = 0; i < LOCK_BUCKETS; i++)
		for (l = t->bucket[i]; l; l = next) {
			next = l->next;
			if (!l->released && (!s || l->node->share == s))
				lock_release(t, nodes, l);
		}
}
