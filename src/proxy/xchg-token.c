#include "proxy/xchg-priv.h"

#include <time.h>

/* ---- tokens ---- */

const struct inject_need *xchg_need_of(const struct xchg *x, const struct cred_use *u)
{
	for (size_t i = 0; i < x->plan.n; i++)
		if (x->plan.v[i].use == u)
			return &x->plan.v[i];
	return NULL;
}

/* The body of a request for tokens, which is there. */
bool xchg_token_request(struct xchg *x)
{
	const struct inject_need *v = xchg_need_of(x, x->plan.token);
	struct buf out = BUF_INIT((size_t)2 * INJECT_BODY_MAX);
	struct err e = { 0 };
	int r = inject_token_request(x->plan.token, buf_data(&x->raw), x->raw.n,
				     v ? v->value : NULL, v ? v->n : 0, &out, &e);

	if (r < 0) {
		xchg_wipe(&out);
		xchg_credential_refused(x, "token-request", e.msg, NULL);
		return false;
	}
	xchg_wipe(&x->raw);
	x->raw = out;
	x->h.has_length = true;
	x->h.length = out.n;
	(void)hfields_remove(&x->h.fields, "accept-encoding");
	return true;
}

void xchg_turn_over(struct xchg *x)
{
	if (x->turn)
		keeper_over(xchg_proxy(x)->keeper, x->turn);
	x->turn = 0;
}

static void on_kept(struct keeper_ask *a, const struct keeper_msg *m)
{
	struct xchg *x = (struct xchg *)((char *)a - offsetof(struct xchg, asks));

	inject_tokens_done(&x->tokens);
	if (m && m->type == KEEPER_KEPT) {
		x->stage = X_TELLING;
		xchg_tell(x);
		return;
	}
	xchg_bad_gateway(x, "token-answer",
			 m && m->type == KEEPER_NO
				 ? m->text
				 : "the tokens could not be kept: there is no keeper");
}

static void ask_to_keep(struct xchg *x)
{
	struct keeper_ask *a = &x->asks[0];
	struct inject_tokens *t = &x->tokens;

	a->done = on_kept;
	a->shared = false;
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
	if (keeper_ask(xchg_proxy(x)->keeper, a) < 0)
		xchg_bad_gateway(x, "token-answer",
				 "the tokens could not be kept: there is no keeper");
}

/* What is left in it besides the new tokens: the refresh token that was sent, in the words of an error. */
static bool guard_body(struct xchg *x)
{
	struct buf was = x->down;
	bool fine;

	if (!xchg_guarded(x))
		return true;
	buf_init(&x->down, was.max);
	fine = xchg_guard_down(x, buf_data(&was), was.n, true);
	xchg_wipe(&was);
	return fine;
}

void xchg_token_answer(struct xchg *x)
{
	struct buf out = BUF_INIT((size_t)2 * INJECT_BODY_MAX);
	struct err e = { 0 };
	int r = inject_token_answer(x->plan.token, buf_data(&x->down), x->down.n, &x->tokens, &out,
				    &e);

	xchg_release_back(x, true);
	x->down_over = true;
	if (r < 0) {
		xchg_wipe(&out);
		xchg_bad_gateway(x, "token-answer", e.msg);
		return;
	}
	if (r == 0) {
		xchg_wipe(&x->down);
		x->down = out;
	} else {
		xchg_wipe(&out);
	}
	if (!guard_body(x)) {
		xchg_bad_gateway(x, "token-answer", "no memory");
		return;
	}
	x->answer.has_length = true;
	x->answer.length = x->down.n;
	x->answer.no_body = !x->down.n;
	if (r == 0 && x->tokens.access) {
		ask_to_keep(x);
		return;
	}
	x->stage = X_TELLING;
	xchg_tell(x);
}
