#pragma once
/* HTTP/1 (RFC 9110, 9112), strictly: a head is taken apart once, and what two parsers could read in two ways is refused. Hostile
 * from both sides. Nothing here makes a system call or allocates. */
#include "base/base.h"
#include "policy/host.h"

enum { HTTP_HEAD_MAX = 64 * 1024, HTTP_FIELDS_MAX = 128, HTTP_TARGET_MAX = 16 * 1024 };
enum http_result {
	HTTP_OK = 0,
	HTTP_MORE,
	HTTP_NOT /* these bytes are not HTTP/1 */,
	HTTP_BAD /* refuse: 400 */,
	HTTP_TOO_LARGE /* 431 */
};
enum http_body { BODY_NONE = 0, BODY_LENGTH, BODY_CHUNKED, BODY_UNTIL_CLOSE };

struct http_text {
	uint32_t at, len;
}; /* in the head's bytes */
struct http_field {
	struct http_text name, value;
};

struct http_head {
	uint32_t size;   /* bytes of the head, the empty line included */
	uint8_t minor;   /* HTTP/1.0 or 1.1 */
	char method[24]; /* requests */
	struct http_text target;
	uint16_t status; /* responses */
	enum http_body body;
	uint64_t length; /* BODY_LENGTH */
	bool keep_alive; /* as Connection and version say */
	bool upgrade;    /* Connection: upgrade with an Upgrade field */
	bool h2c; /* an Upgrade field offers or takes HTTP/2, whose requests nobody would read: a 101 with it is not
	                           to be passed on */
	bool expect_continue;
	uint16_t n_fields;
	struct http_field fields[HTTP_FIELDS_MAX];
	/* requests: where it goes */
	enum { TARGET_ORIGIN, TARGET_ABSOLUTE, TARGET_AUTHORITY, TARGET_ASTERISK } form;
	bool https;    /* absolute form with https: */
	bool has_host; /* a Host field (or the authority of an absolute form, which must agree) */
	struct host host;
	uint16_t port; /* 0: not said */
	char path
		[1025]; /* the path without query, percent-decoded where that is unambiguous, dot segments resolved (RFC 3986 5.2.4);
	                           "" if it cannot be decided on, since servers differ: too long, %2F, %00, other control bytes, '\\',
	                           bad escapes, escapes of escapes, "//", "..;", ".." above the root; also for CONNECT and "*" */
	const char *why; /* HTTP_BAD: a fixed text for people */
};

/* Could the first bytes be the start of an HTTP/1 request? HTTP_OK yes, HTTP_MORE not enough to say, HTTP_NOT. Wide on purpose: what a
 * lenient server would take for a request is HTTP here, to be refused by http_request(). */
enum http_result http_sniff(const uint8_t *p, size_t n);

/* Refused as HTTP_BAD: bare LF or CR, obs-fold, space before ':', NUL, two or contradicting Content-Length, Content-Length
 * with Transfer-Encoding, a Transfer-Encoding other than "chunked" once, chunked with 1.0, two Host fields, no Host in 1.1, a
 * Host that is not a host, an absolute form that does not agree with Host, userinfo, "*" but for OPTIONS, a fragment, a control
 * byte or space in the target, versions other than 1.0 and 1.1, a body with CONNECT, names that differ from a framing field's only
 * by '_', a Connection field that names one. A line is judged as soon as it is whole; in how many pieces the bytes
 * come never changes the result. ret is of use only on HTTP_OK (and its `why` on HTTP_BAD). */
enum http_result http_request(struct http_head *ret, const uint8_t *p, size_t n);
/* method: of the request that it answers (HEAD and CONNECT change the body). */
enum http_result http_response(struct http_head *ret, const uint8_t *p, size_t n,
			       const char *method);

/* How far a body goes: fed with what arrives, it says how many of the bytes belong to it. done may be true from the start.
 * A line of a chunk's size takes HTTP_CHUNK_LINE_MAX bytes at most, all trailers HTTP_TRAILER_MAX. */
enum { HTTP_CHUNK_LINE_MAX = 512, HTTP_TRAILER_MAX = 16 * 1024 };
struct http_bodyscan {
	enum http_body kind;
	uint64_t left;
	uint8_t state;
	uint32_t line;
	bool done;
};
void http_body_begin(struct http_bodyscan *s, const struct http_head *h);
/* Bytes of p that belong to the body (s->done: it ended there); negative: malformed (chunk sizes, extensions too long, trailers with
 * framing fields), and so is every call after it. */
ssize_t http_body_scan(struct http_bodyscan *s, const uint8_t *p, size_t n);
/* For who wants its content: by turns, bytes that frame it, and content. skip: the bytes before the next content; lines of trailers go into *trailers (their CRLF
 * included) as they pass. content: how many of the next n bytes are content; take: so many of them are done with. */
struct buf;
ssize_t http_body_skip(struct http_bodyscan *s, const uint8_t *p, size_t n, struct buf *trailers);
size_t http_body_content(const struct http_bodyscan *s, size_t n);
void http_body_take(struct http_bodyscan *s, size_t n);

/* A refusal, as text or, if the request's Accept prefers application/json, as JSON. status 400, 403, 413, 421, 431, 502, 503, 504. */
struct http_refusal {
	uint16_t status;
	const char *first; /* instead of the line that status stands for; NULL */
	const char *host;
	uint16_t port;
	const char *method, *path, *rule, *reason, *sandbox;
	const char *remedy; /* a whole command line of the host, or NULL */
	const char *detail; /* what happened, one line, or NULL */
	bool json, head_only, keep_alive;
};
/* Bytes, at most max (8192 is enough for all); 0: did not fit. */
size_t http_refusal(const struct http_refusal *r, char *p, size_t max);
bool http_wants_json(const struct http_head *h, const uint8_t *p);
/* Value of a field by name (case does not matter), or NULL. */
const struct http_field *http_find(const struct http_head *h, const uint8_t *p, const char *name);
