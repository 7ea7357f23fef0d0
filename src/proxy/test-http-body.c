/* Bodies: each as a whole, byte by byte, and in two pieces at every place. */
#include <stdio.h>

#include "base/buf.h"
#include "base/check.h"
#include "proxy/http.h"

enum { BAD = -1, OPEN = -2 };
static const struct {
	const char *in;
	size_t n;
	long end; /* where it ends; BAD; OPEN: it goes on */
} rows[] = {
#define R(in, end) \
	{ \
		in, sizeof(in) - 1, end \
	}
	R("0\r\n\r\n", 5),
	R("0\r\n\r\nGET / HTTP/1.1\r\n", 5),
	R("5\r\nhello\r\n0\r\n\r\n", 15),
	R("00005\r\nhello\r\n000\r\n\r\n", 21),
	R("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\nx", 35),
	R("1;x=y\r\na\r\n0;z\r\n\r\n", 17),
	R("1;\t x=\"\xc3\xa4\"\r\na\r\n0\r\n\r\n", 20),
	R("0\r\nX: y\r\n\r\n", 11),
	R("0\r\nX:\r\nY-Z: \ta\r\n\r\n", 18),
	R("0\r\nHos: y\r\nHostt: y\r\n\r\n", 23),
	R("", OPEN),
	R("5", OPEN),
	R("5\r\nhel", OPEN),
	R("5\r\nhello\r\n", OPEN),
	R("0\r\n", OPEN),
	R("0\r\n\r", OPEN),
	R("0\r\nX: y\r\n", OPEN),
	R("7fffffffffffffff\r\nx", OPEN),
	R("\r\n", BAD),
	R("g\r\n", BAD),
	R("-1\r\n", BAD),
	R("+1\r\n", BAD),
	R(" 1\r\n", BAD),
	R("1 \r\n", BAD),
	R("1 ;x\r\n", BAD),
	R("0x1\r\n", BAD),
	R("1,1\r\n", BAD),
	R(";x\r\n", BAD),
	R("1\na\n0\n\n", BAD),
	R("1\r\na\n", BAD),
	R("1\r\nab", BAD),
	R("1\r\na\r\r\n", BAD),
	R("1\r\r\n", BAD),
	R("1;\n\r\n", BAD),
	R("1;x\0\r\n", BAD),
	R("1;x\ra\r\n", BAD),
	R("8000000000000000\r\n", BAD),
	R("10000000000000001\r\n", BAD),
	R("ffffffffffffffff\r\n", BAD),
	R("fffffffffffffffff0\r\n", BAD),
	R("0\r\n\n", BAD),
	R("0\r\n\rx", BAD),
	R("0\r\n X: y\r\n\r\n", BAD),
	R("0\r\nX\r\n\r\n", BAD),
	R("0\r\nX : y\r\n\r\n", BAD),
	R("0\r\n: y\r\n\r\n", BAD),
	R("0\r\nX: y\n\r\n", BAD),
	R("0\r\nX: y\r\n z\r\n\r\n", BAD),
	R("0\r\nX: \0\r\n\r\n", BAD),
	R("0\r\nContent-Length: 5\r\n\r\n", BAD),
	R("0\r\ncontent_length: 5\r\n\r\n", BAD),
	R("0\r\nX: y\r\nTRANSFER-ENCODING: chunked\r\n\r\n", BAD),
	R("0\r\nHost: b\r\n\r\n", BAD),
	R("0\r\nConnection: x\r\n\r\n", BAD),
	R("0\r\nUpgrade: x\r\n\r\n", BAD),
#undef R
};

static struct http_bodyscan chunked(void)
{
	const struct http_head h = { .body = BODY_CHUNKED };
	struct http_bodyscan s;

	http_body_begin(&s, &h);
	check(!s.done);
	return s;
}

/* Fed in pieces that end at a and then every step bytes. */
static long feed(const char *in, size_t n, size_t a, size_t step)
{
	struct http_bodyscan s = chunked();
	size_t at = 0;

	while (at < n) {
		size_t len = MIN(at ? step : a, n - at);
		_free_ uint8_t *own = malloc(len + !len);
		ssize_t r;

		check(own);
		memcpy(own, in + at, len);
		r = http_body_scan(&s, own, len);
		if (r < 0) {
			check(http_body_scan(&s, own, len) == r && !s.done);
			return BAD;
		}
		check((size_t)r <= len && ((size_t)r == len || s.done));
		at += (size_t)r;
		if (s.done) {
			check(http_body_scan(&s, own, len) == 0);
			return (long)at;
		}
	}
	return OPEN;
}

/* The same end by skip, content and take, in pieces of step bytes; what is content and what a trailer is told apart. */
static long feed_parts(const char *in, size_t n, size_t step, struct buf *content,
		       struct buf *trailers)
{
	struct http_bodyscan s = chunked();
	size_t at = 0;

	while (at < n && !s.done) {
		const size_t len = MIN(step, n - at);
		const uint8_t *p = (const uint8_t *)in + at;
		ssize_t k = http_body_skip(&s, p, len, trailers);
		size_t m;

		if (k < 0)
			return BAD;
		m = http_body_content(&s, len - (size_t)k);
		check(buf_add(content, p + k, m) == 0);
		http_body_take(&s, m);
		check(k + m || s.done);
		at += (size_t)k + m;
	}
	return s.done ? (long)at : OPEN;
}

static void parts(void)
{
	static const char in[] = "5\r\nhello\r\n2;x\r\n, \r\n0\r\nT: 1\r\nU: \r\n\r\nGET";
	struct buf content = BUF_INIT(4096), trailers = BUF_INIT(4096);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t step = 1; step < 40; step++) {
			check(feed_parts(rows[i].in, rows[i].n, step, &content, &trailers) ==
			      rows[i].end);
			buf_done(&content);
			buf_done(&trailers);
		}
	for (size_t step = 1; step < sizeof(in); step++) {
		check(feed_parts(in, sizeof(in) - 1, step, &content, &trailers) ==
		      (long)sizeof(in) - 4);
		check(streq(buf_str(&content), "hello, "));
		check(streq(buf_str(&trailers), "T: 1\r\nU: \r\n\r\n"));
		buf_done(&content);
		buf_done(&trailers);
	}
}

static void table(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const size_t n = rows[i].n;

		if (feed(rows[i].in, n, n, 1) != rows[i].end)
			(void)fprintf(stderr, "%zu: %s: %ld\n", i, rows[i].in,
				      feed(rows[i].in, n, n, 1));
		check(feed(rows[i].in, n, n, 1) == rows[i].end);
		check(feed(rows[i].in, n, 1, 1) == rows[i].end);
		for (size_t a = 1; a < n; a++)
			check(feed(rows[i].in, n, a, n) == rows[i].end);
	}
}

static void lengths(void)
{
	struct http_head h = { .body = BODY_LENGTH, .length = 5 };
	struct http_bodyscan s;
	const uint8_t p[10] = { 0 };

	http_body_begin(&s, &h);
	check(!s.done && http_body_scan(&s, p, 3) == 3 && !s.done);
	check(http_body_scan(&s, p, 0) == 0 && http_body_scan(&s, p, 10) == 2 && s.done);
	h.length = 0;
	http_body_begin(&s, &h);
	check(s.done && http_body_scan(&s, p, 10) == 0);
	h.body = BODY_NONE;
	http_body_begin(&s, &h);
	check(s.done && http_body_scan(&s, p, 10) == 0);
	h.body = BODY_UNTIL_CLOSE;
	http_body_begin(&s, &h);
	check(!s.done && http_body_scan(&s, p, 10) == 10 && !s.done);
}

/* A line of a size, and the trailers, at their limits. */
static void limits(void)
{
	static char in[HTTP_TRAILER_MAX + 100];
	const char *const ends = "\r\n\r\n";

	for (size_t over = 0; over < 2; over++) {
		size_t n = HTTP_CHUNK_LINE_MAX - 2 + over;

		memset(in, '0', n);
		memcpy(in + n, ends, 4);
		check(feed(in, n + 4, 1, 1) == (over ? BAD : (long)n + 4));
		memcpy(in, "0\r\nX:", 5);
		n = 3 + HTTP_TRAILER_MAX - 4 + over;
		memset(in + 5, 'v', n - 5);
		memcpy(in + n, ends, 4);
		check(feed(in, n + 4, 1000, 1000) == (over ? BAD : (long)n + 4));
	}
}

int main(void)
{
	table();
	parts();
	lengths();
	limits();
	return 0;
}
