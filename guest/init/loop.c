/* The event loop.
 *
 * A function that is called for one event may end the life of the owner of another event of the
 * same batch. So loop_unwatch() also strikes the watch out of the batch that is being worked on,
 * and an owner may be freed at once. */
#include "guest/init/loop.h"

#include <time.h>
#include <unistd.h>

uint64_t loop_now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

int loop_init(struct loop *l)
{
	*l = (struct loop) { .epfd = epoll_create1(EPOLL_CLOEXEC) };
	return l->epfd < 0 ? -errno : 0;
}

static int control(struct loop *l, int op, struct watch *w, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };

	return epoll_ctl(l->epfd, op, w->fd, &ev) < 0 ? -errno : 0;
}

int loop_watch(struct loop *l, struct watch *w, uint32_t events)
{
	return control(l, EPOLL_CTL_ADD, w, events);
}

int loop_rewatch(struct loop *l, struct watch *w, uint32_t events)
{
	return control(l, EPOLL_CTL_MOD, w, events);
}

void loop_unwatch(struct loop *l, struct watch *w)
{
	int i;

	if (w->fd >= 0)
		(void)control(l, EPOLL_CTL_DEL, w, 0);
	for (i = 0; i < l->n_batch; i++)
		if (l->batch[i].data.ptr == w)
			l->batch[i].data.ptr = NULL;
}

void loop_cancel(struct loop *l, struct timer *t)
{
	struct timer **p;

	if (!t->at)
		return;
	for (p = &l->timers; *p; p = &(*p)->next)
		if (*p == t) {
			*p = t->next;
			break;
		}
	t->at = 0;
}

void loop_after(struct loop *l, struct timer *t, uint64_t ms)
{
	loop_cancel(l, t);
	t->at = loop_now() + ms * 1000000;
	t->next = l->timers;
	l->timers = t;
}

/* Milliseconds until the first timer, rounded up. */
static int next_timeout(const struct loop *l)
{
	uint64_t first = UINT64_MAX, now;
	const struct timer *t;

	for (t = l->timers; t; t = t->next)
		first = MIN(first, t->at);
	if (first == UINT64_MAX)
		return -1;
	now = loop_now();
	if (first <= now)
		return 0;
	return (int)MIN((first - now + 999999) / 1000000, (uint64_t)LOOP_REST_MS);
}

static struct timer *due(struct loop *l, uint64_t now)
{
	struct timer *t;

	for (t = l->timers; t; t = t->next)
		if (t->at <= now)
			return t;
	return NULL;
}

int loop_turn(struct loop *l, bool busy)
{
	int i, n = epoll_wait(l->epfd, l->batch, LOOP_BATCH, busy ? 0 : next_timeout(l));
	struct timer *t;
	uint64_t now;

	if (n < 0 && errno != EINTR)
		return -errno;
	l->n_batch = MAX(n, 0);
	for (i = 0; i < l->n_batch; i++) {
		struct watch *w = l->batch[i].data.ptr;

		if (w)
			w->fn(w, l->batch[i].events);
	}
	l->n_batch = 0;

	if (!l->timers)
		return 0;
	now = loop_now();
	while ((t = due(l, now))) {
		loop_cancel(l, t);
		t->fn(t);
	}
	return 0;
}
