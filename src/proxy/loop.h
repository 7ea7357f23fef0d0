#pragma once
/* The event loop: libuv for time and order, and an epoll of our own, edge-triggered, for descriptors.
 *
 * An edge is told once; what it said is kept in the watch until somebody has used it up, so that a connection costs two
 * system calls in its whole life for being watched. Who frees what has a watch does it in the close callback of a libuv
 * timer (uv_close() runs it at the end of the round): a batch of events may still name the watch. */
#include <sys/epoll.h>
#include <uv.h>

#include "base/base.h"

struct watch {
	int fd; /* -1: closed */
	void (*run)(struct watch *w, uint32_t events);
};

/* Work that is left over when somebody has had his share of a round. */
struct again {
	struct again *next;
	bool queued;
	void (*run)(struct again *a);
};

struct loop {
	uv_loop_t uv;
	uv_poll_t poll;
	uv_idle_t idle;
	int epoll;
	struct again *first, **last;
	struct again *walk; /* what is left of this round's */
};

int loop_open(struct loop *l) _must_check_;

/* Watch fd, which belongs to w from here on. events: EPOLLIN, EPOLLOUT, EPOLLRDHUP; EPOLLET for edges. 0 or -errno: then fd stays
 * the caller's. */
int loop_add(struct loop *l, struct watch *w, int fd, uint32_t events) _must_check_;
void loop_events(struct loop *l, struct watch *w, uint32_t events);
/* Hand fd to another watch: the first is closed without closing it. */
int loop_take(struct loop *l, struct watch *w);
/* Stop watching and close the descriptor. A watch whose fd is -1 is fine. */
void loop_close(struct loop *l, struct watch *w);

void loop_again(struct loop *l, struct again *a);
void loop_forget(struct loop *l, struct again *a);

uint64_t loop_now(struct loop *l); /* milliseconds, as of this round */
