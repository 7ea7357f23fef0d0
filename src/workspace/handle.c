/* Chunks of handles with a free list; a number is index + 1 and a generation. */
#include "workspace/handle.h"

#include "io/fd.h"
#include "workspace/dirbuf.h"

#define CHUNK 256U

int handle_table_init(struct handle_table *t, size_t max)
{
	*t = (struct handle_table) { .max = max };
	t->chunks = calloc((max + CHUNK - 1) / CHUNK, sizeof(struct handle *));
	return t->chunks ? 0 : -ENOMEM;
}

void handle_table_done(struct handle_table *t)
{
	size_t i;

	for (i = 0; i < t->n_chunks; i++)
		free(t->chunks[i]);
	free(t->chunks);
	*t = (struct handle_table) { 0 };
}

static bool chunk_new(struct handle_table *t)
{
	struct handle *c;
	size_t i;

	if (t->n_chunks * CHUNK >= t->max)
		return false;
	c = calloc(CHUNK, sizeof(*c));
	if (!c)
		return false;
	for (i = CHUNK; i-- > 0;) {
		c[i].index = (uint32_t)(t->n_chunks * CHUNK + i);
		c[i].next = t->free;
		t->free = &c[i];
	}
	t->chunks[t->n_chunks++] = c;
	return true;
}

struct handle *handle_new(struct handle_table *t, struct node *n, int fd)
{
	struct handle *h;

	if (t->used >= t->max || (!t->free && !chunk_new(t))) {
		fd_close(fd);
		return NULL;
	}
	h = t->free;
	t->free = h->next;
	*h = (struct handle) { .index = h->index,
			       .gen = h->gen,
			       .fd = fd,
			       .node = n,
			       .used = true,
			       .next = n->handles };
	if (n->handles)
		n->handles->prev = h;
	n->handles = h;
	node_ref(n);
	t->used++;
	return h;
}

uint64_t handle_id(const struct handle *h)
{
	return (uint64_t)h->gen << 32 | (h->index + 1U);
}

struct handle *handle_get(const struct handle_table *t, const struct node *n, uint64_t id)
{
	uint32_t index = (uint32_t)id - 1;
	struct handle *h;

	if (index / CHUNK >= t->n_chunks)
		return NULL;
	h = &t->chunks[index / CHUNK][index % CHUNK];
	if (!h->used || h->released || h->gen != id >> 32 || (n && h->node != n))
		return NULL;
	return h;
}

static void end(struct handle_table *t, struct node_table *nodes, struct handle *h)
{
	struct node *n = h->node;

	fd_close(h->fd);
	dirbuf_give(h);
	t->befores -= h->before != NULL;
	free(h->before);
	h->before = NULL;
	free(h->marks);
	h->marks = NULL;
	if (h->prev)
		h->prev->next = h->next;
	else
		n->handles = h->next;
	if (h->next)
		h->next->prev = h->prev;
	h->used = false;
	h->gen++;
	h->node = NULL;
	h->prev = NULL;
	h->next = t->free;
	t->free = h;
	t->used--;
	node_unref(nodes, n);
}

void handle_release(struct handle_table *t, struct node_table *nodes, struct handle *h)
{
	h->released = true;
	if (!h->busy)
		end(t, nodes, h);
}

void handle_busy(struct handle *h)
{
	h->busy++;
}

void handle_idle(struct handle_table *t, struct node_table *nodes, struct handle *h)
{
	h->busy--;
	if (h->busy)
		return;
	if (h->released)
		end(t, nodes, h);
	else if (h->dead)
		h->fd = fd_close(h->fd);
}

void handle_kill(struct handle *h)
{
	h->dead = true;
	dirbuf_give(h);
	if (!h->busy)
		h->fd = fd_close(h->fd);
}

struct handle *handle_each(const struct handle_table *t, size_t *at)
{
	struct handle *h;

	while (*at < t->n_chunks * CHUNK) {
		h = &t->chunks[*at / CHUNK][*at % CHUNK];
		(*at)++;
		if (h->used)
			return h;
	}
	return NULL;
}
