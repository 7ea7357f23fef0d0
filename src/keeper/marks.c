#include "keeper/marks.h"

enum { FORMS = LEAK_FORMS_MAX };

struct group {
	struct group *next; /* the one that was made before */
	char *key;
	size_t n, n_before;
	struct leak_mark v[FORMS], before[FORMS];
};

struct marks {
	uint64_t key;
	struct group *first;
	size_t n;
};

int marks_new(uint64_t key, struct marks **ret)
{
	struct marks *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->key = key;
	*ret = m;
	return 0;
}

struct marks *marks_free(struct marks *m)
{
	struct group *g, *next;

	for (g = m ? m->first : NULL; g; g = next) {
		next = g->next;
		free(g->key);
		explicit_bzero(g, sizeof(*g)); /* a mark is nearly as good as what it marks */
		free(g);
	}
	free(m);
	return NULL;
}

static struct group *find(const struct marks *m, const char *key)
{
	struct group *g = m->first;

	while (g && !streq(g->key, key))
		g = g->next;
	return g;
}

static struct group *make(struct marks *m, const char *key)
{
	struct group *g = calloc(1, sizeof(*g));

	if (g)
		g->key = strdup(key);
	if (!g || !g->key) {
		free(g);
		return NULL;
	}
	g->next = m->first;
	m->first = g;
	return g;
}

static bool same(const struct leak_mark *a, const struct leak_mark *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i].head != b[i].head || a[i].all != b[i].all || a[i].length != b[i].length)
			return false;
	return true;
}

int marks_set(struct marks *m, const char *key, const char *name, const uint8_t *value, size_t n)
{
	struct group *g = find(m, key);
	struct leak_mark v[FORMS] = { 0 };
	size_t k = leak_marks(m->key, name, value, n, v, FORMS);

	if (g ? g->n == k && same(g->v, v, k) : !k)
		return 0;
	if (!g)
		g = make(m, key);
	if (!g)
		return -ENOMEM;
	if (g->n) {
		memcpy(g->before, g->v, sizeof(g->v));
		g->n_before = g->n;
	}
	memcpy(g->v, v, sizeof(v));
	g->n = k;
	explicit_bzero(v, sizeof(v));
	return 1;
}

static size_t gather(const struct marks *m, struct leak_mark *v, bool before, size_t n)
{
	for (const struct group *g = m->first; g; g = g->next) {
		size_t k = before ? g->n_before : g->n;

		if (k > MARKS_MAX - n)
			break;
		memcpy(v + n, before ? g->before : g->v, k * sizeof(*v));
		n += k;
	}
	return n;
}

static size_t count(const struct marks *m)
{
	size_t n = 0;

	for (const struct group *g = m->first; g; g = g->next)
		n += g->n + g->n_before;
	return n;
}

int marks_put(const struct marks *m, struct buf *out)
{
	struct leak_mark *v = calloc(MARKS_MAX, sizeof(*v));
	struct leak_set s = { 0 };
	size_t n;
	int r;

	if (!v)
		return -ENOMEM;
	n = gather(m, v, false, 0);
	n = gather(m, v, true, n);
	r = leak_set_init(&s, m->key, v, n);
	if (r < 0) {
		free(v);
		return r;
	}
	r = leak_set_put(out, &s);
	leak_set_done(&s);
	return r < 0 ? r : n < count(m);
}
