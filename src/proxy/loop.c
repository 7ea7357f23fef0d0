#include "proxy/loop.h"

#include <unistd.h>

#include "io/fd.h"

enum { BATCH = 256 };

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct loop *l = poll->data;
	struct epoll_event e[BATCH];
	int n;

	(void)status;
	(void)events;
	n = epoll_wait(l->epoll, e, BATCH, 0);
	for (int i = 0; i < n; i++) {
		struct watch *w = e[i].data.ptr;

		if (w->fd >= 0)
			w->run(w, e[i].events);
	}
}

static void on_idle(uv_idle_t *idle)
{
	struct loop *l = idle->data;
	struct again *a;

	/* twice: what was put off often puts its bytes off until the round's end */
	for (int i = 0; i < 2 && l->first; i++) {
		l->walk = l->first;
		l->first = NULL;
		l->last = &l->first;
		while ((a = l->walk)) {
			l->walk = a->next;
			a->queued = false;
			a->next = NULL;
			if (a->run)
				a->run(a);
		}
	}
	if (!l->first)
		(void)uv_idle_stop(idle);
}

int loop_open(struct loop *l)
{
	int r;

	l->last = &l->first;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0)
		return -errno;
	r = uv_loop_init(&l->uv);
	if (r == 0)
		r = uv_poll_init(&l->uv, &l->poll, l->epoll);
	if (r == 0)
		r = uv_idle_init(&l->uv, &l->idle);
	l->poll.data = l;
	l->idle.data = l;
	if (r == 0)
		r = uv_poll_start(&l->poll, UV_READABLE, on_poll);
	return r;
}

int loop_add(struct loop *l, struct watch *w, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = w };

	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e) < 0)
		return -errno;
	w->fd = fd;
	return 0;
}

void loop_events(struct loop *l, struct watch *w, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = w };

	if (w->fd >= 0)
		(void)epoll_ctl(l->epoll, EPOLL_CTL_MOD, w->fd, &e);
}

int loop_take(struct loop *l, struct watch *w)
{
	if (w->fd >= 0)
		(void)epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, NULL);
	return take_fd(&w->fd);
}

void loop_close(struct loop *l, struct watch *w)
{
	(void)l;
	w->fd = fd_close(w->fd);
}

void loop_again(struct loop *l, struct again *a)
{
	if (a->queued)
		return;
	a->queued = true;
	a->next = NULL;
	*l->last = a;
	l->last = &a->next;
	if (!uv_is_active((const uv_handle_t *)&l->idle))
		(void)uv_idle_start(&l->idle, on_idle);
}

void loop_forget(struct loop *l, struct again *a)
{
	struct again **p;

	a->run = NULL;
	for (p = &l->walk; *p && *p != a; p = &(*p)->next)
		;
	if (!*p)
		for (p = &l->first; *p && *p != a; p = &(*p)->next)
			;
	if (!*p)
		return;
	*p = a->next;
	if (l->last == &a->next)
		l->last = p;
	a->queued = false;
}

uint64_t loop_now(struct loop *l)
{
	return uv_now(&l->uv);
}
