#pragma once
/* Credentials onto requests, and placeholders where they do not belong. Works on values; makes no system call and asks nobody: what it needs of the keeper it says by
 * inject_plan(), and is given to inject_apply(). */
#include "base/leak.h"
#include "policy/cred.h"
#include "proxy/head.h"

enum { INJECT_NEEDS_MAX = 8, INJECT_TEXT_MAX = 400 };

/* What a request of this destination needs. */
struct inject_need {
	const struct cred_use *use;
	const uint8_t *value; /* filled in by the caller before inject_apply() */
	size_t n;
};
struct inject_plan {
	struct inject_need v[INJECT_NEEDS_MAX];
	size_t n;
	bool body; /* its body has to be changed as it passes (CUSTOM with CRED_IN_BODY; TOKEN: held whole, at most INJECT_BODY_MAX) */
	const struct cred_use *token; /* its answer holds tokens */
	/* refused: */
	uint16_t status; /* 0: not */
	const char *
		reason; /* for the receipt: "credential-missing", "credential-unapproved", "placeholder-elsewhere" */
	char text[INJECT_TEXT_MAX];   /* for the client, what to do included */
	char remedy[INJECT_TEXT_MAX]; /* a command line of the host, or "" */
	char names
		[256]; /* services whose credential goes onto it, for the receipt: "anthropic, github" */
};
enum { INJECT_BODY_MAX = 64 * 1024 };

/* h: the request's; tls: it came by TLS that we opened (only then anything is put on it). sandbox: for the remedy. A HEADER or BASIC use applies to every request of its resource;
 * CUSTOM, OAUTH only where the placeholder is seen. Where two HEADER uses set the same field the first wins (of the same service or not: one with an empty state never
 * wins over a ready one). A placeholder of `s` that is seen (headers, decoded Basic, query, path, also percent-encoded) at a destination that it is not for refuses the request, tls or not. */
void inject_plan(struct inject_plan *ret, const struct cred_set *s, struct xhead *h,
		 const struct host *host, uint16_t port, bool tls, const char *sandbox);
/* Values are there. Changes h; fields that got a value are marked secret; fields of the client that hold a sentinel ("proxy-managed" and what begins so, a placeholder) and got none go. 0, -E2BIG, -ENOMEM, -EINVAL (a value with a byte that no
 * field may have). */
int inject_apply(const struct inject_plan *p, struct xhead *h) _must_check_;

/* A body that passes: placeholder -> value for CUSTOM with CRED_IN_BODY, across the edges of pieces; and a search for placeholders that do not belong (hit: refuse). */
struct inject_body;
int inject_body_new(const struct inject_plan *p, const struct cred_set *s, const struct host *host,
		    uint16_t port, struct inject_body **ret) _must_check_;
/* in -> out; last: no more follows. 0, -ENOBUFS, -ENOMEM, -EPERM: a placeholder of another destination; *ret_name says whose. Bytes that might be the beginning of one are kept until it is clear. */
int inject_body(struct inject_body *b, const uint8_t *p, size_t n, bool last, struct buf *out,
		const char **ret_name) _must_check_;
/* How much longer or shorter it will be is not known before its end: with it a request loses its Content-Length. */
struct inject_body *inject_body_free(struct inject_body *b);

/* OAuth (RFC 6749 5.1, 6): the body of a request to a token endpoint, form or JSON: refresh sentinel -> value. */
int inject_token_request(const struct cred_use *u, const uint8_t *p, size_t n,
			 const uint8_t *refresh, size_t n_refresh, struct buf *out, struct err *e)
	_must_check_;
/* Its answer: hostile JSON of at most INJECT_BODY_MAX bytes. Tokens out of it, sentinels into it. A refresh token that is not there stays as it was. An answer without tokens (an error) passes as it is: 1. */
struct inject_tokens {
	char *access, *refresh; /* refresh NULL: not said. Wiped by inject_tokens_done() */
	uint64_t expires_in;    /* seconds, 0: not said */
	char *scope;            /* NULL: not said */
};
int inject_token_answer(const struct cred_use *u, const uint8_t *p, size_t n,
			struct inject_tokens *ret, struct buf *out, struct err *e) _must_check_;
void inject_tokens_done(struct inject_tokens *t);

/* The leak guard. Answers: hits are blanked with '*' as far as they have not gone on; requests: a hit stops it. */
struct guard {
	struct leak_scan scan;
	struct buf held; /* at most a secret's length */
};
/* in -> out (appends). Hits are counted in *ret_hits, *ret_name the last one's. 0, -ENOBUFS, -ENOMEM. */
int guard_answer(struct guard *g, const struct leak_set *s, const uint8_t *p, size_t n, bool last,
		 struct buf *out, unsigned *ret_hits, const char **ret_name) _must_check_;
/* Blank in a head's fields. How many. */
unsigned guard_head(const struct leak_set *s, struct xhead *h, const char **ret_name);
/* Does a request's head, or a piece of its body, hold a secret (one that is not put there by us: ask before inject_apply())? */
bool guard_request_head(const struct leak_set *s, const struct xhead *h, const char **ret_name);
void guard_done(struct guard *g);
