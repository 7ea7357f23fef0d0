/* What is kept in a sandbox's directory for its credentials, none of it secret from who may read that directory: declarations (credentials.d/), placeholders
 * (placeholders.json, which the sandbox knows anyway), and which uses it has had since it was started (credentials.given). */
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/compose-priv.h"
#include "io/fd.h"

enum { RANDOM_CHARS = 20, PLACEHOLDERS_MAX = 256 * 1024 };

static void path_of(const char *id, const char *name, char ret[64])
{
	(void)snprintf(ret, 64, "%s/%s", id, name);
}

/* ---- placeholders ---- */
/* 20 of base32: 100 bits. */
static int put_random(char ret[RANDOM_CHARS + 1])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
	uint8_t bytes[RANDOM_CHARS];
	size_t i;

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	for (i = 0; i < RANDOM_CHARS; i++)
		ret[i] = letters[bytes[i] & 31];
	ret[RANDOM_CHARS] = '\0';
	return 0;
}

static char *fill_in(const char *pattern, const char *at, const char *random)
{
	char *text;

	return asprintf(&text, "%.*s%s%s", (int)(at - pattern), pattern, random,
			at + strlen("{rand}")) < 0
		       ? NULL
		       : text;
}

static json_t *read_kept(struct composer *m, const char *path)
{
	_free_ char *text = NULL;
	json_t *j = NULL;
	size_t n;

	if (fd_read_file(state_sandboxes_fd(m->c->state), path, PLACEHOLDERS_MAX, &text, &n) == 0)
		j = json_loadb(text, n, 0, NULL);
	if (!json_is_object(j)) {
		json_decref(j);
		j = json_object();
	}
	return j;
}

static int make_placeholder(struct composer *m, const char *path, json_t *all, const char *variable,
			    const char *pattern, char **ret)
{
	char random[RANDOM_CHARS + 1];
	_free_ char *text = NULL, *value = NULL;
	int r = put_random(random);

	if (r == 0) {
		value = fill_in(pattern, strstr(pattern, "{rand}"), random);
		r = value && json_object_set_new(all, variable,
						 json_pack("{s:s, s:s}", "pattern", pattern,
							   "value", value)) == 0
			    ? 0
			    : -ENOMEM;
	}
	if (r == 0) {
		text = json_dumps(all, JSON_INDENT(1) | JSON_SORT_KEYS);
		r = text ? fd_replace_file(state_sandboxes_fd(m->c->state), path, 0600, text,
					   strlen(text))
			 : -ENOMEM;
	}
	if (r < 0)
		return err_errno(m->e, r, "cannot make a placeholder for %s", variable);
	*ret = take_ptr(value);
	return 0;
}

int compose_placeholder(struct composer *m, const char *variable, const char *pattern, char **ret)
{
	const char *at = strstr(pattern, "{rand}"), *value;
	json_t *all, *one;
	char path[64];
	int r = 0;

	if (!at || !*m->id) {
		*ret = at ? fill_in(pattern, at, "aaaaaaaaaaaaaaaaaaaa") : strdup(pattern);
		return *ret ? 0 : err_errno(m->e, -ENOMEM, "placeholder of %s", variable);
	}
	path_of(m->id, "placeholders.json", path);
	all = read_kept(m, path);
	one = json_object_get(all, variable);
	value = streq(json_string_value(json_object_get(one, "pattern")), pattern)
			? json_string_value(json_object_get(one, "value"))
			: NULL;
	*ret = value ? strdup(value) : NULL;
	if (!*ret)
		r = make_placeholder(m, path, all, variable, pattern, ret);
	json_decref(all);
	return r;
}

/* ---- what it has had ---- */
int compose_given_keep(struct composer *m)
{
	int dir = state_sandboxes_fd(m->c->state), r = 0;
	char path[64];

	path_of(m->id, "credentials.given", path);
	if (!m->n && unlinkat(dir, path, 0) < 0 && errno != ENOENT)
		r = -errno;
	if (m->n)
		r = fd_replace_file(dir, path, 0600, buf_data(m->out), m->out->n);
	return r < 0 ? err_errno(m->e, r, "cannot note the credentials of '%s'", m->name) : 0;
}

/* Is there a use for the same purpose, though perhaps of another key? */
static bool is_covered(const struct cred_set *now, const struct cred_use *u)
{
	const struct cred_use *other;
	size_t i;

	for (i = 0; (other = cred_at(now, i)); i++)
		if (other->kind == u->kind && streq(other->service, u->service) &&
		    streq(other->resource, u->resource))
			return true;
	return false;
}

static int add_gone(struct composer *m, const struct cred_set *before, const struct cred_set *now)
{
	const struct cred_use *u;
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && (u = cred_at(before, i)); i++)
		if (!is_covered(now, u))
			r = compose_use(m, u, u->origin, u->service, u->key, CRED_MISSING);
	return r;
}

int compose_given_gone(struct composer *m)
{
	_cleanup_(cred_set_freep) struct cred_set *before = NULL, *now = NULL;
	struct buf whole = BUF_INIT(CRED_TEXT_MAX);
	_free_ char *text = NULL;
	char path[64];
	size_t n;
	int r;

	path_of(m->id, "credentials.given", path);
	r = fd_read_file(state_sandboxes_fd(m->c->state), path, CRED_TEXT_MAX, &text, &n);
	if (r < 0 || cred_text_parse(text, n, &before, m->e) < 0)
		return 0; /* none so far */
	r = buf_add(&whole, buf_data(m->out), m->out->n);
	if (r == 0)
		r = cred_text_end(&whole, m->n);
	r = r < 0 ? err_errno(m->e, r, "cannot compose the credentials")
		  : cred_text_parse((const char *)buf_data(&whole), whole.n, &now, m->e);
	buf_done(&whole);
	return r == 0 ? add_gone(m, before, now) : r;
}

/* ---- declarations ---- */
void compose_declared_done(struct compose_declared *d)
{
	while (d->n)
		declare_done(&d->v[--d->n]);
	free(d->v);
	d->v = NULL;
}

static int read_declared(int dir, const char *name, struct compose_declared *d, struct err *e)
{
	struct declarations *v = reallocarray(d->v, d->n + 1, sizeof(*v));
	_free_ char *text = NULL;
	size_t n;
	int r;

	if (!v)
		return err_errno(e, -ENOMEM, "%s", name);
	d->v = v;
	r = fd_read_file(dir, name, YAML_MAX, &text, &n);
	if (r < 0)
		return err_errno(e, r, "cannot read the declaration %s", name);
	/* "kit:NAME", or what a file of --credentials is called */
	r = starts_with(name, "kit:") ? declare_parse("kit", name + 4, text, n, &v[d->n], e)
				      : declare_parse("file", name, text, n, &v[d->n], e);
	if (r < 0)
		return err_ctx(e, "%s", name);
	d->n++;
	return 0;
}

int compose_declared(struct ctx *c, const char *id, struct compose_declared *ret, struct err *e)
{
	struct compose_declared d = { 0 };
	struct dirent **names = NULL;
	char path[64];
	_close_ int dir = -1;
	int i, n, r = 0;

	*ret = d;
	path_of(id, "credentials.d", path);
	dir = openat(state_sandboxes_fd(c->state), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return errno == ENOENT ? 0 : err_errno(e, -errno, "cannot open %s", path);
	n = scandirat(dir, ".", &names, NULL, alphasort);
	if (n < 0)
		return err_errno(e, -errno, "cannot read %s", path);
	for (i = 0; i < n; i++) {
		if (r == 0 && names[i]->d_name[0] != '.')
			r = read_declared(dir, names[i]->d_name, &d, e);
		free(names[i]);
	}
	free(names);
	if (r < 0)
		compose_declared_done(&d);
	else
		*ret = d;
	return r;
}

int compose_keep_file(struct ctx *c, const char *id, const char *name, const char *text, size_t n,
		      struct err *e)
{
	int dir = state_sandboxes_fd(c->state), r;
	char path[64];
	_close_ int fd = -1;

	path_of(id, "credentials.d", path);
	if (mkdirat(dir, path, 0700) < 0 && errno != EEXIST)
		return err_errno(e, -errno, "cannot make %s", path);
	fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = fd < 0 ? -errno : fd_replace_file(fd, name, 0600, text, n);
	return r < 0 ? err_errno(e, r, "cannot keep %s", name) : 0;
}
