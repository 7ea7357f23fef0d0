#include "proxy/h1.h"

#include <stdio.h>
#include <strings.h>

enum { CHUNK_MAX = 64 * 1024, CHUNK_FRAME = 32 };

/* ---- in ---- */

void h1_in_init(struct h1_in *in)
{
	*in = (struct h1_in) { 0 };
	buf_init(&in->bytes, H1_IN_MAX);
}

void h1_in_done(struct h1_in *in)
{
	if (in->bytes.p)
		explicit_bzero(in->bytes.p, in->bytes.cap);
	buf_done(&in->bytes);
}

void h1_fill(struct h1_in *in, struct chan *c)
{
	while (buf_space(&in->bytes) >= H1_READ) {
		void *p = buf_room(&in->bytes, H1_READ);
		ssize_t n = p ? chan_read(c, p, H1_READ) : CHAN_BROKEN;

		if (n <= 0) {
			in->ended |= n == CHAN_END;
			in->broken |= n == CHAN_BROKEN;
			break;
		}
		buf_added(&in->bytes, (size_t)n);
	}
	if (!in->bytes.n) /* an idle one owns nothing */
		buf_done(&in->bytes);
}

/* ---- bodies ---- */

void h1_body_begin(struct h1_body *b, const struct http_head *h)
{
	buf_init(&b->trailers, HTTP_TRAILER_MAX + 256);
	http_body_begin(&b->scan, h);
}

void h1_body_done(struct h1_body *b)
{
	buf_done(&b->trailers);
}

enum h1_progress h1_body_run(struct h1_body *b, struct h1_in *in,
			     size_t (*give)(void *arg, const uint8_t *p, size_t n), void *arg)
{
	for (;;) {
		ssize_t k =
			http_body_skip(&b->scan, buf_data(&in->bytes), in->bytes.n, &b->trailers);
		size_t n, taken;

		if (k < 0)
			return H1_BAD;
		buf_consume(&in->bytes, (size_t)k);
		if (b->scan.done)
			return H1_DONE;
		n = http_body_content(&b->scan, in->bytes.n);
		if (!n)
			return H1_MORE;
		taken = give(arg, buf_data(&in->bytes), n);
		http_body_take(&b->scan, taken);
		buf_consume(&in->bytes, taken);
		if (taken < n)
			return H1_FULL;
	}
}

int h1_body_trailers(const struct h1_body *b, struct hfields *ret)
{
	const char *p = b->trailers.n ? (const char *)buf_data(&b->trailers) : "";
	const char *end = p + b->trailers.n;
	struct hfields f = { 0 };
	int r = 0;

	while (p < end && r == 0) {
		const char *eol = memchr(p, '\r', (size_t)(end - p)), *colon, *v, *stop;

		if (!eol || eol == p) /* the last line is empty */
			break;
		colon = memchr(p, ':', (size_t)(eol - p));
		if (!colon) {
			r = -EINVAL;
			break;
		}
		for (v = colon + 1; v < eol && (*v == ' ' || *v == '\t'); v++)
			;
		for (stop = eol; stop > v && (stop[-1] == ' ' || stop[-1] == '\t'); stop--)
			;
		r = hfields_add(&f, p, (size_t)(colon - p), v, (size_t)(stop - v));
		p = eol + 2;
	}
	if (r < 0) {
		hfields_done(&f);
		return r;
	}
	*ret = f;
	return f.n != 0;
}

/* ---- out ---- */

static const struct {
	uint16_t status;
	const char *phrase;
} phrases[] = {
	{ 100, "Continue" },
	{ 101, "Switching Protocols" },
	{ 103, "Early Hints" },
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 206, "Partial Content" },
	{ 301, "Moved Permanently" },
	{ 302, "Found" },
	{ 303, "See Other" },
	{ 304, "Not Modified" },
	{ 307, "Temporary Redirect" },
	{ 308, "Permanent Redirect" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 409, "Conflict" },
	{ 410, "Gone" },
	{ 413, "Content Too Large" },
	{ 416, "Range Not Satisfiable" },
	{ 417, "Expectation Failed" },
	{ 421, "Misdirected Request" },
	{ 422, "Unprocessable Content" },
	{ 426, "Upgrade Required" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
};

static const char *phrase_of(uint16_t status)
{
	for (size_t i = 0; i < ARRAY_SIZE(phrases); i++)
		if (phrases[i].status == status)
			return phrases[i].phrase;
	return "";
}

static int put_field(struct buf *out, const struct hfield *f)
{
	int r = buf_add(out, f->name, f->name_len);

	if (r == 0)
		r = buf_add(out, ": ", 2);
	if (r == 0)
		r = buf_add(out, f->value, f->value_len);
	return r < 0 ? r : buf_add(out, "\r\n", 2);
}

static int put_fields(struct buf *out, const struct hfields *f)
{
	int r = 0;

	for (size_t i = 0; i < f->n && r == 0; i++)
		r = put_field(out, &f->v[i]);
	return r;
}

static int put_host(struct buf *out, const struct xhead *h)
{
	const bool v6 = h->host.kind == HOST_V6;

	if (h->host.kind == HOST_NONE)
		return 0;
	if (h->port)
		return buf_printf(out, "Host: %s%s%s:%u\r\n", v6 ? "[" : "", h->host.text,
				  v6 ? "]" : "", h->port);
	return buf_printf(out, "Host: %s%s%s\r\n", v6 ? "[" : "", h->host.text, v6 ? "]" : "");
}

static bool asks_trailers(const struct xhead *h)
{
	for (size_t i = 0; i < h->fields.n; i++)
		if (strcasecmp(h->fields.v[i].name, "te") == 0)
			return true;
	return false;
}

int h1_put_request(struct buf *out, const struct xhead *h, bool chunked)
{
	const bool te = asks_trailers(h);
	int r = buf_printf(out, "%s ", h->method);

	if (r == 0)
		r = buf_add(out, h->target, strlen(h->target));
	if (r == 0)
		r = buf_printf(out, " HTTP/1.1\r\n");
	if (r == 0)
		r = put_host(out, h);
	if (r == 0)
		r = put_fields(out, &h->fields);
	if (r == 0 && chunked)
		r = buf_printf(out, "Transfer-Encoding: chunked\r\n");
	else if (r == 0 && h->has_length)
		r = buf_printf(out, "Content-Length: %llu\r\n", (unsigned long long)h->length);
	if (r == 0 && h->expect_continue)
		r = buf_printf(out, "Expect: 100-continue\r\n");
	if (r == 0 && h->protocol[0])
		r = buf_printf(out, "Connection: Upgrade%s\r\nUpgrade: %s\r\n", te ? ", TE" : "",
			       h->protocol);
	else if (r == 0 && te)
		r = buf_printf(out, "Connection: TE\r\n");
	return r < 0 ? r : buf_add(out, "\r\n", 2);
}

int h1_put_answer(struct buf *out, const struct xhead *h, const struct h1_answer *a)
{
	int r = buf_printf(out, "HTTP/1.1 %u %s\r\n", h->status, phrase_of(h->status));

	if (r == 0)
		r = put_fields(out, &h->fields);
	if (r == 0 && a->chunked)
		r = buf_printf(out, "Transfer-Encoding: chunked\r\n");
	else if (r == 0 && a->has_length)
		r = buf_printf(out, "Content-Length: %llu\r\n", (unsigned long long)a->length);
	if (r == 0 && a->upgrade)
		r = buf_printf(out, "Connection: Upgrade\r\nUpgrade: %s\r\n", a->upgrade);
	else if (r == 0 && a->close)
		r = buf_printf(out, "Connection: close\r\n");
	else if (r == 0 && a->say_keep_alive)
		r = buf_printf(out, "Connection: keep-alive\r\n");
	return r < 0 ? r : buf_add(out, "\r\n", 2);
}

size_t h1_put_data(struct chan *c, bool chunked, const uint8_t *p, size_t n)
{
	size_t done = 0;

	if (!chunked)
		return chan_write(c, p, n);
	while (done < n) {
		char line[CHUNK_FRAME];
		const size_t space = chan_space(c);
		size_t k;
		int len;

		if (space <= (size_t)2 * CHUNK_FRAME) {
			(void)chan_write(c, p, 0);
			break;
		}
		k = MIN(MIN(n - done, space - CHUNK_FRAME), (size_t)CHUNK_MAX);
		len = snprintf(line, sizeof(line), "%zx\r\n", k);
		(void)chan_write(c, line, (size_t)len);
		(void)chan_write(c, p + done, k);
		(void)chan_write(c, "\r\n", 2);
		done += k;
	}
	return done;
}

void h1_put_end(struct chan *c, const struct hfields *trailers)
{
	struct buf out = BUF_INIT(HTTP_HEAD_MAX + 64);
	int r = buf_add(&out, "0\r\n", 3);

	if (r == 0 && trailers)
		r = put_fields(&out, trailers);
	if (r == 0)
		r = buf_add(&out, "\r\n", 2);
	if (r == 0)
		(void)chan_write(c, buf_data(&out), out.n);
	buf_done(&out);
}
