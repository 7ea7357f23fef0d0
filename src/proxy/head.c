#include "proxy/head.h"

#include <strings.h>

#include "proxy/http-priv.h"

/* Fields of one connection (RFC 9110 7.6.1), and those that have members of their own. "te" is looked at. */
static const char *const hop[] = { "connection", "keep-alive",     "te",   "transfer-encoding",
				   "upgrade",    "http2-settings", "host", "content-length",
				   "expect" };

static const char proxies[] = "proxy-";

static bool value_fits(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const uint8_t c = (uint8_t)p[i];

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return false;
	}
	return !n || (p[0] != ' ' && p[0] != '\t' && p[n - 1] != ' ' && p[n - 1] != '\t');
}

static bool name_fits(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!http_is_token((uint8_t)p[i]))
			return false;
	return n;
}

static char *copy(const char *p, size_t n)
{
	char *s = malloc(n + 1);

	if (!s)
		return NULL;
	if (n)
		memcpy(s, p, n);
	s[n] = '\0';
	return s;
}

static void wipe_text(char *p, size_t n)
{
	if (p)
		explicit_bzero(p, n);
	free(p);
}

static void field_done(struct hfield *f)
{
	free(f->name);
	wipe_text(f->value, f->value_len);
}

/* What it takes of the limit: its line in HTTP/1. */
static size_t cost(size_t name_len, size_t value_len)
{
	return name_len + value_len + 4;
}

static int grow(struct hfields *f)
{
	const size_t cap = f->n < 8 ? 8 : f->n * 2;
	struct hfield *v;

	if (f->n && (f->n < 8 || (f->n & (f->n - 1))))
		return 0; /* the room is 8, and doubles */
	v = reallocarray(f->v, cap, sizeof(*v));
	if (!v)
		return -ENOMEM;
	f->v = v;
	return 0;
}

int hfields_add(struct hfields *f, const char *name, size_t name_len, const char *value,
		size_t value_len)
{
	struct hfield x = { .name_len = (uint32_t)name_len, .value_len = (uint32_t)value_len };

	if (f->n >= HTTP_FIELDS_MAX || name_len > HTTP_HEAD_MAX || value_len > HTTP_HEAD_MAX ||
	    cost(name_len, value_len) > HTTP_HEAD_MAX - f->bytes)
		return -E2BIG;
	if (!name_fits(name, name_len) || !value_fits(value, value_len))
		return -EINVAL;
	if (grow(f) < 0)
		return -ENOMEM;
	x.name = copy(name, name_len);
	x.value = copy(value, value_len);
	if (!x.name || !x.value) {
		field_done(&x);
		return -ENOMEM;
	}
	f->v[f->n++] = x;
	f->bytes += cost(name_len, value_len);
	return 0;
}

struct hfield *hfields_find(struct hfields *f, const char *name)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcasecmp(f->v[i].name, name) == 0)
			return &f->v[i];
	return NULL;
}

size_t hfields_remove(struct hfields *f, const char *name)
{
	size_t kept = 0, gone;

	for (size_t i = 0; i < f->n; i++) {
		struct hfield x = f->v[i];

		if (strcasecmp(x.name, name) != 0) {
			f->v[kept++] = x;
			continue;
		}
		f->bytes -= cost(x.name_len, x.value_len);
		field_done(&x);
	}
	gone = f->n - kept;
	if (gone && kept) { /* the room goes with the number: see grow() */
		size_t cap = 8;
		struct hfield *v;

		while (cap < kept)
			cap *= 2;
		v = reallocarray(f->v, cap, sizeof(*v));
		if (v)
			f->v = v;
	}
	f->n = kept;
	return gone;
}

int hfield_set(struct hfields *f, struct hfield *one, const char *value, size_t n, bool secret)
{
	char *s;

	if (n > HTTP_HEAD_MAX || f->bytes - one->value_len + n > HTTP_HEAD_MAX)
		return -E2BIG;
	if (!value_fits(value, n))
		return -EINVAL;
	s = copy(value, n);
	if (!s)
		return -ENOMEM;
	wipe_text(one->value, one->value_len);
	f->bytes += n - one->value_len;
	one->value = s;
	one->value_len = (uint32_t)n;
	one->secret = secret;
	return 0;
}

void hfields_done(struct hfields *f)
{
	for (size_t i = 0; i < f->n; i++)
		field_done(&f->v[i]);
	free(f->v);
	*f = (struct hfields) { 0 };
}

void xhead_done(struct xhead *h)
{
	if (h->target)
		wipe_text(h->target, strlen(h->target));
	hfields_done(&h->fields);
	h->target = NULL;
}

/* ---- from HTTP/1 ---- */

/* Is name one of the options of this Connection field? */
static bool listed(const uint8_t *p, struct http_text list, struct http_text name)
{
	const char *s = (const char *)p + list.at, *end = s + list.len;

	while (s < end) {
		const char *word;

		while (s < end && (*s == ' ' || *s == '\t' || *s == ','))
			s++;
		for (word = s; s < end && *s != ',' && *s != ' ' && *s != '\t';)
			s++;
		if ((size_t)(s - word) == name.len && name.len &&
		    strncasecmp(word, (const char *)p + name.at, name.len) == 0)
			return true;
	}
	return false;
}

static bool named_by_connection(const struct http_head *h, const uint8_t *p, struct http_text name)
{
	for (uint16_t i = 0; i < h->n_fields; i++)
		if (http_word_is(p + h->fields[i].name.at, h->fields[i].name.len, "connection") &&
		    listed(p, h->fields[i].value, name))
			return true;
	return false;
}

static bool ends_here(const struct http_head *h, const uint8_t *p, struct http_text name)
{
	for (size_t i = 0; i < ARRAY_SIZE(hop); i++)
		if (http_word_is(p + name.at, name.len, hop[i]))
			return true;
	return (name.len > sizeof(proxies) - 1 &&
		http_word_is(p + name.at, sizeof(proxies) - 1, proxies)) ||
	       named_by_connection(h, p, name);
}

static bool takes_trailers(const uint8_t *p, const struct http_field *f)
{
	static const struct http_text word = { 0, 8 };
	uint8_t line[8 + 256];

	if (f->value.len > 256 || !http_word_is(p + f->name.at, f->name.len, "te"))
		return false;
	memcpy(line, "trailers", 8);
	memcpy(line + 8, p + f->value.at, f->value.len);
	return listed(line, (struct http_text) { 8, f->value.len }, word);
}

static int take_fields(struct xhead *ret, const struct http_head *h, const uint8_t *p)
{
	int r = 0;

	for (uint16_t i = 0; i < h->n_fields && r == 0; i++) {
		const struct http_field *f = &h->fields[i];

		if (!h->status && takes_trailers(p, f))
			r = hfields_add(&ret->fields, "te", 2, "trailers", 8);
		else if (!ends_here(h, p, f->name))
			r = hfields_add(&ret->fields, (const char *)p + f->name.at, f->name.len,
					(const char *)p + f->value.at, f->value.len);
	}
	return r;
}

/* The target, or the part of an absolute one behind its authority. */
static int take_target(struct xhead *ret, const struct http_head *h, const uint8_t *p)
{
	const char *s = (const char *)p + h->target.at, *end = s + h->target.len;

	if (h->form == TARGET_ABSOLUTE) {
		const char *slash = memmem(s, h->target.len, "//", 2);

		s = slash ? slash + 2 : s;
		while (s < end && *s != '/' && *s != '?')
			s++;
	}
	if (h->form == TARGET_AUTHORITY)
		s = end;
	if (h->form == TARGET_ABSOLUTE && (s == end || *s == '?')) {
		ret->target = malloc((size_t)(end - s) + 2);
		if (!ret->target)
			return -ENOMEM;
		ret->target[0] = '/';
		memcpy(ret->target + 1, s, (size_t)(end - s));
		ret->target[1 + (end - s)] = '\0';
		return 0;
	}
	ret->target = copy(s, (size_t)(end - s));
	return ret->target ? 0 : -ENOMEM;
}

static void take_protocol(struct xhead *ret, const struct http_head *h, const uint8_t *p)
{
	const struct http_field *f = h->upgrade && !h->h2c ? http_find(h, p, "upgrade") : NULL;

	if (!f || f->value.len >= sizeof(ret->protocol))
		return;
	for (uint32_t i = 0; i < f->value.len; i++)
		ret->protocol[i] = http_lower(p[f->value.at + i]);
	ret->protocol[f->value.len] = '\0';
}

/* Also of an answer that has no body, where it says what a GET would have had. http_framing() has seen that it is a number. */
static void take_length(struct xhead *ret, const struct http_head *h, const uint8_t *p)
{
	const struct http_field *f = http_find(h, p, "content-length");

	if (!f)
		return;
	ret->has_length = true;
	for (uint32_t i = 0; i < f->value.len; i++)
		ret->length = ret->length * 10 + (uint64_t)(p[f->value.at + i] - '0');
}

int xhead_from_http1(struct xhead *ret, const struct http_head *h, const uint8_t *bytes)
{
	struct xhead x = { .host = h->host,
			   .port = h->port,
			   .expect_continue = h->expect_continue,
			   .status = h->status,
			   .close = !h->keep_alive };
	int r = 0;

	memcpy(x.method, h->method, sizeof(x.method));
	memcpy(x.path, h->path, sizeof(x.path));
	x.no_body = h->body == BODY_NONE || (h->body == BODY_LENGTH && !h->length);
	take_protocol(&x, h, bytes);
	take_length(&x, h, bytes);
	if (!h->status)
		r = take_target(&x, h, bytes);
	if (r == 0)
		r = take_fields(&x, h, bytes);
	if (r < 0) {
		xhead_done(&x);
		return r;
	}
	*ret = x;
	return 0;
}
