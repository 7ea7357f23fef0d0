/* The loop. What the supervisor says is taken first, and before new credentials or rules are applied, whatever the proxy had asked by the old ones is
 * answered: so that one copy before the one in force is enough to tell a request that is late from one that never was allowed.
 *
 * A proxy that does not read its answers is not read either. */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/fd.h"
#include "keeper/keeper.h"

enum { TURN_MAX = 64, DRAIN_MAX = 4096 };

/* What is made can be said. */
_Static_assert(CA_CHAIN_MAX + 0 <= KEEPER_CHAIN_MAX + 0, "a chain");
_Static_assert(CA_KEY_MAX + 0 <= KEEPER_KEY_MAX + 0, "a key");
_Static_assert(CA_PEM_MAX + 0 <= KEEPER_PEM_MAX + 0, "a certificate");
_Static_assert(CACHE_VALUE_MAX + 0 >= KEEPER_VALUE_MAX + 0, "a value");

void keeper_say(struct keeper *k, const char *fmt, ...)
{
	char text[KEEPER_TEXT_MAX + 1];
	const struct keeper_msg m = { .type = KEEPER_SAY, .text = text };
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)!peer_send(&k->supervisor, &m); /* one that does not read is not waited for */
}

/* ---- the proxy ---- */

static void hang_up(struct keeper *k)
{
	asks_proxy_gone(k);
	peer_close(&k->proxy);
}

static void breach(struct keeper *k)
{
	const struct keeper_msg m = { .type = KEEPER_BREACH, .text = k->why };

	hang_up(k);
	(void)!peer_send(&k->supervisor, &m);
}

static ssize_t receive(struct peer *p, struct keeper_msg *m, uint8_t *bytes, int *ret_fd)
{
	ssize_t n = fd_receive_with(p->fd, bytes, KEEPER_MSG_MAX, MSG_DONTWAIT, ret_fd);

	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n <= 0)
		return n < 0 ? n : -ECONNRESET;
	if (keeper_parse(m, p->who, bytes, (size_t)n, *ret_fd >= 0) != WIRE_OK) {
		explicit_bzero(bytes, (size_t)n);
		return -EPROTO;
	}
	return n;
}

/* One message, if there is one and its answers have room. True: look again. */
static bool take_proxy(struct keeper *k)
{
	static uint8_t bytes[KEEPER_MSG_MAX];
	_close_ int fd = -1;
	struct keeper_msg m;
	ssize_t n;
	int r;

	if (k->proxy.fd < 0 || k->proxy.first)
		return false;
	n = receive(&k->proxy, &m, bytes, &fd);
	if (n == 0)
		return false;
	if (n == -EPROTO)
		(void)snprintf(k->why, sizeof(k->why), "broke its protocol");
	r = n < 0 ? (int)n : asks_take(k, &m);
	if (n > 0)
		explicit_bzero(bytes, (size_t)n);
	if (r == -EPROTO)
		breach(k);
	else if (r < 0)
		hang_up(k);
	return r >= 0;
}

static void drain(struct keeper *k)
{
	for (unsigned i = 0; i < DRAIN_MAX && take_proxy(k); i++)
		;
}

/* ---- bac-fetch ---- */

static void fetch_gone(struct keeper *k)
{
	peer_close(&k->fetch);
	asks_fetch_gone(k);
}

static bool take_fetch(struct keeper *k)
{
	static uint8_t bytes[KEEPER_MSG_MAX];
	_close_ int fd = -1;
	struct keeper_msg m;
	ssize_t n;
	int r;

	if (k->fetch.fd < 0)
		return false;
	n = receive(&k->fetch, &m, bytes, &fd);
	if (n == 0)
		return false;
	r = n < 0 ? (int)n : asks_answer(k, &m);
	if (n > 0)
		explicit_bzero(bytes, (size_t)n);
	if (r < 0)
		fetch_gone(k);
	return r >= 0;
}

/* ---- orders ---- */

static int tell_ca(struct keeper *k)
{
	const struct keeper_msg m = { .type = KEEPER_CA, .text = ca_pem(k->ca) };

	return peer_send(&k->supervisor, &m);
}

/* Another list of what is opened, another certificate. */
static int certify(struct keeper *k, struct err *e)
{
	struct scope s;
	int coarse = scope_make(k->judge.cred, k->judge.net, &s), r;

	if (coarse < 0)
		return err_errno(e, coarse, "cannot list what is opened");
	if (k->certified && scope_same(&s, &k->scope)) {
		scope_done(&s);
		return 0;
	}
	r = ca_renew(k->ca, &s, (int64_t)(fd_real_ns() / 1000000000));
	if (r < 0) {
		scope_done(&s);
		return err_errno(e, r, "cannot make the certificate of the sandbox's authority");
	}
	scope_done(&k->scope);
	k->scope = s;
	k->certified = true;
	if (coarse)
		keeper_say(k, "so many hosts are opened that the sandbox's authority is not bound "
			      "to each of them");
	return tell_ca(k);
}

static int parse_cred(int fd, struct cred_set **ret, struct err *e)
{
	_free_ char *text = NULL;
	size_t n = 0, n_text = 0;
	int r = fd_read_mem(fd, CRED_FILE_MAX, &text, &n);

	if (r < 0)
		return err_errno(e, r, "cannot read the credentials");
	if (!n)
		return 0; /* there are none */
	r = cred_file_split(text, n, &n_text);
	return r < 0 ? err_set(e, r, "the credentials are cut")
		     : cred_text_parse(text, n_text, ret, e);
}

static int parse_net(int fd, struct net_policy **ret, struct err *e)
{
	_free_ char *text = NULL;
	size_t n = 0;
	int r = fd_read_mem(fd, NET_TEXT_MAX, &text, &n);

	return r < 0 ? err_errno(e, r, "cannot read the network policy")
		     : net_text_parse(text, n, ret, e);
}

static int applied(struct keeper *k, const struct keeper_msg *m, int r, struct err *e)
{
	struct keeper_msg a = { .type = KEEPER_APPLIED, .number = m->number, .text = "" };
	struct err other = { 0 };
	int ca = certify(k, r < 0 ? &other : e);

	a.code = r < 0 ? r : ca;
	if (a.code < 0)
		a.text = e->msg;
	return peer_send(&k->supervisor, &a);
}

static int on_config(struct keeper *k, const struct keeper_msg *m, int fd)
{
	(void)k;
	(void)m;
	(void)fd;
	return -EPROTO; /* main.c has had it */
}

static int on_credentials(struct keeper *k, const struct keeper_msg *m, int fd)
{
	struct cred_set *set = NULL;
	struct err e = { 0 };
	int r = parse_cred(fd, &set, &e);

	drain(k);
	judge_cred(&k->judge, set);
	asks_credentials(k);
	return applied(k, m, r, &e);
}

static int on_policy(struct keeper *k, const struct keeper_msg *m, int fd)
{
	struct net_policy *policy = NULL;
	struct err e = { 0 };
	int r = parse_net(fd, &policy, &e);

	drain(k);
	judge_net(&k->judge, policy);
	return applied(k, m, r, &e);
}

static int on_ping(struct keeper *k, const struct keeper_msg *m, int fd)
{
	const struct keeper_msg pong = { .type = KEEPER_PONG, .number = m->number };

	(void)fd;
	return peer_send(&k->supervisor, &pong);
}

static int on_proxy(struct keeper *k, const struct keeper_msg *m, int fd)
{
	(void)m;
	hang_up(k);
	peer_open(&k->proxy, 'P', fd);
	return 1;
}

static int on_fetch(struct keeper *k, const struct keeper_msg *m, int fd)
{
	(void)m;
	fetch_gone(k);
	peer_open(&k->fetch, 'F', fd);
	asks_credentials(k);
	return 1;
}

/* 1: the descriptor is kept. */
static const struct {
	char from;
	int (*run)(struct keeper *k, const struct keeper_msg *m, int fd);
} orders[] = {
	[KEEPER_CONFIG] = { 'S', on_config }, [KEEPER_CREDENTIALS] = { 'S', on_credentials },
	[KEEPER_POLICY] = { 'S', on_policy }, [KEEPER_PING] = { 'S', on_ping },
	[KEEPER_PROXY] = { 'M', on_proxy },   [KEEPER_FETCH] = { 'M', on_fetch },
};

int keeper_order(struct keeper *k, char from, const struct keeper_msg *m, int fd)
{
	_close_ int left = fd;
	int r = -EPROTO;

	if (m->type < ARRAY_SIZE(orders) && orders[m->type].from == from)
		r = orders[m->type].run(k, m, fd);
	if (r == 1)
		(void)take_fd(&left);
	return MIN(r, 0);
}

/* 1; 0: there is none; -errno: the end. */
static int take_order(struct keeper *k, struct peer *p)
{
	static uint8_t bytes[KEEPER_MSG_MAX];
	_close_ int fd = -1;
	struct keeper_msg m;
	ssize_t n = receive(p, &m, bytes, &fd);
	int r;

	if (n <= 0)
		return (int)n;
	r = keeper_order(k, p->who, &m, take_fd(&fd));
	return r < 0 ? r : 1;
}

/* ---- the loop ---- */

void keeper_tell_marks(struct keeper *k)
{
	struct keeper_msg m = { .type = KEEPER_MARKS };
	struct buf out = BUF_INIT(KEEPER_MARKS_MAX);
	int r;

	if (!k->marks_due || cache_peeking(k->cache))
		return;
	k->marks_due = false;
	r = marks_put(k->marks, &out);
	m.bytes = (struct keeper_bytes) { buf_data(&out), (uint32_t)out.n };
	if (r >= 0 && peer_send(&k->supervisor, &m) < 0)
		r = -EPIPE;
	if (r != 0)
		keeper_say(k, "%s credentials are looked for in what leaves the sandbox",
			   r > 0 ? "there are many: only the newest" : "out of memory: not all");
	if (out.n)
		explicit_bzero(out.p + out.off, out.n);
	buf_done(&out);
}

int keeper_open(struct keeper *k, const char *sandbox, int supervisor, int minder)
{
	uint64_t key = 0;
	int r;

	peer_open(&k->supervisor, 'S', supervisor);
	peer_open(&k->minder, 'M', minder);
	peer_open(&k->proxy, 'P', -1);
	peer_open(&k->fetch, 'F', -1);
	if (getentropy(&key, sizeof(key)) < 0)
		return -errno;
	r = ca_new(sandbox, &k->ca);
	if (r == 0)
		r = cache_new(&k->cache);
	if (r == 0)
		r = marks_new(key, &k->marks);
	return r;
}

void keeper_done(struct keeper *k)
{
	asks_proxy_gone(k);
	fetch_gone(k);
	peer_close(&k->proxy);
	peer_close(&k->supervisor);
	peer_close(&k->minder);
	judge_done(&k->judge);
	scope_done(&k->scope);
	k->ca = ca_free(k->ca);
	k->cache = cache_free(k->cache);
	k->marks = marks_free(k->marks);
}

static short events(const struct peer *p, bool closed_when_full)
{
	if (!p->first)
		return POLLIN;
	return closed_when_full ? POLLOUT : POLLIN | POLLOUT;
}

/* The supervisor's end is the end; the minder's is followed by it. */
static int orders_turn(struct keeper *k, short supervisor, short minder)
{
	int r = 0;

	if (supervisor & POLLOUT)
		r = peer_flush(&k->supervisor);
	for (unsigned i = 0; r >= 0 && supervisor && i < TURN_MAX; i++) {
		r = take_order(k, &k->supervisor);
		if (r == 0)
			break;
	}
	if (r < 0)
		return r == -ECONNRESET || r == -EPIPE ? 1 : r;
	for (unsigned i = 0; minder && i < TURN_MAX; i++) {
		r = take_order(k, &k->minder);
		if (r < 0)
			peer_close(&k->minder);
		if (r <= 0)
			break;
	}
	return r == -EPROTO ? r : 0;
}

static void others_turn(struct keeper *k, short fetch, short proxy)
{
	if ((fetch & POLLOUT) && peer_flush(&k->fetch) < 0)
		fetch_gone(k);
	for (unsigned i = 0; fetch && i < TURN_MAX && take_fetch(k); i++)
		;
	if ((proxy & POLLOUT) && peer_flush(&k->proxy) < 0)
		hang_up(k);
	for (unsigned i = 0; proxy && i < TURN_MAX && take_proxy(k); i++)
		;
}

int keeper_serve(struct keeper *k)
{
	for (;;) {
		struct pollfd p[] = {
			{ .fd = k->supervisor.fd, .events = events(&k->supervisor, false) },
			{ .fd = k->minder.fd, .events = POLLIN },
			{ .fd = k->fetch.fd, .events = events(&k->fetch, false) },
			{ .fd = k->proxy.fd, .events = events(&k->proxy, true) },
		};
		int r;

		if (poll(p, ARRAY_SIZE(p), -1) < 0 && errno != EINTR)
			return -errno;
		r = orders_turn(k, p[0].revents, p[1].revents);
		if (r != 0)
			return MIN(r, 0);
		others_turn(k, p[2].revents, p[3].revents);
		if (k->fetch_lost)
			fetch_gone(k);
	}
}
