/* Control of the proxy, across its lives: each new one that the minder has started gets the configuration and the
 * policy in force, and answers nothing before it has both.
 *
 * A POLICY is numbered. A client that brought one waits for the APPLIED of its number or of a later one, whichever proxy says it:
 * one that dies in between does not lose it. A proxy that has a question (PING, POLICY) and does not answer in time is
 * replaced, unless it only waits for a processor (stuck.h); no clock runs while nobody asks.
 *
 * What the proxy and bac-audit say is parsed like what the guest says: the guest may have taken them over. */
#include "supervisor/net.h"

#include <poll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/fd.h"
#include "supervisor/minder.h"
#include "supervisor/net-priv.h"
#include "wire/net.h"
#include "wire/proxy.h"
#include "wire/receipt.h"

enum {
	POLICY_FD = 7,
	CRED_FD = 8,
	START_MS = 25000,
	ANSWER_MS = 2000, /* then the minder is told, and again each AGAIN_MS */
	AGAIN_MS = 1000,
	END_MS = 3000,
	PROXY_END_MS = 1000,
	TURN_MAX = 64
};

/* ---- words to the proxy ---- */

void net_tell_minder(struct sup *s, enum minder_says what, const char *text)
{
	char bytes[1 + MINDER_TEXT_MAX];
	int n = snprintf(bytes, sizeof(bytes), "%c%s", what, text);

	(void)!send(s->net->minder_fd, bytes, MIN((size_t)n, sizeof(bytes) - 1),
		    MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void on_late(uv_timer_t *t)
{
	net_tell_minder(t->data, MINDER_SLOW, "");
}

static void expect_answer(struct sup *s)
{
	if (!uv_is_active((uv_handle_t *)&s->net->late))
		(void)uv_timer_start(&s->net->late, on_late, ANSWER_MS, AGAIN_MS);
}

static int tell_proxy(struct sup *s, const struct proxy_msg *m, int fd)
{
	static uint8_t bytes[PROXY_MSG_MAX];
	ssize_t n = proxy_put(m, bytes, sizeof(bytes));

	if (n < 0)
		return (int)n;
	if (!s->net->proxy)
		return -ENOTCONN;
	return fd_send_with(s->net->proxy->fd, bytes, (size_t)n, fd, MSG_DONTWAIT);
}

/* One that it does not have yet. */
static void tell_text(struct sup *s, struct net_text *t, uint8_t type)
{
	struct proxy_msg m = { .type = type, .number = t->number };

	if (t->at_proxy == t->number || !net_kept(s, t))
		return;
	t->at_proxy = t->number;
	if (tell_proxy(s, &m, t->fd) == 0)
		expect_answer(s);
}

void net_tell_texts(struct sup *s)
{
	struct netdoor *n = s->net;

	if (!n->proxy)
		return;
	/* a proxy serves when it has its policy: what it has to open must be known by then */
	tell_text(s, &n->cred, PROXY_CREDENTIALS);
	if (n->cred.at_proxy == n->cred.number)
		tell_text(s, &n->policy, PROXY_POLICY);
}

void net_tell_marks(struct sup *s)
{
	struct netdoor *n = s->net;
	struct proxy_msg m = { .type = PROXY_MARKS };

	m.marks.p = buf_data(&n->marks);
	m.marks.n = (uint32_t)n->marks.n;
	if (n->proxy && n->marks.n && tell_proxy(s, &m, -1) < 0)
		slog_say(s->log, "network: the proxy does not take the marks of credentials");
}

static void tell_config(struct sup *s)
{
	const struct wire_order *o = &s->order;
	struct proxy_msg m = { .type = PROXY_CONFIG,
			       .config = { .sandbox = o->name,
					   .upstream = o->upstream,
					   .no_proxy = o->no_proxy,
					   .generation = s->net->generation++ } };
	struct proxy_config *c = &m.config;
	int r;

	for (uint32_t i = 0; i < o->n_connect && i < PROXY_CONNECT_MAX; i++)
		c->connect[c->n_connect++] = o->connect[i];
	r = tell_proxy(s, &m, -1);
	if (r < 0)
		slog_say(s->log, "network: the proxy does not take its configuration: %s",
			 err_text(r));
}

static void ask(struct sup *s)
{
	struct proxy_msg m = { .type = PROXY_PING, .number = ++s->net->ping };

	if (s->net->proxy) {
		(void)tell_proxy(s, &m, -1); /* a queue that is full is no answer either */
		expect_answer(s);
	}
	keep_ask(s);
}

/* ---- links ---- */

static void on_link_closed(uv_handle_t *h)
{
	struct link *l = h->data;

	(void)fd_close(l->fd);
	free(l);
}

void net_unlink(struct link **at)
{
	struct link *l = *at;

	*at = NULL;
	if (!l)
		return;
	(void)uv_poll_stop(&l->poll);
	(void)shutdown(l->fd, SHUT_RDWR); /* now, not when the loop comes to it */
	uv_close((uv_handle_t *)&l->poll, on_link_closed);
}

void net_link(struct sup *s, struct link **at, int fd, uv_poll_cb fn)
{
	struct link *l = calloc(1, sizeof(*l));

	net_unlink(at);
	if (!l || fd_nonblock(fd, true) < 0 || uv_poll_init(&s->loop, &l->poll, fd) != 0) {
		slog_say(s->log, "network: out of memory");
		(void)fd_close(fd);
		free(l);
		return;
	}
	l->fd = fd;
	l->sup = s;
	l->poll.data = l;
	(void)uv_poll_start(&l->poll, UV_READABLE, fn);
	*at = l;
}

/* ---- words from the proxy ---- */

/* Clients whose text, or a later one, is in force, with both who decide by it: also where the keeper has to be started first. Or it is not understood. */
static void settle(struct sup *s, const struct net_text *t, int code, const char *text)
{
	bool kept = !s->net->needed || t->kept == t->number;

	if (t->applied != t->number || (!code && !kept))
		return;
	for (struct client *c = s->clients; c; c = c->next) {
		if (c->waits_text != t)
			continue;
		c->waits_text = NULL;
		if (code)
			sup_client_failed(c, code, text);
		else
			sup_client_frame(c, 0, WIRE_DONE, 0, NULL, 0);
	}
}

void net_settle(struct sup *s, const struct net_text *t)
{
	settle(s, t, 0, "");
}

static bool owes(const struct net_text *t)
{
	return t->applied != t->at_proxy;
}

bool net_proxy_owes(const struct netdoor *n)
{
	return n->proxy && (owes(&n->policy) || owes(&n->cred));
}

/* An answer to one that has been followed by another already tells nothing. */
static void on_applied(struct sup *s, const struct proxy_msg *m)
{
	struct netdoor *n = s->net;
	bool cred = m->applied.number == n->cred.at_proxy;
	struct net_text *t = cred ? &n->cred : &n->policy;

	if (m->applied.number != t->at_proxy)
		return; /* or it invents */
	(void)uv_timer_stop(&n->late);
	if (m->applied.code)
		slog_say(s->log, "network: %s: %s",
			 cred ? "the credentials are not understood, there are none"
			      : "the policy is not understood, all is denied",
			 m->applied.text);
	t->applied = m->applied.number;
	settle(s, t, -m->applied.code, m->applied.text);
	if (net_proxy_owes(n))
		expect_answer(s);
	keep_step(s);
}

static void on_proxy_msg(struct sup *s, const struct proxy_msg *m)
{
	switch (m->type) {
	case PROXY_APPLIED:
		on_applied(s, m);
		break;
	case PROXY_PONG:
		if (m->number == s->net->ping && !net_proxy_owes(s->net))
			(void)uv_timer_stop(&s->net->late);
		break;
	case PROXY_SAY:
		slog_say(s->log, "network: %s", m->say);
		break;
	default:
		break;
	}
}

static void on_proxy(uv_poll_t *p, int status, int events)
{
	static uint8_t bytes[PROXY_MSG_MAX];
	struct link *l = p->data;
	struct sup *s = l->sup;
	struct proxy_msg m;
	ssize_t n = -EPIPE;
	int turns;

	(void)status;
	(void)events;
	for (turns = 0; turns < TURN_MAX && l == s->net->proxy; turns++) {
		n = recv(l->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n <= 0)
			break;
		if (proxy_parse(&m, 'P', bytes, (size_t)n, 0) != WIRE_OK) {
			net_tell_minder(s, MINDER_REPLACE, "broke its protocol");
			n = 0;
			break;
		}
		on_proxy_msg(s, &m);
	}
	if (l != s->net->proxy || n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	(void)uv_timer_stop(&s->net->late);
	net_unlink(&s->net->proxy); /* the minder brings the next */
}

/* ---- receipts ---- */

static void send_receipt(struct sup *s, const struct receipt *r)
{
	struct buf out = BUF_INIT(RECEIPT_MAX);
	struct netdoor *n = s->net;

	if (n->audit && receipt_put(&out, r) == 0)
		(void)!send(n->audit->fd, buf_data(&out), out.n, MSG_NOSIGNAL | MSG_DONTWAIT);
	buf_done(&out);
}

/* A word about the sandbox. */
void net_note(struct sup *s, const char *reason, const char *note)
{
	struct receipt r = { .event = RECEIPT_NOTE,
			     .kind = RK_SANDBOX,
			     .allowed = true,
			     .reason = reason,
			     .note = note };

	send_receipt(s, &r);
}

void sup_net_refused(struct sup *s, const struct share_refused *m, const char *path)
{
	struct receipt r = { .event = RECEIPT_DECISION,
			     .kind = RK_FILE,
			     .count = 1 + m->dropped,
			     .method = m->op,
			     .path = path,
			     .rule = m->rule,
			     .reason = m->kind == SHARE_HIDE ? "hidden" : "protected" };
	char secret[WIRE_NAME_MAX + 16];

	if (m->kind == SHARE_LEAK || m->kind == SHARE_LEAK_REFUSED) {
		(void)snprintf(secret, sizeof(secret), "secret: %.63s", m->rule);
		r.allowed = m->kind == SHARE_LEAK;
		r.rule = "";
		r.reason = "secret-written";
		r.note = secret;
	}
	if (s->net)
		send_receipt(s, &r);
}

void sup_net_leaked(struct sup *s, bool copy, const char *what, const char *name, bool refused)
{
	char secret[WIRE_NAME_MAX + 16];
	const struct receipt r = { .event = RECEIPT_DECISION,
				   .kind = RK_SANDBOX,
				   .allowed = !refused,
				   .method = copy ? "COPY" : "EXEC",
				   .path = what,
				   .reason = copy ? "secret-copied" : "secret-printed",
				   .note = secret };

	(void)snprintf(secret, sizeof(secret), "secret: %.63s", name);
	if (s->net)
		send_receipt(s, &r);
}

static void on_audit(uv_poll_t *p, int status, int events)
{
	struct link *l = p->data;
	struct sup *s = l->sup;
	uint8_t bytes[RECEIPT_ANSWER_MAX];
	struct receipt_answer a;
	ssize_t n;

	(void)status;
	(void)events;
	n = recv(l->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || receipt_answer_get(&a, bytes, (size_t)n) != WIRE_OK) {
		(void)uv_poll_stop(p); /* the minder sees its end, and brings the next */
		return;
	}
	if (!a.alarm)
		return;
	slog_say(s->log,
		 a.code ? "network: stopped, since its log cannot be written: %s"
			: "network: its log can be written again%s",
		 a.code ? a.text : "");
	(void)snprintf(s->net->remark, sizeof(s->net->remark), "%s%s",
		       a.code ? "no traffic: the log cannot be written: " : "",
		       a.code ? a.text : "");
}

/* ---- words from the minder ---- */

static void on_new_proxy(struct sup *s, int fd, const char *why)
{
	struct netdoor *n = s->net;

	if (*why) {
		slog_say(s->log, "network: %s: started again", why);
		(void)snprintf(n->remark, sizeof(n->remark), "%s and was started again", why);
		net_note(s, "proxy-restarted", why);
	}
	(void)uv_timer_stop(&n->late);
	net_link(s, &n->proxy, fd, on_proxy);
	tell_config(s);
	n->policy.at_proxy = n->cred.at_proxy = n->cred.applied = n->policy.applied = 0;
	net_tell_texts(s);
	net_tell_marks(s);
}

/* 1: there is nothing; else what came, with its text in bytes, and *ret_fd the caller's. */
static int hear(struct sup *s, char *bytes, size_t max, int *ret_fd, int flags)
{
	ssize_t n = fd_receive_with(s->net->minder_fd, bytes, max - 1, flags, ret_fd);

	if (n == -EAGAIN || n == -EINTR)
		return 1;
	if (n <= 0)
		return n < 0 ? (int)n : -EPIPE;
	bytes[n] = '\0';
	return 0;
}

static void on_minder(uv_poll_t *p, int status, int events)
{
	char bytes[2 + MINDER_TEXT_MAX];
	struct sup *s = p->data;
	_close_ int fd = -1;
	int r = hear(s, bytes, sizeof(bytes), &fd, MSG_DONTWAIT);

	(void)status;
	(void)events;
	if (r > 0)
		return;
	if (r < 0) {
		(void)uv_poll_stop(p); /* its end says more, and is on its way */
		return;
	}
	if (bytes[0] == MINDER_PROXY && fd >= 0)
		on_new_proxy(s, take_fd(&fd), bytes + 1);
	else if (bytes[0] == MINDER_AUDIT && fd >= 0)
		net_link(s, &s->net->audit, take_fd(&fd), on_audit);
	else if (bytes[0] == MINDER_KEEPER && fd >= 0)
		keep_new(s, take_fd(&fd), bytes + 1);
	else if (bytes[0] == MINDER_ASK)
		ask(s);
	else if (bytes[0] == MINDER_SAY)
		slog_say(s->log, "network: %s", bytes + 1);
}

static void on_words(uv_poll_t *p, int status, int events)
{
	struct sup *s = p->data;
	char bytes[4096];
	ssize_t n = read(s->net->words_fd, bytes, sizeof(bytes));

	(void)status;
	(void)events;
	if (n > 0)
		slog_bytes(s->log, &s->net->words_carry, "network", bytes, (size_t)n);
	else if (n == 0 || errno != EAGAIN)
		(void)uv_poll_stop(p);
}

bool sup_net_reap(struct sup *s)
{
	int status;

	if (!s->net || s->net->minder <= 0 || waitpid(s->net->minder, &status, WNOHANG) <= 0)
		return false;
	s->net->minder = -1;
	sup_reason(s, "the keeper of the sandbox's network ended: the sandbox is stopped rather "
		      "than left "
		      "without a network; start it again");
	sup_event(s, EV_NET_GONE);
	return true;
}

/* ---- the door ---- */

static bool take_text(struct client *c, bool cred)
{
	_close_ int fd = take_fd(&c->conn.came_fd);
	struct sup *s = c->sup;
	struct net_text *t;

	if (fd < 0)
		return false;
	if (!s->net) {
		sup_client_frame(c, 0, WIRE_DONE, 0, NULL, 0);
		return true;
	}
	t = cred ? &s->net->cred : &s->net->policy;
	(void)fd_close(t->fd);
	t->fd = take_fd(&fd);
	t->number = ++s->net->last;
	c->waits_text = t;
	c->waits_number = t->number;
	keep_text(s, t);
	return true;
}

bool sup_net_policy(struct client *c, const struct wire_frame *f)
{
	(void)f;
	return take_text(c, false);
}

bool sup_net_credentials(struct client *c, const struct wire_frame *f)
{
	(void)f;
	return take_text(c, true);
}

void sup_net_client_gone(struct client *c)
{
	c->waits_text = NULL;
}

const char *sup_net_remark(const struct sup *s)
{
	return s->net ? s->net->remark : "";
}

/* ---- start and end ---- */

static struct netdoor *door_new(void)
{
	struct netdoor *n = calloc(1, sizeof(*n));

	if (n) {
		n->minder_pidfd = n->minder_fd = n->words_fd = n->tap = -1;
		n->policy = (struct net_text) { .fd = POLICY_FD, .number = 1 };
		n->cred = (struct net_text) { .fd = CRED_FD };
		n->last = 1;
		buf_init(&n->marks, PROXY_MARKS_MAX);
	}
	return n;
}

static int fork_minder(struct sup *s, int sock, int words)
{
	pid_t us = getpid();

	s->net->minder = fork();
	if (s->net->minder < 0)
		return -errno;
	if (s->net->minder == 0)
		minder_main(&s->order, s->net->needed, sock, words, us);
	s->net->minder_pidfd = pidfd_open(s->net->minder, 0);
	return s->net->minder_pidfd < 0 ? -errno : 0;
}

int sup_net_start(struct sup *s, struct err *e)
{
	_close_ int theirs = -1, words = -1;
	int p[2], r;

	if (!s->order.network) {
		(void)close(POLICY_FD);
		(void)close(CRED_FD);
		return 0;
	}
	s->net = door_new();
	if (!s->net)
		return err_errno(e, -ENOMEM, "cannot start the network");
	r = keep_begin(s, e);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p) < 0)
		return err_errno(e, -errno, "cannot start the network");
	s->net->minder_fd = p[0];
	theirs = p[1];
	if (pipe2(p, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "cannot start the network");
	s->net->words_fd = p[0];
	words = p[1];
	r = fd_nonblock(s->net->words_fd, true);
	if (r == 0)
		r = fork_minder(s, theirs, words);
	return r < 0 ? err_errno(e, r, "cannot start the network") : 0;
}

/* The descriptor of the next word of this kind. */
static int await(struct sup *s, enum minder_says what, int *ret_fd, struct err *e)
{
	uint64_t end = fd_now_ns() + (uint64_t)START_MS * 1000000;
	char bytes[2 + MINDER_TEXT_MAX];

	for (;;) {
		struct pollfd p = { .fd = s->net->minder_fd, .events = POLLIN };
		_close_ int fd = -1;
		int r = hear(s, bytes, sizeof(bytes), &fd, MSG_DONTWAIT);

		if (r < 0)
			return err_errno(e, r, "the keeper of the sandbox's network ended");
		if (r == 0 && bytes[0] == MINDER_FAIL)
			return err_set(e, -EIO, "%s", bytes + 1);
		if (r == 0 && bytes[0] == (char)what && fd >= 0) {
			*ret_fd = take_fd(&fd);
			return 0;
		}
		if (r == 0 && bytes[0] == MINDER_SAY)
			slog_say(s->log, "network: %s", bytes + 1);
		else if (r == 0)
			return err_set(e, -EPROTO,
				       "the keeper of the sandbox's network is confused");
		if (r == 0)
			continue;
		if (fd_now_ns() > end)
			return err_set(e, -ETIMEDOUT, "the sandbox's network does not come up");
		(void)poll(&p, 1, 1000);
	}
}

int sup_net_tap(struct sup *s, int *ret_tap, struct err *e)
{
	int r;

	if (!s->net) {
		*ret_tap = 0;
		return 0;
	}
	r = await(s, MINDER_TAP, &s->net->tap, e);
	if (r == 0)
		*ret_tap = s->net->tap;
	return r;
}

static int hear_all(struct sup *s)
{
	struct netdoor *n = s->net;
	int r;

	n->minder_poll.data = n->words_poll.data = n->late.data = n->keeper_late.data = s;
	r = uv_timer_init(&s->loop, &n->late);
	if (r == 0)
		r = uv_timer_init(&s->loop, &n->keeper_late);
	if (r == 0)
		r = uv_poll_init(&s->loop, &n->minder_poll, n->minder_fd);
	if (r == 0)
		r = uv_poll_start(&n->minder_poll, UV_READABLE, on_minder);
	if (r == 0)
		r = uv_poll_init(&s->loop, &n->words_poll, n->words_fd);
	if (r == 0)
		r = uv_poll_start(&n->words_poll, UV_READABLE, on_words);
	return r;
}

int sup_net_watch(struct sup *s, struct err *e)
{
	struct netdoor *n = s->net;
	int r, fd;

	if (!n)
		return 0;
	n->tap = fd_close(n->tap);
	r = hear_all(s);
	if (r < 0)
		return err_errno(e, r, "cannot watch the network");
	if (n->needed) {
		r = await(s, MINDER_KEEPER, &fd, e);
		if (r < 0)
			return r;
		keep_new(s, fd, "");
	}
	r = await(s, MINDER_AUDIT, &fd, e);
	if (r < 0)
		return r;
	net_link(s, &n->audit, fd, on_audit);
	net_note(s, "started", s->order.name);
	r = await(s, MINDER_PROXY, &fd, e);
	if (r == 0)
		on_new_proxy(s, fd, "");
	return r;
}

/* It ends what it does when we have said all, and its last receipts are written then. */
static void end_proxy(struct netdoor *n)
{
	uint64_t end = fd_now_ns() + (uint64_t)PROXY_END_MS * 1000000, now;
	static uint8_t bytes[PROXY_MSG_MAX];
	struct pollfd p;

	if (!n->proxy)
		return;
	(void)shutdown(n->proxy->fd, SHUT_WR);
	p = (struct pollfd) { .fd = n->proxy->fd, .events = POLLIN };
	while ((now = fd_now_ns()) < end && poll(&p, 1, (int)((end - now) / 1000000 + 1)) > 0)
		if (recv(n->proxy->fd, bytes, sizeof(bytes), MSG_DONTWAIT) <= 0)
			break;
	net_unlink(&n->proxy);
}

/* The proxy ends with its conversation, bac-audit with all of its, the minder when both have. */
void sup_net_end(struct sup *s)
{
	struct netdoor *n = s->net;
	struct pollfd p;
	int status;

	if (!n || n->minder <= 0)
		return;
	end_proxy(n);
	net_note(s, "stopped", s->reason);
	net_unlink(&n->audit);
	net_unlink(&n->keeper);
	(void)shutdown(n->minder_fd, SHUT_RDWR);
	p = (struct pollfd) { .fd = n->minder_pidfd, .events = POLLIN };
	if (poll(&p, 1, END_MS) <= 0)
		(void)pidfd_send_signal(n->minder_pidfd, SIGKILL, NULL, 0);
	while (waitpid(n->minder, &status, 0) < 0 && errno == EINTR)
		;
	n->minder = -1;
}

void sup_net_free(struct sup *s)
{
	struct netdoor *n = s->net;

	s->net = NULL;
	if (!n)
		return;
	(void)fd_close(n->minder_fd);
	(void)fd_close(n->minder_pidfd);
	(void)fd_close(n->words_fd);
	(void)fd_close(n->tap);
	(void)fd_close(n->policy.fd);
	keep_free(n);
	free(n);
}
