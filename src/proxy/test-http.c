/* Heads of requests and responses: what is taken, and everything that two servers could read in two ways. Each input is also
 * cut at every byte: a prefix says HTTP_MORE, or what the whole says. */
#include <stdio.h>

#include "base/check.h"
#include "proxy/http.h"

struct row {
	const char *in;
	size_t n;
	enum http_result want;
	const char *why; /* a part of it */
};
#define ROW(want, in, why) \
	{ \
		in, sizeof(in) - 1, want, why \
	}
#define GOOD(in)         ROW(HTTP_OK, in, NULL)
#define REFUSED(in, why) ROW(HTTP_BAD, in, why)
#define H                "Host: a.example\r\n"
#define G                "GET / HTTP/1.1\r\n" H
#define P                "POST / HTTP/1.1\r\n" H

static const struct row requests[] = {
	GOOD(G "\r\n"),
	GOOD("GET / HTTP/1.0\r\n\r\n"),
	GOOD("OPTIONS * HTTP/1.1\r\n" H "\r\n"),
	GOOD("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n"),
	GOOD("CONNECT a.example:443 HTTP/1.1\r\n" H "\r\n"),
	GOOD("CONNECT [2001:db8::1]:443 HTTP/1.0\r\n\r\n"),
	GOOD("GET http://a.example HTTP/1.1\r\n" H "\r\n"),
	GOOD("GET http://A.EXAMPLE:80/x HTTP/1.1\r\n" H "\r\n"),
	GOOD("GET https://a.example/ HTTP/1.1\r\nHost: a.example:443\r\n\r\n"),
	GOOD("M-SEARCH /x HTTP/1.1\r\n" H "\r\n"),
	GOOD(G "X:\r\nY:  a \t \r\nZ: \xc3\xa4\r\n\r\n"),
	GOOD(P "Content-Length: 5\r\n\r\nhello"),
	GOOD(P "Content-Length: 005\r\n\r\nhello"),
	GOOD(P "Content-Length: 9223372036854775807\r\n\r\n"),
	GOOD(P "Transfer-Encoding: chunked\r\n\r\n"),
	GOOD(P "transfer-encoding:ChunKed\t\r\n\r\n"),
	GOOD(G "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
	/* ---- not whole ---- */
	ROW(HTTP_MORE, "", NULL),
	ROW(HTTP_MORE, "G", NULL),
	ROW(HTTP_MORE, "GET / HTTP/1.1\r\nHost: a", NULL),
	ROW(HTTP_MORE, G "\r", NULL),
	/* ---- another protocol ---- */
	ROW(HTTP_NOT, "\x16\x03\x01", NULL),
	ROW(HTTP_NOT, "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", NULL),
	ROW(HTTP_NOT, "EHLO a.example\r\n", NULL),
	ROW(HTTP_NOT, "*1\r\n$4\r\nPING\r\n", NULL),
	ROW(HTTP_NOT, "PING\r\n", NULL),
	ROW(HTTP_NOT, "get key\r\n", NULL),
	ROW(HTTP_NOT, "\0\0\0\x08\x04\xd2\x16\x2f", NULL),
	ROW(HTTP_NOT, "0032git-upload-pack /x.git\0host=a\0", NULL),
	ROW(HTTP_NOT, "OPTIONS rtsp://a/ RTSP/1.0\r\n", NULL),
	ROW(HTTP_NOT, "AMQP\0\0\x09\1", NULL),
	/* ---- the first line ---- */
	REFUSED("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/2"),
	REFUSED("\r\n" G "\r\n", "method"),
	REFUSED(" " G "\r\n", "method"),
	REFUSED("GET /\r\n\r\n", "version"),
	REFUSED("GET /\n", "LF alone"),
	REFUSED("GET  / HTTP/1.1\r\n" H "\r\n", "target"),
	REFUSED("GET /  HTTP/1.1\r\n" H "\r\n", "version"),
	REFUSED("GET / x HTTP/1.1\r\n" H "\r\n", "version"),
	REFUSED("GET\t/\tHTTP/1.1\r\n" H "\r\n", "method"),
	REFUSED("GET /\tx HTTP/1.1\r\n" H "\r\n", "target"),
	REFUSED("GET /\r HTTP/1.1\r\n" H "\r\n", "CR"),
	REFUSED("GET /\0 HTTP/1.1\r\n" H "\r\n", "NUL"),
	REFUSED("GET /\x7f HTTP/1.1\r\n" H "\r\n", "control"),
	REFUSED("GET / HTTP/1.1 \r\n" H "\r\n", "version"),
	REFUSED("GET / HTTP/1.2\r\n" H "\r\n", "version"),
	REFUSED("GET / HTTP/2.0\r\n" H "\r\n", "version"),
	REFUSED("GET / HTTP/0.9\r\n" H "\r\n", "version"),
	REFUSED("GET / HTTP/1.01\r\n" H "\r\n", "version"),
	REFUSED("GET / http/1.1\r\n" H "\r\n", "version"),
	REFUSED("GET / HTTP/11\r\n" H "\r\n", "version"),
	REFUSED("get / HTTP/1.1\nHost: a\n\n", "LF alone"),
	REFUSED("GETGETGETGETGETGETGETGETGET / HTTP/1.1\r\n", "too long"),
	REFUSED("GET /#x HTTP/1.1\r\n" H "\r\n", "fragment"),
	REFUSED("GET http://a.example/#x HTTP/1.1\r\n" H "\r\n", "fragment"),
	REFUSED("GET a.example HTTP/1.1\r\n" H "\r\n", "neither"),
	REFUSED("GET ftp://a.example/ HTTP/1.1\r\n" H "\r\n", "neither"),
	REFUSED("GET ?x HTTP/1.1\r\n" H "\r\n", "neither"),
	REFUSED("GET * HTTP/1.1\r\n" H "\r\n", "neither"),
	REFUSED("OPTIONS *x HTTP/1.1\r\n" H "\r\n", "neither"),
	/* ---- lines ---- */
	REFUSED("GET / HTTP/1.1\n" H "\r\n", "LF alone"),
	REFUSED("GET / HTTP/1.1\r\nHost: a.example\n\r\n", "LF alone"),
	REFUSED(G "\n", "LF alone"),
	REFUSED(G "X: a\rb\r\n\r\n", "CR"),
	REFUSED(G "X: a\r\r\n\r\n", "CR"),
	REFUSED(G "\r\r\n", "CR"),
	REFUSED(G "X: a\0b\r\n\r\n", "NUL"),
	REFUSED(G "X\0: a\r\n\r\n", "NUL"),
	REFUSED(G "X: a\x0b\r\n\r\n", "control"),
	REFUSED(G "X: a\r\n b\r\n\r\n", "folded"),
	REFUSED(G "X: a\r\n\tb\r\n\r\n", "folded"),
	REFUSED("GET / HTTP/1.1\r\n " H "\r\n", "folded"),
	REFUSED(G "X : a\r\n\r\n", "before the colon"),
	REFUSED(G "X\t: a\r\n\r\n", "before the colon"),
	REFUSED(G "X\r\n\r\n", "token"),
	REFUSED(G ": a\r\n\r\n", "token"),
	REFUSED(G "X(Y): a\r\n\r\n", "token"),
	REFUSED(G "X\xc3: a\r\n\r\n", "token"),
	REFUSED(G "X Y: a\r\n\r\n", "before the colon"),
	/* ---- framing: CL.CL, CL.TE, TE.CL, TE.TE ---- */
	REFUSED(P "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", "two Content-Length"),
	REFUSED(P "Content-Length: 5\r\ncontent-length: 6\r\n\r\n", "two Content-Length"),
	REFUSED(P "Content-Length: 5, 5\r\n\r\n", "not one number"),
	REFUSED(P "Content-Length: +5\r\n\r\n", "not one number"),
	REFUSED(P "Content-Length: -5\r\n\r\n", "not one number"),
	REFUSED(P "Content-Length: 0x5\r\n\r\n", "not one number"),
	REFUSED(P "Content-Length: 5 \t6\r\n\r\n", "not one number"),
	REFUSED(P "Content-Length: 5.0\r\n\r\n", "not one number"),
	REFUSED(P "Content-Length: \"5\"\r\n\r\n", "not one number"),
	REFUSED(P "Content-Length: 5;\r\n\r\n", "not one number"),
	REFUSED(P "Content-Length:\r\n\r\n", "empty"),
	REFUSED(P "Content-Length: 9223372036854775808\r\n\r\n", "too large"),
	REFUSED(P "Content-Length: 18446744073709551621\r\n\r\n", "too large"),
	REFUSED(P "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "Content-Length and"),
	REFUSED(P "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", "Content-Length and"),
	REFUSED(P "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		"two Transfer"),
	REFUSED(P "Transfer-Encoding: chunked\r\nTransfer-encoding: x\r\n\r\n", "two Transfer"),
	REFUSED(P "Transfer-Encoding: xchunked\r\n\r\n", "other than"),
	REFUSED(P "Transfer-Encoding: gzip, chunked\r\n\r\n", "other than"),
	REFUSED(P "Transfer-Encoding: chunked, chunked\r\n\r\n", "other than"),
	REFUSED(P "Transfer-Encoding: chunked,\r\n\r\n", "other than"),
	REFUSED(P "Transfer-Encoding: identity\r\n\r\n", "other than"),
	REFUSED(P "Transfer-Encoding: \"chunked\"\r\n\r\n", "other than"),
	REFUSED(P "Transfer-Encoding: chunked;q=1\r\n\r\n", "other than"),
	REFUSED(P "Transfer-Encoding:\r\n\r\n", "other than"),
	REFUSED(P "Transfer-Encoding: \x0b"
		  "chunked\r\n\r\n",
		"control"),
	REFUSED(P "Transfer-Encoding:\r\n chunked\r\n\r\n", "folded"),
	REFUSED(P "Transfer-Encoding : chunked\r\n\r\n", "before the colon"),
	REFUSED(P "X: x\nTransfer-Encoding: chunked\r\n\r\n", "LF alone"),
	REFUSED(P "Transfer_Encoding: chunked\r\n\r\n", "some take"),
	REFUSED(P "Content_Length: 5\r\n\r\n", "some take"),
	REFUSED("POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n", "HTTP/1.0"),
	REFUSED(P "Connection: close, Content-Length\r\nContent-Length: 5\r\n\r\n",
		"Connection names"),
	REFUSED(P "Connection: host\r\n\r\n", "Connection names"),
	REFUSED("CONNECT a.example:1 HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\n", "with CONNECT"),
	REFUSED("CONNECT a.example:1 HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n",
		"with CONNECT"),
	/* ---- hosts ---- */
	REFUSED("GET / HTTP/1.1\r\n\r\n", "no Host"),
	REFUSED("GET http://a.example/ HTTP/1.1\r\n\r\n", "no Host"),
	REFUSED(G H "\r\n", "two Host"),
	REFUSED(G "host: b.example\r\n\r\n", "two Host"),
	REFUSED("GET / HTTP/1.0\r\n" H H "\r\n", "two Host"),
	REFUSED("GET / HTTP/1.1\r\nHost:\r\n\r\n", "empty host"),
	REFUSED("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "is none"),
	REFUSED("GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", "is none"),
	REFUSED("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "is none"),
	REFUSED("GET / HTTP/1.1\r\nHost: u@a.example\r\n\r\n", "user"),
	REFUSED("GET / HTTP/1.1\r\nHost: a.example:99999\r\n\r\n", "is none"),
	REFUSED("GET / HTTP/1.1\r\nHost: a.example:80:80\r\n\r\n", "is none"),
	REFUSED("GET http://b.example/ HTTP/1.1\r\n" H "\r\n", "disagree"),
	REFUSED("GET http://a.example:81/ HTTP/1.1\r\n" H "\r\n", "disagree"),
	REFUSED("GET http://a.example/ HTTP/1.1\r\nHost: a.example:81\r\n\r\n", "disagree"),
	REFUSED("GET http://u@a.example/ HTTP/1.1\r\n" H "\r\n", "user"),
	REFUSED("GET http://a.example@b.example/ HTTP/1.1\r\n" H "\r\n", "user"),
	REFUSED("GET http:/// HTTP/1.1\r\n" H "\r\n", "empty host"),
	REFUSED("GET http://?x HTTP/1.1\r\n" H "\r\n", "empty host"),
	REFUSED("GET http://a.example%00/ HTTP/1.1\r\n" H "\r\n", "is none"),
	REFUSED("CONNECT a.example HTTP/1.1\r\n" H "\r\n", "without a port"),
	REFUSED("CONNECT b.example:443 HTTP/1.1\r\n" H "\r\n", "disagree"),
	REFUSED("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:80\r\n\r\n", "disagree"),
	REFUSED("CONNECT /x HTTP/1.1\r\n" H "\r\n", "is none"),
	REFUSED("CONNECT http://a.example:80/ HTTP/1.1\r\n" H "\r\n", "is none"),
	REFUSED("CONNECT u@a.example:80 HTTP/1.1\r\n" H "\r\n", "user"),
};

#define R "HTTP/1.1 200 OK\r\n"
static const struct row responses[] = {
	GOOD(R "\r\n"),
	GOOD("HTTP/1.0 200\r\n\r\n"),
	GOOD("HTTP/1.1 200 \r\n\r\n"),
	GOOD("HTTP/1.1 404 Nicht gefunden \xe4\r\nX: y\r\n\r\n"),
	GOOD("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"),
	ROW(HTTP_MORE, "HTT", NULL),
	ROW(HTTP_MORE, R "X: ", NULL),
	ROW(HTTP_NOT, "ICY 200 OK\r\n\r\n", NULL),
	ROW(HTTP_NOT, "HTTP/2 200\r\n\r\n", NULL),
	ROW(HTTP_NOT, "http/1.1 200 OK\r\n\r\n", NULL),
	REFUSED("HTTP/1.2 200 OK\r\n\r\n", "status line"),
	REFUSED("HTTP/1.1  200 OK\r\n\r\n", "number"),
	REFUSED("HTTP/1.1 20 OK\r\n\r\n", "number"),
	REFUSED("HTTP/1.1 2000 OK\r\n\r\n", "number"),
	REFUSED("HTTP/1.1 099 OK\r\n\r\n", "number"),
	REFUSED("HTTP/1.1 20\r\n\r\n", "status line"),
	REFUSED("HTTP/1.1 200 OK\nX: y\r\n\r\n", "LF alone"),
	REFUSED("HTTP/1.1 200 O\0K\r\n\r\n", "NUL"),
	REFUSED(R "X: a\r\n b\r\n\r\n", "folded"),
	REFUSED(R "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", "two Content-Length"),
	REFUSED(R "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "Content-Length and"),
	REFUSED(R "Transfer-Encoding: gzip\r\n\r\n", "other than"),
	REFUSED("HTTP/1.1 204 x\r\nTransfer-Encoding: chunked\r\n\r\n", "can be none"),
	REFUSED("HTTP/1.1 100 x\r\nTransfer-Encoding: chunked\r\n\r\n", "can be none"),
};

static struct http_head head;

static enum http_result parse(struct http_head *h, const char *p, size_t n, const char *method)
{
	_free_ uint8_t *own = malloc(n + !n);

	check(own);
	memcpy(own, p, n);
	memset(h, 0x5a, sizeof(*h)); /* nothing of it counts */
	return method ? http_response(h, own, n, method) : http_request(h, own, n);
}

static void row(const struct row *t, const char *method)
{
	enum http_result got = parse(&head, t->in, t->n, method), cut;

	if (got != t->want || (t->why && !strstr(head.why, t->why)))
		(void)fprintf(stderr, "%d %s: %s\n", got, got == HTTP_BAD ? head.why : "", t->in);
	check(got == t->want);
	check((got == HTTP_BAD) == !!head.why && (!t->why || strstr(head.why, t->why)));
	for (size_t n = 0; n < t->n; n++) {
		cut = parse(&head, t->in, n, method);
		check(cut == HTTP_MORE || cut == got);
		if (cut == HTTP_BAD)
			check(!t->why || strstr(head.why, t->why));
	}
}

static void request(const char *in)
{
	check(parse(&head, in, strlen(in), NULL) == HTTP_OK);
	check(head.size == strlen(in));
}

static void where(void)
{
	request("GET /a?b=/../c HTTP/1.1\r\nHost: A.Example.\r\n\r\n");
	check(head.form == TARGET_ORIGIN && streq(head.method, "GET") && head.target.len == 10);
	check(head.has_host && streq(head.host.text, "a.example") && !head.port && head.minor == 1);
	check(streq(head.path, "/a") && head.n_fields == 1 && !head.https);
	request("GET / HTTP/1.0\r\n\r\n");
	check(!head.has_host && head.minor == 0 && !head.keep_alive && head.host.kind == HOST_NONE);
	request("GET https://[2001:DB8:0::1]:8443?q HTTP/1.0\r\n\r\n");
	check(head.form == TARGET_ABSOLUTE && head.https && head.port == 8443 && head.has_host);
	check(head.host.kind == HOST_V6 && streq(head.host.text, "2001:db8::1") &&
	      streq(head.path, "/"));
	request("HTTP HTTP://a.example/x/../y HTTP/1.1\r\nHost: a.example:80\r\n\r\n");
	check(head.form == TARGET_ABSOLUTE && streq(head.path, "/y") && !head.https);
	request("OPTIONS * HTTP/1.1\r\n" H "\r\n");
	check(head.form == TARGET_ASTERISK && streq(head.path, ""));
	request("CONNECT 127.1:22 HTTP/1.1\r\nHost: localhost\r\n\r\n");
	check(head.form == TARGET_AUTHORITY && head.port == 22 &&
	      streq(head.host.text, "localhost"));
	check(streq(head.path, ""));
}

static void framing(void)
{
	request(G "\r\n");
	check(head.body == BODY_NONE && head.keep_alive && !head.upgrade && !head.expect_continue);
	request(P "Content-Length: 12\r\nConnection: keep-alive\r\nExpect: 100-Continue\r\n\r\n");
	check(head.body == BODY_LENGTH && head.length == 12 && head.keep_alive &&
	      head.expect_continue);
	request(P "Content-Length: 0\r\nConnection: a,Close\r\nConnection: keep-alive\r\n\r\n");
	check(head.body == BODY_LENGTH && head.length == 0 && !head.keep_alive);
	request("POST / HTTP/1.0\r\nConnection: , Keep-Alive ,\r\n\r\n");
	check(head.body == BODY_NONE && head.keep_alive);
	request(P "Transfer-Encoding: chunked\r\n\r\n");
	check(head.body == BODY_CHUNKED && head.length == 0);
	request(G "Connection: keep-alive, UPGRADE\r\nUpgrade: websocket\r\n\r\n");
	check(head.upgrade && !head.h2c);
	request(G "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: foo, H2C\r\n\r\n");
	check(head.upgrade && head.h2c);
	request(G "Upgrade: websocket\r\n\r\n");
	check(!head.upgrade);
	request(G "Connection: upgrade\r\n\r\n");
	check(!head.upgrade);
}

static void response(const char *in, const char *method, enum http_body body, bool keep)
{
	check(parse(&head, in, strlen(in), method) == HTTP_OK);
	check(head.size == strlen(in) && head.body == body && head.keep_alive == keep);
}

static void answers(void)
{
	response(R "\r\n", "GET", BODY_UNTIL_CLOSE, false);
	response(R "Content-Length: 3\r\n\r\n", "GET", BODY_LENGTH, true);
	check(head.status == 200 && head.length == 3);
	response(R "Transfer-Encoding: chunked\r\n\r\n", "GET", BODY_CHUNKED, true);
	response(R "Content-Length: 3\r\n\r\n", "HEAD", BODY_NONE, true);
	check(head.length == 0);
	response(R "Transfer-Encoding: chunked\r\n\r\n", "HEAD", BODY_NONE, true);
	response(R "Content-Length: 3\r\n\r\n", "CONNECT", BODY_NONE, true);
	response(R "Transfer-Encoding: chunked\r\n\r\n", "CONNECT", BODY_NONE, true);
	response("HTTP/1.1 407 x\r\nContent-Length: 3\r\n\r\n", "CONNECT", BODY_LENGTH, true);
	response("HTTP/1.1 304 x\r\nContent-Length: 3\r\n\r\n", "GET", BODY_NONE, true);
	response("HTTP/1.1 304 x\r\nTransfer-Encoding: chunked\r\n\r\n", "GET", BODY_NONE, true);
	response("HTTP/1.1 204 x\r\nContent-Length: 3\r\n\r\n", "GET", BODY_NONE, true);
	response("HTTP/1.1 100 x\r\n\r\n", "GET", BODY_NONE, true);
	response("HTTP/1.0 200 x\r\nContent-Length: 3\r\n\r\n", "GET", BODY_LENGTH, false);
	response("HTTP/1.0 200 x\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\n", "GET",
		 BODY_LENGTH, true);
	response("HTTP/1.1 200 x\r\nContent-Length: 3\r\nConnection: close\r\n\r\n", "GET",
		 BODY_LENGTH, false);
	response("HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", "GET", BODY_NONE,
		 true);
	check(head.upgrade && head.h2c);
}

static const struct {
	const char *in, *out;
} paths[] = {
	{ "/", "/" },
	{ "/a/b", "/a/b" },
	{ "/a/b/", "/a/b/" },
	{ "/a?b", "/a" },
	{ "/?", "/" },
	{ "/%61%7e%2D", "/a~-" },
	{ "/a%20b%23%3f", "/a b#?" },
	{ "/\xc3\xa4", "/\xc3\xa4" },
	{ "/%C3%a4", "/\xc3\xa4" },
	{ "/a/./b", "/a/b" },
	{ "/./a", "/a" },
	{ "/a/.", "/a/" },
	{ "/a/..", "/" },
	{ "/a/../", "/" },
	{ "/a/../b", "/b" },
	{ "/a/b/c/../../d", "/a/d" },
	{ "/a/b/../../../d", "" },
	{ "/%2e%2E/a", "" },
	{ "/a/%2e%2E/b", "/b" },
	{ "/a/.%2e/b", "/b" },
	{ "/..", "" },
	{ "/../", "" },
	{ "/...", "/..." },
	{ "/.a/..b/c..", "/.a/..b/c.." },
	{ "//", "" },
	{ "//a", "" },
	{ "/a//b", "" },
	{ "/a//", "" },
	{ "/a//../b", "" },
	{ "/a%2Fb", "" },
	{ "/a%2fb", "" },
	{ "/a%5Cb", "" },
	{ "/a\\b", "" },
	{ "/a%00b", "" },
	{ "/a%0Ab", "" },
	{ "/a%7F", "" },
	{ "/a%", "" },
	{ "/a%4", "" },
	{ "/a%4g", "" },
	{ "/a%zz", "" },
	{ "/a%u0041", "" },
	{ "/a%252e", "" },
	{ "/a%25", "/a%" },
	{ "/a%2541", "" },
	{ "/a%25zz", "/a%zz" },
	{ "/a/..;/b", "" },
	{ "/a/..;x/b", "" },
	{ "/a/.;/b", "" },
	{ "/a;x/b", "/a;x/b" },
	{ "/a?%", "/a" },
};

static void path(const char *in, const char *out)
{
	_free_ char *text = NULL;

	check(asprintf(&text, "GET %s HTTP/1.1\r\n" H "\r\n", in) > 0);
	request(text);
	if (!streq(head.path, out))
		(void)fprintf(stderr, "path %s: '%s'\n", in, head.path);
	check(streq(head.path, out));
}

/* 1024 bytes after all escapes are out, and one more. */
static void long_paths(void)
{
	static char in[1100] = "/", esc[3 * 1100] = "/";

	memset(in + 1, 'a', 1023);
	for (size_t i = 0; i < 1023; i++)
		memcpy(esc + 1 + i * 3, "%61", 4);
	path(in, in);
	path(esc, in);
	in[1024] = 'a';
	path(in, "");
	memcpy(esc + 1 + 1023 * 3, "%61", 4);
	path(esc, "");
}

/* The limits, one below and one above. */
static void limits(void)
{
	static char in[HTTP_HEAD_MAX + 100];
	int n = 0;

	for (int f = HTTP_FIELDS_MAX; f <= HTTP_FIELDS_MAX + 1; f++) {
		n = snprintf(in, sizeof(in), G);
		for (int i = 1; i < f; i++)
			n += snprintf(in + n, sizeof(in) - (size_t)n, "X: y\r\n");
		n += snprintf(in + n, sizeof(in) - (size_t)n, "\r\n");
		check(parse(&head, in, (size_t)n, NULL) ==
		      (f > HTTP_FIELDS_MAX ? HTTP_TOO_LARGE : HTTP_OK));
	}
	for (int over = 0; over < 2; over++) {
		n = snprintf(in, sizeof(in), "FOO /");
		memset(in + n, 't', HTTP_TARGET_MAX - 1 + over);
		n += HTTP_TARGET_MAX - 1 + over;
		n += snprintf(in + n, sizeof(in) - (size_t)n, " HTTP/1.1\r\n" H "\r\n");
		check(parse(&head, in, (size_t)n, NULL) == (over ? HTTP_TOO_LARGE : HTTP_OK));
	}
	for (int over = 0; over < 2; over++) {
		n = snprintf(in, sizeof(in), G "X: ");
		memset(in + n, 'v', HTTP_HEAD_MAX);
		n = HTTP_HEAD_MAX - 4 + over;
		memcpy(in + n, "\r\n\r\n", 4);
		check(parse(&head, in, (size_t)n + 3, NULL) == (over ? HTTP_TOO_LARGE : HTTP_MORE));
		check(parse(&head, in, (size_t)n + 4, NULL) == (over ? HTTP_TOO_LARGE : HTTP_OK));
	}
}

static void finding(void)
{
	static const char in[] = G "Accept: x\r\nAccept-Language:  de \r\n\r\n";
	const uint8_t *p = (const uint8_t *)in;
	const struct http_field *f;

	request(in);
	f = http_find(&head, p, "ACCEPT-language");
	check(f && f->value.len == 2 && !memcmp(p + f->value.at, "de", 2));
	check(http_find(&head, p, "accept") == &head.fields[1]);
	check(!http_find(&head, p, "acc") && !http_find(&head, p, "accept-") &&
	      !http_find(&head, p, ""));
}

/* The first bytes alone. */
static void sniffing(void)
{
	static const struct {
		const char *in;
		enum http_result want;
	} starts[] = {
		{ "", HTTP_MORE },         { "G", HTTP_MORE },       { "GET", HTTP_MORE },
		{ "GET ", HTTP_MORE },     { "GET /", HTTP_OK },     { "GET h", HTTP_OK },
		{ "OPTIONS *", HTTP_OK },  { "CONNECT a", HTTP_OK }, { "GET a", HTTP_MORE },
		{ "GET a\r\n", HTTP_NOT }, { "\r\n", HTTP_MORE },    { "\r\nGET /", HTTP_OK },
		{ "x y HTTP", HTTP_MORE }, { "x y HTTP/", HTTP_OK }, { "x\ty\vhttp/", HTTP_OK },
		{ "x yHTTP/", HTTP_MORE }, { "x\n", HTTP_NOT },      { "\x01", HTTP_NOT },
		{ "x\x80", HTTP_NOT },     { "x \x01", HTTP_NOT },   { "{\"a\": 1}", HTTP_NOT },
	};
	static uint8_t big[HTTP_TARGET_MAX + 300];

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		check(http_sniff((const uint8_t *)starts[i].in, strlen(starts[i].in)) ==
		      starts[i].want);
	memset(big, 'a', 64);
	check(http_sniff(big, 64) == HTTP_MORE);
	big[64] = 'a';
	check(http_sniff(big, 65) == HTTP_NOT);
	memset(big, 'a', sizeof(big));
	big[1] = ' ';
	check(http_sniff(big, HTTP_TARGET_MAX + 255) == HTTP_MORE);
	check(http_sniff(big, HTTP_TARGET_MAX + 256) == HTTP_NOT);
	check(http_sniff(big, sizeof(big)) == HTTP_NOT);
}

int main(void)
{
	sniffing();
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		row(&requests[i], NULL);
	for (size_t i = 0; i < ARRAY_SIZE(responses); i++)
		row(&responses[i], "GET");
	where();
	framing();
	answers();
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		path(paths[i].in, paths[i].out);
	long_paths();
	limits();
	finding();
	return 0;
}
