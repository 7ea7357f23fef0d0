#include "supervisor/need.h"

#include <sys/stat.h>
#include <unistd.h>

/* The next line of *p, which moves on; its length, or -1 beyond the last. */
static ssize_t line(const char **p, size_t *n, const char **ret)
{
	const char *end = *n ? memchr(*p, '\n', *n) : NULL;
	size_t len;

	if (!*n)
		return -1;
	*ret = *p;
	len = end ? (size_t)(end - *p) : *n;
	*p += len + (end ? 1 : 0);
	*n -= len + (end ? 1 : 0);
	return (ssize_t)len;
}

static bool begins(const char *p, ssize_t len, const char *with)
{
	size_t n = strlen(with);

	return len >= 0 && (size_t)len >= n && !memcmp(p, with, n);
}

bool need_cred(const char *p, size_t n)
{
	const char *at;
	ssize_t len = line(&p, &n, &at); /* the first names the format */

	if (len < 0)
		return false;
	len = line(&p, &n, &at);
	return len >= 0 && !begins(at, len, "end ");
}

/* id, scope, verdict, method: a tab each. */
static bool has_method(const char *p, size_t n)
{
	for (unsigned i = 0; i < 3; i++) {
		const char *tab = memchr(p, '\t', n);

		if (!tab)
			return false;
		n -= (size_t)(tab + 1 - p);
		p = tab + 1;
	}
	return !begins(p, (ssize_t)n, "-\t");
}

bool need_net(const char *p, size_t n)
{
	const char *at;
	ssize_t len;

	while ((len = line(&p, &n, &at)) >= 0)
		if (has_method(at, (size_t)len))
			return true;
	return false;
}

int need_env(char *p, size_t n, struct wire_env *ret)
{
	const char **v = calloc(WIRE_DEFAULTS_MAX + 1, sizeof(*v)), *from = p, *at;
	uint32_t k = 0;
	ssize_t len;

	if (!v)
		return -ENOMEM;
	while ((len = line(&from, &n, &at)) >= 0 && !begins(at, len, "end "))
		;
	while (k < WIRE_DEFAULTS_MAX && (len = line(&from, &n, &at)) >= 0) {
		char *name = p + (at - p) + 4, *end = p + (at - p) + len;

		if (!begins(at, len, "env ") || *name == '=' ||
		    !memchr(name, '=', (size_t)(end - name)) ||
		    memchr(name, '\0', (size_t)(end - name)))
			continue;
		*end = '\0'; /* the newline, or what stands behind the file */
		v[k++] = name;
	}
	*ret = (struct wire_env) { k, v };
	return 0;
}
