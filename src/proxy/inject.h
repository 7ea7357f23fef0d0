#pragma once
/* Credentials onto requests, and placeholders where they do not belong. Works on values; makes no system call and asks nobody: what it needs of the keeper it says by
 * inject_plan(), and is given to inject_apply(). */
#include "base/err.h"
#include "base/leak.h"
#include "policy/cred.h"
#include "proxy/head.h"

enum { INJECT_NEEDS_MAX = 8, INJECT_TEXT_MAX = 512 };

/* What a request of this destination needs. */
struct inject_need {
	const struct cred_use *use;
	const uint8_t *value; /* filled in by the caller before inject_apply() */
	size_t n;
};
enum inject_form { INJECT_FORM_RAW = 0, INJECT_FORM_QUERY, INJECT_FORM_JSON };
struct inject_plan {
	struct inject_need v[INJECT_NEEDS_MAX];
	size_t n;
	bool body; /* its body is changed as it passes (CUSTOM with CRED_IN_BODY): by inject_body(); it loses its Content-Length */
	bool search;  /* its body goes through inject_body() too, which does not change it */
	uint8_t form; /* how a value is written into that body, by Content-Type: enum inject_form */
	const struct cred_use *
		token; /* body is held whole (at most INJECT_BODY_MAX) for inject_token_request(); its answer holds tokens. Its need, if it has one, is not for inject_apply() */
	/* refused: */
	uint16_t status; /* 0: not */
	const char *
		reason; /* for the receipt: "credential-missing", "credential-unapproved", "placeholder-elsewhere", "credential-many" */
	char text[INJECT_TEXT_MAX];   /* for the client, what to do included */
	char remedy[INJECT_TEXT_MAX]; /* a command line of the host, or "" */
	char names
		[256]; /* services whose credential goes onto it, for the receipt: "anthropic, github" */
};
enum { INJECT_BODY_MAX = 64 * 1024 };

/* h: the request's; tls: it came by TLS that we opened (only then anything is put on it). sandbox: for the remedy.
 *
 * A HEADER or BASIC use applies to every request of its resource. Where two set the same field the first wins; a use that is not ready loses to one that is, of the same field or
 * the same service. OAUTH applies where its placeholder is in Authorization, and not where an API key of its service applies. TOKEN: a POST to its path. CUSTOM: where its
 * placeholder is seen, at the places of `where`: fields, decoded Basic, the target (path and query: CRED_IN_QUERY), each also percent-encoded.
 * A placeholder of a CUSTOM use that is seen at a destination that it is not for, or without TLS, refuses the request. Sentinels of the other kinds ("proxy-managed") are the
 * same in every sandbox and no secret: elsewhere they pass. */
void inject_plan(struct inject_plan *ret, const struct cred_set *s, const struct xhead *h,
		 const struct host *host, uint16_t port, bool tls, const char *sandbox);
/* Values are there. Changes h; fields that got a value are marked secret (a target cannot be: it holds one if it changed). What the client sent in a field that is set goes, all of it; so do
 * fields and parameters of the query that hold nothing but a sentinel (a word with "proxy-managed" in it, behind a scheme or within Basic) and got no value. 0, -E2BIG, -ENOMEM, -EINVAL (a
 * value with a byte that no field may have): then h is to be dropped. */
int inject_apply(const struct inject_plan *p, struct xhead *h) _must_check_;

/* A body that passes (plan->body or ->search): placeholder -> value for CUSTOM with CRED_IN_BODY, across the edges of pieces; and a search for placeholders that do not
 * belong, or whose value is missing (hit: refuse). Values are copied, and wiped; the set is not needed any more after inject_body_new(). */
struct inject_body;
int inject_body_new(const struct inject_plan *p, const struct cred_set *s, const struct host *host,
		    uint16_t port, struct inject_body **ret) _must_check_;
/* in -> out; last: no more follows. 0, -ENOBUFS, -ENOMEM, -EPERM: a placeholder of another destination; *ret_name (the body's) says whose. With plan->body
 * bytes that might be the beginning of one are kept until it is clear; a search keeps nothing back. */
int inject_body(struct inject_body *b, const uint8_t *p, size_t n, bool last, struct buf *out,
		const char **ret_name) _must_check_;
/* How much longer or shorter it will be is not known before its end: with it a request loses its Content-Length. */
struct inject_body *inject_body_free(struct inject_body *b);

/* OAuth (RFC 6749 5.1, 6): the body of a request to a token endpoint, form or JSON: refresh sentinel -> value. refresh NULL: there is none. 0: out has the body to send; 1: likewise, and it is
 * as it was (another grant). -EINVAL: it can be read in two ways, or not at all; -ENOENT: it needs the refresh token, and there is none; -EPERM: it refreshes with a token that is not the sentinel, whose
 * answer would replace the user's; -ENOBUFS, -ENOMEM. e is for people. out is to be wiped. */
int inject_token_request(const struct cred_use *u, const uint8_t *p, size_t n,
			 const uint8_t *refresh, size_t n_refresh, struct buf *out, struct err *e)
	_must_check_;
/* Its answer: hostile JSON of at most INJECT_BODY_MAX bytes, not compressed. Tokens out of it, sentinels into it, wherever the token is repeated; an id_token, at any depth, becomes what stands for it (policy/id-token.h). A refresh token that is not there stays as it was. An answer
 * without tokens (an error) passes as it is: 1, and *ret is zeros. -EINVAL: it may hold tokens and cannot be read: it must not pass. */
struct inject_tokens {
	char *access,
		*refresh; /* access: there unless it is 1, or there was nothing but an id_token; refresh NULL: not said. Wiped by inject_tokens_done() */
	uint64_t expires_in; /* seconds, 0: not said */
	char *scope;         /* NULL: not said */
};
int inject_token_answer(const struct cred_use *u, const uint8_t *p, size_t n,
			struct inject_tokens *ret, struct buf *out, struct err *e) _must_check_;
void inject_tokens_done(struct inject_tokens *t);

/* The leak guard. Answers: hits are blanked with '*' as far as they have not gone on: of a secret whose first LEAK_WINDOW bytes come in two pieces those of the first
 * piece have. Requests: a hit stops it. Zeros: at the beginning. */
struct guard {
	struct leak_scan scan;
	struct buf held; /* at most a secret's length */
};
/* in -> out (appends). *ret_hits: how many in this call; *ret_name the last one's (the set's), if any. s may be NULL. 0, -ENOBUFS, -ENOMEM. */
int guard_answer(struct guard *g, const struct leak_set *s, const uint8_t *p, size_t n, bool last,
		 struct buf *out, unsigned *ret_hits, const char **ret_name) _must_check_;
/* Blank in a head's fields. How many. */
unsigned guard_head(const struct leak_set *s, struct xhead *h, const char **ret_name);
/* Does a request's head hold a secret (one that is not put there by us: ask before inject_apply())? *ret_name is set if so. own(): this one may be said here, and is passed over; NULL: none may. Of
 * a body: leak_scan(). */
bool guard_request_head(const struct leak_set *s, const struct xhead *h,
			bool (*own)(const void *arg, const char *name), const void *arg,
			const char **ret_name);
void guard_done(struct guard *g);
