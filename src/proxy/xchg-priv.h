#pragma once
/* What the files of an exchange share: xchg.c its life and its answer, xchg-judge.c whether it may go and with what, xchg-body.c bytes both ways, xchg-token.c
 * requests for tokens. */
#include "proxy/inject.h"
#include "proxy/open.h"
#include "proxy/xchg.h"

enum xchg_stage {
	X_JUDGED,  /* receipt and values are waited for */
	X_HELD,    /* the body, whole */
	X_POOL,    /* a connection */
	X_SENT,    /* it has begun */
	X_KEEPING, /* tokens are on their way into the store */
	X_TELLING, /* the answer is ours */
	X_OVER,
};

enum { XCHG_NOTE_MAX = 400, XCHG_TEXT_MAX = 500 };

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
	uint32_t turn; /* the number of its question for a refresh token; 0: not asked, or over */
	uint64_t id, since, n_up, n_down;
};

struct xchg_refusal {
	uint16_t status;
	const char *first; /* instead of what the status stands for; NULL */
	const char *rule, *rule_text, *reason, *detail, *remedy;
	bool allow_helps, close;
};

static inline struct proxy *xchg_proxy(const struct xchg *x)
{
	return x->f->p;
}

static inline bool xchg_over(const struct xchg *x)
{
	return x->stage == X_OVER;
}

static inline bool xchg_guarded(const struct xchg *x)
{
	return xchg_proxy(x)->marks && xchg_proxy(x)->marks->n;
}

/* ---- xchg.c ---- */
/* Nobody hears of it any more. */
void xchg_finish(struct xchg *x);
/* The client sees that something is missing. */
void xchg_fail(struct xchg *x, enum xchg_fault why);
void xchg_release_back(struct xchg *x, bool cancel);
void xchg_wipe(struct buf *b);
/* A receipt, then an answer of ours; or, if there has been an answer, the end. */
void xchg_refuse(struct xchg *x, const struct xchg_refusal *r);
void xchg_bad_gateway(struct xchg *x, const char *reason, const char *detail);
extern const char xchg_credential_first[];
void xchg_credential_refused(struct xchg *x, const char *reason, const char *detail,
			     const char *remedy);
/* x->answer and x->down go to the client. */
void xchg_tell(struct xchg *x);

/* ---- xchg-body.c ---- */
/* What is in x->down, and the end if it has come. False: the exchange is over. */
bool xchg_offer_down(struct xchg *x);
void xchg_end_front(struct xchg *x);
/* Looked at, into x->down. False: no memory. */
bool xchg_guard_down(struct xchg *x, const uint8_t *p, size_t n, bool last);
void xchg_count_hits(struct xchg *x, unsigned n, const char *name);
/* All that was kept of the request's body, and its end if it has come. */
void xchg_push_up(struct xchg *x);

/* ---- xchg-judge.c ---- */
void xchg_judge(struct xchg *x);
struct net_answer xchg_decide(const struct xchg *x);
void xchg_deny(struct xchg *x, const struct net_answer *y);
/* Is this secret for this host? Then it may be said to it. */
bool xchg_own_secret(const void *x, const char *name); /* an exchange: for guard_request_head() */
void xchg_secret_in_request(struct xchg *x, const char *name);
/* Receipt and values are there; and the body, if it has to be. */
void xchg_go_on(struct xchg *x);
void xchg_find_back(struct xchg *x);

/* ---- xchg-token.c ---- */
const struct inject_need *xchg_need_of(const struct xchg *x, const struct cred_use *u);
/* The body of a request for tokens is there. False: refused. */
bool xchg_token_request(struct xchg *x);
/* Its refresh token may go to another request. */
void xchg_turn_over(struct xchg *x);
/* The answer is. */
void xchg_token_answer(struct xchg *x);
