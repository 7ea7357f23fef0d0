/* The keeper as the supervisor sees it: it is told first of whatever changes, and the proxy when the keeper has applied it, so that the
 * proxy never asks for what the keeper does not know yet. And the keeper is not told of the next thing before the proxy has applied the one before: so that
 * what the proxy asks is allowed by one of the two copies that the keeper has.
 *
 * While there is no keeper, the proxy is told at once: what was taken away must not wait for it, and without a keeper the proxy opens nothing.
 *
 * What the keeper says is parsed like what the guest says: a proxy may have taken it over. */
#include <sys/socket.h>

#include "io/fd.h"
#include "supervisor/marks.h"
#include "supervisor/need.h"
#include "supervisor/net-priv.h"
#include "wire/keeper.h"

enum {
	ANSWER_MS = 2000, /* then the minder is told, and again each AGAIN_MS */
	AGAIN_MS = 1000,
	TURN_MAX = 64,
	POLICY_MAX = 8 * 1024 * 1024,        /* policy/net.h, NET_TEXT_MAX */
	CRED_MAX = 1024 * 1024 + 256 * 1024, /* policy/cred.h, CRED_FILE_MAX */
};

/* ---- the guest ---- */

static int add_trust(struct sup *s)
{
	return s->net->ca ? wire_trust_add(&s->guest.out, s->net->ca) : 0;
}

static int add_env(struct sup *s)
{
	return wire_env_add(&s->guest.out, &s->net->env);
}

/* After HELLO: the guest is there. */
static void tell_guest(struct sup *s, int (*add)(struct sup *s), const char *what)
{
	if (!s->hello || s->wire_dead || !s->guest.open)
		return;
	if (add(s) < 0)
		slog_say(s->log, "cannot tell the guest of %s", what);
	else
		conn_flush(&s->guest);
}

int sup_net_config(struct sup *s)
{
	int r = s->net ? add_trust(s) : 0;

	return s->net && r == 0 && s->net->env.n ? add_env(s) : r;
}

/* ---- what the texts say ---- */

/* Defaults for the environment of commands, and whether there is a use. */
static int read_cred(struct sup *s)
{
	struct netdoor *n = s->net;
	struct wire_env env = { 0 };
	char *text = NULL;
	size_t len = 0;
	int r = fd_read_mem(n->cred.fd, CRED_MAX, &text, &len);

	if (r < 0)
		return r;
	n->needed = n->needed || need_cred(text, len);
	r = need_env(text, len, &env);
	if (r < 0) {
		free(text);
		return r;
	}
	wire_env_done(&n->env);
	free(n->cred_bytes);
	n->env = env;
	n->cred_bytes = text;
	return 0;
}

static int read_policy(struct sup *s)
{
	_free_ char *text = NULL;
	size_t len = 0;
	int r = fd_read_mem(s->net->policy.fd, POLICY_MAX, &text, &len);

	if (r == 0)
		s->net->needed = s->net->needed || need_net(text, len);
	return r;
}

int keep_begin(struct sup *s, struct err *e)
{
	struct netdoor *n = s->net;
	int r = read_cred(s);

	if (r == 0)
		r = read_policy(s);
	if (r < 0)
		return err_errno(e, r, "cannot read the sandbox's credentials and rules");
	if (*n->cred_bytes)
		n->cred.number = ++n->last;
	return 0;
}

void keep_text(struct sup *s, struct net_text *t)
{
	struct netdoor *n = s->net;
	bool had = n->needed, cred = t == &n->cred;
	int r = cred ? read_cred(s) : read_policy(s);

	if (r < 0) /* who decides by it says so too, and to the client */
		slog_say(s->log, "network: cannot look into the %s: %s",
			 cred ? "credentials" : "policy", err_text(r));
	if (cred)
		tell_guest(s, add_env, "the environment");
	if (n->needed != had)
		net_tell_minder(s, MINDER_NEED, "");
	keep_step(s);
}

/* ---- words to the keeper ---- */

static int tell(struct sup *s, const struct keeper_msg *m, int fd)
{
	static uint8_t bytes[4096];
	ssize_t n = keeper_put(m, bytes, sizeof(bytes));

	if (n < 0)
		return (int)n;
	if (!s->net->keeper)
		return -ENOTCONN;
	return fd_send_with(s->net->keeper->fd, bytes, (size_t)n, fd, MSG_DONTWAIT);
}

static void on_late(uv_timer_t *t)
{
	net_tell_minder(t->data, MINDER_SLOW_KEEPER, "");
}

static void expect_answer(struct sup *s)
{
	if (!uv_is_active((uv_handle_t *)&s->net->keeper_late))
		(void)uv_timer_start(&s->net->keeper_late, on_late, ANSWER_MS, AGAIN_MS);
}

static bool owes(const struct netdoor *n)
{
	return n->policy.kept != n->policy.at_keeper || n->cred.kept != n->cred.at_keeper;
}

static void tell_text(struct sup *s, struct net_text *t, uint8_t type)
{
	const struct keeper_msg m = { .type = type, .number = t->number };

	if (t->at_keeper == t->number)
		return;
	t->at_keeper = t->number;
	(void)!tell(s, &m, t->fd); /* one that does not take it is replaced */
	expect_answer(s);
}

bool net_kept(const struct sup *s, const struct net_text *t)
{
	return !s->net->keeper || t->kept == t->number;
}

void keep_step(struct sup *s)
{
	struct netdoor *n = s->net;

	if (n->keeper && !net_proxy_owes(n)) {
		tell_text(s, &n->policy, KEEPER_POLICY);
		tell_text(s, &n->cred, KEEPER_CREDENTIALS);
	}
	net_tell_texts(s);
}

void keep_ask(struct sup *s)
{
	const struct keeper_msg m = { .type = KEEPER_PING, .number = s->net->ping };

	if (!s->net->keeper)
		return;
	(void)!tell(s, &m, -1);
	expect_answer(s);
}

/* ---- words from the keeper ---- */

static void on_applied(struct sup *s, const struct keeper_msg *m)
{
	struct netdoor *n = s->net;
	struct net_text *t = m->number == n->cred.at_keeper ? &n->cred : &n->policy;

	if (m->number != t->at_keeper)
		return;
	t->kept = m->number;
	if (!owes(n))
		(void)uv_timer_stop(&n->keeper_late);
	if (m->code)
		slog_say(s->log, "network: the keeper does not understand the %s: %s",
			 t == &n->cred ? "credentials" : "policy", m->text);
	net_settle(s, t);
	keep_step(s);
}

static void on_pong(struct sup *s, const struct keeper_msg *m)
{
	if (m->number == s->net->ping && !owes(s->net))
		(void)uv_timer_stop(&s->net->keeper_late);
}

static void on_say(struct sup *s, const struct keeper_msg *m)
{
	slog_say(s->log, "keeper: %s", m->text);
}

static void on_ca(struct sup *s, const struct keeper_msg *m)
{
	char *pem = strdup(m->text);

	if (!pem)
		return;
	free(s->net->ca);
	s->net->ca = pem;
	tell_guest(s, add_trust, "the sandbox's authority");
}

static void on_marks(struct sup *s, const struct keeper_msg *m)
{
	struct buf *b = &s->net->marks;

	if (b->p)
		explicit_bzero(b->p, b->cap);
	buf_consume(b, b->n);
	if (buf_add(b, m->bytes.p, m->bytes.n) < 0)
		slog_say(s->log, "network: out of memory: credentials are not looked for");
	net_tell_marks(s);
	if (sup_marks_set(s, m->bytes.p, m->bytes.n) < 0)
		slog_say(s->log, "network: files and output are not searched for credentials");
}

static void on_breach(struct sup *s, const struct keeper_msg *m)
{
	slog_say(s->log, "network: the proxy %s: it is replaced", m->text);
	net_note(s, "proxy-breach", m->text);
	net_tell_minder(s, MINDER_REPLACE, "asked the keeper for what it may not have");
}

static void on_nothing(struct sup *s, const struct keeper_msg *m)
{
	(void)s;
	(void)m;
}

static void (*const ops[])(struct sup *s, const struct keeper_msg *m) = {
	[KEEPER_APPLIED] = on_applied, [KEEPER_PONG] = on_pong,   [KEEPER_SAY] = on_say,
	[KEEPER_CA] = on_ca,           [KEEPER_MARKS] = on_marks, [KEEPER_BREACH] = on_breach,
	[KEEPER_READY] = on_nothing,
};

static int take(struct sup *s, struct link *l)
{
	static uint8_t bytes[KEEPER_MSG_MAX];
	struct keeper_msg m;
	ssize_t n = recv(l->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -EPIPE;
	if (keeper_parse(&m, 'K', bytes, (size_t)n, 0) != WIRE_OK || m.type >= ARRAY_SIZE(ops) ||
	    !ops[m.type]) {
		net_tell_minder(s, MINDER_REPLACE_KEEPER, "broke its protocol");
		return -EPROTO;
	}
	ops[m.type](s, &m);
	if (m.type == KEEPER_MARKS)
		explicit_bzero(bytes, (size_t)n);
	return 1;
}

static void on_keeper(uv_poll_t *p, int status, int events)
{
	struct link *l = p->data;
	struct sup *s = l->sup;
	int r = 1;

	(void)status;
	(void)events;
	for (int i = 0; r > 0 && i < TURN_MAX && l == s->net->keeper; i++)
		r = take(s, l);
	if (r >= 0 || l != s->net->keeper)
		return;
	(void)uv_timer_stop(&s->net->keeper_late);
	net_unlink(&s->net->keeper); /* the minder brings the next */
	keep_step(s);
}

void keep_new(struct sup *s, int fd, const char *why)
{
	struct netdoor *n = s->net;
	const struct keeper_msg m = { .type = KEEPER_CONFIG,
				      .text = s->order.name,
				      .text2 = s->order.id };

	if (*why) {
		slog_say(s->log, "network: %s: started again", why);
		(void)snprintf(n->remark, sizeof(n->remark), "%s and was started again", why);
		net_note(s, "keeper-restarted", why);
	}
	(void)uv_timer_stop(&n->keeper_late);
	net_link(s, &n->keeper, fd, on_keeper);
	n->policy.at_keeper = n->policy.kept = n->cred.at_keeper = n->cred.kept = 0;
	if (tell(s, &m, -1) < 0)
		slog_say(s->log, "network: the keeper does not take its configuration");
	keep_step(s);
}

void keep_free(struct netdoor *n)
{
	(void)fd_close(n->cred.fd);
	wire_env_done(&n->env);
	free(n->cred_bytes);
	free(n->ca);
	if (n->marks.p)
		explicit_bzero(n->marks.p, n->marks.cap);
	buf_done(&n->marks);
}
