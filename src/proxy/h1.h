#pragma once
/* What front and back of HTTP/1 share: bytes in, bodies taken out of their framing, heads and bodies written. */
#include "base/buf.h"
#include "proxy/chan.h"
#include "proxy/head.h"

/* A head, and as much again: what is there behind it waits in the chan. */
enum { H1_IN_MAX = HTTP_HEAD_MAX + 64 * 1024, H1_READ = 16 * 1024 };

struct h1_in {
	struct buf bytes;
	bool ended, broken;
};
void h1_in_init(struct h1_in *in);
void h1_in_done(struct h1_in *in);
/* Read until there is no more, or it is full. */
void h1_fill(struct h1_in *in, struct chan *c);

struct h1_body {
	struct http_bodyscan scan;
	struct buf trailers;
};
enum h1_progress {
	H1_MORE /* bytes are needed */,
	H1_FULL /* give() took less */,
	H1_DONE,
	H1_BAD
};
void h1_body_begin(struct h1_body *b, const struct http_head *h);
void h1_body_done(struct h1_body *b);
/* Content goes to give(), which answers how much it took. */
enum h1_progress h1_body_run(struct h1_body *b, struct h1_in *in,
			     size_t (*give)(void *arg, const uint8_t *p, size_t n), void *arg);
/* The trailers of a body that is done. 0: none (then *ret is empty too), 1, -EINVAL, -E2BIG, -ENOMEM. */
int h1_body_trailers(const struct h1_body *b, struct hfields *ret) _must_check_;

/* 0, -ENOBUFS, -ENOMEM. chunked: so is the body. */
int h1_put_request(struct buf *out, const struct xhead *h, bool chunked) _must_check_;
struct h1_answer {
	bool chunked, close, say_keep_alive;
	bool has_length;
	uint64_t length;
	const char *upgrade; /* 101: the protocol; NULL */
};
int h1_put_answer(struct buf *out, const struct xhead *h, const struct h1_answer *a) _must_check_;
/* A piece of a body. Bytes taken. */
size_t h1_put_data(struct chan *c, bool chunked, const uint8_t *p, size_t n);
/* The end of a chunked one. */
void h1_put_end(struct chan *c, const struct hfields *trailers);
