#pragma once
/* The one event loop of PID 1: descriptors and timers, each with a function. */
#include <sys/epoll.h>

#include "base/base.h"

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

enum { LOOP_BATCH = 64, LOOP_REST_MS = 3600 * 1000 };

/* A descriptor that is looked at. The owner keeps it in place while it is watched, and closes the
 * descriptor itself after loop_unwatch(). */
struct watch {
	int fd;
	void (*fn)(struct watch *w, uint32_t events);
};

/* Fires once, at or after `at` (CLOCK_BOOTTIME ns, see loop_now()). */
struct timer {
	uint64_t at; /* 0: not set */
	void (*fn)(struct timer *t);
	struct timer *next;
};

struct loop {
	int epfd;
	struct epoll_event batch[LOOP_BATCH];
	int n_batch;
	struct timer *timers; /* those that are set, in no order */
};

int loop_init(struct loop *l) _must_check_;

/* Start watching w->fd; events as for epoll_ctl(). 0 or -errno. */
int loop_watch(struct loop *l, struct watch *w, uint32_t events) _must_check_;
int loop_rewatch(struct loop *l, struct watch *w, uint32_t events) _must_check_;
/* After this w->fn is not called again, not even for events that were already fetched. */
void loop_unwatch(struct loop *l, struct watch *w);

/* Set (or move) a timer to ms from now; loop_cancel() takes it back. t->fn is set by the owner. */
void loop_after(struct loop *l, struct timer *t, uint64_t ms);
void loop_cancel(struct loop *l, struct timer *t);

/* Wait for events or timers and call their functions once. Does not wait if busy is set. 0 or
 * -errno. */
int loop_turn(struct loop *l, bool busy) _must_check_;

/* Nanoseconds since boot. */
uint64_t loop_now(void);
