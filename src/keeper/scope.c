/* Names are compared from their end: reversed and sorted, whatever lies below a name comes right behind it. */
#include "keeper/scope.h"

enum { NAME_COST = 6, RANGE_COST = 40 }; /* bytes of ASN.1 around a name; all of a range */

static int add_name(struct scope *s, const char *name)
{
	char **v = reallocarray(s->names, s->n_names + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	s->names = v;
	v[s->n_names] = strdup(name);
	if (!v[s->n_names])
		return -ENOMEM;
	s->n_names++;
	return 0;
}

static bool same_range(const struct net_span *a, const struct net_span *b)
{
	return a->n_addr == b->n_addr && a->bits == b->bits && !memcmp(a->addr, b->addr, a->n_addr);
}

static int add_range(struct scope *s, const struct net_span *one)
{
	struct net_span *v;

	for (size_t i = 0; i < s->n_ranges; i++)
		if (same_range(&s->ranges[i], one))
			return 0;
	v = reallocarray(s->ranges, s->n_ranges + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	s->ranges = v;
	v[s->n_ranges++] = *one;
	return 0;
}

/* A resource that is not understood opens nothing. */
static int add(struct scope *s, const char *resource)
{
	struct net_span one;

	if (net_resource_span(resource, &one) < 0)
		return 0;
	if (one.n_addr)
		return add_range(s, &one);
	s->all = s->all || one.all;
	return one.all ? 0 : add_name(s, one.name);
}

static int from_the_end(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	size_t n = strlen(x), m = strlen(y);

	while (n && m && x[n - 1] == y[m - 1]) {
		n--;
		m--;
	}
	if (!n || !m)
		return (n > 0) - (m > 0);
	/* a border of labels comes before all else, so that what is below a name follows it at once */
	return (x[n - 1] == '.' ? 0 : (unsigned char)x[n - 1]) -
	       (y[m - 1] == '.' ? 0 : (unsigned char)y[m - 1]);
}

static bool below(const char *name, const char *top)
{
	size_t n = strlen(name), m = strlen(top);

	return n >= m && streq(name + n - m, top) && (n == m || name[n - m - 1] == '.');
}

static void drop_names(struct scope *s)
{
	for (size_t i = 0; i < s->n_names; i++)
		free(s->names[i]);
	s->n_names = 0;
}

static void tidy(struct scope *s)
{
	size_t kept = 0;

	if (s->all) {
		drop_names(s);
		return;
	}
	if (s->n_names)
		qsort(s->names, s->n_names, sizeof(*s->names), from_the_end);
	for (size_t i = 0; i < s->n_names; i++) {
		if (kept && below(s->names[i], s->names[kept - 1]))
			free(s->names[i]);
		else
			s->names[kept++] = s->names[i];
	}
	s->n_names = kept;
}

static size_t cost(const struct scope *s)
{
	size_t n = s->n_ranges * RANGE_COST;

	for (size_t i = 0; i < s->n_names; i++)
		n += strlen(s->names[i]) + NAME_COST;
	return n;
}

/* What is left of a name: its last two labels. */
static void shorten(char *name)
{
	char *dot = strrchr(name, '.'), *at = name;

	for (char *p = name; dot && p < dot; p++)
		if (*p == '.')
			at = p + 1;
	memmove(name, at, strlen(at) + 1);
}

/* Ranges have no coarser form that would be of use: those that do not fit are left out, and nothing is certified there. */
static int fit(struct scope *s)
{
	if (cost(s) <= SCOPE_BYTES_MAX)
		return 0;
	s->n_ranges = MIN(s->n_ranges, (size_t)SCOPE_BYTES_MAX / 4 / RANGE_COST);
	for (size_t i = 0; i < s->n_names; i++)
		shorten(s->names[i]);
	tidy(s);
	if (cost(s) > SCOPE_BYTES_MAX) {
		s->all = true;
		tidy(s);
	}
	return 1;
}

int scope_make(const struct cred_set *cred, const struct net_policy *net, struct scope *ret)
{
	struct scope s = { 0 };
	const struct cred_use *u;
	const char *resource;
	size_t at = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && (u = cred_at(cred, i)); i++)
		r = add(&s, u->resource);
	while (r == 0 && (resource = net_http_resource(net, &at)))
		r = add(&s, resource);
	if (r < 0) {
		scope_done(&s);
		return r;
	}
	tidy(&s);
	r = fit(&s);
	*ret = s;
	return r;
}

bool scope_same(const struct scope *a, const struct scope *b)
{
	if (a->all != b->all || a->n_names != b->n_names || a->n_ranges != b->n_ranges)
		return false;
	for (size_t i = 0; i < a->n_names; i++)
		if (!streq(a->names[i], b->names[i]))
			return false;
	for (size_t i = 0; i < a->n_ranges; i++)
		if (!same_range(&a->ranges[i], &b->ranges[i]))
			return false;
	return true;
}

void scope_done(struct scope *s)
{
	drop_names(s);
	free(s->names);
	free(s->ranges);
	memset(s, 0, sizeof(*s));
}
