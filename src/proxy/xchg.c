/* The middle of an exchange. What happens to a request, in this order:
 *
 *   judge    Host, rules, credentials, leaks: refused, or
 *   written  the receipt is in the log; meanwhile the keeper is asked for values
 *   go       values go onto the head; a body that has to be read whole is waited for
 *   got      there is a connection: head and body go out
 *
 * Bodies: what comes before there is a connection is kept in `raw`, and stays there until an answer comes, so that it can be sent a second time if the server never began with it.
 * `up` and `down` hold what has been looked at and not been taken.
 *
 * Halves call in while they are called: whoever calls a half looks at x->stage afterwards. Memory goes in a round of its own. */
#include "proxy/xchg-priv.h"

#include <stdio.h>

#include "base/text.h"

enum { BUF_MAX = 2 * XCHG_HOLD_MAX + 16 * 1024 };

/* ---- the end ---- */

void xchg_wipe(struct buf *b)
{
	if (b->p)
		explicit_bzero(b->p, b->cap);
	buf_done(b);
}

static void forget_values(struct xchg *x)
{
	for (size_t i = 0; i < x->plan.n; i++) {
		struct inject_need *v = &x->plan.v[i];

		if (v->value)
			explicit_bzero((void *)v->value, v->n);
		free((void *)v->value);
		v->value = NULL;
		v->n = 0;
	}
}

static void on_again(struct again *a)
{
	struct xchg *x = (struct xchg *)a;

	xhead_done(&x->h);
	xhead_done(&x->answer);
	hfields_done(&x->up_trailers);
	hfields_done(&x->down_trailers);
	x->ib = inject_body_free(x->ib);
	guard_done(&x->guard);
	inject_tokens_done(&x->tokens);
	forget_values(x);
	xchg_wipe(&x->raw);
	xchg_wipe(&x->up);
	xchg_wipe(&x->down);
	free(x);
}

void xchg_release_back(struct xchg *x, bool cancel)
{
	struct back *b = take_ptr(x->b);

	if (!b)
		return;
	if (cancel)
		x->bops->cancel(x->bs);
	x->bops = NULL;
	pool_ended(b);
}

static void stop_waiting(struct xchg *x)
{
	pool_cancel(&x->pool);
	receipts_cancel(xchg_proxy(x)->receipts, &x->wait);
	for (size_t i = 0; i < INJECT_NEEDS_MAX; i++)
		keeper_cancel(xchg_proxy(x)->keeper, &x->asks[i]);
	x->n_asked = 0;
}

static void note(struct xchg *x, const char *reason, const char *text)
{
	const struct receipt r = { .event = RECEIPT_NOTE,
				   .kind = RK_HTTP,
				   .via = x->f->via,
				   .flow = x->id,
				   .port = x->f->port,
				   .count = 1,
				   .host = x->f->host.text,
				   .address = x->f->address,
				   .method = x->h.method,
				   .path = x->h.path,
				   .reason = reason,
				   .note = text };

	receipts_add(xchg_proxy(x)->receipts, &r);
}

static void end_receipt(struct xchg *x)
{
	char text[XCHG_NOTE_MAX];

	if (x->hits) {
		(void)snprintf(text, sizeof(text), "the value of %s was blanked, %u times",
			       x->hit_name, x->hits);
		note(x, "secret-in-answer", text);
	}
	if (x->id)
		flow_receipt_end(x->f, RK_HTTP, x->id, x->n_up, x->n_down, x->since);
	x->id = 0;
}

/* Nobody hears of it any more. */
void xchg_finish(struct xchg *x)
{
	struct open *o = x->f->open;

	if (xchg_over(x))
		return;
	x->stage = X_OVER;
	x->fops = NULL;
	stop_waiting(x);
	xchg_release_back(x, true);
	xchg_turn_over(x);
	end_receipt(x);
	*x->link = x->next;
	if (x->next)
		x->next->link = x->link;
	if (!--o->n_xchgs)
		flow_timer(x->f, OPEN_IDLE_MS);
	x->again.run = on_again;
	loop_again(&xchg_proxy(x)->loop, &x->again);
}

void xchg_fail(struct xchg *x, enum xchg_fault why)
{
	const struct front_ops *ops = x->fops;
	void *s = x->fs;

	xchg_finish(x);
	if (ops)
		ops->fail(s, why);
}

/* ---- refusals ---- */

static bool wants_json(struct xchg *x)
{
	const struct hfield *f = hfields_find(&x->h.fields, "accept");
	static const char name[] = "accept";
	struct http_head head;
	uint8_t line[1024];

	if (!f || f->value_len > sizeof(line) - 6)
		return false;
	memcpy(line, name, 6);
	memcpy(line + 6, f->value, f->value_len);
	head.n_fields = 1;
	head.fields[0] = (struct http_field) { { 0, 6 }, { 6, f->value_len } };
	return http_wants_json(&head, line);
}

void xchg_tell(struct xchg *x)
{
	const struct front_ops *ops = x->fops;

	xchg_turn_over(x);
	x->answered = true;
	ops->answer(x->fs, &x->answer);
	if (!xchg_over(x))
		(void)xchg_offer_down(x);
}

static void on_refusal_written(struct receipt_wait *w)
{
	xchg_tell((struct xchg *)((char *)w - offsetof(struct xchg, wait)));
}

/* The answer that says it. False: no memory. */
static bool compose(struct xchg *x, const struct xchg_refusal *r)
{
	struct flow *f = x->f;
	char *text = (char *)f->p->relay.scratch, remedy[512];
	const bool v6 = f->host.kind == HOST_V6;
	struct http_refusal z = { .status = r->status,
				  .first = r->first,
				  .host = f->host.text,
				  .port = f->port,
				  .method = x->h.method,
				  .path = x->h.path,
				  .rule = r->rule_text ? r->rule_text : r->rule,
				  .reason = r->reason,
				  .sandbox = f->p->sandbox,
				  .remedy = r->remedy,
				  .detail = r->detail,
				  .json = wants_json(x),
				  .keep_alive = true };
	struct http_head head;
	size_t n;

	if (r->allow_helps) {
		(void)snprintf(remedy, sizeof(remedy),
			       "bac policy allow network --sandbox %s %s%s%s:%u", f->p->sandbox,
			       v6 ? "[" : "", f->host.text, v6 ? "]" : "", f->port);
		z.remedy = remedy;
	}
	n = http_refusal(&z, text, SCRATCH_MAX);
	xhead_done(&x->answer);
	if (!n || http_response(&head, (const uint8_t *)text, n, "GET") != HTTP_OK ||
	    xhead_from_http1(&x->answer, &head, (const uint8_t *)text) < 0)
		return false;
	x->answer.close = r->close || (x->body && !x->up_over);
	buf_consume(&x->down, x->down.n);
	return streq(x->h.method, "HEAD") ||
	       buf_add(&x->down, text + head.size, n - head.size) == 0;
}

void xchg_refuse(struct xchg *x, const struct xchg_refusal *r)
{
	struct flow *f = x->f;

	if (xchg_over(x) || x->stage == X_TELLING)
		return;
	stop_waiting(x);
	flow_receipt(f, &(struct flow_note) { .kind = RK_HTTP,
					      .id = x->id,
					      .method = x->h.method,
					      .path = x->h.path,
					      .rule = r->rule,
					      .reason = r->reason,
					      .note = r->detail });
	if (x->answered || !compose(x, r)) {
		xchg_fail(x, XCHG_BAD);
		return;
	}
	x->stage = X_TELLING;
	xchg_release_back(x, true);
	x->down_over = true;
	x->wait.run = on_refusal_written;
	receipts_wait(f->p->receipts, &x->wait);
}

void xchg_bad_gateway(struct xchg *x, const char *reason, const char *detail)
{
	xchg_refuse(x,
		    &(struct xchg_refusal) { .status = 502, .reason = reason, .detail = detail });
}

const char xchg_credential_first[] = "refused, since a credential of this sandbox is concerned";

void xchg_credential_refused(struct xchg *x, const char *reason, const char *detail,
			     const char *remedy)
{
	xchg_refuse(x, &(struct xchg_refusal) { .status = 403,
						.first = xchg_credential_first,
						.reason = reason,
						.detail = detail,
						.remedy = remedy });
}

/* ---- answers ---- */

void xchg_answer(struct xchg *x, struct xhead *h)
{
	const char *name = NULL;

	if (x->stage != X_SENT || !x->fops || (h->status >= 200 && x->answered)) {
		xhead_done(h);
		return;
	}
	h->close = false; /* of the server's connection */
	if (xchg_guarded(x)) {
		const unsigned hits = guard_head(xchg_proxy(x)->marks, h, &name);

		xchg_count_hits(x, hits, name);
	}
	if (h->status < 200 && h->status != 101) {
		if (!x->plan.token)
			x->fops->answer(x->fs, h);
		xhead_done(h);
		return;
	}
	if (x->raw_sent == x->raw.n) {
		xchg_wipe(&x->raw);
		x->raw_sent = 0;
	}
	if (x->plan.token) {
		xhead_done(&x->answer);
		x->answer = *h;
		return;
	}
	x->answered = true;
	x->tunnel = h->status == 101 || (streq(x->h.method, "CONNECT") && h->status / 100 == 2);
	x->fops->answer(x->fs, h);
	xhead_done(h);
}

void xchg_down_end(struct xchg *x, struct hfields *trailers)
{
	if (x->stage != X_SENT)
		return;
	if (x->plan.token) {
		xchg_token_answer(x);
		return;
	}
	if (!x->answered) {
		xchg_bad_gateway(x, "malformed-answer", "the answer has no head");
		return;
	}
	if (trailers) {
		struct xhead t = { .fields = *trailers };
		const char *name = NULL;

		if (!x->tunnel && xchg_guarded(x)) {
			const unsigned hits = guard_head(xchg_proxy(x)->marks, &t, &name);

			xchg_count_hits(x, hits, name);
		}
		x->down_trailers = t.fields;
		*trailers = (struct hfields) { 0 };
	}
	if (!x->tunnel && !xchg_guard_down(x, NULL, 0, true)) {
		xchg_fail(x, XCHG_LIMIT);
		return;
	}
	x->down_over = true;
	if (!x->tunnel && (!x->body || x->up_ended))
		xchg_release_back(x, false);
	(void)xchg_offer_down(x);
}

static bool try_again(struct xchg *x, enum xchg_fault why)
{
	if (why != XCHG_UNTOUCHED || x->answered || x->tried || x->beyond)
		return false;
	x->tried = true;
	x->n_up = 0;
	x->pool.fresh = true;
	xchg_find_back(x);
	return true;
}

void xchg_back_gone(struct xchg *x, enum xchg_fault why, const char *detail)
{
	static const char *const reasons[] = { [XCHG_CUT] = "no-answer",
					       [XCHG_UNTOUCHED] = "no-answer",
					       [XCHG_BAD] = "malformed-answer",
					       [XCHG_LIMIT] = "answer-limit" };

	if (x->stage != X_SENT)
		return;
	xchg_release_back(x, false);
	if (x->down_over) /* it has said all; the front takes it as it can */
		return;
	if (try_again(x, why))
		return;
	if (x->answered && x->tunnel)
		xchg_end_front(x);
	else if (x->answered)
		xchg_fail(x, why);
	else
		xchg_bad_gateway(x, reasons[why], detail);
}

/* ---- a request ---- */

struct xchg *xchg_request(struct front *f, const struct front_ops *ops, void *s, struct xhead *h,
			  bool body)
{
	struct open *o = f->conn;
	struct xchg *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->f = o->f;
	x->front = f;
	x->fops = ops;
	x->fs = s;
	x->h = *h;
	*h = (struct xhead) { 0 };
	x->body = body;
	x->up_over = !body;
	x->since = loop_now(&o->f->p->loop);
	buf_init(&x->raw, BUF_MAX);
	buf_init(&x->up, BUF_MAX);
	buf_init(&x->down, BUF_MAX);
	x->next = o->xchgs;
	x->link = &o->xchgs;
	if (x->next)
		x->next->link = &x->next;
	o->xchgs = x;
	if (!o->n_xchgs++)
		flow_timer(o->f, 0);
	xchg_judge(x);
	return x;
}

/* ---- changes ---- */

struct xchg *xchg_next(struct xchg *x)
{
	return x->next;
}

void xchg_recheck(struct xchg *x)
{
	struct net_answer y = xchg_decide(x);

	if (y.verdict == NET_ALLOW || x->stage >= X_TELLING)
		return;
	xchg_deny(x, &y);
}

void xchg_credentials(struct xchg *x, const struct cred_set *now)
{
	bool withdrawn = false;

	if (xchg_over(x))
		return;
	for (size_t i = 0; i < x->plan.n; i++) {
		const struct cred_use *u;

		if (!x->plan.v[i]
			     .use) /* withdrawn before; it waits for its refusal to be written */
			continue;
		u = cred_find(now, x->plan.v[i].use->id);
		if (!u || u->state != CRED_READY || !cred_matches(u, &x->f->host, x->f->port))
			withdrawn = true;
		if (x->plan.token == x->plan.v[i].use)
			x->plan.token = u;
		x->plan.v[i].use = u;
		if (u && x->stage < X_KEEPING)
			x->asks[i].m.text2 = u->id;
	}
	if (x->plan.token && !xchg_need_of(x, x->plan.token)) {
		x->plan.token = cred_find(now, x->plan.token->id);
		withdrawn |= !x->plan.token;
	}
	if (x->stage == X_KEEPING && x->plan.token)
		x->asks[0].m.text2 = x->plan.token->id;
	if (withdrawn && x->stage < X_TELLING)
		xchg_credential_refused(x, "credential-withdrawn",
					"The credentials of this sandbox have changed.", NULL);
}
