#include "kit/sbxenv-tree.h"

#include <stdio.h>
#include <strings.h>

#include "kit/args-text.h"

enum { VALUE_MAX = 64 * 1024, PLACES = 3 };

/* ---- references ---- */

struct fill {
	struct take *t;
	const struct sbxenv_file *file;
	const char *project;
	const struct kit_args *values;
};

/* What stands between "${{" and "}}", without spaces around; NULL: it is not declared. */
static const char *value_of(const struct fill *f, const char *s, size_t n)
{
	static const char args[] = "env.args.";
	size_t len = strlen(args);

	if (n == strlen("env.projectDir") && !strncmp(s, "env.projectDir", n))
		return f->project;
	if (n == strlen("env.fileDir") && !strncmp(s, "env.fileDir", n))
		return f->file->dir;
	if (n <= len || strncmp(s, args, len) != 0)
		return NULL;
	for (size_t i = 0; i < f->values->n; i++)
		if (strlen(f->values->v[i].name) == n - len &&
		    !strncmp(f->values->v[i].name, s + len, n - len))
			return f->values->v[i].value;
	return NULL;
}

/* One reference at s ("${{"): what it says goes to out. The bytes that it takes, or 0: it is a fault. */
static size_t replace(const struct fill *f, const struct yaml *y, const char *s, struct buf *out,
		      int *r)
{
	const char *end = strstr(s, "}}"), *p = s + 3, *value;
	size_t n;

	if (!end) {
		TAKE_FAULT(f->t, y, "found '${{' without '}}' ('$${{' writes it as it is)");
		return 0;
	}
	p += strspn(p, " \t");
	n = (size_t)(end - p);
	while (n && (p[n - 1] == ' ' || p[n - 1] == '\t'))
		n--;
	value = value_of(f, p, n);
	if (!value) {
		TAKE_FAULT(f->t, y,
			   "found a reference to '%.*s', expected env.args.NAME of a declared "
			   "argument, "
			   "env.projectDir or env.fileDir",
			   (int)MIN(n, (size_t)60), p);
		return 0;
	}
	*r = buf_add(out, value, strlen(value));
	return (size_t)(end + 2 - s);
}

static int fill_text(const struct fill *f, struct yaml *y)
{
	struct buf out = BUF_INIT(VALUE_MAX);
	const char *s = y->text, *text;
	int r = 0;

	if (!strstr(s, "${{"))
		return 0;
	while (*s && r == 0) {
		size_t n = strcspn(s, "$");

		if (!n && starts_with(s, "$${{")) {
			r = buf_add(&out, "${{", 3);
			n = 4;
		} else if (!n && starts_with(s, "${{")) {
			n = replace(f, y, s, &out, &r);
			if (!n)
				break;
		} else {
			n = n ? n : 1;
			r = buf_add(&out, s, n);
		}
		s += n;
	}
	text = r == 0 && !*s ? buf_str(&out) : NULL;
	if (r == -ENOBUFS)
		TAKE_FAULT(f->t, y, "found a value that becomes too long");
	if (text) {
		char *own = strdup(text);

		r = own ? 0 : -ENOMEM;
		if (own) {
			free(y->text);
			y->text = own;
		}
	}
	buf_done(&out);
	return r == -ENOMEM ? r : 0;
}

/* NOLINTNEXTLINE(misc-no-recursion): at most YAML_DEPTH_MAX deep */
static int fill_node(const struct fill *f, struct yaml *y, bool top)
{
	int r = y->kind == YAML_TEXT ? fill_text(f, y) : 0;

	if (y->key && strstr(y->key, "${{")) {
		struct yaml at = take_key(y);

		TAKE_FAULT(f->t, &at, "found a reference in the name of a field");
	}
	for (size_t i = 0; i < y->n && r == 0; i++)
		if (!top || !streq(y->v[i].key, "args"))
			r = fill_node(f, &y->v[i], false);
	return r;
}

int sbxenv_fill(struct take *t, struct yaml *tree, const struct sbxenv_file *file,
		const char *project, const struct kit_args *values)
{
	struct fill f = { .t = t, .file = file, .project = project, .values = values };

	return fill_node(&f, tree, true);
}

/* ---- paths ---- */

char *sbxenv_join(const char *dir, const char *path)
{
	size_t n = 0, max = strlen(dir) + strlen(path) + 3;
	char *out = malloc(max), *raw = malloc(max), *part, *rest = NULL;

	if (!out || !raw) {
		free(out);
		free(raw);
		return NULL;
	}
	(void)snprintf(raw, max, "%s/%s", path[0] == '/' ? "" : dir, path);
	for (part = strtok_r(raw, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
		if (streq(part, "."))
			continue;
		if (streq(part, "..")) {
			while (n && out[--n] != '/')
				;
			continue;
		}
		out[n++] = '/';
		memcpy(out + n, part, strlen(part));
		n += strlen(part);
	}
	if (!n)
		out[n++] = '/';
	out[n] = '\0';
	free(raw);
	return out;
}

static int make_absolute(struct yaml *y, const char *dir)
{
	char *path;

	if (!y || y->kind != YAML_TEXT || !*y->text)
		return 0;
	path = sbxenv_join(dir, y->text);
	if (!path)
		return -ENOMEM;
	free(y->text);
	y->text = path;
	return 0;
}

static struct yaml *child(struct yaml *map, const char *key)
{
	const struct yaml *y = yaml_get(map, key);

	return y ? map->v + (y - map->v) : NULL;
}

/* A kit's reference that is a path from here: '.', '..', './x', '../x', 'x.zip'. */
static bool is_local(const char *s)
{
	size_t n = strlen(s);

	return streq(s, ".") || streq(s, "..") || starts_with(s, "./") || starts_with(s, "../") ||
	       (n > 4 && !strcasecmp(s + n - 4, ".zip") && !strstr(s, "://"));
}

int sbxenv_resolve(struct yaml *tree, const char *dir)
{
	struct yaml *w = child(tree, "workspace"), *list = child(tree, "additionalWorkspaces");
	struct yaml *kits = child(tree, "kits");
	struct yaml *agent = child(tree, "agent");
	int r = make_absolute(w && w->kind == YAML_MAP ? child(w, "path") : w, dir);

	if (r == 0 && agent && agent->kind == YAML_TEXT && is_local(agent->text))
		r = make_absolute(agent, dir);

	for (size_t i = 0; list && list->kind == YAML_LIST && i < list->n && r == 0; i++)
		r = make_absolute(child(&list->v[i], "path"), dir);
	for (size_t i = 0; kits && kits->kind == YAML_LIST && i < kits->n && r == 0; i++) {
		struct yaml *k = &kits->v[i];

		k = k->kind == YAML_MAP ? child(k, "source") : k;
		if (k && k->kind == YAML_TEXT && is_local(k->text))
			r = make_absolute(k, dir);
	}
	return r;
}

/* ---- several as one ---- */

/* from becomes the last of into. */
static int append(struct yaml *into, struct yaml *from)
{
	struct yaml *v = reallocarray(into->v, into->n + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	into->v = v;
	v[into->n++] = *from;
	*from = (struct yaml) { 0 };
	return 0;
}

/* NOLINTNEXTLINE(misc-no-recursion): at most YAML_DEPTH_MAX deep */
int sbxenv_merge(struct yaml *into, struct yaml *from)
{
	int r = 0;

	if (from->kind == YAML_NONE || (from->kind == YAML_TEXT && yaml_is_null(from)))
		return 0;
	if (into->kind != from->kind || into->kind == YAML_TEXT) {
		struct yaml old = *into;

		*into = *from;
		*from = old;
		return 0;
	}
	for (size_t i = 0; i < from->n && r == 0; i++) {
		struct yaml *same = from->kind == YAML_MAP ? child(into, from->v[i].key) : NULL;

		r = same ? sbxenv_merge(same, &from->v[i]) : append(into, &from->v[i]);
	}
	return r;
}
