/* Values onto a head. Whatever holds a value on the way is wiped. */
#include <stdio.h>

#include "proxy/http-priv.h"
#include "proxy/inject-priv.h"

enum { VALUE_MAX = HTTP_HEAD_MAX, SCRATCH_MAX = 4 * HTTP_HEAD_MAX };

/* Bytes that no field may have, even where they would be encoded: no server takes them out again. */
static bool fits(const uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if ((p[i] < ' ' && p[i] != '\t') || p[i] == 0x7f)
			return false;
	return true;
}

static const char *text(const struct buf *b)
{
	return b->n ? (const char *)buf_data(b) : "";
}

/* The one field of that name. */
static int set_field(struct xhead *h, const char *name, const char *value, size_t n)
{
	int r;

	(void)hfields_remove(&h->fields, name);
	r = hfields_add(&h->fields, name, strlen(name), value, n);
	if (r == 0)
		h->fields.v[h->fields.n - 1].secret = true;
	return r;
}

static int put_header(struct xhead *h, const struct inject_need *v)
{
	const char *format = v->use->format, *at = strstr(format, "%s");
	_wipe_ struct buf b = BUF_INIT(SCRATCH_MAX);
	const size_t before = at ? (size_t)(at - format) : 0;
	int r;

	if (!at)
		return -EINVAL;
	if (!buf_room(&b, strlen(format) + v->n + 1))
		return -ENOMEM;
	r = buf_add(&b, format, before);
	if (r == 0)
		r = buf_add(&b, v->value, v->n);
	if (r == 0)
		r = buf_add(&b, at + 2, strlen(at + 2));
	return r == 0 ? set_field(h, v->use->header, text(&b), b.n) : r;
}

static int put_basic(struct xhead *h, const struct inject_need *v)
{
	const size_t user = strlen(v->use->username);
	_wipe_ struct buf b = BUF_INIT(SCRATCH_MAX), all = BUF_INIT(SCRATCH_MAX);
	int r;

	if (!buf_room(&b, user + v->n + 2))
		return -ENOMEM;
	if (!buf_room(&all, 6 + (user + v->n + 3) / 3 * 4 + 4))
		return -ENOMEM;
	r = buf_add(&b, v->use->username, user);
	if (r == 0)
		r = buf_add(&b, ":", 1);
	if (r == 0)
		r = buf_add(&b, v->value, v->n);
	if (r == 0)
		r = buf_add(&all, "Basic ", 6);
	if (r == 0)
		r = inject_base64(&all, buf_data(&b), b.n);
	return r == 0 ? set_field(h, "authorization", text(&all), all.n) : r;
}

static int swap_value(struct xhead *h, struct hfield *f, const struct inject_swap *s)
{
	_wipe_ struct buf b = BUF_INIT(SCRATCH_MAX);
	size_t n;
	int r;

	if (!inject_seen(f->value, f->value_len, s->placeholder))
		return 0;
	r = inject_swap(&b, f->value, f->value_len, s, INJECT_AS_SEEN, &n);
	return r == 0 && n ? hfield_set(&h->fields, f, text(&b), b.n, true) : r;
}

static int swap_basic(struct xhead *h, struct hfield *f, const struct inject_swap *s)
{
	_wipe_ struct buf plain = BUF_INIT(SCRATCH_MAX), b = BUF_INIT(SCRATCH_MAX);
	_wipe_ struct buf all = BUF_INIT(SCRATCH_MAX);
	size_t n;
	const char *p = inject_basic(f, &n);
	int r;

	if (!p || inject_unbase64(&plain, p, n) < 0 ||
	    !inject_seen(text(&plain), plain.n, s->placeholder))
		return 0;
	r = inject_swap(&b, text(&plain), plain.n, s, INJECT_AS_SEEN, &n);
	if (r == 0 && !buf_room(&all, 6 + (b.n + 2) / 3 * 4 + 1))
		r = -ENOMEM;
	if (r == 0)
		r = buf_add(&all, "Basic ", 6);
	if (r == 0)
		r = inject_base64(&all, buf_data(&b), b.n);
	return r == 0 ? hfield_set(&h->fields, f, text(&all), all.n, true) : r;
}

static int take_target(struct xhead *h, const struct buf *b)
{
	char *t;

	if (b->n > HTTP_TARGET_MAX)
		return -E2BIG;
	t = malloc(b->n + 1);
	if (!t)
		return -ENOMEM;
	memcpy(t, text(b), b->n);
	t[b->n] = '\0';
	explicit_bzero(h->target, strlen(h->target));
	free(h->target);
	h->target = t;
	return 0;
}

static int swap_target(struct xhead *h, const struct inject_swap *s)
{
	_wipe_ struct buf b = BUF_INIT(SCRATCH_MAX);
	size_t n;
	int r;

	if (!h->target || !inject_seen(h->target, strlen(h->target), s->placeholder))
		return 0;
	r = inject_swap(&b, h->target, strlen(h->target), s, INJECT_AS_PERCENT, &n);
	return r == 0 && n ? take_target(h, &b) : r;
}

static int put_custom(struct xhead *h, const struct inject_need *v)
{
	const struct inject_swap s = { v->use->placeholder, v->value, v->n };
	size_t i, n;
	int r = 0;

	for (i = 0; i < h->fields.n && r == 0; i++) {
		struct hfield *f = &h->fields.v[i];

		if (v->use->where & CRED_IN_BASIC)
			r = swap_basic(h, f, &s);
		if (r == 0 && (v->use->where & CRED_IN_HEADERS) && !inject_basic(f, &n))
			r = swap_value(h, f, &s);
	}
	return r == 0 && (v->use->where & CRED_IN_QUERY) ? swap_target(h, &s) : r;
}

static int put_oauth(struct xhead *h, const struct inject_need *v)
{
	const struct inject_swap s = { v->use->placeholder, v->value, v->n };
	size_t i;
	int r = 0;

	for (i = 0; i < h->fields.n && r == 0; i++) {
		struct hfield *f = &h->fields.v[i];

		if (http_word_is((const uint8_t *)f->name, f->name_len, "authorization"))
			r = swap_value(h, f, &s);
	}
	return r;
}

/* ---- sentinels that got no value ---- */

static bool basic_sentinel(const struct hfield *f)
{
	_wipe_ struct buf b = BUF_INIT(SCRATCH_MAX);
	const char *p, *colon;
	size_t n;

	p = inject_basic(f, &n);
	if (!p || inject_unbase64(&b, p, n) < 0)
		return false;
	p = text(&b);
	colon = b.n ? memchr(p, ':', b.n) : NULL;
	if (!colon)
		return inject_is_sentinel(p, b.n);
	return inject_is_sentinel(p, (size_t)(colon - p)) ||
	       inject_is_sentinel(colon + 1, b.n - (size_t)(colon - p) - 1);
}

static bool only_sentinel(const struct hfield *f)
{
	const char *p = f->value, *space = strchr(p, ' ');

	if (f->secret)
		return false;
	if (inject_is_sentinel(p, f->value_len) || basic_sentinel(f))
		return true;
	return space && inject_is_sentinel(space + 1, f->value_len - (size_t)(space - p) - 1);
}

static void drop_fields(struct xhead *h)
{
	char name[256];
	size_t i = 0;

	while (i < h->fields.n) {
		const struct hfield *f = &h->fields.v[i];

		if (!only_sentinel(f) || f->name_len >= sizeof(name)) {
			i++;
			continue;
		}
		memcpy(name, f->name, f->name_len + 1);
		(void)hfields_remove(&h->fields, name);
		i = 0;
	}
}

/* Parameters of the query: "?key=proxy-managed". In place: it only gets shorter. */
static void drop_parameters(char *target)
{
	char *query = target ? strchr(target, '?') : NULL, *from, *to, *value;
	size_t len;

	if (!query || !strstr(query, "proxy-managed"))
		return;
	for (from = to = query + 1; *from; from += len) {
		len = strcspn(from, "&");
		value = memchr(from, '=', len);
		if (!value || !inject_is_sentinel(value + 1, len - (size_t)(value - from) - 1)) {
			if (to > query + 1)
				*to++ = '&';
			memmove(to, from, len);
			to += len;
		}
		len += from[len] == '&';
	}
	if (to == query + 1 && from > to)
		to--; /* nothing is left of it */
	*to = '\0';
}

int inject_apply(const struct inject_plan *p, struct xhead *h)
{
	static int (*const put[CRED_KIND_N])(struct xhead * h, const struct inject_need *v) = {
		[CRED_HEADER] = put_header,
		[CRED_BASIC] = put_basic,
		[CRED_CUSTOM] = put_custom,
		[CRED_OAUTH] = put_oauth,
	};
	bool tidy = false;
	size_t i;
	int r = 0;

	for (i = 0; i < p->n && r == 0; i++) {
		const struct inject_need *v = &p->v[i];

		if (!put[v->use->kind])
			continue;
		if (!v->value || v->n > VALUE_MAX)
			return v->value ? -E2BIG : -EINVAL;
		if (!fits(v->value, v->n))
			return -EINVAL;
		r = put[v->use->kind](h, v);
		tidy |= v->use->kind != CRED_CUSTOM;
	}
	if (r == 0 && tidy) {
		drop_fields(h);
		drop_parameters(h->target);
	}
	return r == -ENOBUFS ? -E2BIG : r;
}
