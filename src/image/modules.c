/* modules.dep has a line for each module: its path, a colon, and the paths of all modules that it needs,
 * also indirectly, the nearest first: loading from the end of the line to its start satisfies each. */
#include "image/modules.h"

#include "base/text.h"

enum { PATH_LONGEST = 255 };

/* A word or line inside a text. */
struct span {
	const char *p;
	size_t n;
};

static struct span next(const char **at, const char *ends)
{
	struct span s;

	*at += strspn(*at, ends);
	s.p = *at;
	s.n = strcspn(*at, ends);
	*at += s.n;
	return s;
}

/* The module's name inside its path. */
static struct span stem(struct span path)
{
	const char *slash = memrchr(path.p, '/', path.n), *dot;
	struct span s = path;

	if (slash) {
		s.p = slash + 1;
		s.n = path.n - (size_t)(s.p - path.p);
	}
	dot = memmem(s.p, s.n, ".ko", 3);
	if (dot)
		s.n = (size_t)(dot - s.p);
	return s;
}

/* '-' and '_' are the same in names of modules. */
static char plain(char c)
{
	return (char)(c == '-' ? '_' : c);
}

static bool same_name(struct span a, struct span b)
{
	size_t i;

	if (a.n != b.n)
		return false;
	for (i = 0; i < a.n; i++)
		if (plain(a.p[i]) != plain(b.p[i]))
			return false;
	return true;
}

static bool is_builtin(const char *builtin, struct span name)
{
	struct span s;

	while ((s = next(&builtin, "\r\n")).n)
		if (same_name(stem(s), name))
			return true;
	return false;
}

/* Relative, of plain characters, without "..". */
static bool is_safe(struct span path)
{
	size_t i;

	if (path.n == 0 || path.n > PATH_LONGEST || path.p[0] == '/' ||
	    memmem(path.p, path.n, "..", 2) || !memmem(path.p, path.n, ".ko", 3))
		return false;
	for (i = 0; i < path.n; i++)
		if (path.p[i] <= ' ' || path.p[i] == 0x7f)
			return false;
	return true;
}

static bool has(const struct image_modules *m, struct span path)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		if (strlen(m->v[i]) == path.n && memcmp(m->v[i], path.p, path.n) == 0)
			return true;
	return false;
}

static int add(struct image_modules *m, struct span path, struct err *e)
{
	if (has(m, path))
		return 0;
	if (!is_safe(path))
		return err_set(e, -EINVAL, "modules.dep names the odd file '%.*s'",
			       (int)MIN(path.n, 100), path.p);
	if (m->n == IMAGE_MODULES_MAX)
		return err_set(e, -E2BIG, "more than %d modules", IMAGE_MODULES_MAX);
	m->v[m->n] = strndup(path.p, path.n);
	if (!m->v[m->n])
		return err_errno(e, -ENOMEM, "cannot list modules");
	m->n++;
	return 0;
}

/* The words of a line, last first. */
static int add_line(struct image_modules *m, struct span line, struct err *e)
{
	size_t end = line.n;
	int r = 0;

	while (r == 0 && end > 0) {
		size_t start;

		while (end > 0 && strchr(" \t:", line.p[end - 1]))
			end--;
		start = end;
		while (start > 0 && !strchr(" \t:", line.p[start - 1]))
			start--;
		if (end > start)
			r = add(m, (struct span) { line.p + start, end - start }, e);
		end = start;
	}
	return r;
}

static int add_wanted(struct image_modules *m, struct span name, const char *dep,
		      const char *builtin, struct err *e)
{
	struct span line;

	while ((line = next(&dep, "\r\n")).n) {
		const char *colon = memchr(line.p, ':', line.n);

		if (colon &&
		    same_name(stem((struct span) { line.p, (size_t)(colon - line.p) }), name))
			return add_line(m, line, e);
	}
	if (is_builtin(builtin, name))
		return 0;
	return err_set(e, -ENOENT, "the kernel has no module '%.*s'", (int)MIN(name.n, 64), name.p);
}

int image_modules(const char *wanted, const char *dep, const char *builtin,
		  struct image_modules *ret, struct err *e)
{
	struct image_modules m = { .n = 0 };
	struct span line, word;
	int r = 0;

	while (r == 0 && (line = next(&wanted, "\r\n")).n) {
		const char *hash = memchr(line.p, '#', line.n), *at = line.p;
		const char *end = hash ? hash : line.p + line.n;

		while (r == 0) {
			word = next(&at, " \t\r\n#");
			if (word.n == 0 || word.p >= end)
				break;
			r = add_wanted(&m, word, dep, builtin, e);
		}
	}
	if (r < 0) {
		image_modules_done(&m);
		return r;
	}
	*ret = m;
	return 0;
}

void image_modules_done(struct image_modules *m)
{
	while (m->n)
		free(m->v[--m->n]);
}

int image_modules_name(const char *path, char *dst, size_t max)
{
	struct span s = stem((struct span) { path, strlen(path) });
	char name[PATH_LONGEST + 4];

	if (s.n > PATH_LONGEST)
		return -ENAMETOOLONG;
	memcpy(name, s.p, s.n);
	memcpy(name + s.n, ".ko", 4);
	return text_copy(dst, max, name);
}
