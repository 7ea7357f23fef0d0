/* A flow takes two descriptors, and a few while bytes go through a pipe. What does not fit waits in the kernel's queue; the guest sees a
 * connection that is slow to be answered, and one line says so. */
#include "proxy/accept.h"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "proxy/control.h"
#include "proxy/flow.h"

enum { BATCH = 64, FDS_KEPT = 256 };

static bool room(const struct proxy *p)
{
	return p->n_flows < p->max_flows && !receipts_full(p->receipts);
}

static void pause_accept(struct proxy *p)
{
	if (!p->accept_paused)
		loop_events(&p->loop, &p->listener, 0);
	p->accept_paused = true;
	if (p->n_flows >= p->max_flows && !p->full_said) {
		control_say(p, "%u connections are open: that is the most, the next wait",
			    p->n_flows);
		p->full_said = true;
	}
}

static void failed(struct proxy *p, int code)
{
	if (code != EMFILE && code != ENFILE && code != ENOBUFS && code != ENOMEM)
		return; /* of one connection, which is gone */
	if (!p->fds_said)
		control_say(p, "no descriptors are left with %u connections open: the next wait",
			    p->n_flows);
	p->fds_said = true;
	pause_accept(p);
}

static bool take(struct proxy *p)
{
	struct sockaddr_in dst = { 0 };
	socklen_t len = sizeof(dst);
	int fd = accept4(p->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0) {
		if (errno != EAGAIN)
			failed(p, errno);
		return errno != EAGAIN && !p->accept_paused;
	}
	if (getsockname(fd, (struct sockaddr *)&dst, &len) < 0 || dst.sin_family != AF_INET) {
		struct watch w = { .fd = fd };

		loop_close(&p->loop, &w);
		return true;
	}
	flow_new(p, fd, (const uint8_t *)&dst.sin_addr, ntohs(dst.sin_port));
	return true;
}

static void on_listener(struct watch *w, uint32_t events)
{
	struct proxy *p = (struct proxy *)((char *)w - offsetof(struct proxy, listener));

	(void)events;
	for (int i = 0; i < BATCH; i++) {
		if (!room(p)) {
			pause_accept(p);
			return;
		}
		if (!take(p))
			return;
	}
}

void accept_room(struct proxy *p)
{
	if (!p->accept_paused || !room(p))
		return;
	p->accept_paused = false;
	if (p->n_flows < p->max_flows / 2)
		p->full_said = p->fds_said = false;
	loop_events(&p->loop, &p->listener, EPOLLIN);
}

int accept_open(struct proxy *p)
{
	struct rlimit l;

	p->max_flows = PROXY_FLOWS_MAX;
	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return -errno;
	l.rlim_cur = l.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &l);
	if (l.rlim_cur < (rlim_t)FDS_KEPT * 2)
		return -EMFILE;
	p->max_flows = MIN((rlim_t)p->max_flows, (l.rlim_cur - FDS_KEPT) / 2);
	p->listener.run = on_listener;
	return loop_add(&p->loop, &p->listener, FD_TCP, EPOLLIN);
}
