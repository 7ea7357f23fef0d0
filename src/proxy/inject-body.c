/* Placeholders in a body that passes.
 *
 * Patterns are sorted; where a byte begins one, the first KEY bytes (all have as many) are looked up, and those that share them are compared. A piece is put behind what was kept of the piece
 * before: of a body that is changed the bytes that might begin a placeholder, which have not gone on; of one that is searched the last ones, which have. */
#include <stdio.h>

#include "proxy/inject-priv.h"

enum { KEY = CRED_PLACEHOLDER_MIN };

/* Texts are copies: a body may outlive the set that it began with. */
struct pattern {
	char *text;
	char service[CRED_NAME_MAX + 1];
	size_t len;
	const struct value *value; /* NULL: it may not pass */
};

struct value {
	const struct cred_use *use; /* while the patterns are made */
	uint8_t *p;
	size_t n;
};

struct inject_body {
	struct pattern *v;
	size_t n, longest;
	bool begins[256];
	bool change; /* else search */
	enum inject_as as;
	struct value values[INJECT_NEEDS_MAX];
	size_t n_values;
	struct buf kept; /* less than the longest */
	const char *hit;
};

static int by_text(const void *a, const void *b)
{
	const struct pattern *x = a, *y = b;

	return strcmp(x->text, y->text);
}

static int copy_values(struct inject_body *b, const struct inject_plan *p)
{
	struct value *v;
	size_t i;

	for (i = 0; i < p->n; i++) {
		if (p->v[i].use->kind != CRED_CUSTOM || !(p->v[i].use->where & CRED_IN_BODY))
			continue;
		if (!p->v[i].value)
			return -EINVAL;
		v = &b->values[b->n_values];
		v->p = malloc(p->v[i].n + 1);
		if (!v->p)
			return -ENOMEM;
		memcpy(v->p, p->v[i].value, p->v[i].n);
		v->n = p->v[i].n;
		v->use = p->v[i].use;
		b->n_values++;
	}
	return 0;
}

static const struct value *value_of(const struct inject_body *b, const char *placeholder)
{
	size_t i;

	for (i = 0; i < b->n_values; i++)
		if (streq(b->values[i].use->placeholder, placeholder))
			return &b->values[i];
	return NULL;
}

/* Is it one of this destination that may stand in a body, since that is not one of its places? */
static bool harmless(const struct cred_set *s, const struct host *host, uint16_t port,
		     const char *placeholder)
{
	const struct cred_use *u;
	size_t at = 0;

	while ((u = cred_next(s, host, port, &at)))
		if (u->kind == CRED_CUSTOM && !(u->where & CRED_IN_BODY) &&
		    streq(u->placeholder, placeholder))
			return true;
	return false;
}

static int add_pattern(struct inject_body *b, const struct cred_use *u, const struct value *value)
{
	struct pattern *p = &b->v[b->n];

	p->len = strlen(u->placeholder);
	if (p->len < KEY)
		return 0;
	p->text = strdup(u->placeholder);
	if (!p->text)
		return -ENOMEM;
	(void)snprintf(p->service, sizeof(p->service), "%s", u->service);
	p->value = value;
	b->longest = MAX(b->longest, p->len);
	b->begins[(uint8_t)p->text[0]] = true;
	b->n++;
	return 0;
}

static int patterns(struct inject_body *b, const struct cred_set *s, const struct host *host,
		    uint16_t port)
{
	const struct value *value;
	const struct cred_use *u;
	size_t n = 0, i;
	int r = 0;

	while (cred_at(s, n))
		n++;
	b->v = calloc(n + 1, sizeof(*b->v));
	if (!b->v)
		return -ENOMEM;
	for (i = 0; i < n && r == 0; i++) {
		u = cred_at(s, i);
		if (u->kind != CRED_CUSTOM)
			continue;
		value = b->change ? value_of(b, u->placeholder) : NULL;
		if (value ? u == value->use : !harmless(s, host, port, u->placeholder))
			r = add_pattern(b, u, value);
	}
	if (b->n)
		qsort(b->v, b->n, sizeof(*b->v), by_text);
	return r;
}

int inject_body_new(const struct inject_plan *p, const struct cred_set *s, const struct host *host,
		    uint16_t port, struct inject_body **ret)
{
	static const uint8_t forms[] = { [INJECT_FORM_RAW] = INJECT_AS_SEEN,
					 [INJECT_FORM_QUERY] = INJECT_AS_PERCENT,
					 [INJECT_FORM_JSON] = INJECT_AS_JSON };
	struct inject_body *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return -ENOMEM;
	b->change = p->body;
	b->as = forms[p->form];
	buf_init(&b->kept, 2UL * CRED_PLACEHOLDER_MAX);
	r = b->change ? copy_values(b, p) : 0;
	if (r == 0)
		r = patterns(b, s, host, port);
	if (r < 0) {
		(void)inject_body_free(b);
		return r;
	}
	*ret = b;
	return 0;
}

/* The first pattern whose KEY bytes are not less than those at p. */
static size_t lookup(const struct inject_body *b, const uint8_t *p)
{
	size_t low = 0, high = b->n, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (memcmp(b->v[mid].text, p, KEY) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The longest one at p. */
static const struct pattern *whole(const struct inject_body *b, const uint8_t *p, size_t n)
{
	const struct pattern *best = NULL;
	size_t i;

	if (n < KEY)
		return NULL;
	for (i = lookup(b, p); i < b->n && memcmp(b->v[i].text, p, KEY) == 0; i++)
		if (b->v[i].len <= n && memcmp(b->v[i].text, p, b->v[i].len) == 0)
			best = &b->v[i];
	return best;
}

/* Might what is at p, up to the end, begin one? */
static bool part(const struct inject_body *b, const uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; i < b->n && n < b->longest; i++)
		if (n < b->v[i].len && memcmp(b->v[i].text, p, n) == 0)
			return true;
	return false;
}

/* Through p. *ret_rest: bytes at the end that are not done with. */
static int through(struct inject_body *b, const uint8_t *p, size_t n, bool last, struct buf *out,
		   size_t *ret_rest)
{
	const struct pattern *hit;
	size_t i = 0, from = 0;
	int r = 0;

	while (i < n && r == 0) {
		if (!b->begins[p[i]]) {
			i++;
			continue;
		}
		hit = whole(b, p + i, n - i);
		if (hit && !hit->value) {
			b->hit = hit->service;
			return -EPERM;
		}
		if (!last && part(b, p + i, n - i))
			break;
		if (!hit) {
			i++;
			continue;
		}
		r = buf_add(out, p + from, i - from);
		if (r == 0)
			r = inject_put(out, hit->value->p, hit->value->n, b->as);
		i += hit->len;
		from = i;
	}
	if (r == 0)
		r = buf_add(out, p + from, i - from);
	*ret_rest = n - i;
	return r;
}

static int change(struct inject_body *b, const uint8_t *p, size_t n, bool last, struct buf *out)
{
	size_t rest = 0, old = b->kept.n, more;
	uint8_t *room;
	int r;

	if (old) { /* enough of p to be clear about what was kept */
		more = MIN(n, (size_t)CRED_PLACEHOLDER_MAX);
		room = buf_room(&b->kept, more);
		if (!room)
			return -ENOMEM;
		memcpy(room, p, more);
		buf_added(&b->kept, more);
		r = through(b, buf_data(&b->kept), b->kept.n, last && more == n, out, &rest);
		if (r < 0)
			return r;
		if (rest > more) { /* so much has not come yet */
			buf_consume(&b->kept, b->kept.n - rest);
			return 0;
		}
		buf_consume(&b->kept, b->kept.n);
		p += more - rest;
		n -= more - rest;
		if (!n)
			return 0;
	}
	r = through(b, p, n, last, out, &rest);
	return r == 0 && rest ? buf_add(&b->kept, p + n - rest, rest) : r;
}

static bool find(struct inject_body *b, const uint8_t *p, size_t n)
{
	const struct pattern *hit;
	size_t i;

	for (i = 0; i < n; i++) {
		hit = b->begins[p[i]] ? whole(b, p + i, n - i) : NULL;
		if (hit) {
			b->hit = hit->service;
			return true;
		}
	}
	return false;
}

/* Nothing is held back: what is kept is a copy of the last bytes. */
static int search(struct inject_body *b, const uint8_t *p, size_t n, struct buf *out)
{
	const size_t edge = b->longest - 1, more = MIN(n, edge);
	int r = buf_add(&b->kept, p, more);

	if (r == 0 && (find(b, buf_data(&b->kept), b->kept.n) || find(b, p, n)))
		return -EPERM;
	if (r == 0 && n > edge) {
		buf_consume(&b->kept, b->kept.n);
		r = buf_add(&b->kept, p + n - edge, edge);
	}
	if (r == 0 && b->kept.n > edge)
		buf_consume(&b->kept, b->kept.n - edge);
	return r == 0 ? buf_add(out, p, n) : r;
}

int inject_body(struct inject_body *b, const uint8_t *p, size_t n, bool last, struct buf *out,
		const char **ret_name)
{
	int r;

	if (!b->n)
		return buf_add(out, p, n);
	r = b->change ? change(b, p, n, last, out) : search(b, p, n, out);
	if (r == -EPERM)
		*ret_name = b->hit;
	return r;
}

struct inject_body *inject_body_free(struct inject_body *b)
{
	if (!b)
		return NULL;
	while (b->n_values) {
		struct value *v = &b->values[--b->n_values];

		explicit_bzero(v->p, v->n);
		free(v->p);
	}
	while (b->n)
		free(b->v[--b->n].text);
	buf_done(&b->kept);
	free(b->v);
	free(b);
	return NULL;
}
