#pragma once
/* What the guest has open: a bounded table of descriptors, each on a node that it keeps alive.
 *
 * busy: jobs in other threads that use the descriptor; a handle that is released meanwhile is closed
 * when the last of them ends. dead: its share is gone, every use answers ESTALE. */
#include "base/base.h"
#include "workspace/node.h"

struct dirbuf;
struct marks_file;

struct handle {
	struct node *node;
	struct handle *next, *prev; /* on the same node; next also links the free ones */
	struct dirbuf *buf;         /* of a directory: entries read ahead, or NULL (dirbuf.h) */
	uint8_t *before; /* of a file that git reads: what it was when opened (gitguard.h) */
	size_t before_len;
	struct marks_file *
		marks; /* of a file that was written while secrets are looked for: marks.c, on the heap */
	uint64_t pos;  /* of a directory: where the descriptor stands */
	uint32_t told; /* of a directory: entries that went out with attributes */
	uint32_t index, gen, busy;
	int fd;
	uint8_t acc; /* O_RDONLY, O_WRONLY, O_RDWR */
	bool used : 1, dir : 1, dead : 1, released : 1;
	bool resting : 1; /* fd cannot write for now: gitguard_wake() */
};

struct handle_table {
	struct handle **chunks;
	struct handle *free;
	size_t n_chunks, used, max, befores;
};

int handle_table_init(struct handle_table *t, size_t max); /* 0 or -ENOMEM */
void handle_table_done(struct handle_table *t);

/* fd is taken. NULL (fd is closed): the table is full or memory is. */
struct handle *handle_new(struct handle_table *t, struct node *n, int fd);
uint64_t handle_id(const struct handle *h);
/* The live handle of this number if it is on this node (NULL: on any); or NULL. */
struct handle *handle_get(const struct handle_table *t, const struct node *n, uint64_t id);

/* The guest is done with it. */
void handle_release(struct handle_table *t, struct node_table *nodes, struct handle *h);
void handle_busy(struct handle *h);
void handle_idle(struct handle_table *t, struct node_table *nodes, struct handle *h);
/* Its share is gone: close what no thread uses. */
void handle_kill(struct handle *h);
/* Each used one in turn from *at (0 at first), NULL at the end. */
struct handle *handle_each(const struct handle_table *t, size_t *at);
