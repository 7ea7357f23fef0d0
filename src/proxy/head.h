#pragma once
/* The head of a request or an answer, whatever HTTP carries it: a checked value that owns its bytes. Made by a front or a back (xchg.h), changed by
 * inject.h, written by the other half. Memory is wiped when it is freed: it may hold a credential. Nothing here makes a system call.
 *
 * Field names are kept as they came (HTTP/1) and compared without case; values have no control byte but TAB and no space at their ends. Fields of the connection
 * (Connection and what it names, Keep-Alive, Proxy-*, TE but "trailers", Transfer-Encoding, Upgrade, HTTP2-Settings) are never in it; Host and Content-Length neither:
 * they have members of their own. */
#include "base/base.h"
#include "policy/host.h"
#include "proxy/http.h"

struct hfield {
	char *name, *value; /* NUL-terminated, on the heap */
	uint32_t name_len, value_len;
	bool secret; /* holds a credential: never into a log, never indexed by HPACK */
};

struct hfields {
	struct hfield *v;
	size_t n, bytes; /* at most HTTP_FIELDS_MAX, HTTP_HEAD_MAX */
};

/* 0, -E2BIG (one of the limits), -EINVAL (bytes that no field may have), -ENOMEM. */
int hfields_add(struct hfields *f, const char *name, size_t name_len, const char *value,
		size_t value_len) _must_check_;
struct hfield *hfields_find(struct hfields *f, const char *name);
/* All of that name. How many. */
size_t hfields_remove(struct hfields *f, const char *name);
/* Replace one's value (a copy). */
int hfield_set(struct hfields *f, struct hfield *one, const char *value, size_t n, bool secret)
	_must_check_;
void hfields_done(struct hfields *f);

struct xhead {
	/* request */
	char method[24];
	char *target; /* origin form with its query, at most HTTP_TARGET_MAX; "" for CONNECT and extended CONNECT without a path */
	char path
		[1025]; /* as http_head.path: what rules are asked about, "" if it cannot be decided on */
	struct host host; /* Host or :authority */
	uint16_t port;    /* 0: not said */
	char protocol
		[64]; /* Upgrade's (HTTP/1) or :protocol (RFC 8441), lower case: "websocket"; "" */
	bool expect_continue;
	/* answer */
	uint16_t status;
	/* both */
	bool has_length; /* Content-Length */
	uint64_t length;
	bool no_body; /* nothing follows: END_STREAM, no body by its framing, 204, 304, HEAD */
	bool close;   /* HTTP/1: the connection ends after it */
	struct hfields fields;
};

/* From a head that http_request() or http_response() took apart. 0, -E2BIG, -EINVAL, -ENOMEM. */
int xhead_from_http1(struct xhead *ret, const struct http_head *h, const uint8_t *bytes)
	_must_check_;
void xhead_done(struct xhead *h);
