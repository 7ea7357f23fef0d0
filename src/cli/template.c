/* bac template build, ls and rm. */
#include <jansson.h>
#include <time.h>

#include "base/text.h"
#include "cli/cmds.h"
#include "cli/ctx.h"
#include "cli/progress.h"
#include "image/image.h"

enum { DIGITS = 12 };

/* ---- build ---- */

struct build_args {
	const char *mirror, *suite;
	bool fresh, json, quiet;
};

static const struct opt build_opts[] = {
	{ "fresh", 0, OPT_FLAG, offsetof(struct build_args, fresh), NULL,
	  "build even if there is a template from the same inputs" },
	{ "json", 0, OPT_FLAG, offsetof(struct build_args, json), NULL, "print JSON" },
	{ "mirror", 0, OPT_STR, offsetof(struct build_args, mirror), "URL",
	  "Debian mirror (default: the setting template.mirror, else the host's)" },
	{ "quiet", 'q', OPT_FLAG, offsetof(struct build_args, quiet), NULL,
	  "show no progress, print the digest only" },
	{ "suite", 0, OPT_STR, offsetof(struct build_args, suite), "SUITE",
	  "Debian suite (default: the setting template.suite)" },
};

static json_t *template_json(const struct image_template *t)
{
	char created[32];

	return json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:s, s:s}", "tag", t->tag, "digest",
			 t->digest, "size", (json_int_t)t->size, "created_at",
			 utc(created, sizeof(created), t->created), "source", t->source, "kernel",
			 t->kernel, "user", t->user, "workdir", t->workdir);
}

static int show_built(const struct build_args *o, const struct image_template *t, bool made,
		      struct err *e)
{
	char size[32];

	if (o->json) {
		json_t *j = template_json(t);

		(void)json_object_set_new(j, "made", json_boolean(made));
		return print_json(j, e);
	}
	if (o->quiet)
		(void)printf("%s\n", t->digest);
	else
		(void)printf("%s template %s (%.*s, %s, %s)\n",
			     made ? "Built" : "Up to date:", t->tag, DIGITS, t->digest, t->source,
			     text_from_size(size, sizeof(size), t->size));
	return flush_out(e);
}

static int build(struct ctx *c, const struct build_args *o, struct err *e)
{
	_free_ char *mirror = NULL, *suite = NULL, *init = dirs_join(c->dirs.libexec, "bac-init");
	struct image_template t = { 0 };
	struct progress progress;
	struct image_build b = { .cache = c->dirs.cache, .data = c->dirs.data, .init = init };
	bool made = false;
	int r;

	if (!init)
		return err_errno(e, -ENOMEM, "cannot build the template");
	r = setting_get(c->state, "template.mirror", &mirror, NULL, e);
	if (r == 0)
		r = setting_get(c->state, "template.suite", &suite, NULL, e);
	if (r < 0)
		return r;
	b.mirror = o->mirror ? o->mirror : mirror;
	b.suite = o->suite ? o->suite : suite;
	b.fresh = o->fresh;
	progress_begin(&progress, o->quiet);
	b.progress = &progress.p;
	r = image_template_build(&b, &t, &made, e);
	progress_end(&progress);
	if (r == 0)
		r = show_built(o, &t, made, e);
	image_template_done(&t);
	if (r == -EINTR && progress_signal()) {
		say("%s", e->msg);
		return progress_signal();
	}
	return r < 0 ? err_ctx(e, "cannot build the template") : r;
}

static int run_build(void *opt, struct args *args, struct err *e)
{
	struct ctx c;
	int r = ctx_open(&c, e);

	(void)args;
	if (r == 0)
		r = build(&c, opt, e);
	ctx_done(&c);
	return r;
}

/* ---- ls ---- */

struct ls_args {
	bool json, quiet;
};

static const struct opt ls_opts[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct ls_args, json), NULL, "print JSON" },
	{ "quiet", 'q', OPT_FLAG, offsetof(struct ls_args, quiet), NULL, "print names only" },
};

static int ls_json(const struct image_template *v, size_t n, struct err *e)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < n; i++)
		(void)json_array_append_new(list, template_json(&v[i]));
	return print_json(json_pack("{s:o}", "templates", list), e);
}

static int ls_table(const struct image_template *v, size_t n, struct err *e)
{
	char size[32], age[64];
	int wide = (int)strlen("TEMPLATE");
	size_t i;

	if (!n) {
		(void)printf("No templates found. Make one with: bac template build\n");
		return flush_out(e);
	}
	for (i = 0; i < n; i++)
		wide = MAX(wide, (int)strlen(v[i].tag));
	(void)printf("%-*s   %-*s   %-9s   %s\n", wide, "TEMPLATE", DIGITS, "DIGEST", "SIZE",
		     "CREATED");
	for (i = 0; i < n; i++) {
		int64_t s = MAX(time(NULL) - v[i].created, 0);

		(void)printf("%-*s   %.*s   %-9s   %s ago\n", wide, v[i].tag[0] ? v[i].tag : "-",
			     DIGITS, v[i].digest, text_from_size(size, sizeof(size), v[i].size),
			     text_from_ms(age, sizeof(age), (uint64_t)s * 1000));
	}
	return flush_out(e);
}

static int ls_names(const struct image_template *v, size_t n, struct err *e)
{
	size_t i;

	for (i = 0; i < n; i++)
		(void)printf("%.*s\n", v[i].tag[0] ? INT32_MAX : DIGITS,
			     v[i].tag[0] ? v[i].tag : v[i].digest);
	return flush_out(e);
}

static int run_ls(void *opt, struct args *args, struct err *e)
{
	struct ls_args *o = opt;
	struct image_template *v;
	struct dirs d = { 0 };
	size_t n, i;
	int r = dirs_get(&d, e);

	(void)args;
	if (r == 0) {
		image_sweep(d.cache);
		r = image_template_ls(d.cache, &v, &n, e);
	}
	dirs_done(&d);
	if (r != 0)
		return r;
	if (o->json)
		r = ls_json(v, n, e);
	else
		r = o->quiet ? ls_names(v, n, e) : ls_table(v, n, e);
	for (i = 0; i < n; i++)
		image_template_done(&v[i]);
	free(v);
	return r;
}

/* ---- rm ---- */

struct rm_args {
	bool force;
};

static const struct opt rm_opts[] = {
	{ "force", 'f', OPT_FLAG, offsetof(struct rm_args, force), NULL, "do not ask" },
};

/* A sandbox cannot start without the template that it stands on. */
static int check_unused(struct ctx *c, const struct image_template *t, struct err *e)
{
	struct sandbox *v;
	size_t n, i, users = 0, first = 0;
	int r = state_list(c->state, &v, &n, e);

	if (r < 0)
		return r;
	for (i = 0; i < n; i++)
		if (streq(v[i].tmpl, t->digest) && users++ == 0)
			first = i;
	if (users)
		r = err_set(e, -EBUSY, "template %.*s is used by %zu %s; remove first: bac rm %s%s",
			    DIGITS, t->digest, users, users == 1 ? "sandbox" : "sandboxes",
			    v[first].name, users == 1 ? "" : " ...");
	for (i = 0; i < n; i++)
		sandbox_done(&v[i]);
	free(v);
	return r;
}

/* 1: remove it, 0: the user said no, -Exxx. */
static int confirm(const struct image_template *t, struct err *e)
{
	char question[160], size[32];

	(void)snprintf(question, sizeof(question), "Remove template %.60s (%.*s, %s)?",
		       t->tag[0] ? t->tag : "-", DIGITS, t->digest,
		       text_from_size(size, sizeof(size), t->size));
	return ask(question, e);
}

static int rm_one(struct ctx *c, const char *ref, const struct rm_args *o, struct err *e)
{
	struct image_template t = { 0 };
	int r = image_template_find(c->dirs.cache, ref, &t, e);

	if (r == 0)
		r = check_unused(c, &t, e);
	if (r == 0)
		r = o->force ? 1 : confirm(&t, e);
	if (r == 1) {
		r = image_template_rm(c->dirs.cache, t.digest, e);
		if (r == 0)
			(void)printf("%s\n", ref);
	}
	image_template_done(&t);
	return r;
}

static int run_rm(void *opt, struct args *args, struct err *e)
{
	struct ctx c;
	size_t i;
	int r = ctx_open(&c, e);

	if (r == 0)
		image_sweep(c.dirs.cache);
	for (i = 0; r == 0 && i < args->n; i++)
		r = rm_one(&c, args->v[i], opt, e);
	ctx_done(&c);
	return r < 0 ? r : flush_out(e);
}

static const struct cmd subs[] = {
	{
		.name = "build",
		.usage = "[OPTIONS]",
		.brief = "make the default template from Debian packages",
		.text = "Downloads Debian packages and Node.js, and makes a read-only root and a "
			"kernel of them. Does\n"
			"nothing if there is a template from the same inputs. Sandboxes keep the "
			"template that they were\n"
			"created from.",
		.opts = build_opts,
		.n_opts = ARRAY_SIZE(build_opts),
		.size = sizeof(struct build_args),
		.run = run_build,
	},
	{
		.name = "ls",
		.usage = "[OPTIONS]",
		.brief = "list templates",
		.opts = ls_opts,
		.n_opts = ARRAY_SIZE(ls_opts),
		.size = sizeof(struct ls_args),
		.run = run_ls,
	},
	{
		.name = "rm",
		.usage = "[OPTIONS] TEMPLATE...",
		.brief = "remove templates",
		.text = "A template is named by its tag or the first digits of its digest. One "
			"that a sandbox uses stays.",
		.opts = rm_opts,
		.n_opts = ARRAY_SIZE(rm_opts),
		.min_args = 1,
		.max_args = SIZE_MAX,
		.size = sizeof(struct rm_args),
		.run = run_rm,
	},
	{ .name = NULL },
};

const struct cmd template_cmd = {
	.name = "template",
	.usage = "COMMAND",
	.brief = "build, list and remove templates",
	.subs = subs,
};
