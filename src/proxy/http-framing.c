/* How long a message is and what becomes of the connection: the fields that two parsers must not read in two ways. */
#include "proxy/http-priv.h"

static const char *const framing[] = { "content-length", "transfer-encoding", "host" };

static bool name_is(const struct http_field *f, const uint8_t *p, const char *name)
{
	return http_word_is(p + f->name.at, f->name.len, name);
}

/* The same but for '_', which CGI and its heirs cannot tell from '-'. */
static bool name_is_like(const struct http_field *f, const uint8_t *p, const char *name)
{
	if (f->name.len != strlen(name))
		return false;
	for (size_t i = 0; i < f->name.len; i++) {
		const uint8_t c = p[f->name.at + i];

		if (http_lower(c == '_' ? '-' : c) != name[i])
			return false;
	}
	return true;
}

/* Calls each() for every element of a comma list until it answers true. */
static bool list_any(const uint8_t *p, size_t n, bool (*each)(const uint8_t *word, size_t n))
{
	for (size_t at = 0; at < n; at++) {
		size_t end = at, stop;

		while (end < n && p[end] != ',')
			end++;
		stop = end;
		while (at < end && (p[at] == ' ' || p[at] == '\t'))
			at++;
		while (stop > at && (p[stop - 1] == ' ' || p[stop - 1] == '\t'))
			stop--;
		if (stop > at && each(p + at, stop - at))
			return true;
		at = end;
	}
	return false;
}

static bool is_close(const uint8_t *p, size_t n)
{
	return http_word_is(p, n, "close");
}

static bool is_keep_alive(const uint8_t *p, size_t n)
{
	return http_word_is(p, n, "keep-alive");
}

static bool is_upgrade(const uint8_t *p, size_t n)
{
	return http_word_is(p, n, "upgrade");
}

static bool is_h2c(const uint8_t *p, size_t n)
{
	return http_word_is(p, n, "h2c") || http_word_is(p, n, "h2");
}

static bool is_framing(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(framing); i++)
		if (http_word_is(p, n, framing[i]))
			return true;
	return false;
}

struct found {
	const struct http_field *length, *coding;
	bool close, keep_alive, wants_upgrade, upgrade;
};

static const char *take_field(struct http_head *h, struct found *g, const uint8_t *p,
			      const struct http_field *f)
{
	const uint8_t *v = p + f->value.at;
	const size_t n = f->value.len;

	for (size_t i = 0; i < ARRAY_SIZE(framing); i++)
		if (name_is_like(f, p, framing[i]) && !name_is(f, p, framing[i]))
			return "a field that some take for Content-Length, Transfer-Encoding or "
			       "Host";
	if (name_is(f, p, "content-length")) {
		if (g->length)
			return "two Content-Length fields";
		g->length = f;
	} else if (name_is(f, p, "transfer-encoding")) {
		if (g->coding)
			return "two Transfer-Encoding fields";
		g->coding = f;
	} else if (name_is(f, p, "connection")) {
		if (list_any(v, n, is_framing))
			return "Connection names a field that frames the message";
		g->close |= list_any(v, n, is_close);
		g->keep_alive |= list_any(v, n, is_keep_alive);
		g->wants_upgrade |= list_any(v, n, is_upgrade);
	} else if (name_is(f, p, "upgrade")) {
		g->upgrade = true;
		h->h2c |= list_any(v, n, is_h2c);
	} else if (name_is(f, p, "expect")) {
		h->expect_continue |= http_word_is(v, n, "100-continue");
	}
	return NULL;
}

static const char *take_length(struct http_head *h, const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	if (!n)
		return "an empty Content-Length";
	for (size_t i = 0; i < n; i++) {
		if (p[i] < '0' || p[i] > '9')
			return "a Content-Length that is not one number";
		if (v > ((uint64_t)INT64_MAX - (p[i] - (uint64_t)'0')) / 10)
			return "a Content-Length that is too large";
		v = v * 10 + (p[i] - '0');
	}
	h->length = v;
	return NULL;
}

/* Those whose body is empty whatever the fields say: RFC 9112 6.3, 1 and 2. */
static bool never_a_body(const struct http_head *h, const char *method)
{
	return h->status / 100 == 1 || h->status == 204 || h->status == 304 ||
	       streq(method, "HEAD") || (h->status / 100 == 2 && streq(method, "CONNECT"));
}

static const char *body_of(struct http_head *h, const struct found *g, const uint8_t *p,
			   const char *method)
{
	const char *why = NULL;

	if (g->coding) {
		const struct http_text *v = &g->coding->value;

		if (!http_word_is(p + v->at, v->len, "chunked"))
			return "a Transfer-Encoding other than chunked";
		if (!h->minor)
			return "Transfer-Encoding with HTTP/1.0";
		if (g->length)
			return "Content-Length and Transfer-Encoding";
		if (h->status / 100 == 1 || h->status == 204)
			return "a body where there can be none";
	}
	if (g->length)
		why = take_length(h, p + g->length->value.at, g->length->value.len);
	if (why)
		return why;
	if (!h->status && streq(method, "CONNECT") && (g->coding || h->length))
		return "a body with CONNECT";
	h->body = g->coding   ? BODY_CHUNKED
		  : g->length ? BODY_LENGTH
		  : h->status ? BODY_UNTIL_CLOSE
			      : BODY_NONE;
	if (h->status && never_a_body(h, method))
		h->body = BODY_NONE;
	if (h->body != BODY_LENGTH)
		h->length = 0;
	return NULL;
}

const char *http_framing(struct http_head *h, const uint8_t *p, const char *method)
{
	struct found g = { 0 };
	const char *why = NULL;

	for (uint16_t i = 0; !why && i < h->n_fields; i++)
		why = take_field(h, &g, p, &h->fields[i]);
	if (!why)
		why = body_of(h, &g, p, method);
	if (why)
		return why;
	h->keep_alive = !g.close && (h->minor || g.keep_alive) && h->body != BODY_UNTIL_CLOSE;
	h->upgrade = g.upgrade && g.wants_upgrade;
	return NULL;
}
