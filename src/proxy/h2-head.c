/* Heads out of fields, and fields out of heads. nghttp2 has seen already that pseudo fields are known, single and in front, that
 * names are lower case, that fields of a connection are not there and "te" is "trailers", that Content-Length is one number. */
#include <stdio.h>

#include "base/text.h"
#include "proxy/h2.h"
#include "proxy/http-priv.h"

enum { HTTPS = 443 };

/* ---- from the peer ---- */

static void fault(struct h2_stream *s, uint16_t status, const char *why)
{
	if (s->fault)
		return;
	s->fault = status;
	s->why = why;
}

static void fault_of(struct h2_stream *s, int r)
{
	if (r == -E2BIG)
		fault(s, 431, "the fields of the head are too large");
	else if (r == -EINVAL)
		fault(s, 400, "a field has bytes that none may have");
	else if (r < 0)
		fault(s, 503, "no memory");
}

static void take_method(struct h2_stream *s, const char *v, size_t n)
{
	if (n >= sizeof(s->head.method)) {
		fault(s, 400, "the method is too long");
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (!http_is_token((uint8_t)v[i]))
			fault(s, 400, "the method is not a token");
	memcpy(s->head.method, v, n);
	s->head.method[n] = '\0';
}

static void take_path(struct h2_stream *s, const char *v, size_t n)
{
	if (n > HTTP_TARGET_MAX) {
		fault(s, 431, "the path is too long");
		return;
	}
	for (size_t i = 0; i < n; i++)
		if ((uint8_t)v[i] <= ' ' || v[i] == 0x7f || v[i] == '#')
			fault(s, 400, "the path has a byte that none may have");
	s->head.target = strndup(v, n);
	if (!s->head.target)
		fault_of(s, -ENOMEM);
}

/* :authority, or Host; where both are there they must agree. */
static void take_host(struct h2_stream *s, const char *v, size_t n)
{
	struct host host;
	uint16_t port;
	struct err e;

	if (memchr(v, '@', n) || host_port_parse(&host, &port, v, n, &e) < 0) {
		fault(s, 400, "a host that is none");
		return;
	}
	if (s->has_host && (!host_same(&host, &s->head.host) ||
			    (port ? port : HTTPS) != (s->head.port ? s->head.port : HTTPS))) {
		fault(s, 400, "Host and :authority disagree");
		return;
	}
	if (!s->has_host) {
		s->head.host = host;
		s->head.port = port;
	}
	s->has_host = true;
}

static void take_scheme(struct h2_stream *s, const char *v, size_t n)
{
	s->has_scheme = true;
	if (!http_word_is((const uint8_t *)v, n, "https") &&
	    !http_word_is((const uint8_t *)v, n, "http"))
		fault(s, 400, "a scheme other than https");
}

static void take_protocol(struct h2_stream *s, const char *v, size_t n)
{
	if (!n || n >= sizeof(s->head.protocol)) {
		fault(s, 400, "a :protocol that is too long");
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (!http_is_token((uint8_t)v[i]))
			fault(s, 400, "a :protocol that is not a token");
		s->head.protocol[i] = http_lower((uint8_t)v[i]);
	}
	s->head.protocol[n] = '\0';
}

static void take_status(struct h2_stream *s, const char *v, size_t n)
{
	for (size_t i = 0; i < n && i < 3; i++)
		s->head.status = (uint16_t)(s->head.status * 10 + (v[i] - '0'));
	if (n != 3 || s->head.status < 100 || s->head.status > 599)
		fault(s, 502, "a status that is none");
}

static void take_length(struct h2_stream *s, const char *v, size_t n)
{
	s->head.has_length = true;
	for (size_t i = 0; i < n; i++) {
		const uint64_t digit = (uint64_t)(v[i] - '0');

		if (digit > 9 || s->head.length > (INT64_MAX - digit) / 10) {
			fault(s, 400, "a Content-Length that is not one number");
			return;
		}
		s->head.length = s->head.length * 10 + digit;
	}
}

static void take_expect(struct h2_stream *s, const char *v, size_t n)
{
	s->head.expect_continue |= http_word_is((const uint8_t *)v, n, "100-continue");
}

/* Crumbs are put together again (RFC 9113 8.2.3): HTTP/1 knows one Cookie field. */
static void take_cookie(struct h2_stream *s, const char *v, size_t n)
{
	struct hfield *f = hfields_find(&s->head.fields, "cookie");
	_free_ char *all = NULL;

	if (!f) {
		fault_of(s, hfields_add(&s->head.fields, "cookie", 6, v, n));
		return;
	}
	if (n > HTTP_HEAD_MAX || f->value_len > HTTP_HEAD_MAX || s->n_crumbs == H2_CRUMBS_MAX) {
		fault_of(s, -E2BIG);
		return;
	}
	s->n_crumbs++;
	all = malloc(f->value_len + 2 + n);
	if (!all) {
		fault_of(s, -ENOMEM);
		return;
	}
	memcpy(all, f->value, f->value_len);
	memcpy(all + f->value_len, "; ", 2);
	memcpy(all + f->value_len + 2, v, n);
	fault_of(s, hfield_set(&s->head.fields, f, all, f->value_len + 2 + n, false));
	explicit_bzero(all, f->value_len);
}

static void take_nothing(struct h2_stream *s, const char *v, size_t n)
{
	(void)s;
	(void)v;
	(void)n;
}

/* What some servers take for another field, since CGI cannot tell '_' from '-'. */
static void take_lookalike(struct h2_stream *s, const char *v, size_t n)
{
	(void)v;
	(void)n;
	fault(s, 400, "a field that some take for Content-Length, Transfer-Encoding or Host");
}

static const struct {
	const char *name;
	void (*take)(struct h2_stream *s, const char *v, size_t n);
	bool trailer; /* in trailers too; else it is not passed on there */
} special[] = {
	{ ":method", take_method },
	{ ":path", take_path },
	{ ":authority", take_host },
	{ ":scheme", take_scheme },
	{ ":protocol", take_protocol },
	{ ":status", take_status },
	{ "host", take_host },
	{ "content-length", take_length },
	{ "expect", take_expect },
	{ "cookie", take_cookie },
	{ "http2-settings", take_nothing },
	{ "transfer-encoding", take_nothing },
	{ "connection", take_nothing },
	{ "keep-alive", take_nothing },
	{ "upgrade", take_nothing },
	{ "content_length", take_lookalike, true },
	{ "transfer_encoding", take_lookalike, true },
};

void h2_head_field(struct h2_stream *s, const char *name, size_t name_n, const char *value,
		   size_t value_n)
{
	struct hfields *f = s->head_done ? &s->trailers : &s->head.fields;

	if (s->fault)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(special); i++) {
		if (!http_word_is((const uint8_t *)name, name_n, special[i].name))
			continue;
		if (!s->head_done || special[i].trailer)
			special[i].take(s, value, value_n);
		return;
	}
	if (name_n >= 6 && !memcmp(name, "proxy-", 6))
		return;
	while (value_n && (value[0] == ' ' || value[0] == '\t')) {
		value++;
		value_n--;
	}
	while (value_n && (value[value_n - 1] == ' ' || value[value_n - 1] == '\t'))
		value_n--;
	fault_of(s, hfields_add(f, name, name_n, value, value_n));
}

void h2_head_request(struct h2_stream *s)
{
	struct xhead *h = &s->head;
	const bool tunnel = streq(h->method, "CONNECT") && !h->protocol[0];
	struct http_head as = { 0 };
	const char *why;

	if (!s->has_host)
		fault(s, 400, "no :authority");
	if (h->protocol[0] && !streq(h->method, "CONNECT"))
		fault(s, 400, ":protocol with another method than CONNECT");
	if (tunnel && !s->fault && !h->port)
		fault(s, 400, "CONNECT without a port");
	if (!s->fault && !h->target)
		h->target = strdup("");
	if (!h->target)
		fault_of(s, -ENOMEM);
	if (s->fault || tunnel)
		return;
	(void)!text_copy(as.method, sizeof(as.method), h->protocol[0] ? "GET" : h->method);
	if (h->target[0] != '/' && !streq(h->target, "*"))
		fault(s, 400, "a path that does not begin with '/'");
	why = http_target(&as, (const uint8_t *)h->target, strlen(h->target), NULL, 0);
	if (why)
		fault(s, 400, why);
	memcpy(h->path, as.path, sizeof(h->path));
}

/* ---- to the peer ---- */

static void put(struct h2_nva *a, const char *name, size_t name_n, const char *value,
		size_t value_n, bool secret)
{
	if (a->n == ARRAY_SIZE(a->v))
		return; /* cannot be: fields have a limit of their own */
	a->v[a->n++] = (nghttp2_nv) {
		.name = (uint8_t *)name,
		.namelen = name_n,
		.value = (uint8_t *)value,
		.valuelen = value_n,
		.flags = secret ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE,
	};
}

static void put_text(struct h2_nva *a, const char *name, const char *value)
{
	put(a, name, strlen(name), value, strlen(value), false);
}

static void put_length(struct h2_nva *a, uint64_t length)
{
	(void)snprintf(a->number, sizeof(a->number), "%llu", (unsigned long long)length);
	put_text(a, "content-length", a->number);
}

void h2_nva_fields(struct h2_nva *a, const struct hfields *f)
{
	for (size_t i = 0; i < f->n; i++)
		put(a, f->v[i].name, f->v[i].name_len, f->v[i].value, f->v[i].value_len,
		    f->v[i].secret);
}

static const char *authority(struct h2_nva *a, const struct xhead *h)
{
	const bool v6 = h->host.kind == HOST_V6, port = h->port && h->port != HTTPS;

	(void)snprintf(a->authority, sizeof(a->authority), port ? "%s%s%s:%u" : "%s%s%s",
		       v6 ? "[" : "", h->host.text, v6 ? "]" : "", h->port);
	return a->authority;
}

void h2_nva_request(struct h2_nva *a, const struct xhead *h)
{
	const bool tunnel = streq(h->method, "CONNECT") && !h->protocol[0];
	const char *path = h->target[0] ? h->target : "/";

	a->n = 0;
	put_text(a, ":method", h->method);
	if (h->protocol[0])
		put_text(a, ":protocol", h->protocol);
	if (!tunnel)
		put_text(a, ":scheme", "https");
	put_text(a, ":authority", authority(a, h));
	if (!tunnel) /* a query may hold what nobody should keep */
		put(a, ":path", 5, path, strlen(path), true);
	h2_nva_fields(a, &h->fields);
	if (h->expect_continue)
		put_text(a, "expect", "100-continue");
	if (h->has_length && !streq(h->method, "CONNECT"))
		put_length(a, h->length);
}

void h2_nva_answer(struct h2_nva *a, const struct xhead *h)
{
	a->n = 0;
	(void)snprintf(a->status, sizeof(a->status), "%u", h->status % 1000U);
	put_text(a, ":status", a->status);
	h2_nva_fields(a, &h->fields);
	if (h->has_length && h->status / 100 != 1 && h->status != 204)
		put_length(a, h->length);
}
