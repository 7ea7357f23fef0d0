#include "proxy/xchg-priv.h"

#include <stdio.h>

#include "base/text.h"

/* ---- down ---- */

void xchg_end_front(struct xchg *x)
{
	const struct front_ops *ops = x->fops;
	struct hfields trailers = x->down_trailers;
	void *s = x->fs;

	x->down_trailers = (struct hfields) { 0 };
	xchg_finish(x);
	if (ops)
		ops->end(s, trailers.n ? &trailers : NULL);
	hfields_done(&trailers);
}

/* False: the exchange is over. */
bool xchg_offer_down(struct xchg *x)
{
	while (x->down.n) {
		const size_t k = x->fops->data(x->fs, buf_data(&x->down), x->down.n);

		if (xchg_over(x))
			return false;
		buf_consume(&x->down, k);
		x->n_down += k;
		if (x->down.n)
			return true;
	}
	if (x->down_over)
		xchg_end_front(x);
	return !xchg_over(x);
}

void xchg_down_room(struct xchg *x)
{
	if (xchg_over(x) || !x->answered || !xchg_offer_down(x))
		return;
	if (!x->down.n && x->down_short && x->bops) {
		x->down_short = false;
		x->bops->resume(x->bs);
	}
}

void xchg_count_hits(struct xchg *x, unsigned n, const char *name)
{
	if (n && name)
		(void)!text_copy(x->hit_name, sizeof(x->hit_name), name);
	x->hits += n;
}

bool xchg_guard_down(struct xchg *x, const uint8_t *p, size_t n, bool last)
{
	const char *name = NULL;
	unsigned hits = 0;

	if (guard_answer(&x->guard, xchg_proxy(x)->marks, p, n, last, &x->down, &hits, &name) < 0)
		return false;
	xchg_count_hits(x, hits, name);
	return true;
}

/* An answer of a token endpoint is read whole. */
static size_t hold_down(struct xchg *x, const uint8_t *p, size_t n)
{
	if (x->down.n + n > INJECT_BODY_MAX || buf_add(&x->down, p, n) < 0)
		xchg_refuse(x, &(struct xchg_refusal) {
				       .status = 502,
				       .reason = "token-answer",
				       .detail = "the answer of the token endpoint is too large" });
	return n;
}

size_t xchg_down(struct xchg *x, const uint8_t *p, size_t n)
{
	size_t k, piece;

	if (xchg_over(x) || x->stage != X_SENT)
		return n;
	if (x->plan.token)
		return hold_down(x, p, n);
	if (!x->down.n && (x->tunnel || !xchg_guarded(x)) && !x->guard.held.n) {
		k = x->fops->data(x->fs, p, n);
		if (xchg_over(x))
			return n;
		x->n_down += k;
	} else {
		for (k = 0; k < n && x->down.n < XCHG_HOLD_MAX; k += piece) {
			piece = MIN(n - k, (size_t)XCHG_HOLD_MAX);
			if (!xchg_guard_down(x, p + k, piece, false)) {
				xchg_fail(x, XCHG_LIMIT);
				return n;
			}
			if (!xchg_offer_down(x))
				return n;
		}
	}
	x->down_short = k < n;
	return k;
}

/* ---- up ---- */

/* The back takes what there is. False: the exchange is over. */
static bool offer_up(struct xchg *x)
{
	const struct back_ops *ops;

	while (x->up.n && (ops = x->bops)) {
		const size_t k = ops->data(x->bs, buf_data(&x->up), x->up.n);

		if (x->stage != X_SENT || !x->bops)
			return false;
		buf_consume(&x->up, k);
		x->n_up += k;
		if (x->up.n)
			break;
	}
	return true;
}

static void placeholder_elsewhere(struct xchg *x, const char *name)
{
	char text[XCHG_TEXT_MAX];

	(void)snprintf(text, sizeof(text),
		       "The body holds the placeholder of '%s', which is not for this host.",
		       name ? name : "?");
	xchg_credential_refused(x, "placeholder-elsewhere", text, NULL);
}

/* The name of a secret of other hosts that a piece of the body ends in, or NULL. */
static const char *foreign_secret(struct xchg *x, const uint8_t *p, size_t n)
{
	while (n) {
		struct leak_hit hit = { 0 };
		const size_t k = leak_scan(&x->scan, xchg_proxy(x)->marks, p, n, &hit);

		if (!hit.length)
			break;
		if (!xchg_own_secret(x, hit.name))
			return hit.name;
		p += k;
		n -= k;
	}
	return NULL;
}

/* Looked at, and changed where it must be, into x->up. False: refused. */
static bool look_up(struct xchg *x, const uint8_t *p, size_t n, bool last)
{
	const char *name = NULL;
	const char *secret = xchg_guarded(x) ? foreign_secret(x, p, n) : NULL;
	int r;

	if (secret) {
		xchg_secret_in_request(x, secret);
		return false;
	}
	r = x->ib ? inject_body(x->ib, p, n, last, &x->up, &name) : buf_add(&x->up, p, n);
	if (r == -EPERM)
		placeholder_elsewhere(x, name);
	else if (r < 0)
		xchg_fail(x, XCHG_LIMIT);
	return r == 0;
}

/* How much was taken; n also if the exchange has taken another turn. */
static size_t send_up(struct xchg *x, const uint8_t *p, size_t n)
{
	size_t k, at;

	if (!x->up.n && !x->ib && (x->tunnel || !xchg_guarded(x))) {
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
void xchg_push_up(struct xchg *x)
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
	xchg_push_up(x);
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
		xchg_fail(x, XCHG_LIMIT);
		return n;
	}
	if (k < n && x->plan.token) {
		xchg_refuse(x,
			    &(struct xchg_refusal) { .status = 413,
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

/* A field of a trailer is one of the request, to a server. False: refused. */
static bool trailers_fine(struct xchg *x, const struct hfields *f)
{
	const struct xhead t = { .fields = *f, .no_body = true };
	struct proxy *p = xchg_proxy(x);
	const char *name = NULL;
	struct inject_plan plan;

	if (guard_request_head(p->marks, &t, xchg_own_secret, x, &name)) {
		xchg_secret_in_request(x, name);
		return false;
	}
	inject_plan(&plan, p->creds, &t, &x->f->host, x->f->port, true, p->sandbox);
	if (plan.status && streq(plan.reason, "placeholder-elsewhere"))
		xchg_credential_refused(x, plan.reason, plan.text, NULL);
	return !(plan.status && streq(plan.reason, "placeholder-elsewhere"));
}

void xchg_up_end(struct xchg *x, struct hfields *trailers)
{
	if (xchg_over(x))
		return;
	x->up_over = true;
	if (trailers && x->body && !x->tunnel && x->stage <= X_SENT && !trailers_fine(x, trailers))
		return;
	if (trailers && x->body) {
		x->up_trailers = *trailers;
		*trailers = (struct hfields) { 0 };
	}
	if (x->stage == X_HELD)
		xchg_go_on(x);
	else if (x->stage == X_SENT && x->tunnel)
		xchg_end_front(x);
	else if (x->stage == X_SENT && x->bops)
		xchg_push_up(x);
}

void xchg_front_gone(struct xchg *x, enum xchg_fault why)
{
	(void)why;
	x->fops = NULL;
	xchg_finish(x);
}
