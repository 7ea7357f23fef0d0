#pragma once
/* Heads, written anew from their parts. */
#include "base/buf.h"
#include "proxy/http.h"

struct http_rewrite {
	const struct http_head *head;
	const uint8_t *bytes; /* from which it was parsed */
	bool absolute;        /* for an HTTP proxy */
	const char *basic;    /* Proxy-Authorization for it, "" */
	uint16_t port;        /* of the absolute form */
	bool forward;         /* fields for us, as its proxy, go */
	bool upgrade, keep;
	bool http10; /* the client's version: "keep-alive" has to be said */
};
/* 0, -ENOBUFS, -ENOMEM. */
int http_write_request(struct buf *out, const struct http_rewrite *w) _must_check_;
int http_write_response(struct buf *out, const struct http_rewrite *w) _must_check_;
