/* Secrets that come back, or go where they do not belong. */
#include "proxy/inject-priv.h"

enum { HELD_MAX = LEAK_LENGTH_MAX + 256 * 1024 };

/* Bytes of held from `start` of the stream on become stars. */
static void blank(struct guard *g, const struct leak_hit *hit)
{
	const uint64_t base = g->scan.seen - g->held.n;
	const size_t from = hit->start > base ? (size_t)(hit->start - base) : 0;

	memset(g->held.p + g->held.off + from, '*', g->held.n - from);
}

/* On goes what cannot become a hit any more. */
static int let_go(struct guard *g, struct buf *out, bool all)
{
	const uint64_t base = g->scan.seen - g->held.n;
	const size_t n = all ? g->held.n : (size_t)(MAX(leak_held(&g->scan), base) - base);
	int r = n ? buf_add(out, buf_data(&g->held), n) : 0;

	if (r == 0 && n)
		buf_consume(&g->held, n);
	return r;
}

int guard_answer(struct guard *g, const struct leak_set *s, const uint8_t *p, size_t n, bool last,
		 struct buf *out, unsigned *ret_hits, const char **ret_name)
{
	struct leak_hit hit;
	unsigned hits = 0;
	size_t used;
	int r = 0;

	if (!g->held.max)
		buf_init(&g->held, HELD_MAX);
	for (; n && r == 0; p += used, n -= used) {
		used = leak_scan(&g->scan, s, p, n, &hit);
		if (!g->held.n && !hit.length && leak_held(&g->scan) == g->scan.seen) {
			r = buf_add(out, p, used);
			continue;
		}
		r = buf_add(&g->held, p, used);
		if (r == 0 && hit.length) {
			blank(g, &hit);
			hits++;
			*ret_name = hit.name;
		}
		if (r == 0)
			r = let_go(g, out, false);
	}
	if (r == 0 && last)
		r = let_go(g, out, true);
	if (r == 0)
		*ret_hits = hits;
	return r;
}

static unsigned blank_field(const struct leak_set *s, struct hfield *f, const char **ret_name)
{
	struct leak_scan c = { 0 };
	struct leak_hit hit;
	unsigned hits = 0;
	size_t at = 0;

	while (at < f->value_len) {
		at += leak_scan(&c, s, (const uint8_t *)f->value + at, f->value_len - at, &hit);
		if (!hit.length)
			continue;
		memset(f->value + hit.start, '*', hit.length);
		*ret_name = hit.name;
		hits++;
	}
	return hits;
}

unsigned guard_head(const struct leak_set *s, struct xhead *h, const char **ret_name)
{
	unsigned hits = 0;
	size_t i;

	for (i = 0; s && s->n && i < h->fields.n; i++)
		hits += blank_field(s, &h->fields.v[i], ret_name);
	return hits;
}

struct asked {
	const struct leak_set *set;
	bool (*own)(const void *arg, const char *name);
	const void *arg;
	const char *name; /* of the first that may not be there */
};

static bool holds(struct asked *a, const char *p, size_t n)
{
	struct leak_scan c = { 0 };
	struct leak_hit hit;
	size_t at = 0;

	while (at < n) {
		at += leak_scan(&c, a->set, (const uint8_t *)p + at, n - at, &hit);
		if (!hit.length || (a->own && a->own(a->arg, hit.name)))
			continue;
		a->name = hit.name;
		return true;
	}
	return false;
}

bool guard_request_head(const struct leak_set *s, const struct xhead *h,
			bool (*own)(const void *arg, const char *name), const void *arg,
			const char **ret_name)
{
	struct asked a = { s, own, arg, NULL };
	size_t i;

	if (!s || !s->n)
		return false;
	for (i = 0; i < h->fields.n && !a.name; i++)
		if (!holds(&a, h->fields.v[i].name, h->fields.v[i].name_len))
			(void)holds(&a, h->fields.v[i].value, h->fields.v[i].value_len);
	if (!a.name && h->target)
		(void)holds(&a, h->target, strlen(h->target));
	if (a.name)
		*ret_name = a.name;
	return a.name;
}

void guard_done(struct guard *g)
{
	inject_wipe(&g->held);
	memset(g, 0, sizeof(*g));
}
