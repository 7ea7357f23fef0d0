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
#include "proxy/xchg.h"

#include <stdio.h>
#include <time.h>

#include "base/text.h"
#include "proxy/inject.h"
#include "proxy/open.h"

enum stage {
	X_JUDGED,  /* receipt and values are waited for */
	X_HELD,    /* the body, whole */
	X_POOL,    /* a connection */
	X_SENT,    /* it has begun */
	X_KEEPING, /* tokens are on their way into the store */
	X_TELLING, /* the answer is ours */
	X_OVER,
};

enum { BUF_MAX = 2 * XCHG_HOLD_MAX + 16 * 1024, NOTE_MAX = 400, TEXT_MAX = 500 };

struct xchg {
	struct again again; /* first: its memory goes */
	struct xchg *next, **link;
	struct flow *f;
	struct front *front;
	const struct front_ops *fops;
	void *fs;
	struct back *b; /* from begin to its end */
	const struct back_ops *bops;
	void *bs;
	struct pool_wait pool;
	struct receipt_wait wait;
	struct keeper_ask asks[INJECT_NEEDS_MAX];
	unsigned n_asked;
	uint8_t stage;
	bool written;
	bool body, up_over, up_short, up_ended; /* the request's; ended: the back knows */
	bool beyond;                            /* more than raw has been sent */
	bool tried, tunnel, answered, down_over, down_short;
	struct xhead h, answer;
	struct hfields up_trailers, down_trailers;
	struct inject_plan plan;
	struct inject_body *ib;
	struct leak_scan scan;
	struct guard guard;
	unsigned hits;
	char hit_name[LEAK_NAME_MAX + 1];
	struct buf raw, up, down;
	size_t raw_sent;
	struct inject_tokens tokens;
	uint64_t id, since, n_up, n_down;
};

struct refusal {
	uint16_t status;
	const char *first; /* instead of what the status stands for; NULL */
	const char *rule, *rule_text, *reason, *detail, *remedy;
	bool allow_helps, close;
};

static void refuse(struct xchg *x, const struct refusal *r);

static struct proxy *proxy_of(const struct xchg *x)
{
	return x->f->p;
}

static bool over(const struct xchg *x)
{
	return x->stage == X_OVER;
}

static bool guarded(const struct xchg *x)
{
	return proxy_of(x)->marks && proxy_of(x)->marks->n;
}

/* ---- the end ---- */

static void wipe(struct buf *b)
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
	wipe(&x->raw);
	wipe(&x->up);
	wipe(&x->down);
	free(x);
}

static void release_back(struct xchg *x, bool cancel)
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
	receipts_cancel(proxy_of(x)->receipts, &x->wait);
	for (size_t i = 0; i < INJECT_NEEDS_MAX; i++)
		keeper_cancel(proxy_of(x)->keeper, &x->asks[i]);
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

	receipts_add(proxy_of(x)->receipts, &r);
}

static void end_receipt(struct xchg *x)
{
	char text[NOTE_MAX];

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
static void finish(struct xchg *x)
{
	struct open *o = x->f->open;

	if (over(x))
		return;
	x->stage = X_OVER;
	x->fops = NULL;
	stop_waiting(x);
	release_back(x, true);
	end_receipt(x);
	*x->link = x->next;
	if (x->next)
		x->next->link = x->link;
	if (!--o->n_xchgs)
		flow_timer(x->f, OPEN_IDLE_MS);
	x->again.run = on_again;
	loop_again(&proxy_of(x)->loop, &x->again);
}

static void fail(struct xchg *x, enum xchg_fault why)
{
	const struct front_ops *ops = x->fops;
	void *s = x->fs;

	finish(x);
	if (ops)
		ops->fail(s, why);
}

/* ---- down ---- */

static void end_front(struct xchg *x)
{
	const struct front_ops *ops = x->fops;
	struct hfields trailers = x->down_trailers;
	void *s = x->fs;

	x->down_trailers = (struct hfields) { 0 };
	finish(x);
	if (ops)
		ops->end(s, trailers.n ? &trailers : NULL);
	hfields_done(&trailers);
}

/* False: the exchange is over. */
static bool offer_down(struct xchg *x)
{
	while (x->down.n) {
		const size_t k = x->fops->data(x->fs, buf_data(&x->down), x->down.n);

		if (over(x))
			return false;
		buf_consume(&x->down, k);
		x->n_down += k;
		if (x->down.n)
			return true;
	}
	if (x->down_over)
		end_front(x);
	return !over(x);
}

void xchg_down_room(struct xchg *x)
{
	if (over(x) || !x->answered || !offer_down(x))
		return;
	if (!x->down.n && x->down_short && x->bops) {
		x->down_short = false;
		x->bops->resume(x->bs);
	}
}

static void count_hits(struct xchg *x, unsigned n, const char *name)
{
	if (n && name)
		(void)!text_copy(x->hit_name, sizeof(x->hit_name), name);
	x->hits += n;
}

static bool guard_down(struct xchg *x, const uint8_t *p, size_t n, bool last)
{
	const char *name = NULL;
	unsigned hits = 0;

	if (guard_answer(&x->guard, proxy_of(x)->marks, p, n, last, &x->down, &hits, &name) < 0)
		return false;
	count_hits(x, hits, name);
	return true;
}

/* An answer of a token endpoint is read whole. */
static size_t hold_down(struct xchg *x, const uint8_t *p, size_t n)
{
	if (x->down.n + n > INJECT_BODY_MAX || buf_add(&x->down, p, n) < 0)
		refuse(x, &(struct refusal) {
				  .status = 502,
				  .reason = "token-answer",
				  .detail = "the answer of the token endpoint is too large" });
	return n;
}

size_t xchg_down(struct xchg *x, const uint8_t *p, size_t n)
{
	size_t k, piece;

	if (over(x) || x->stage != X_SENT)
		return n;
	if (x->plan.token)
		return hold_down(x, p, n);
	if (!x->down.n && (x->tunnel || !guarded(x)) && !x->guard.held.n) {
		k = x->fops->data(x->fs, p, n);
		if (over(x))
			return n;
		x->n_down += k;
	} else {
		for (k = 0; k < n && x->down.n < XCHG_HOLD_MAX; k += piece) {
			piece = MIN(n - k, (size_t)XCHG_HOLD_MAX);
			if (!guard_down(x, p + k, piece, false)) {
				fail(x, XCHG_LIMIT);
				return n;
			}
			if (!offer_down(x))
				return n;
		}
	}
	x->down_short = k < n;
	return k;
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

static void tell(struct xchg *x)
{
	const struct front_ops *ops = x->fops;

	x->answered = true;
	ops->answer(x->fs, &x->answer);
	if (!over(x))
		(void)offer_down(x);
}

static void on_refusal_written(struct receipt_wait *w)
{
	tell((struct xchg *)((char *)w - offsetof(struct xchg, wait)));
}

/* The answer that says it. False: no memory. */
static bool compose(struct xchg *x, const struct refusal *r)
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

static void refuse(struct xchg *x, const struct refusal *r)
{
	struct flow *f = x->f;

	if (over(x) || x->stage == X_TELLING)
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
		fail(x, XCHG_BAD);
		return;
	}
	x->stage = X_TELLING;
	release_back(x, true);
	x->down_over = true;
	x->wait.run = on_refusal_written;
	receipts_wait(f->p->receipts, &x->wait);
}

static void bad_gateway(struct xchg *x, const char *reason, const char *detail)
{
	refuse(x, &(struct refusal) { .status = 502, .reason = reason, .detail = detail });
}

static const char credential_first[] = "refused, since a credential of this sandbox is concerned";

static void credential_refused(struct xchg *x, const char *reason, const char *detail,
			       const char *remedy)
{
	refuse(x, &(struct refusal) { .status = 403,
				      .first = credential_first,
				      .reason = reason,
				      .detail = detail,
				      .remedy = remedy });
}

/* ---- up ---- */

/* The back takes what there is. False: the exchange is over. */
static bool offer_up(struct xchg *x)
{
	while (x->up.n && x->bops) {
		const size_t k = x->bops->data(x->bs, buf_data(&x->up), x->up.n);

		if (x->stage != X_SENT || !x->bops)
			return false;
		buf_consume(&x->up, k);
		x->n_up += k;
		if (x->up.n)
			break;
	}
	return true;
}

static void secret_in_request(struct xchg *x, const char *name)
{
	char text[TEXT_MAX];

	(void)snprintf(text, sizeof(text),
		       "The request holds the value of the secret '%s', which bac puts on requests "
		       "itself.",
		       name);
	credential_refused(x, "secret-in-request", text, NULL);
}

static void placeholder_elsewhere(struct xchg *x, const char *name)
{
	char text[TEXT_MAX];

	(void)snprintf(text, sizeof(text),
		       "The body holds the placeholder of '%s', which is not for this host.",
		       name ? name : "?");
	credential_refused(x, "placeholder-elsewhere", text, NULL);
}

/* Looked at, and changed where it must be, into x->up. False: refused. */
static bool look_up(struct xchg *x, const uint8_t *p, size_t n, bool last)
{
	const char *name = NULL;
	struct leak_hit hit = { 0 };
	int r;

	if (guarded(x) && n)
		(void)leak_scan(&x->scan, proxy_of(x)->marks, p, n, &hit);
	if (hit.length) {
		secret_in_request(x, hit.name);
		return false;
	}
	r = x->ib ? inject_body(x->ib, p, n, last, &x->up, &name) : buf_add(&x->up, p, n);
	if (r == -EPERM)
		placeholder_elsewhere(x, name);
	else if (r < 0)
		fail(x, XCHG_LIMIT);
	return r == 0;
}

/* How much was taken; n also if the exchange has taken another turn. */
static size_t send_up(struct xchg *x, const uint8_t *p, size_t n)
{
	size_t k, at;

	if (!x->up.n && !x->ib && (x->tunnel || !guarded(x))) {
		k = x->bops->data(x->bs, p, n);
		if (x->stage != X_SENT)
			return n;
		x->n_up += k;
		return k;
	}
	for (at = 0; at < n && x->up.n < XCHG_HOLD_MAX; at += k) {
		k = MIN(n - at, (size_t)XCHG_HOLD_MAX);
		if (!look_up(x, p + at, k, false) || !offer_up(x))
			return n;
	}
	return at;
}

/* All that was kept is sent, and the end too if it has come. */
static void push_up(struct xchg *x)
{
	while (x->raw_sent < x->raw.n) {
		const size_t n = x->raw.n - x->raw_sent;
		const size_t k = send_up(x, buf_data(&x->raw) + x->raw_sent, n);

		if (x->stage != X_SENT || !x->bops)
			return;
		x->raw_sent += k;
		if (k < n)
			return;
	}
	if (!x->up_over || x->up_ended || !x->body)
		return;
	if (x->ib && !look_up(x, NULL, 0, true))
		return;
	x->ib = inject_body_free(x->ib);
	if (!offer_up(x) || x->up.n)
		return;
	x->up_ended = true;
	x->bops->end(x->bs, x->up_trailers.n ? &x->up_trailers : NULL);
}

void xchg_up_room(struct xchg *x)
{
	if (x->stage != X_SENT || !x->bops || !offer_up(x) || x->up.n)
		return;
	push_up(x);
	if (x->stage != X_SENT || !x->fops || x->up.n || x->raw_sent < x->raw.n || !x->up_short)
		return;
	x->up_short = false;
	x->fops->resume(x->fs);
}

static size_t keep_raw(struct xchg *x, const uint8_t *p, size_t n)
{
	const size_t max = x->plan.token ? INJECT_BODY_MAX : XCHG_HOLD_MAX;
	const size_t k = MIN(n, max - MIN(max, x->raw.n));

	if (k && buf_add(&x->raw, p, k) < 0) {
		fail(x, XCHG_LIMIT);
		return n;
	}
	if (k < n && x->plan.token) {
		refuse(x, &(struct refusal) { .status = 413,
					      .reason = "token-request",
					      .detail = "a request for tokens is smaller" });
		return n;
	}
	x->up_short = k < n;
	return k;
}

size_t xchg_up(struct xchg *x, const uint8_t *p, size_t n)
{
	size_t k;

	if (x->stage > X_SENT || (x->stage == X_SENT && !x->bops))
		return n;
	if (x->stage < X_SENT)
		return keep_raw(x, p, n);
	if (x->raw_sent < x->raw.n) {
		x->up_short = true;
		return 0;
	}
	k = send_up(x, p, n);
	x->beyond |= k;
	x->up_short = k < n;
	return k;
}

static void go_on(struct xchg *x);

void xchg_up_end(struct xchg *x, struct hfields *trailers)
{
	if (over(x))
		return;
	x->up_over = true;
	if (trailers && x->body) {
		x->up_trailers = *trailers;
		*trailers = (struct hfields) { 0 };
	}
	if (x->stage == X_HELD)
		go_on(x);
	else if (x->stage == X_SENT && x->tunnel)
		end_front(x);
	else if (x->stage == X_SENT && x->bops)
		push_up(x);
}

void xchg_front_gone(struct xchg *x, enum xchg_fault why)
{
	(void)why;
	x->fops = NULL;
	finish(x);
}

/* ---- a connection ---- */

static bool ready_to_send(struct xchg *x)
{
	x->raw_sent = 0;
	x->up_ended = false;
	buf_consume(&x->up, x->up.n);
	x->scan = (struct leak_scan) { 0 };
	x->ib = inject_body_free(x->ib);
	return !(x->plan.body || x->plan.search) || !x->body ||
	       inject_body_new(&x->plan, proxy_of(x)->creds, &x->f->host, x->f->port, &x->ib) == 0;
}

static void got(struct pool_wait *w, struct back *b, const char *address)
{
	struct xchg *x = (struct xchg *)((char *)w - offsetof(struct xchg, pool));
	const bool connect = streq(x->h.method, "CONNECT");
	int r;

	(void)!text_copy(x->f->address, sizeof(x->f->address), address);
	if (connect && !b->connect_protocol) {
		bad_gateway(x, "no-connect", "the server does not take extended CONNECT");
		return;
	}
	r = ready_to_send(x) ? b->begin(b, x, &x->h, x->body, &x->bs, &x->bops) : -ENOMEM;
	if (r == -EAGAIN) {
		pool_get(proxy_of(x)->pool, &x->f->host, x->f->port, &x->pool);
		return;
	}
	if (r < 0) {
		bad_gateway(x, "dial-failed", "no memory");
		return;
	}
	x->b = b;
	x->stage = X_SENT;
	pool_began(b);
	push_up(x);
	if (x->stage == X_SENT && x->up_short && !x->up.n && x->raw_sent == x->raw.n) {
		x->up_short = false;
		x->fops->resume(x->fs);
	}
}

static void not_got(struct pool_wait *w, const struct pool_fault *why)
{
	struct xchg *x = (struct xchg *)((char *)w - offsetof(struct xchg, pool));
	char text[TEXT_MAX];
	struct refusal r = { .status = why->refused ? 403 : 502,
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
	refuse(x, &r);
}

static void find_back(struct xchg *x)
{
	x->stage = X_POOL;
	x->pool.got = got;
	x->pool.failed = not_got;
	x->pool.h1 = x->h.protocol[0] && !streq(x->h.method, "CONNECT");
	x->pool.h2 = streq(x->front->proto, "h2") && !x->pool.h1;
	pool_get(proxy_of(x)->pool, &x->f->host, x->f->port, &x->pool);
}

/* ---- tokens ---- */

static const struct inject_need *need_of(const struct xchg *x, const struct cred_use *u)
{
	for (size_t i = 0; i < x->plan.n; i++)
		if (x->plan.v[i].use == u)
			return &x->plan.v[i];
	return NULL;
}

/* The body of a request for tokens, which is there. */
static bool token_request(struct xchg *x)
{
	const struct inject_need *v = need_of(x, x->plan.token);
	struct buf out = BUF_INIT(2 * INJECT_BODY_MAX);
	struct err e = { 0 };
	int r = inject_token_request(x->plan.token, buf_data(&x->raw), x->raw.n,
				     v ? v->value : NULL, v ? v->n : 0, &out, &e);

	if (r < 0) {
		wipe(&out);
		credential_refused(x, "token-request", e.msg, NULL);
		return false;
	}
	wipe(&x->raw);
	x->raw = out;
	x->h.has_length = true;
	x->h.length = out.n;
	(void)hfields_remove(&x->h.fields, "accept-encoding");
	return true;
}

static void on_kept(struct keeper_ask *a, const struct keeper_msg *m)
{
	struct xchg *x = (struct xchg *)((char *)a - offsetof(struct xchg, asks));

	inject_tokens_done(&x->tokens);
	if (m && m->type == KEEPER_KEPT) {
		x->stage = X_TELLING;
		tell(x);
		return;
	}
	bad_gateway(x, "token-answer",
		    m && m->type == KEEPER_NO ? m->text
					      : "the tokens could not be kept: there is no keeper");
}

static void ask_to_keep(struct xchg *x)
{
	struct keeper_ask *a = &x->asks[0];
	struct inject_tokens *t = &x->tokens;

	a->done = on_kept;
	a->m = (struct keeper_msg) {
		.type = KEEPER_TOKENS,
		.text = x->f->host.text,
		.text2 = x->plan.token->id,
		.text3 = t->scope ? t->scope : "",
		.port = x->f->port,
		.bytes = { (const uint8_t *)t->access, (uint32_t)strlen(t->access) },
		.when = t->expires_in ? (uint64_t)time(NULL) + t->expires_in : 0,
	};
	if (t->refresh)
		a->m.bytes2 = (struct keeper_bytes) { (const uint8_t *)t->refresh,
						      (uint32_t)strlen(t->refresh) };
	x->stage = X_KEEPING;
	if (keeper_ask(proxy_of(x)->keeper, a) < 0)
		bad_gateway(x, "token-answer", "the tokens could not be kept: there is no keeper");
}

static void token_answer(struct xchg *x)
{
	struct buf out = BUF_INIT(2 * INJECT_BODY_MAX);
	struct err e = { 0 };
	int r = inject_token_answer(x->plan.token, buf_data(&x->down), x->down.n, &x->tokens, &out,
				    &e);

	release_back(x, true);
	x->down_over = true;
	if (r < 0) {
		wipe(&out);
		bad_gateway(x, "token-answer", e.msg);
		return;
	}
	if (r == 0) {
		wipe(&x->down);
		x->down = out;
	} else {
		wipe(&out);
	}
	x->answer.has_length = true;
	x->answer.length = x->down.n;
	x->answer.no_body = !x->down.n;
	if (r == 0 && x->tokens.access) {
		ask_to_keep(x);
		return;
	}
	x->stage = X_TELLING;
	tell(x);
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
	if (guarded(x)) {
		const unsigned hits = guard_head(proxy_of(x)->marks, h, &name);

		count_hits(x, hits, name);
	}
	if (h->status < 200 && h->status != 101) {
		if (!x->plan.token)
			x->fops->answer(x->fs, h);
		xhead_done(h);
		return;
	}
	if (x->raw_sent == x->raw.n) {
		wipe(&x->raw);
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
		token_answer(x);
		return;
	}
	if (!x->answered) {
		bad_gateway(x, "malformed-answer", "the answer has no head");
		return;
	}
	if (trailers) {
		x->down_trailers = *trailers;
		*trailers = (struct hfields) { 0 };
	}
	if (!x->tunnel && !guard_down(x, NULL, 0, true)) {
		fail(x, XCHG_LIMIT);
		return;
	}
	x->down_over = true;
	if (!x->tunnel && (!x->body || x->up_ended))
		release_back(x, false);
	(void)offer_down(x);
}

static bool try_again(struct xchg *x, enum xchg_fault why)
{
	if (why != XCHG_UNTOUCHED || x->answered || x->tried || x->beyond)
		return false;
	x->tried = true;
	x->n_up = 0;
	x->pool.fresh = true;
	find_back(x);
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
	release_back(x, false);
	if (try_again(x, why))
		return;
	if (x->answered && x->tunnel)
		end_front(x);
	else if (x->answered)
		fail(x, why);
	else
		bad_gateway(x, reasons[why], detail);
}

/* ---- judging ---- */

static void credential_failed(struct xchg *x, const struct keeper_msg *m)
{
	static const char *const reasons[] = { [KEEPER_NO_MISSING] = "credential-missing",
					       [KEEPER_NO_UNAPPROVED] = "credential-unapproved",
					       [KEEPER_NO_FAILED] = "credential-failed",
					       [KEEPER_NO_LONGER] = "credential-withdrawn" };

	if (m && m->type == KEEPER_NO && m->code > 0 && m->code < KEEPER_NO_N)
		credential_refused(x, reasons[m->code], m->text, NULL);
	else
		refuse(x,
		       &(struct refusal) { .status = 503,
					   .reason = "keeper-down",
					   .detail = "The process that holds this sandbox's "
						     "credentials does not answer. Try again." });
}

static void apply(struct xchg *x)
{
	if (inject_apply(&x->plan, &x->h) < 0) {
		credential_refused(x, "credential-failed",
				   "The value of a credential cannot be put on a request.", NULL);
		return;
	}
	if (x->plan.body)
		x->h.has_length = false;
	if (x->plan.token && x->h.expect_continue) {
		struct xhead h = { .status = 100, .no_body = true };

		x->h.expect_continue = false;
		x->fops->answer(x->fs, &h);
		if (over(x))
			return;
	}
	x->stage = X_HELD;
	go_on(x);
}

/* Receipt and values are there; and the body, if it has to be. */
static void go_on(struct xchg *x)
{
	if (x->stage == X_JUDGED && x->written && !x->n_asked) {
		apply(x);
		return;
	}
	if (x->stage != X_HELD)
		return;
	if (x->plan.token && x->body && !x->up_over)
		return;
	if (x->plan.token && x->body && !token_request(x))
		return;
	find_back(x);
}

static void on_written(struct receipt_wait *w)
{
	struct xchg *x = (struct xchg *)((char *)w - offsetof(struct xchg, wait));

	x->written = true;
	go_on(x);
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
	go_on(x);
}

static bool ask(struct xchg *x)
{
	for (size_t i = 0; i < x->plan.n; i++) {
		struct keeper_ask *a = &x->asks[i];

		a->done = on_value;
		a->m = (struct keeper_msg) { .type = KEEPER_VALUE,
					     .text = x->f->host.text,
					     .text2 = x->plan.v[i].use->id,
					     .port = x->f->port,
					     .when = i };
		if (keeper_ask(proxy_of(x)->keeper, a) < 0)
			return false;
		x->n_asked++;
	}
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
	while ((u = cred_next(proxy_of(x)->creds, &x->f->host, x->f->port, &at)))
		placeholder |= u->kind == CRED_CUSTOM;
	if (x->h.protocol[0] && placeholder && n < max)
		(void)snprintf(
			p + n, max - n,
			"%sthe messages of %s are not looked at: a placeholder in them stays one",
			n ? "; " : "", x->h.protocol);
}

static void allow(struct xchg *x, const struct net_answer *y)
{
	struct proxy *p = proxy_of(x);
	char text[NOTE_MAX];

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

static struct net_answer decide(const struct xchg *x)
{
	const struct net_request q = {
		.host = &x->f->host, .port = x->f->port, .method = x->h.method, .path = x->h.path
	};

	return net_decide(proxy_of(x)->policy, &q);
}

static void deny(struct xchg *x, const struct net_answer *y)
{
	refuse(x, &(struct refusal) { .status = 403,
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
	char text[TEXT_MAX];

	(void)snprintf(
		text, sizeof(text),
		"the request names another host or port (%s:%u) than the connection was made to",
		x->h.host.text, x->h.port ? (unsigned)x->h.port : 443U);
	refuse(x, &(struct refusal) { .status = 421, .reason = "host-mismatch", .detail = text });
}

static void judge_credentials(struct xchg *x, const struct net_answer *y)
{
	struct proxy *p = proxy_of(x);
	const char *name = NULL;

	if (guarded(x) && guard_request_head(p->marks, &x->h, &name)) {
		secret_in_request(x, name);
		return;
	}
	inject_plan(&x->plan, p->creds, &x->h, &x->f->host, x->f->port, true, p->sandbox);
	if (x->plan.status)
		refuse(x,
		       &(struct refusal) { .status = x->plan.status,
					   .first = credential_first,
					   .reason = x->plan.reason,
					   .detail = x->plan.text,
					   .remedy = x->plan.remedy[0] ? x->plan.remedy : NULL });
	else
		allow(x, y);
}

static void judge(struct xchg *x)
{
	struct net_answer y;

	if (x->h.status) {
		refuse(x, &(struct refusal) { .status = x->h.status,
					      .reason = "malformed-http",
					      .detail = x->h.target,
					      .close = true });
		return;
	}
	y = decide(x);
	if (!host_agrees(x))
		mismatch(x);
	else if (y.verdict != NET_ALLOW)
		deny(x, &y);
	else if (streq(x->h.method, "CONNECT") && !x->h.protocol[0])
		refuse(x, &(struct refusal) { .status = 400,
					      .reason = "not-a-proxy-request",
					      .detail = "CONNECT within TLS" });
	else
		judge_credentials(x, &y);
}

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
	judge(x);
	return x;
}

/* ---- changes ---- */

struct xchg *xchg_next(struct xchg *x)
{
	return x->next;
}

void xchg_recheck(struct xchg *x)
{
	struct net_answer y = decide(x);

	if (y.verdict == NET_ALLOW || x->stage >= X_TELLING)
		return;
	deny(x, &y);
}

void xchg_credentials(struct xchg *x, const struct cred_set *now)
{
	bool withdrawn = false;

	if (over(x))
		return;
	for (size_t i = 0; i < x->plan.n; i++) {
		const struct cred_use *u = cred_find(now, x->plan.v[i].use->id);

		if (!u || u->state != CRED_READY || !cred_matches(u, &x->f->host, x->f->port))
			withdrawn = true;
		if (x->plan.token == x->plan.v[i].use)
			x->plan.token = u;
		x->plan.v[i].use = u;
		if (u && x->stage < X_KEEPING)
			x->asks[i].m.text2 = u->id;
	}
	if (x->plan.token && !need_of(x, x->plan.token)) {
		x->plan.token = cred_find(now, x->plan.token->id);
		withdrawn |= !x->plan.token;
	}
	if (x->stage == X_KEEPING && x->plan.token)
		x->asks[0].m.text2 = x->plan.token->id;
	if (withdrawn && x->stage < X_TELLING)
		credential_refused(x, "credential-withdrawn",
				   "The credentials of this sandbox have changed.", NULL);
}
