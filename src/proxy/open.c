#include "proxy/open.h"

#include <stdio.h>
#include <unistd.h>

#include "base/text.h"
#include "proxy/control.h"
#include "proxy/tls.h"

enum { SCOPE_MAX = HOST_NAME_MAX_LEN + 8, NOTE_MAX = 400 };

/* ---- what all share ---- */

static int read_trust(int fd, char **ret, size_t *ret_n)
{
	_free_ char *text = malloc(TLS_TRUST_MAX + 1);
	size_t n = 0;

	if (!text)
		return -ENOMEM;
	while (fd >= 0 && n < TLS_TRUST_MAX) {
		const ssize_t k = pread(fd, text + n, TLS_TRUST_MAX - n, (off_t)n);

		if (k < 0)
			return -errno;
		if (k == 0)
			break;
		n += (size_t)k;
	}
	*ret = take_ptr(text);
	*ret_n = n;
	return 0;
}

void proxy_trust(struct proxy *p)
{
	_free_ char *text = NULL;
	struct err e = { 0 };
	size_t n = 0;
	int r;

	if (!p->tls) /* it is read when it is needed */
		return;
	r = read_trust(p->trust_fd, &text, &n);
	if (r < 0)
		(void)err_errno(&e, r, "cannot read the trusted certificates");
	else
		r = tls_trust(p->tls, text, n, &e);
	if (text)
		explicit_bzero(text, n); /* keys of clients are in it */
	if (r < 0)
		control_say(p, "%s", e.msg);
	pool_renew(p->pool);
}

struct tls *proxy_tls(struct proxy *p)
{
	if (!p->tls && tls_new(&p->tls) == 0)
		proxy_trust(p);
	return p->tls;
}

struct back *open_back(struct loop *l, struct chan *c, void *owner, void (*changed)(void *owner))
{
	if (streq(chan_alpn(c), "h2"))
		return back_h2(l, c, owner, changed);
	return back_h1(l, c, owner, changed);
}

/* ---- the end ---- */

static void refused(struct flow *f, const char *reason, const char *why)
{
	flow_receipt(f, &(struct flow_note) { .kind = RK_TLS, .reason = reason, .note = why });
}

void open_done(struct flow *f)
{
	struct open *o = f->open;

	if (!o)
		return;
	pool_cancel(&o->wait);
	keeper_cancel(f->p->keeper, &o->ask);
	if (o->front)
		o->front = o->front->free(o->front);
	while (o->xchgs)
		xchg_front_gone(o->xchgs, XCHG_CUT);
	o->c = chan_free(o->c, true);
	f->open = NULL;
	free(o);
}

static void closed(void *conn)
{
	const struct open *o = conn;

	flow_end(o->f);
}

/* ---- the handshake ---- */

static void serve(struct open *o, const struct tls_leaf *leaf)
{
	o->stage = OPEN_SHAKE;
	flow_timer(o->f, OPEN_SHAKE_MS);
	if (tls_serve(o->c, leaf, o->h2 ? "h2" : "http/1.1") == 0)
		return;
	refused(o->f, "tls-failed", "the keeper's certificate cannot be used");
	flow_end(o->f);
}

static void on_leaf(struct keeper_ask *a, const struct keeper_msg *m)
{
	struct open *o = (struct open *)((char *)a - offsetof(struct open, ask));
	struct flow *f = o->f;
	const struct tls_leaf *leaf =
		m ? keeper_leaf_is(f->p->keeper, f->host.text, f->port, m) : NULL;

	if (leaf) {
		serve(o, leaf);
		return;
	}
	refused(f, m && m->type == KEEPER_NO ? "keeper-refused" : "keeper-down",
		m && m->type == KEEPER_NO ? m->text : "");
	tls_refuse(o->c);
	o->c = chan_free(o->c, false);
	flow_end(f);
}

static void find_leaf(struct open *o)
{
	struct flow *f = o->f;
	const struct tls_leaf *leaf = keeper_leaf(f->p->keeper, f->host.text, f->port);

	if (leaf) {
		serve(o, leaf);
		return;
	}
	o->stage = OPEN_LEAF;
	o->ask.done = on_leaf;
	o->ask.m =
		(struct keeper_msg) { .type = KEEPER_LEAF, .text = f->host.text, .port = f->port };
	if (keeper_ask(f->p->keeper, &o->ask) < 0)
		on_leaf(&o->ask, NULL);
}

static void got(struct pool_wait *w, struct back *b, const char *address)
{
	struct open *o = (struct open *)((char *)w - offsetof(struct open, wait));

	(void)!text_copy(o->f->address, sizeof(o->f->address), address);
	o->h2 = streq(b->proto, "h2");
	find_leaf(o);
}

/* The client gets its handshake all the same, and is told in an answer to its request. */
static void not_got(struct pool_wait *w, const struct pool_fault *why)
{
	(void)why;
	find_leaf((struct open *)((char *)w - offsetof(struct open, wait)));
}

static void hello(struct open *o)
{
	struct flow *f = o->f;
	bool h2 = false, connect;

	o->h2 = tls_offers(o->c, "h2");
	if (!o->h2 || pool_knows(f->p->pool, &f->host, f->port, &h2, &connect)) {
		o->h2 = o->h2 && h2;
		find_leaf(o);
		return;
	}
	o->stage = OPEN_SERVER;
	flow_timer(f, OPEN_SERVER_MS);
	o->wait = (struct pool_wait) { .h2 = true, .got = got, .failed = not_got };
	pool_get(f->p->pool, &f->host, f->port, &o->wait);
}

static void shaken(struct open *o)
{
	struct flow *f = o->f;
	struct chan *c = take_ptr(o->c);
	bool h2 = false, connect = false;

	o->stage = OPEN_HTTP;
	(void)pool_knows(f->p->pool, &f->host, f->port, &h2, &connect);
	if (streq(chan_alpn(c), "h2"))
		o->front = front_h2(&f->p->loop, c, o, closed, connect);
	else
		o->front = front_h1(&f->p->loop, c, o, closed);
	if (!o->front) {
		(void)chan_free(c, true);
		flow_reset(f);
		return;
	}
	flow_timer(f, OPEN_FIRST_MS);
}

static void edge(void *arg)
{
	struct open *o = arg;
	bool untrusted;

	switch (tls_state(o->c)) {
	case TLS_HELLO:
		if (o->stage == OPEN_HELLO)
			hello(o);
		return;
	case TLS_READY:
		shaken(o);
		return;
	case TLS_FAILED:
		refused(o->f, "tls-failed", tls_why(o->c, &untrusted));
		o->c = chan_free(o->c, false);
		flow_end(o->f);
		return;
	default:
		return;
	}
}

static const struct chan_ops ops = { edge };

/* ---- life ---- */

bool open_wanted(const struct flow *f, const struct net_answer *answer)
{
	return answer->verdict == NET_NEEDS_HTTP ||
	       (answer->verdict == NET_ALLOW && cred_opens(f->p->creds, &f->host, f->port));
}

bool open_begin(struct flow *f, const char **ret_why)
{
	struct tls *tls = keeper_there(f->p->keeper) ? proxy_tls(f->p) : NULL;
	struct open *o = tls ? calloc(1, sizeof(*o)) : NULL;
	char scope[SCOPE_MAX];

	*ret_why = tls ? "no-memory" : "keeper-down";
	if (!o)
		return false;
	(void)snprintf(scope, sizeof(scope), "%s:%u", f->host.text, f->port);
	o->f = f;
	o->c = tls_server(tls, &f->p->loop, loop_take(&f->p->loop, &f->client.watch), scope);
	if (!o->c) {
		free(o);
		return false;
	}
	chan_owner(o->c, &ops, o);
	f->open = o;
	f->state = FLOW_OPEN;
	flow_timer(f, OPEN_SHAKE_MS);
	return true;
}

void open_late(struct flow *f)
{
	struct open *o = f->open;

	if (o->front) {
		if (!o->xchgs)
			o->front->stop(o->front, false);
		return;
	}
	refused(f, "tls-failed", "no TLS handshake in time");
	flow_reset(f);
}

/* ---- changes ---- */

void open_recheck(struct flow *f)
{
	struct xchg *x, *next;

	for (x = f->open ? f->open->xchgs : NULL; x; x = next) {
		next = xchg_next(x);
		xchg_recheck(x);
	}
}

void open_credentials(struct flow *f, const struct cred_set *now)
{
	struct xchg *x, *next;

	for (x = f->open ? f->open->xchgs : NULL; x; x = next) {
		next = xchg_next(x);
		xchg_credentials(x, now);
	}
}
