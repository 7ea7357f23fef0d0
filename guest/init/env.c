/* Defaults of the environment. */
#include "guest/init/env.h"

bool env_same_name(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return !strncmp(a, b, n) && b[n] == '=';
}

static void add(struct env *e, char **at, const char *text)
{
	size_t n = strlen(text) + 1;
	uint32_t i;

	memcpy(*at, text, n);
	for (i = 0; i < e->n; i++)
		if (env_same_name(text, e->v[i]))
			break;
	e->v[i] = *at;
	e->n = MAX(e->n, i + 1);
	*at += n;
}

static size_t size(const char *const *v, size_t n)
{
	size_t sum = 0, i;

	for (i = 0; i < n; i++)
		sum += strlen(v[i]) + 1;
	return sum;
}

struct env *env_new(const char *const *a, size_t n_a, const char *const *b, size_t n_b)
{
	struct env *e = calloc(1, sizeof(*e));
	size_t i;
	char *at;

	if (!e)
		return NULL;
	e->holders = 1;
	e->v = calloc(n_a + n_b + 1, sizeof(*e->v));
	e->mem = malloc(size(a, n_a) + size(b, n_b) + 1);
	if (!e->v || !e->mem)
		return env_drop(e);
	at = e->mem;
	for (i = 0; i < n_a; i++)
		add(e, &at, a[i]);
	for (i = 0; i < n_b; i++)
		add(e, &at, b[i]);
	return e;
}

struct env *env_hold(struct env *e)
{
	if (e)
		e->holders++;
	return e;
}

struct env *env_drop(struct env *e)
{
	if (!e || --e->holders)
		return NULL;
	free(e->v);
	free(e->mem);
	free(e);
	return NULL;
}
