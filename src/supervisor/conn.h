#pragma once
/* A socket with two bounded queues, on the loop.
 *
 * Life: conn_open() takes the descriptor; on_input is called after bytes were added to in, on_gone once,
 * when the peer is gone or failed, and the owner then calls conn_close(), which calls on_closed when the
 * loop has let go: only there may the memory that holds the conn be freed. */
#include <uv.h>

#include "base/buf.h"

struct conn {
	uv_poll_t poll;
	int fd;
	struct buf in, out;
	int events;
	bool takes_fd; /* a peer may send a descriptor with its bytes */
	int came_fd;   /* the last one that came and was not taken, or -1 */
	bool open;
	bool gone; /* on_gone was called, or conn_close() */
	void *user;
	void (*on_input)(struct conn *c);
	void (*on_gone)(struct conn *c);
	void (*on_closed)(struct conn *c); /* may be NULL */
};

/* Take fd (made non-blocking) and start. Callbacks and user must be set. 0 or -errno; on failure fd
 * is still the caller's. */
int conn_open(struct conn *c, uv_loop_t *loop, int fd, size_t in_max, size_t out_max) _must_check_;

/* Read at once what may be there already, without waiting for the loop. Calls on_input or on_gone. */
void conn_look(struct conn *c);

/* Send what is queued as far as it goes now; the rest goes when the socket takes it. */
void conn_flush(struct conn *c);

void conn_close(struct conn *c);
