#include "kit/pool.h"

static void *keep(struct pool *p, void *one)
{
	if (one && p->n == p->cap) {
		size_t cap = p->cap ? p->cap * 2 : 32;
		void **v = reallocarray(p->v, cap, sizeof(*v));

		if (!v) {
			free(one);
			one = NULL;
		} else {
			p->v = v;
			p->cap = cap;
		}
	}
	if (!one) {
		p->failed = true;
		return NULL;
	}
	p->v[p->n++] = one;
	return one;
}

void *pool_zero(struct pool *p, size_t n, size_t size)
{
	return keep(p, calloc(n ? n : 1, size));
}

char *pool_text(struct pool *p, const char *s, size_t n)
{
	char *text = pool_zero(p, n + 1, 1);

	if (text && n)
		memcpy(text, s, n);
	return text;
}

void pool_done(struct pool *p)
{
	while (p->n)
		free(p->v[--p->n]);
	free(p->v);
	*p = (struct pool) { 0 };
}
