#pragma once
/* Descriptors kept with directory nodes: least recently used out first, never more than a budget. */
#include "workspace/node.h"

struct dircache {
	struct node head; /* only its lru links are used */
	size_t n, max;
};

void dircache_init(struct dircache *c, size_t max);
/* Give fd (taken) to n, which has none; the one longest unused is closed if there are max already. */
void dircache_put(struct dircache *c, struct node *n, int fd);
/* n->fd was used just now. */
void dircache_touch(struct dircache *c, struct node *n);
/* Close one, for want of descriptors. False: there is none. */
bool dircache_evict(struct dircache *c);
/* Close n's descriptor if it has one. */
void dircache_drop(struct dircache *c, struct node *n);
