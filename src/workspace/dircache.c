/* A ring through the nodes, the one used last first. A pinned node's descriptor is its share's and not
 * in the ring. */
#include "workspace/dircache.h"

#include "io/fd.h"

static void ring_out(struct node *n)
{
	n->lru_prev->lru_next = n->lru_next;
	n->lru_next->lru_prev = n->lru_prev;
	n->lru_prev = n->lru_next = NULL;
}

static void ring_in(struct dircache *c, struct node *n)
{
	n->lru_prev = &c->head;
	n->lru_next = c->head.lru_next;
	n->lru_next->lru_prev = n;
	c->head.lru_next = n;
}

void dircache_init(struct dircache *c, size_t max)
{
	*c = (struct dircache) { .max = max };
	c->head.lru_prev = c->head.lru_next = &c->head;
}

void dircache_put(struct dircache *c, struct node *n, int fd)
{
	while (c->n >= c->max && dircache_evict(c))
		;
	n->fd = fd;
	ring_in(c, n);
	c->n++;
}

void dircache_touch(struct dircache *c, struct node *n)
{
	if (n->pinned || c->head.lru_next == n)
		return;
	ring_out(n);
	ring_in(c, n);
}

bool dircache_evict(struct dircache *c)
{
	if (!c->n)
		return false;
	dircache_drop(c, c->head.lru_prev);
	return true;
}

void dircache_drop(struct dircache *c, struct node *n)
{
	if (n->fd >= 0 && !n->pinned) {
		ring_out(n);
		fd_close(n->fd);
		c->n--;
	}
	n->fd = -1;
}
