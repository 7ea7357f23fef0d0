/* Bodies as a machine that takes a byte at a time, but for the bytes of a chunk. The grammar is RFC 9112 7.1 without its
 * optional white space: "5 ;x" and "5  " are refused, since parsers differ about them.
 *
 * A trailer that frames (Content-Length, Host ...) is recognised by a hash of its name, which fits in the place of the
 * chunk's size: a stranger's name with the same hash is refused too, and no harm is done. */
#include <limits.h>

#include "base/buf.h"
#include "proxy/http-priv.h"

enum state {
	S_RAW, /* not chunked */
	S_SIZE_FIRST,
	S_SIZE,
	S_EXT,
	S_SIZE_LF,
	S_DATA,
	S_DATA_CR,
	S_DATA_LF,
	S_TRAILER, /* at the start of a line */
	S_NAME,
	S_VALUE,
	S_VALUE_LF,
	S_END_LF,
	S_BAD,
};

static const char *const refused[] = { "content-length", "transfer-encoding", "host",
				       "connection",     "upgrade",           "te",
				       "trailer" };

static const uint64_t HASH_START = 14695981039346656037U;

static uint64_t hash_add(uint64_t h, uint8_t c)
{
	return (h ^ (uint8_t)http_lower(c == '_' ? '-' : c)) * 1099511628211U;
}

static bool is_refused(uint64_t hash)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		uint64_t h = HASH_START;

		for (const char *c = refused[i]; *c; c++)
			h = hash_add(h, (uint8_t)*c);
		if (h == hash)
			return true;
	}
	return false;
}

void http_body_begin(struct http_bodyscan *s, const struct http_head *h)
{
	*s = (struct http_bodyscan) { .kind = h->body };
	if (h->body == BODY_LENGTH)
		s->left = h->length;
	if (h->body == BODY_CHUNKED)
		s->state = S_SIZE_FIRST;
	s->done = h->body == BODY_NONE || (h->body == BODY_LENGTH && !s->left);
}

static int digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (uint8_t)http_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_text(uint8_t c)
{
	return c == '\t' || (c >= ' ' && c != 0x7f);
}

static enum state size_digit(struct http_bodyscan *s, uint8_t c)
{
	int d = digit(c);

	if (d < 0 || s->left > (uint64_t)INT64_MAX >> 4)
		return S_BAD;
	s->left = s->left << 4 | (uint64_t)d;
	return S_SIZE;
}

static enum state in_size(struct http_bodyscan *s, uint8_t c)
{
	if (++s->line > HTTP_CHUNK_LINE_MAX)
		return S_BAD;
	switch ((enum state)s->state) {
	case S_SIZE_FIRST:
		return size_digit(s, c);
	case S_SIZE:
		return c == ';' ? S_EXT : c == '\r' ? S_SIZE_LF : size_digit(s, c);
	case S_EXT:
		return c == '\r' ? S_SIZE_LF : is_text(c) ? S_EXT : S_BAD;
	default: /* S_SIZE_LF */
		s->line = 0;
		return c != '\n' ? S_BAD : s->left ? S_DATA : S_TRAILER;
	}
}

static enum state in_trailer(struct http_bodyscan *s, uint8_t c)
{
	if (++s->line > HTTP_TRAILER_MAX)
		return S_BAD;
	switch ((enum state)s->state) {
	case S_TRAILER:
		s->left = HASH_START;
		if (c == '\r')
			return S_END_LF;
		s->left = hash_add(s->left, c);
		return http_is_token(c) ? S_NAME : S_BAD;
	case S_NAME:
		if (c == ':')
			return is_refused(s->left) ? S_BAD : S_VALUE;
		s->left = hash_add(s->left, c);
		return http_is_token(c) ? S_NAME : S_BAD;
	case S_VALUE:
		return c == '\r' ? S_VALUE_LF : is_text(c) ? S_VALUE : S_BAD;
	case S_VALUE_LF:
		return c == '\n' ? S_TRAILER : S_BAD;
	default: /* S_END_LF */
		s->done = c == '\n';
		return s->done ? S_END_LF : S_BAD;
	}
}

static enum state step(struct http_bodyscan *s, uint8_t c)
{
	if (s->state == S_DATA_CR)
		return c == '\r' ? S_DATA_LF : S_BAD;
	if (s->state == S_DATA_LF)
		return c == '\n' ? S_SIZE_FIRST : S_BAD;
	return s->state < S_DATA ? in_size(s, c) : in_trailer(s, c);
}

static size_t take(struct http_bodyscan *s, size_t n)
{
	n = s->left < n ? (size_t)s->left : n;
	s->left -= n;
	return n;
}

static ssize_t scan_chunked(struct http_bodyscan *s, const uint8_t *p, size_t n)
{
	size_t at = 0;

	while (at < n && !s->done) {
		if (s->state == S_DATA) {
			at += take(s, n - at);
			if (!s->left)
				s->state = S_DATA_CR;
			continue;
		}
		s->state = step(s, p[at++]);
		if (s->state == S_BAD)
			return -EPROTO;
	}
	return (ssize_t)at;
}

ssize_t http_body_scan(struct http_bodyscan *s, const uint8_t *p, size_t n)
{
	n = MIN(n, (size_t)SSIZE_MAX);
	if (s->state == S_BAD)
		return -EPROTO;
	if (s->done)
		return 0;
	if (s->kind == BODY_UNTIL_CLOSE)
		return (ssize_t)n;
	if (s->kind == BODY_CHUNKED)
		return scan_chunked(s, p, n);
	n = take(s, n);
	s->done = !s->left;
	return (ssize_t)n;
}

ssize_t http_body_skip(struct http_bodyscan *s, const uint8_t *p, size_t n, struct buf *trailers)
{
	size_t at = 0;

	if (s->state == S_BAD)
		return -EPROTO;
	while (s->kind == BODY_CHUNKED && at < n && !s->done && s->state != S_DATA) {
		const bool trailer = s->state >= S_TRAILER;

		if (trailer && buf_add(trailers, p + at, 1) < 0)
			return -ENOMEM;
		s->state = step(s, p[at++]);
		if (s->state == S_BAD)
			return -EPROTO;
	}
	return (ssize_t)at;
}

size_t http_body_content(const struct http_bodyscan *s, size_t n)
{
	if (s->done || (s->kind == BODY_CHUNKED && s->state != S_DATA))
		return 0;
	return s->kind == BODY_UNTIL_CLOSE || s->left > n ? n : (size_t)s->left;
}

void http_body_take(struct http_bodyscan *s, size_t n)
{
	if (s->kind == BODY_UNTIL_CLOSE || !n)
		return;
	(void)take(s, n);
	if (s->left)
		return;
	if (s->kind == BODY_CHUNKED)
		s->state = S_DATA_CR;
	else
		s->done = true;
}
