/* One thread, one epoll set. Kicks are edge-triggered and never read: one system call less for each request,
 * and the counter of an event descriptor does not run over in the life of a machine. The rest is
 * level-triggered, a message at a time, so that no side can keep the others from their turn. */
#include "workspace/serve.h"

#include <sys/epoll.h>

#include "base/err.h"
#include "io/fd.h"
#include "workspace/queues.h"
#include "workspace/say.h"

enum event { EVENT_CONTROL, EVENT_VHOST, EVENT_DONE, EVENT_WATCH, EVENT_KICK };

enum { EVENTS = EVENT_KICK + VHOST_QUEUES };

struct server {
	int epoll;
	struct control *control;
	struct vhost vhost;
	struct queues queues;
};

static int watch(const struct server *s, int fd, enum event what)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = what };

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int on_control(struct server *s)
{
	int r = control_read(s->control, false);

	if (r < 0 && r != -ECONNRESET)
		say("the supervisor's message is not understood: %s", err_text(r));
	return r;
}

static int on_vhost(struct server *s)
{
	int r = vhost_read(&s->vhost);

	if (r > 0)
		queues_changed(&s->queues);
	else if (r < 0 && r != -ECONNRESET)
		say("QEMU's message is refused: %s", s->vhost.fault ? s->vhost.fault : err_text(r));
	return r;
}

/* 0 or positive to go on. */
static int on_event(struct server *s, uint32_t what)
{
	switch (what) {
	case EVENT_CONTROL:
		return on_control(s);
	case EVENT_VHOST:
		return on_vhost(s);
	case EVENT_WATCH:
		fs_watched(s->control->fs);
		return 0;
	case EVENT_DONE:
		queues_completed(&s->queues);
		return 0;
	default:
		s->queues.more[what - EVENT_KICK] = true;
		return 0;
	}
}

static bool drain(struct server *s)
{
	bool more = false;

	for (size_t i = 0; i < VHOST_QUEUES; i++) {
		if (s->queues.more[i])
			queues_drain(&s->queues, i);
		more = more || s->queues.more[i];
	}
	return more;
}

static int loop(struct server *s)
{
	struct epoll_event ev[EVENTS];
	bool more = false;

	for (;;) {
		int n = epoll_wait(s->epoll, ev, EVENTS, more ? 0 : -1);

		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n; i++) {
			int r = on_event(s, ev[i].data.u32);

			if (r < 0)
				return r;
		}
		more = drain(s);
	}
}

static int watch_all(struct server *s, int vhost_sock)
{
	int r;

	r = watch(s, s->control->sock, EVENT_CONTROL);
	if (r == 0)
		r = watch(s, vhost_sock, EVENT_VHOST);
	if (r == 0)
		r = watch(s, fs_completion_fd(s->control->fs), EVENT_DONE);
	if (r == 0 && fs_watch_fd(s->control->fs) >= 0)
		r = watch(s, fs_watch_fd(s->control->fs), EVENT_WATCH);
	return r;
}

int serve_new(struct control *c, int vhost_sock, struct server **ret)
{
	struct server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->control = c;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	r = s->epoll < 0 ? -errno : 0;
	vhost_init(&s->vhost, vhost_sock, s->epoll, EVENT_KICK);
	queues_init(&s->queues, &s->vhost, c->fs);
	if (r == 0)
		r = watch_all(s, vhost_sock);
	if (r < 0) {
		(void)serve_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

int serve_run(struct server *s)
{
	int r = loop(s);

	return r == -ECONNRESET ? 0 : r;
}

struct server *serve_free(struct server *s)
{
	if (!s)
		return NULL;
	/* the file system's threads first: their requests point into the memory */
	s->control->fs = fs_free(s->control->fs);
	queues_done(&s->queues);
	vhost_done(&s->vhost);
	s->epoll = fd_close(s->epoll);
	free(s);
	return NULL;
}
