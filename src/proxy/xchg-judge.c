#include "proxy/xchg-priv.h"

#include <stdio.h>

#include "base/text.h"

/* ---- a connection ---- */

static bool ready_to_send(struct xchg *x)
{
	x->raw_sent = 0;
	x->up_ended = false;
	buf_consume(&x->up, x->up.n);
	x->scan = (struct leak_scan) { 0 };
	x->ib = inject_body_free(x->ib);
	return !(x->plan.body || x->plan.search) || !x->body ||
	       inject_body_new(&x->plan, xchg_proxy(x)->creds, &x->f->host, x->f->port, &x->ib) ==
		       0;
}

static void got(struct pool_wait *w, struct back *b, const char *address)
{
	struct xchg *x = (struct xchg *)((char *)w - offsetof(struct xchg, pool));
	const bool connect = streq(x->h.method, "CONNECT");
	int r;

	(void)!text_copy(x->f->address, sizeof(x->f->address), address);
	if (connect && !b->connect_protocol) {
		xchg_bad_gateway(x, "no-connect", "the server does not take extended CONNECT");
		return;
	}
	r = ready_to_send(x) ? b->begin(b, x, &x->h, x->body, &x->bs, &x->bops) : -ENOMEM;
	if (r == -EAGAIN) {
		pool_get(xchg_proxy(x)->pool, &x->f->host, x->f->port, &x->pool);
		return;
	}
	if (r < 0) {
		xchg_bad_gateway(x, "dial-failed", "no memory");
		return;
	}
	x->b = b;
	x->stage = X_SENT;
	pool_began(b);
	xchg_push_up(x);
	if (x->stage == X_SENT && x->up_short && !x->up.n && x->raw_sent == x->raw.n) {
		x->up_short = false;
		x->fops->resume(x->fs);
	}
}

static void not_got(struct pool_wait *w, const struct pool_fault *why)
{
	struct xchg *x = (struct xchg *)((char *)w - offsetof(struct xchg, pool));
	char text[XCHG_TEXT_MAX];
	struct xchg_refusal r = { .status = why->refused ? 403 : 502,
				  .rule = why->rule,
				  .reason = why->reason,
				  .detail = why->note };

	if (why->untrusted) {
		(void)snprintf(text, sizeof(text),
			       "The server's certificate is not accepted: %.300s. If its authority "
			       "is to be trusted, name it on the host in the setting tls.extraCa.",
			       why->note);
		r.detail = text;
	}
	xchg_refuse(x, &r);
}

void xchg_find_back(struct xchg *x)
{
	x->stage = X_POOL;
	x->pool.got = got;
	x->pool.failed = not_got;
	x->pool.h1 = x->h.protocol[0] && !streq(x->h.method, "CONNECT");
	x->pool.h2 = streq(x->front->proto, "h2") && !x->pool.h1;
	pool_get(xchg_proxy(x)->pool, &x->f->host, x->f->port, &x->pool);
}

/* ---- judging ---- */

bool xchg_own_secret(const void *arg, const char *name)
{
	const struct xchg *x = arg;
	const struct cred_use *u;
	size_t at = 0;

	while ((u = cred_next(xchg_proxy(x)->creds, &x->f->host, x->f->port, &at)))
		if (streq(u->service, name))
			return true;
	return false;
}

void xchg_secret_in_request(struct xchg *x, const char *name)
{
	char text[XCHG_TEXT_MAX];

	(void)snprintf(text, sizeof(text),
		       "The request holds the value of the secret '%s', which bac puts on requests "
		       "itself.",
		       name);
	xchg_credential_refused(x, "secret-in-request", text, NULL);
}

static void credential_failed(struct xchg *x, const struct keeper_msg *m)
{
	static const char *const reasons[] = { [KEEPER_NO_MISSING] = "credential-missing",
					       [KEEPER_NO_UNAPPROVED] = "credential-unapproved",
					       [KEEPER_NO_FAILED] = "credential-failed",
					       [KEEPER_NO_LONGER] = "credential-withdrawn" };

	if (m && m->type == KEEPER_NO && m->code > 0 && m->code < KEEPER_NO_N)
		xchg_credential_refused(x, reasons[m->code], m->text, NULL);
	else
		xchg_refuse(x, &(struct xchg_refusal) {
				       .status = 503,
				       .reason = "keeper-down",
				       .detail = "The process that holds this sandbox's "
						 "credentials does not answer. Try again." });
}

/* False: the exchange has taken another turn. */
static bool apply(struct xchg *x)
{
	if (inject_apply(&x->plan, &x->h) < 0) {
		xchg_credential_refused(x, "credential-failed",
					"The value of a credential cannot be put on a request.",
					NULL);
		return false;
	}
	if (x->plan.body)
		x->h.has_length = false;
	if (x->plan.token && x->h.expect_continue) {
		struct xhead h = { .status = 100, .no_body = true };

		x->h.expect_continue = false;
		x->fops->answer(x->fs, &h);
		if (xchg_over(x))
			return false;
	}
	x->stage = X_HELD;
	return true;
}

static bool ask_one(struct xchg *x, size_t i);

/* A refresh token is asked for when all else is there, since nobody else can have it meanwhile. False: not yet, or the exchange has taken another turn. */
static bool had_turn(struct xchg *x)
{
	const struct inject_need *v = xchg_need_of(x, x->plan.token);

	if (!v || v->value)
		return true;
	if (x->turn)
		return false;
	if (!ask_one(x, (size_t)(v - x->plan.v)))
		credential_failed(x, NULL);
	else
		x->turn = x->asks[v - x->plan.v].m.number;
	return false;
}

/* Receipt and values are there; and the body, if it has to be. */
void xchg_go_on(struct xchg *x)
{
	if (x->stage == X_JUDGED && x->written && !x->n_asked && !apply(x))
		return;
	if (x->stage != X_HELD)
		return;
	if (x->plan.token && x->body && !x->up_over)
		return;
	if (x->plan.token && x->body && (!had_turn(x) || !xchg_token_request(x)))
		return;
	xchg_find_back(x);
}

static void on_written(struct receipt_wait *w)
{
	struct xchg *x = (struct xchg *)((char *)w - offsetof(struct xchg, wait));

	x->written = true;
	xchg_go_on(x);
}

/* Which of them: the need's number is the ask's. */
static void on_value(struct keeper_ask *a, const struct keeper_msg *m)
{
	struct xchg *x = NULL;
	struct inject_need *v;
	uint8_t *own;
	size_t i;

	/* asks are an array in x: the first of them is i before this one */
	i = (size_t)a->m.when;
	x = (struct xchg *)((char *)(a - i) - offsetof(struct xchg, asks));
	v = &x->plan.v[i];
	x->n_asked--;
	if (!m || m->type != KEEPER_VALUE_IS) {
		credential_failed(x, m);
		return;
	}
	own = malloc((size_t)m->bytes.n + 1);
	if (!own) {
		credential_failed(x, NULL);
		return;
	}
	memcpy(own, m->bytes.p, m->bytes.n);
	own[m->bytes.n] = 0;
	v->value = own;
	v->n = m->bytes.n;
	xchg_go_on(x);
}

static bool ask_one(struct xchg *x, size_t i)
{
	struct keeper_ask *a = &x->asks[i];

	a->done = on_value;
	a->shared = x->plan.v[i].use != x->plan.token; /* a turn is one request's */
	a->m = (struct keeper_msg) { .type = KEEPER_VALUE,
				     .text = x->f->host.text,
				     .text2 = x->plan.v[i].use->id,
				     .port = x->f->port,
				     .when = i };
	if (keeper_ask(xchg_proxy(x)->keeper, a) < 0)
		return false;
	x->n_asked++;
	return true;
}

static bool ask(struct xchg *x)
{
	for (size_t i = 0; i < x->plan.n; i++)
		if (x->plan.v[i].use != x->plan.token && !ask_one(x, i))
			return false;
	return true;
}

static void describe(const struct xchg *x, char *p, size_t max)
{
	const struct cred_use *u;
	size_t at = 0, n = 0;
	bool placeholder = false;

	p[0] = '\0';
	if (x->plan.names[0])
		n = (size_t)snprintf(p, max, "credential: %s", x->plan.names);
	while ((u = cred_next(xchg_proxy(x)->creds, &x->f->host, x->f->port, &at)))
		placeholder |= u->kind == CRED_CUSTOM;
	if (x->h.protocol[0] && placeholder && n < max)
		(void)snprintf(
			p + n, max - n,
			"%sthe messages of %s are not looked at: a placeholder in them stays one",
			n ? "; " : "", x->h.protocol);
}

static void allow(struct xchg *x, const struct net_answer *y)
{
	struct proxy *p = xchg_proxy(x);
	char text[XCHG_NOTE_MAX];

	if (!ask(x)) {
		credential_failed(x, NULL);
		return;
	}
	describe(x, text, sizeof(text));
	x->id = receipts_flow(p->receipts);
	flow_receipt(x->f, &(struct flow_note) { .kind = RK_HTTP,
						 .allowed = true,
						 .id = x->id,
						 .method = x->h.method,
						 .path = x->h.path,
						 .rule = y->rule,
						 .reason = y->reason,
						 .note = text });
	x->wait.run = on_written;
	receipts_wait(p->receipts, &x->wait);
}

struct net_answer xchg_decide(const struct xchg *x)
{
	const struct net_request q = {
		.host = &x->f->host, .port = x->f->port, .method = x->h.method, .path = x->h.path
	};

	return net_decide(xchg_proxy(x)->policy, &q);
}

void xchg_deny(struct xchg *x, const struct net_answer *y)
{
	xchg_refuse(x, &(struct xchg_refusal) { .status = 403,
						.rule = y->rule,
						.rule_text = y->text,
						.reason = y->reason,
						.allow_helps = !y->rule });
}

/* The host that was decided on when the connection was made is the only one that may be asked for. */
static bool host_agrees(const struct xchg *x)
{
	const struct xhead *h = &x->h;

	if (h->host.kind == HOST_NONE) /* HTTP/1.0 */
		return true;
	return host_same(&h->host, &x->f->host) && (h->port ? h->port : 443) == x->f->port;
}

static void mismatch(struct xchg *x)
{
	char text[XCHG_TEXT_MAX];

	(void)snprintf(
		text, sizeof(text),
		"the request names another host or port (%s:%u) than the connection was made to",
		x->h.host.text, x->h.port ? (unsigned)x->h.port : 443U);
	xchg_refuse(x, &(struct xchg_refusal) {
			       .status = 421, .reason = "host-mismatch", .detail = text });
}

static void judge_credentials(struct xchg *x, const struct net_answer *y)
{
	struct proxy *p = xchg_proxy(x);
	const char *name = NULL;

	if (xchg_guarded(x) && guard_request_head(p->marks, &x->h, xchg_own_secret, x, &name)) {
		xchg_secret_in_request(x, name);
		return;
	}
	inject_plan(&x->plan, p->creds, &x->h, &x->f->host, x->f->port, true, p->sandbox);
	if (x->plan.status)
		xchg_refuse(x, &(struct xchg_refusal) { .status = x->plan.status,
							.first = xchg_credential_first,
							.reason = x->plan.reason,
							.detail = x->plan.text,
							.remedy = x->plan.remedy[0] ? x->plan.remedy
										    : NULL });
	else
		allow(x, y);
}

void xchg_judge(struct xchg *x)
{
	struct net_answer y;

	if (x->h.status) {
		xchg_refuse(x, &(struct xchg_refusal) { .status = x->h.status,
							.reason = "malformed-http",
							.detail = x->h.target,
							.close = true });
		return;
	}
	y = xchg_decide(x);
	if (!host_agrees(x))
		mismatch(x);
	else if (y.verdict != NET_ALLOW)
		xchg_deny(x, &y);
	else if (streq(x->h.method, "CONNECT") && !x->h.protocol[0])
		xchg_refuse(x, &(struct xchg_refusal) { .status = 400,
							.reason = "not-a-proxy-request",
							.detail = "CONNECT within TLS" });
	else
		judge_credentials(x, &y);
}
