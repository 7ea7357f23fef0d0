/* One sandbox kit and its mixins: found, read, checked and composed. */
#include "cli/kit-load.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/opt.h"
#include "io/fd.h"

enum {
	TEXT_MAX = 1024 * 1024
}; /* of a shipped file that is looked at for references to arguments */

static void part_done(struct kit_part *p)
{
	kit_source_done(&p->source);
	kit_done(&p->kit);
}

void kit_loaded_done(struct kit_loaded *l)
{
	for (size_t i = 0; i < l->n; i++)
		part_done(&l->v[i]);
	free(l->v);
	kit_done(&l->kit);
	report_done(&l->report);
	*l = (struct kit_loaded) { 0 };
}

static int read_args(const struct kit_load_opts *o, struct kit_args *ret, struct err *e)
{
	int r = 0;

	for (size_t i = 0; o->args_files && i < o->args_files->n && r == 0; i++) {
		const char *path = o->args_files->v[i];
		_free_ char *text = NULL;
		size_t n;

		r = fd_read_file(AT_FDCWD, path, KIT_ARGS_FILE_MAX, &text, &n);
		if (r < 0)
			return err_errno(e, r, "--kit-args-file: cannot read '%.200s'", path);
		r = kit_args_file(ret, path, text, n, e);
	}
	for (size_t i = 0; o->args && i < o->args->n && r == 0; i++) {
		r = kit_args_add(ret, o->args->v[i], e);
		if (r < 0)
			return err_ctx(e, "--kit-arg");
	}
	return r;
}

/* ---- one kit ---- */

/* A file of the home directory that an agent's own kit writes. */
static int check_reserved(const struct kit_part *p, const struct kit_entry *f, struct err *e)
{
	static const char home[] = "files/home/";
	const char *agent = starts_with(f->path, home) && f->kind != KIT_DIR
				    ? kit_reserved(f->path + strlen(home))
				    : NULL;

	if (!agent || (p->source.builtin && streq(p->kit.name, agent)))
		return 0;
	return err_set(e, -EINVAL,
		       "kit '%.80s': '%.200s' is the configuration of '%s', which only that "
		       "agent's own kit may bring",
		       p->kit.name, f->path, agent);
}

/* References to arguments in its files are as good as those in its specification. */
static int check_text(const struct kit_part *p, int dir, const struct kit_entry *f, struct err *e)
{
	struct buf out = BUF_INIT(2UL * TEXT_MAX);
	_free_ char *text = NULL;
	size_t n;
	int r;

	if ((f->kind != KIT_FILE && f->kind != KIT_EXEC) || f->size > TEXT_MAX ||
	    !starts_with(f->path, "files/"))
		return 0;
	r = kit_tree_read(dir, f->path, TEXT_MAX, &text, &n, e);
	if (r == 0 && !memchr(text, '\0', n)) {
		r = kit_args_apply(&p->kit.args, text, n, &out, e);
		if (r < 0)
			(void)err_ctx(e, "kit '%.80s': '%.200s'", p->kit.name, f->path);
	}
	buf_done(&out);
	return r;
}

static int check_files(const struct kit_part *p, struct err *e)
{
	_close_ int dir = open(p->source.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = dir < 0 ? err_errno(e, -errno, "cannot read '%.200s'", p->source.dir) : 0;

	for (size_t i = 0; i < p->source.tree.n && r == 0; i++) {
		r = check_reserved(p, &p->source.tree.v[i], e);
		if (r == 0)
			r = check_text(p, dir, &p->source.tree.v[i], e);
	}
	return r;
}

/* "./kit/spec.yaml", for messages. */
static char *spec_name(const char *ref)
{
	size_t n = strlen(ref);
	char *name = NULL;

	while (n > 1 && ref[n - 1] == '/')
		n--;
	return asprintf(&name, "%.*s/spec.yaml", (int)n, ref) < 0 ? NULL : name;
}

static int take_warnings(struct kit_loaded *l, const struct kit_part *p, const char *file)
{
	for (size_t i = 0; i < p->source.tree.n_ignored; i++)
		report_warn(&l->report, file, NULL,
			    "'%s' is not used: a kit's files are in files/home and files/workspace",
			    p->source.tree.ignored[i]);
	return 0;
}

static int load_part(struct ctx *c, const char *ref, struct kit_args *args, struct kit_loaded *l,
		     struct kit_part *ret, struct err *e)
{
	struct kit_part p = { 0 };
	_free_ char *file = spec_name(ref), *text = NULL;
	_close_ int dir = -1;
	size_t n;
	int r;

	if (!file)
		return err_errno(e, -ENOMEM, "cannot read the kit");
	r = kit_source_get(c, ref, &p.source, e);
	if (r < 0)
		return r;
	dir = open(p.source.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = kit_tree_read(dir, "spec.yaml", KIT_SPEC_MAX, &text, &n, e);
	if (r == 0)
		r = kit_parse(file, text, n, args, &p.kit, &l->report, e);
	if (r == 0)
		r = take_warnings(l, &p, file);
	if (r == 0)
		r = check_files(&p, e);
	if (r < 0)
		part_done(&p);
	else
		*ret = p;
	return r;
}

/* ---- all of them ---- */

static int add_part(struct kit_loaded *l, const struct kit_part *p, size_t at, struct err *e)
{
	struct kit_part *v = reallocarray(l->v, l->n + 1, sizeof(*v));

	if (!v)
		return err_errno(e, -ENOMEM, "cannot read the kit");
	memmove(&v[at + 1], &v[at], (l->n - at) * sizeof(*v));
	v[at] = *p;
	l->v = v;
	l->n++;
	return 0;
}

/* The kit and what it extends: each parent goes in front of the one before. */
static int load_chain(struct ctx *c, const struct kit_load_opts *o, struct kit_args *args,
		      struct kit_loaded *l, struct err *e)
{
	const char *ref = o->base;

	for (size_t depth = 0; ref; depth++) {
		struct kit_part p = { 0 };
		int r;

		if (depth > KIT_EXTENDS_MAX)
			return err_set(e, -EINVAL, "kit '%.80s': extends more than %d kits",
				       o->base, KIT_EXTENDS_MAX);
		if (depth && !kit_source_builtin(c, ref))
			return err_set(
				e, -EINVAL,
				"kit '%.80s': extends '%.80s', which is not a built-in agent",
				l->v[0].kit.name, ref);
		for (size_t i = 0; depth && i < l->n; i++)
			if (streq(l->v[i].kit.name, ref) && l->v[i].source.builtin)
				return err_set(e, -EINVAL, "kit '%.80s': extends itself", ref);
		r = load_part(c, ref, args, l, &p, e);
		if (r == 0)
			r = add_part(l, &p, 0, e);
		if (r < 0) {
			part_done(&p);
			return r;
		}
		ref = o->single ? NULL : l->v[0].kit.extends;
	}
	l->base = l->n ? l->n - 1 : 0;
	return 0;
}

static int load_mixins(struct ctx *c, const struct kit_load_opts *o, struct kit_args *args,
		       struct kit_loaded *l, struct err *e)
{
	size_t n = o->kits ? o->kits->n : 0;

	if (n > KIT_MIXINS_MAX)
		return err_set(e, -E2BIG, "--kit: more than %d kits", KIT_MIXINS_MAX);
	for (size_t i = 0; i < n; i++) {
		struct kit_part p = { 0 };
		int r = load_part(c, o->kits->v[i], args, l, &p, e);

		p.mixin = true;
		if (r == 0)
			r = add_part(l, &p, l->n, e);
		if (r < 0) {
			part_done(&p);
			return r;
		}
	}
	return 0;
}

static int compose(struct kit_loaded *l, struct err *e)
{
	const struct kit *parents[KIT_EXTENDS_MAX + 1], *mixins[KIT_MIXINS_MAX];
	size_t n_mixins = l->n - l->base - 1;

	for (size_t i = 0; i < l->base; i++)
		parents[i] = &l->v[l->base - 1 - i].kit;
	for (size_t i = 0; i < n_mixins; i++)
		mixins[i] = &l->v[l->base + 1 + i].kit;
	return kit_compose(&l->v[l->base].kit, parents, l->base, mixins, n_mixins, &l->kit,
			   &l->report, e);
}

int kit_load(struct ctx *c, const struct kit_load_opts *o, struct kit_loaded *ret, struct err *e)
{
	struct kit_args args = { 0 };
	int r;

	*ret = (struct kit_loaded) { 0 };
	r = read_args(o, &args, e);
	if (r == 0)
		r = load_chain(c, o, &args, ret, e);
	if (r == 0)
		r = load_mixins(c, o, &args, ret, e);
	if (r == 0)
		r = kit_args_used(&args, e);
	if (r == 0 && !o->single && o->base)
		r = compose(ret, e);
	kit_args_done(&args);
	return r;
}
