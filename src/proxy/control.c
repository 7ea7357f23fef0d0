/* A message that is not understood ends the proxy: who sends it is not our supervisor any more, and another proxy is started by
 * one that is. A policy that is not understood is another matter: it denies everything, and is answered. */
#include "proxy/control.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/fd.h"
#include "proxy/flow.h"
#include "proxy/keeper.h"
#include "proxy/open.h"
#include "proxy/resolve.h"
#include "proxy/route.h"

enum {
	FILE_MAX = CRED_TEXT_MAX + 1024 * 1024
}; /* of credentials: uses, and what the guest's environment gets */

static int tell(const struct proxy_msg *m)
{
	uint8_t out[PROXY_TEXT_MAX + 64];
	ssize_t n = proxy_put(m, out, sizeof(out));

	if (n < 0)
		return (int)n;
	return send(FD_SUPERVISOR, out, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

void control_say(struct proxy *p, const char *fmt, ...)
{
	char text[PROXY_TEXT_MAX + 1];
	struct proxy_msg m = { .type = PROXY_SAY, .say = text };
	va_list ap;

	(void)p;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)tell(&m); /* a supervisor that does not read is not waited for */
}

static int on_policy(struct proxy *p, const struct proxy_msg *m, int fd)
{
	_free_ char *text = NULL;
	struct net_policy *policy = NULL, *old = p->policy;
	struct err e = { 0 };
	struct proxy_msg a = { .type = PROXY_APPLIED };
	size_t n = 0;
	int r;

	r = fd_read_mem(fd, NET_TEXT_MAX, &text, &n);
	if (r < 0)
		(void)err_errno(&e, r, "cannot read the network policy");
	else
		r = net_text_parse(text, n, &policy, &e);
	p->policy = r < 0 ? NULL : policy;
	p->have_policy = true;
	flow_policy_changed(p);
	pool_judge(p->pool);
	keeper_forget_leaves(p->keeper);
	(void)net_policy_free(old);
	a.applied.number = m->number;
	a.applied.code = r;
	a.applied.text = e.msg;
	return tell(&a);
}

static int parse_credentials(int fd, struct cred_set **ret, struct err *e)
{
	_free_ char *text = NULL;
	size_t n = 0;
	int r = fd_read_mem(fd, FILE_MAX, &text, &n);

	if (r < 0)
		return err_errno(e, r, "cannot read the credentials");
	r = cred_file_split(text, n, &n);
	if (r < 0)
		return err_errno(e, r, "the credentials are not understood");
	return cred_text_parse(text, n, ret, e);
}

/* With an error there are none: what they open is not opened, and no value goes anywhere. */
static int on_credentials(struct proxy *p, const struct proxy_msg *m, int fd)
{
	struct cred_set *creds = NULL, *old = p->creds;
	struct err e = { 0 };
	struct proxy_msg a = { .type = PROXY_APPLIED };
	int r = parse_credentials(fd, &creds, &e);

	flow_credentials(p, creds);
	p->creds = creds;
	(void)cred_set_free(old);
	flow_policy_changed(p);
	keeper_forget_leaves(p->keeper);
	a.applied.number = m->number;
	a.applied.code = r;
	a.applied.text = e.msg;
	return tell(&a);
}

static int on_marks(struct proxy *p, const struct proxy_msg *m)
{
	struct leak_set *marks = calloc(1, sizeof(*marks)), *old = p->marks;
	int r = marks ? leak_set_parse(marks, m->marks.p, m->marks.n) : -ENOMEM;

	if (r < 0) {
		free(marks);
		return r == -ENOMEM ? r : -EPROTO;
	}
	p->marks = marks;
	if (old)
		leak_set_done(old);
	free(old);
	return 0;
}

static int act(struct proxy *p, const struct proxy_msg *m, int *fd)
{
	const struct proxy_msg pong = { .type = PROXY_PONG, .number = m->number };

	switch (m->type) {
	case PROXY_CONFIG:
		p->have_config = true;
		return route_config(p, &m->config);
	case PROXY_POLICY:
		return on_policy(p, m, *fd);
	case PROXY_CREDENTIALS:
		return on_credentials(p, m, *fd);
	case PROXY_MARKS:
		return on_marks(p, m);
	case PROXY_KEEPER:
		keeper_set(p->keeper, take_fd(fd));
		return 0;
	case PROXY_TRUST:
		(void)fd_close(p->trust_fd);
		p->trust_fd = take_fd(fd);
		proxy_trust(p);
		return 0;
	case PROXY_PING:
		return tell(&pong);
	case PROXY_RESOLVER:
		resolver_set(p->resolver, m->resolver.conf, m->resolver.hosts);
		return 0;
	default:
		return -EPROTO;
	}
}

/* One message. 1; 0: none there; -errno: the end. */
static int take(struct proxy *p, int sock, char from, int flags)
{
	_close_ int fd = -1;
	struct proxy_msg m;
	ssize_t n = fd_receive_with(sock, p->message, sizeof(p->message), flags, &fd);
	int r;

	if (n < 0)
		return n == -EAGAIN ? 0 : (int)n;
	if (n == 0)
		return -ECONNRESET;
	if (proxy_parse(&m, from, p->message, (size_t)n, fd >= 0) != WIRE_OK)
		return -EPROTO;
	r = act(p, &m, &fd);
	return r < 0 && r != -EAGAIN ? r : 1;
}

static void on_event(struct proxy *p, struct watch *w, char from)
{
	int r = take(p, w->fd, from, MSG_DONTWAIT);

	if (r < 0) {
		control_say(p, "the proxy ends: %s: %s",
			    from == 'S' ? "its supervisor" : "its minder",
			    r == -ECONNRESET ? "is gone" : err_text(r));
		uv_stop(&p->loop.uv);
	}
}

static void on_supervisor(struct watch *w, uint32_t events)
{
	(void)events;
	on_event((struct proxy *)((char *)w - offsetof(struct proxy, supervisor)), w, 'S');
}

static void on_minder(struct watch *w, uint32_t events)
{
	(void)events;
	on_event((struct proxy *)((char *)w - offsetof(struct proxy, minder)), w, 'M');
}

/* What was sent along with the orders (credentials) counts before the first connection does. */
static int queued(struct proxy *p, struct err *e)
{
	int r;

	do {
		r = take(p, FD_SUPERVISOR, 'S', MSG_DONTWAIT);
	} while (r > 0);
	return r < 0 ? err_errno(e, r, "the supervisor's orders are not understood") : 0;
}

int control_orders(struct proxy *p, struct err *e)
{
	while (!p->have_config || !p->have_policy) {
		int r = take(p, FD_SUPERVISOR, 'S', 0);

		if (r < 0)
			return err_errno(e, r, "the supervisor's orders are not understood");
	}
	return queued(p, e);
}

int control_open(struct proxy *p)
{
	int r;

	p->supervisor.run = on_supervisor;
	p->minder.run = on_minder;
	r = loop_add(&p->loop, &p->supervisor, FD_SUPERVISOR, EPOLLIN);
	if (r == 0)
		r = loop_add(&p->loop, &p->minder, FD_MINDER, EPOLLIN);
	return r;
}

int control_ready(struct proxy *p)
{
	const struct proxy_msg m = { .type = PROXY_READY };

	(void)p;
	return tell(&m);
}
