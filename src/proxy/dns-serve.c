/* The question may have been sent to any address (8.8.8.8): the answer comes from there. The socket is transparent and bound in the sandbox's
 * network, so a source address can be named with each answer (IP_PKTINFO, ip(7)). */
#include "proxy/dns-serve.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "io/fd.h"
#include "proxy/dns-answer.h"

enum { BATCH = 64, WAITING_MAX = 512, CONNS_MAX = 64, IDLE_MS = 10 * 1000, BUF_MAX = 64 * 1024 };

struct dns_server {
	struct watch udp; /* first */
	struct proxy *p;
	struct watch tcp;
	unsigned n_waiting, n_conns;
};

/* ---- UDP ---- */

struct to {
	struct sockaddr_in peer;
	struct in_addr asked; /* from here it is answered */
};

/* An answer that waits for its receipt. */
struct waiting {
	struct receipt_wait wait; /* first */
	struct dns_server *s;
	struct to to;
	size_t n;
	uint8_t bytes[];
};

static void send_udp(struct dns_server *s, const struct to *to, const uint8_t *p, size_t n)
{
	union {
		struct cmsghdr align;
		uint8_t room[CMSG_SPACE(sizeof(struct in_pktinfo))];
	} c = { 0 };
	struct in_pktinfo from = { .ipi_spec_dst = to->asked };
	struct iovec iov = { (void *)p, n };
	struct msghdr m = { .msg_name = (void *)&to->peer,
			    .msg_namelen = sizeof(to->peer),
			    .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &c,
			    .msg_controllen = sizeof(c) };

	c.align.cmsg_level = IPPROTO_IP;
	c.align.cmsg_type = IP_PKTINFO;
	c.align.cmsg_len = CMSG_LEN(sizeof(from));
	memcpy(CMSG_DATA(&c.align), &from, sizeof(from));
	(void)sendmsg(s->udp.fd, &m,
		      MSG_DONTWAIT | MSG_NOSIGNAL); /* it is UDP: who hears nothing asks again */
}

static void udp_written(struct receipt_wait *wait)
{
	struct waiting *w = (struct waiting *)wait;

	send_udp(w->s, &w->to, w->bytes, w->n);
	w->s->n_waiting--;
	free(w);
}

static void send_later(struct dns_server *s, const struct to *to, const struct dns_reply *r)
{
	struct waiting *w = s->n_waiting < WAITING_MAX ? calloc(1, sizeof(*w) + r->n) : NULL;

	if (!w)
		return;
	w->s = s;
	w->to = *to;
	w->n = r->n;
	memcpy(w->bytes, r->bytes, r->n);
	w->wait.run = udp_written;
	s->n_waiting++;
	receipts_wait(s->p->receipts, &w->wait);
}

/* Where it was sent to. False: it does not say. */
static bool find_asked(struct msghdr *m, struct in_addr *ret)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		struct sockaddr_in a;

		if (c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_ORIGDSTADDR)
			continue;
		memcpy(&a, CMSG_DATA(c), sizeof(a));
		*ret = a.sin_addr;
		return true;
	}
	return false;
}

static bool take_udp(struct dns_server *s)
{
	union {
		struct cmsghdr align;
		uint8_t room[256];
	} c;
	uint8_t bytes[DNS_QUERY_MAX];
	struct dns_reply r;
	struct to to;
	struct iovec iov = { bytes, sizeof(bytes) };
	struct msghdr m = { .msg_name = &to.peer,
			    .msg_namelen = sizeof(to.peer),
			    .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &c,
			    .msg_controllen = sizeof(c) };
	ssize_t n = recvmsg(s->udp.fd, &m, MSG_DONTWAIT);

	if (n < 0)
		return errno != EAGAIN;
	if (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || !find_asked(&m, &to.asked) ||
	    receipts_full(s->p->receipts))
		return true;
	dns_reply(s->p, bytes, (size_t)n, false, &r);
	if (r.n && r.wait)
		send_later(s, &to, &r);
	else if (r.n)
		send_udp(s, &to, r.bytes, r.n);
	return true;
}

static void on_udp(struct watch *w, uint32_t events)
{
	(void)events;
	for (int i = 0; i < BATCH && take_udp((struct dns_server *)w); i++)
		;
}

/* ---- TCP: each message has its length in front (RFC 1035 4.2.2), one is answered after the other ---- */

struct conn {
	struct watch watch; /* first */
	struct dns_server *s;
	struct receipt_wait wait;
	uv_timer_t timer;
	struct buf in, out;
	bool waits, dead, ended;
};

static void freed(uv_handle_t *h)
{
	free(h->data);
}

static void conn_end(struct conn *c)
{
	if (c->dead)
		return;
	c->dead = true;
	receipts_cancel(c->s->p->receipts, &c->wait);
	loop_close(&c->s->p->loop, &c->watch);
	buf_done(&c->in);
	buf_done(&c->out);
	c->s->n_conns--;
	uv_close((uv_handle_t *)&c->timer, freed);
}

static void on_idle(uv_timer_t *t)
{
	conn_end(t->data);
}

static void conn_flush(struct conn *c)
{
	while (c->out.n) {
		ssize_t n =
			send(c->watch.fd, buf_data(&c->out), c->out.n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0) {
			if (errno != EAGAIN)
				conn_end(c);
			return;
		}
		buf_consume(&c->out, (size_t)n);
	}
	if (c->ended && !c->waits)
		conn_end(c);
}

/* The first whole message. False: there is none, or an answer has to go first. */
static bool conn_answer(struct conn *c)
{
	struct rd r = rd_init(buf_data(&c->in), c->in.n);
	size_t len = rd_be16(&r);
	const uint8_t *p = rd_take(&r, len);
	struct dns_reply a;
	uint8_t head[2];

	if (!p || c->waits || buf_space(&c->out) < DNS_ANSWER_MAX + 2)
		return false;
	dns_reply(c->s->p, p, len, true, &a);
	buf_consume(&c->in, len + 2);
	if (!a.n) {
		conn_end(c);
		return false;
	}
	head[0] = (uint8_t)(a.n >> 8);
	head[1] = (uint8_t)a.n;
	if (buf_add(&c->out, head, 2) < 0 || buf_add(&c->out, a.bytes, a.n) < 0) {
		conn_end(c);
		return false;
	}
	if (!a.wait)
		return true;
	c->waits = true;
	receipts_wait(c->s->p->receipts, &c->wait);
	return false;
}

static void conn_run(struct conn *c)
{
	while (!c->dead && conn_answer(c))
		;
	if (!c->dead && !c->waits)
		conn_flush(c);
}

static void conn_written(struct receipt_wait *w)
{
	struct conn *c = (struct conn *)((char *)w - offsetof(struct conn, wait));

	c->waits = false;
	conn_run(c);
}

static void on_conn(struct watch *w, uint32_t events)
{
	struct conn *c = (struct conn *)w;
	uint8_t *p = buf_room(&c->in, 2 + DNS_QUERY_MAX);
	ssize_t n;

	(void)events;
	if (!p) { /* it asks faster than it reads */
		conn_end(c);
		return;
	}
	n = recv(w->fd, p, 2 + DNS_QUERY_MAX, MSG_DONTWAIT);
	if (n > 0) {
		buf_added(&c->in, (size_t)n);
		(void)uv_timer_start(&c->timer, on_idle, IDLE_MS, 0);
	}
	if (n == 0) {
		c->ended = true;
		loop_events(&c->s->p->loop, w, 0);
	}
	if (n < 0 && errno != EAGAIN)
		conn_end(c);
	else
		conn_run(c);
}

static void conn_new(struct dns_server *s, int fd)
{
	struct conn *c = s->n_conns < CONNS_MAX ? calloc(1, sizeof(*c)) : NULL;

	if (!c || loop_add(&s->p->loop, &c->watch, fd, EPOLLIN) < 0) {
		(void)fd_close(fd);
		free(c);
		return;
	}
	c->s = s;
	c->watch.run = on_conn;
	c->wait.run = conn_written;
	buf_init(&c->in, BUF_MAX);
	buf_init(&c->out, BUF_MAX);
	(void)uv_timer_init(&s->p->loop.uv, &c->timer);
	c->timer.data = c;
	(void)uv_timer_start(&c->timer, on_idle, IDLE_MS, 0);
	s->n_conns++;
}

static void on_tcp(struct watch *w, uint32_t events)
{
	struct dns_server *s = (struct dns_server *)((char *)w - offsetof(struct dns_server, tcp));

	(void)events;
	for (int i = 0; i < BATCH; i++) {
		int fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			return;
		conn_new(s, fd);
	}
}

int dns_open(struct proxy *p)
{
	struct dns_server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	p->dns = s;
	s->p = p;
	s->udp.run = on_udp;
	s->tcp.run = on_tcp;
	r = loop_add(&p->loop, &s->udp, FD_DNS_UDP, EPOLLIN);
	return r < 0 ? r : loop_add(&p->loop, &s->tcp, FD_DNS_TCP, EPOLLIN);
}
