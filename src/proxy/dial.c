#include "proxy/dial.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/text.h"
#include "io/fd.h"
#include "proxy/route.h"
#include "proxy/resolve.h"
#include "proxy/upstream.h"

enum { TRIES_MAX = 12, STAGGER_MS = 250, TOTAL_MS = 10000 };

struct
try {
	struct watch watch; /* first */
	struct dial *dial;
	struct addr addr;
	bool talking; /* connected, and the host's proxy is being asked */
};

struct dial {
	struct proxy *p;
	struct host host;
	uint16_t port, to_port;
	bool plain_http, judged, by_upstream, closed, more;
	uv_timer_t timer;
	uint64_t deadline;
	struct lookup *lookup;
	struct addrs addrs;
	size_t next;
	struct try tries[TRIES_MAX];
	size_t n_tries, n_open;
	struct upstream_talk talk;
	struct dial_result result;
	void (*done)(void *arg, struct dial_result *r);
	void *arg;
};

static void on_timer(uv_timer_t *t);

static void freed(uv_handle_t *h)
{
	free(h->data);
}

static void end(struct dial *d)
{
	if (d->closed)
		return;
	d->closed = true;
	resolver_cancel(take_ptr(d->lookup));
	for (size_t i = 0; i < d->n_tries; i++)
		loop_close(&d->p->loop, &d->tries[i].watch);
	uv_close((uv_handle_t *)&d->timer, freed);
}

void dial_cancel(struct dial *d)
{
	if (d)
		end(d);
}

/* The result goes from a timer of no time: never into the arms of who called dial_start(). */
static void finish(struct dial *d)
{
	end(d);
	d->done(d->arg, &d->result);
}

static void finish_soon(struct dial *d)
{
	d->more = false;
	d->deadline = 0;
	(void)uv_timer_start(&d->timer, on_timer, 0, 0);
}

static void fail_soon(struct dial *d, const char *why)
{
	(void)!text_copy(d->result.note, sizeof(d->result.note), why);
	finish_soon(d);
}

static void name_addr(struct dial_result *r, const struct addr *a, uint16_t port)
{
	char text[INET6_ADDRSTRLEN] = "";

	(void)inet_ntop(a->len == 4 ? AF_INET : AF_INET6, a->b, text, sizeof(text));
	(void)snprintf(r->address, sizeof(r->address), a->len == 4 ? "%s:%u" : "[%s]:%u", text,
		       port);
	memcpy(r->addr, a->b, a->len);
	r->addr_len = a->len;
	r->port = port;
}

static void succeed(struct dial *d, struct try *t)
{
	name_addr(&d->result, &t->addr, d->to_port);
	d->result.judged = d->judged;
	d->result.absolute =
		d->by_upstream && d->p->upstream.kind == UPSTREAM_HTTP && d->plain_http;
	d->result.fd = loop_take(&d->p->loop, &t->watch);
	finish(d);
}

static void try_next(struct dial *d);

static void try_failed(struct dial *d, struct try *t, int code)
{
	char text[64];
	struct dial_result r = { 0 };

	if (t->talking) {
		(void)!text_copy(d->result.note, sizeof(d->result.note), d->talk.why);
	} else {
		name_addr(&r, &t->addr, d->to_port);
		(void)!text_copy(text, sizeof(text), r.address);
		(void)snprintf(d->result.note, sizeof(d->result.note), "%s: %s", text,
			       err_text(code));
	}
	loop_close(&d->p->loop, &t->watch);
	d->n_open--;
	if (d->next < d->addrs.n && d->n_tries < TRIES_MAX)
		try_next(d);
	else if (!d->n_open)
		finish_soon(d);
}

static void on_try(struct watch *w, uint32_t events)
{
	struct try *t = (struct try *)w;
	struct dial *d = t->dial;
	socklen_t len = sizeof(int);
	int code = 0, r;

	if (!t->talking && !(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
		return;
	if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &code, &len) < 0)
		code = errno;
	if (code) {
		try_failed(d, t, -code);
		return;
	}
	if (!d->by_upstream || (d->p->upstream.kind == UPSTREAM_HTTP && d->plain_http)) {
		succeed(d, t);
		return;
	}
	t->talking = true;
	d->next = d->addrs.n; /* this one is it */
	r = upstream_step(&d->talk, w->fd);
	if (r < 0)
		try_failed(d, t, r);
	else if (r > 0)
		succeed(d, t);
}

static int connect_to(const struct addr *a, uint16_t port, int *ret)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} u = { 0 };
	const int one = 1;
	_close_ int fd = socket(a->len == 4 ? AF_INET : AF_INET6,
				SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t len = a->len == 4 ? sizeof(u.v4) : sizeof(u.v6);

	if (fd < 0)
		return -errno;
	if (a->len == 4) {
		u.v4 = (struct sockaddr_in) { .sin_family = AF_INET, .sin_port = htons(port) };
		memcpy(&u.v4.sin_addr, a->b, 4);
	} else {
		u.v6 = (struct sockaddr_in6) { .sin6_family = AF_INET6, .sin6_port = htons(port) };
		memcpy(&u.v6.sin6_addr, a->b, 16);
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	if (connect(fd, &u.sa, len) < 0 && errno != EINPROGRESS)
		return -errno;
	*ret = take_fd(&fd);
	return 0;
}

static int try_one(struct dial *d, const struct addr *a)
{
	struct try *t = &d->tries[d->n_tries];
	_close_ int fd = -1;
	int r = connect_to(a, d->to_port, &fd);

	if (r < 0)
		return r;
	t->dial = d;
	t->addr = *a;
	t->watch.run = on_try;
	r = loop_add(&d->p->loop, &t->watch, fd, EPOLLIN | EPOLLOUT | EPOLLET);
	if (r < 0)
		return r;
	(void)take_fd(&fd);
	d->n_tries++;
	d->n_open++;
	return 0;
}

static void arm(struct dial *d)
{
	const uint64_t now = loop_now(&d->p->loop);
	uint64_t left = d->deadline > now ? d->deadline - now : 0;

	d->more = d->next < d->addrs.n && d->n_tries < TRIES_MAX;
	(void)uv_timer_start(&d->timer, on_timer, d->more ? MIN(left, (uint64_t)STAGGER_MS) : left,
			     0);
}

static void try_next(struct dial *d)
{
	while (d->next < d->addrs.n && d->n_tries < TRIES_MAX) {
		const struct addr *a = &d->addrs.v[d->next++];
		int r = try_one(d, a);

		if (r == 0) {
			arm(d);
			return;
		}
		name_addr(&d->result, a, d->to_port);
		(void)snprintf(d->result.note, sizeof(d->result.note), "%.63s: %s",
			       d->result.address, err_text(r));
	}
	if (!d->n_open)
		finish_soon(d);
}

static void on_timer(uv_timer_t *t)
{
	struct dial *d = t->data;

	if (loop_now(&d->p->loop) < d->deadline && d->more) {
		try_next(d);
		return;
	}
	if (d->n_open || !d->result.note[0])
		(void)!text_copy(d->result.note, sizeof(d->result.note), "it does not answer");
	if (!d->result.refused && d->n_tries == 0 && d->lookup)
		(void)!text_copy(d->result.note, sizeof(d->result.note),
				 "the name servers do not answer");
	finish(d);
}

/* IPv6 and IPv4 by turns, in the order they came. */
static void interleave(struct addrs *a)
{
	struct addrs out = { 0 };
	size_t at[2] = { 0, 0 };
	int want = 16;

	while (out.n < a->n) {
		size_t *i = &at[want == 16];

		while (*i < a->n && a->v[*i].len != want)
			(*i)++;
		if (*i < a->n)
			out.v[out.n++] = a->v[(*i)++];
		want = 20 - want;
	}
	*a = out;
}

/* Only what the policy allows stays. */
static void judge(struct dial *d)
{
	size_t n = 0;

	if (!d->judged)
		return;
	for (size_t i = 0; i < d->addrs.n; i++) {
		const struct addr *a = &d->addrs.v[i];
		struct net_answer y = net_decide_addr(d->p->policy, a->b, a->len, d->port);
		const char *class = host_addr_class(a->b, a->len);

		if (y.verdict == NET_ALLOW) {
			d->addrs.v[n++] = *a;
			continue;
		}
		name_addr(&d->result, a, d->to_port);
		if (text_copy(d->result.rule, sizeof(d->result.rule), y.rule ? y.rule : "") < 0)
			d->result.rule[0] = 0;
		d->result.reason = y.reason;
		(void)snprintf(d->result.note, sizeof(d->result.note), "it leads to %s%s%s",
			       d->result.address, class ? ", which is " : "", class ? class : "");
	}
	d->result.refused = d->addrs.n && !n;
	d->addrs.n = n;
}

static void have_addrs(struct dial *d)
{
	judge(d);
	interleave(&d->addrs);
	if (!d->addrs.n) {
		finish_soon(d);
		return;
	}
	d->result.note[0] = 0;
	try_next(d);
}

static void on_lookup(void *arg, int code, const struct addrs *a)
{
	struct dial *d = arg;

	d->lookup = NULL;
	if (code < 0) {
		fail_soon(d, code == -ENOENT      ? "there is no such name, or it has no address"
			     : code == -ETIMEDOUT ? "the name servers do not answer"
						  : "the name servers fail");
		return;
	}
	d->addrs = *a;
	have_addrs(d);
}

static void look_up(struct dial *d, const struct host *h)
{
	static const struct addr loopback[] = { { 4, { 127, 0, 0, 1 } }, { 16, { [15] = 1 } } };

	if (h->kind == HOST_V4 || h->kind == HOST_V6) {
		d->addrs.n = 1;
		d->addrs.v[0].len = h->kind == HOST_V4 ? 4 : 16;
		memcpy(d->addrs.v[0].b, h->addr, d->addrs.v[0].len);
		have_addrs(d);
	} else if (streq(h->text, "localhost")) {
		d->addrs.n = 2;
		memcpy(d->addrs.v, loopback, sizeof(loopback));
		have_addrs(d);
	} else if (h->kind == HOST_NAME && resolver_known(d->p->resolver, h, &d->addrs) > 0) {
		have_addrs(d);
	} else {
		d->lookup = h->kind == HOST_NAME ? resolver_look(d->p->resolver, h, on_lookup, d)
						 : NULL;
		if (!d->lookup)
			fail_soon(d, "it cannot be looked up");
	}
}

static void begin(struct dial *d)
{
	const struct detour *detour = route_detour(d->p, &d->host, d->port);

	d->to_port = d->port;
	if (detour) {
		d->to_port = detour->to_port;
		d->addrs.n = 1;
		d->addrs.v[0].len = detour->addr_len;
		memcpy(d->addrs.v[0].b, detour->addr, detour->addr_len);
		have_addrs(d);
	} else if (route_by_upstream(d->p, &d->host)) {
		d->by_upstream = true;
		d->to_port = d->p->upstream.port;
		d->talk = (struct upstream_talk) { .by = &d->p->upstream,
						   .host = d->host.text,
						   .port = d->port };
		look_up(d, &d->p->upstream.host);
	} else {
		/* what was decided about this machine is all there is to decide */
		d->judged = !streq(d->host.text, "localhost");
		look_up(d, &d->host);
	}
}

struct dial *dial_start(struct proxy *p, const struct host *host, uint16_t port, bool plain_http,
			void (*done)(void *arg, struct dial_result *r), void *arg)
{
	struct dial *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->p = p;
	d->host = *host;
	d->port = port;
	d->plain_http = plain_http;
	d->done = done;
	d->arg = arg;
	d->result.fd = -1;
	d->result.reason = "";
	for (size_t i = 0; i < TRIES_MAX; i++)
		d->tries[i].watch.fd = -1;
	(void)uv_timer_init(&p->loop.uv, &d->timer);
	d->timer.data = d;
	d->deadline = loop_now(&p->loop) + TOTAL_MS;
	(void)uv_timer_start(&d->timer, on_timer, TOTAL_MS, 0);
	begin(d);
	return d;
}
