#include "cli/credfiles.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/need.h"
#include "io/fd.h"
#include "policy/net.h"

enum { NAME_MAX_LEN = 63, FILES_MAX = 16 };

void cred_files_done(struct cred_files *f)
{
	compose_declared_done(&f->declared);
	while (f->n) {
		f->n--;
		free(f->v[f->n].name);
		free(f->v[f->n].text);
	}
	free(f->v);
	f->v = NULL;
}

/* The last part of the path, of letters that may stand in an origin. */
static char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	char *name;
	size_t i;

	base += strspn(base, ".");
	name = strndup(*base ? base : "credentials", NAME_MAX_LEN);
	for (i = 0; name && name[i]; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-",
			    name[i]))
			name[i] = '_';
	return name;
}

static int read_one(struct cred_files *f, const char *path, struct err *e)
{
	struct cred_file *one = &f->v[f->n];
	size_t i;
	int r;

	one->name = name_of(path);
	if (!one->name)
		return err_errno(e, -ENOMEM, "--credentials");
	f->n++;
	for (i = 0; i + 1 < f->n; i++)
		if (streq(f->v[i].name, one->name))
			return err_set(e, -EINVAL, "--credentials: two files are called '%s'",
				       one->name);
	r = fd_read_file(AT_FDCWD, path, YAML_MAX, &one->text, &one->n);
	if (r < 0)
		return err_errno(e, r, "--credentials: cannot read %.200s", path);
	r = declare_parse("file", one->name, one->text, one->n, &f->declared.v[f->declared.n], e);
	if (r < 0)
		return err_ctx(e, "%.200s", path);
	f->declared.n++;
	return 0;
}

int cred_files_read(const struct opt_list *paths, struct cred_files *ret, struct err *e)
{
	size_t i;
	int r = 0;

	*ret = (struct cred_files) { 0 };
	if (paths->n > FILES_MAX)
		return err_set(e, -EINVAL, "--credentials: %d files at most", FILES_MAX);
	ret->v = calloc(paths->n + 1, sizeof(*ret->v));
	ret->declared.v = calloc(paths->n + 1, sizeof(*ret->declared.v));
	if (!ret->v || !ret->declared.v)
		return err_errno(e, -ENOMEM, "--credentials");
	for (i = 0; i < paths->n && r == 0; i++)
		r = read_one(ret, paths->v[i], e);
	return r;
}

int cred_files_kit(struct cred_files *f, const char *name, const char *text, size_t n,
		   struct err *e)
{
	struct cred_file *v = reallocarray(f->v, f->n + 1, sizeof(*v));
	struct declarations *d;
	int r;

	if (!v)
		return err_errno(e, -ENOMEM, "the kit '%s'", name);
	f->v = v;
	d = reallocarray(f->declared.v, f->declared.n + 1, sizeof(*d));
	if (!d)
		return err_errno(e, -ENOMEM, "the kit '%s'", name);
	f->declared.v = d;
	v[f->n] = (struct cred_file) { .text = strndup(text, n), .n = n };
	if (!v[f->n].text || asprintf(&v[f->n].name, "kit:%s", name) < 0) {
		free(v[f->n].text);
		return err_errno(e, -ENOMEM, "the kit '%s'", name);
	}
	f->n++;
	r = declare_parse("kit", name, text, n, &d[f->declared.n], e);
	f->declared.n += r == 0;
	return r < 0 ? err_ctx(e, "the kit '%s'", name) : 0;
}

int cred_files_keep(struct ctx *c, const char *id, const struct cred_files *f, struct err *e)
{
	size_t i;
	int r = 0;

	for (i = 0; i < f->n && r == 0; i++)
		r = compose_keep_file(c, id, f->v[i].name, f->v[i].text, f->v[i].n, e);
	return r;
}

/* ---- approvals ---- */
static bool is_oauth(const struct cred_use *u)
{
	return u->kind == CRED_OAUTH || u->kind == CRED_TOKEN;
}

/* "SERVICE=HOST" */
static int approve_word(const struct compose_declared *d, const char *word, struct approvals *more,
			struct err *e)
{
	char resource[NET_RESOURCE_MAX + 1];
	const char *equal = strchr(word, '=');
	size_t i, j, k, found = 0;
	int r;

	if (!equal || equal == word)
		return err_set(e, -EINVAL, "--approve: '%.80s' is not SERVICE=HOST", word);
	r = net_resource_check(equal + 1, resource, sizeof(resource), e);
	if (r < 0)
		return err_ctx(e, "--approve '%.80s'", word);
	for (i = 0; i < d->n; i++)
		for (j = 0; j < d->v[i].n; j++) {
			const struct declared *one = &d->v[i].v[j];

			if (strncmp(one->service, word, (size_t)(equal - word)) != 0 ||
			    one->service[equal - word])
				continue;
			for (k = 0; k < one->n; k++)
				if (streq(one->v[k].resource, resource)) {
					found++;
					if (approve_add(more, one->service, is_oauth(&one->v[k]),
							resource) < 0)
						return err_errno(e, -ENOMEM, "--approve");
				}
		}
	return found ? 0
		     : err_set(e, -EINVAL,
			       "--approve: nothing of this sandbox declares '%.100s' (see 'bac "
			       "secret check')",
			       word);
}

/* The hosts of a service that nobody has approved, as a text. */
static int list_open(const struct approvals *have, const struct declared *one,
		     struct approvals *ret, struct buf *text)
{
	size_t i;
	int r = 0;

	for (i = 0; i < one->n && r == 0; i++) {
		const struct cred_use *u = &one->v[i];

		if (approve_has(have, one->service, is_oauth(u), u->resource) ||
		    approve_has(ret, one->service, is_oauth(u), u->resource))
			continue;
		r = buf_printf(text, "%s%s", text->n ? ", " : "", u->resource);
		if (r == 0)
			r = approve_add(ret, one->service, is_oauth(u), u->resource);
	}
	return r;
}

static int add_all(struct approvals *to, const struct approvals *from)
{
	size_t i;
	int r = 0;

	for (i = 0; i < from->n && r == 0; i++)
		r = approve_add(to, from->v[i].service, from->v[i].oauth, from->v[i].domain);
	return r;
}

static int ask_one(const char *origin, const struct declared *one, const struct approvals *have,
		   struct approvals *more, struct err *e)
{
	struct buf hosts = BUF_INIT(64UL * 1024), question = BUF_INIT(66UL * 1024);
	struct approvals open = { 0 };
	int r = list_open(have, one, &open, &hosts);

	if (r == 0 && open.n)
		r = buf_printf(&question,
			       "%s wants requests to %s to carry your secret '%s'. Allow it?",
			       origin, buf_str(&hosts), one->service);
	if (r < 0)
		r = err_errno(e, r, "cannot ask");
	if (r == 0 && open.n)
		r = ask(buf_str(&question), e);
	if (r > 0)
		r = add_all(more, &open);
	approve_done(&open);
	buf_done(&hosts);
	buf_done(&question);
	return r;
}

static bool may_ask(void)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static int ask_all(const struct compose_declared *d, const struct approvals *have,
		   struct approvals *more, struct err *e)
{
	size_t i, k;
	int r = 0;

	for (i = 0; i < d->n; i++)
		for (k = 0; k < d->v[i].n && r == 0; k++)
			r = ask_one(d->v[i].origin, &d->v[i].v[k], have, more, e);
	return r;
}

/* ---- what it cannot do without ---- */

struct stored {
	const struct compose_source *source;
	const char *id;
};

static enum need_kind stored(void *arg, const char *service)
{
	const struct stored *s = arg;

	return compose_has_key(s->source, s->id, service)     ? NEED_KEY
	       : compose_has_login(s->source, s->id, service) ? NEED_LOGIN
							      : NEED_NONE;
}

static bool is_required(const struct compose_declared *d)
{
	for (size_t i = 0; i < d->n; i++)
		for (size_t k = 0; k < d->v[i].n; k++)
			if (d->v[i].v[k].required)
				return true;
	return false;
}

/* have NULL: what is stored alone; who->works false: what is approved alone. */
static int check_needs(struct ctx *c, const struct compose_declared *d,
		       const struct approvals *have, const struct cred_who *who, struct err *e)
{
	struct buf out = BUF_INIT(64UL * 1024);
	struct compose_source source = { 0 };
	struct stored s = { &source, who->id };
	struct need n = { have, who->works ? stored : NULL, &s };
	int r = 0;

	if (!is_required(d))
		return 0;
	if (who->works)
		r = compose_source(c, &source, e);
	if (r == 0 && source.fault[0])
		r = err_set(e, -EIO, "%s", source.fault);
	if (r == 0) {
		r = need_line(&n, d->v, d->n, &out);
		if (r < 0)
			(void)err_errno(e, r, "cannot say what is missing");
		else if (out.n)
			r = err_set(e, -EACCES, "%s", buf_str(&out));
	}
	compose_source_done(&source);
	buf_done(&out);
	return r;
}

int cred_files_approve(struct ctx *c, const struct compose_declared *d,
		       const struct opt_list *approve, const struct cred_who *who, struct err *e)
{
	const bool there = *who->id, asks = may_ask();
	struct approvals have = { 0 }, more = { 0 };
	size_t i;
	int r = 0;

	if (!d->n && !approve->n)
		return 0;
	for (i = 0; i < approve->n && r == 0; i++)
		r = approve_word(d, approve->v[i], &more, e);
	if (r == 0)
		r = approve_load(c->dirs.config, &have, e);
	if (r == 0 && add_all(&have, &more) < 0)
		r = err_errno(e, -ENOMEM, "cannot approve");
	if (r == 0 && asks && !there && who->works)
		r = check_needs(c, d, NULL, who, e); /* before a question that leads nowhere */
	if (r == 0 && asks)
		r = ask_all(d, &have, &more, e);
	if (r == 0 && add_all(&have, &more) < 0)
		r = err_errno(e, -ENOMEM, "cannot approve");
	if (r == 0 && more.n)
		r = approve_save(c->dirs.config, &more, e);
	if (r == 0 && !(there && asks))
		r = check_needs(c, d, &have, who, e);
	approve_done(&have);
	approve_done(&more);
	return r;
}
