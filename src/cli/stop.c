/* bac stop, rm, prune and reset: ending and removing. Nothing is removed that was not named before. */
#include <fcntl.h>
#include <jansson.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cmds.h"
#include "cli/cutoff.h"
#include "cli/halt.h"
#include "cli/probe.h"
#include "cli/secret.h"
#include "io/fd.h"

struct stop_args {
	bool force, preserve, all, dry_run, json;
	struct opt_list filter;
};

#define O(kind, field, letter, name, arg, help) \
	{ \
		name, letter, kind, offsetof(struct stop_args, field), arg, help \
	}

/* Do one thing to each named sandbox; a failure is said and the rest still done. */
static int each(struct ctx *c, const struct args *args, struct err *e,
		int (*act)(struct ctx *c, const struct sandbox *b, void *user, struct err *e),
		void *user)
{
	int worst = 0;
	size_t i;

	for (i = 0; i < args->n; i++) {
		struct sandbox b = { 0 };
		struct err one = { 0 };
		int r = state_get(c->state, args->v[i], &b, &one);

		if (r == 0)
			r = act(c, &b, user, &one);
		sandbox_done(&b);
		if (r >= 0)
			continue;
		if (worst < 0)
			say("%s", e->msg);
		*e = one;
		worst = r;
	}
	return worst;
}

/* ---- stop ---- */

static const struct opt stop_opts[] = {
	O(OPT_FLAG, force, 'f', "force", NULL,
	  "end the machine at once, without an orderly shutdown"),
};

static int stop_one(struct ctx *c, const struct sandbox *b, void *user, struct err *e)
{
	struct stop_args *o = user;
	_close_ int lock = -1;
	bool ran = false;
	int r = halt_sandbox(c, b, o->force ? HALT_NOW : 0, &ran, &lock, e);

	if (r < 0)
		return r;
	last_run_settle(c, b);
	if (!ran)
		say("sandbox '%s' is stopped already", b->name);
	return 0;
}

static int run_stop(void *opt, struct args *args, struct err *e)
{
	struct ctx c;
	int r = ctx_open(&c, e);

	if (r == 0)
		r = each(&c, args, e, stop_one, opt);
	ctx_done(&c);
	return r;
}

const struct cmd stop_cmd = {
	.name = "stop",
	.usage = "[OPTIONS] SANDBOX...",
	.brief = "stop sandboxes; their files stay",
	.opts = stop_opts,
	.n_opts = ARRAY_SIZE(stop_opts),
	.min_args = 1,
	.max_args = SIZE_MAX,
	.size = sizeof(struct stop_args),
	.run = run_stop,
};

/* ---- rm ---- */

static const struct opt rm_opts[] = {
	O(OPT_FLAG, force, 'f', "force", NULL, "do not ask, and remove also what is in use"),
	O(OPT_FLAG, all, 0, "all", NULL, "remove all sandboxes"),
};

static int rm_one(struct ctx *c, const struct sandbox *b, void *user, struct err *e)
{
	struct stop_args *o = user;
	int r = halt_remove(c, b, o->force ? 0 : HALT_IF_IDLE, e);

	if (r == -EBUSY)
		return err_set(e, r, "sandbox '%s' is in use; end what runs in it, or use --force",
			       b->name);
	if (r == 0)
		(void)printf("%s\n", b->name);
	return r;
}

/* The names of all, as arguments. */
static int name_all(struct ctx *c, struct args *ret, struct err *e)
{
	struct sandbox *v;
	size_t n, i;
	int r = state_list(c->state, &v, &n, e);

	if (r < 0)
		return r;
	ret->v = calloc(n + 1, sizeof(*ret->v));
	for (i = 0; i < n; i++) {
		if (ret->v)
			ret->v[ret->n++] = take_ptr(v[i].name);
		sandbox_done(&v[i]);
	}
	free(v);
	return ret->v ? 0 : err_errno(e, -ENOMEM, "cannot list");
}

static void free_names(struct args *a)
{
	size_t i;

	for (i = 0; i < a->n; i++)
		free(a->v[i]);
	free(a->v);
}

/* 1: go on; 0: the user said no. */
static int confirm_names(const char *verb, const char *tail, const struct args *args, struct err *e)
{
	struct buf q = BUF_INIT(64UL * 1024);
	size_t i;
	int r;

	r = buf_printf(&q, "%s", verb);
	for (i = 0; i < args->n && r == 0; i++)
		r = buf_printf(&q, "%s '%s'", i ? "," : "", args->v[i]);
	if (r == 0)
		r = buf_printf(&q, " %s?", tail);
	r = r < 0 ? err_errno(e, r, "cannot ask") : ask(buf_str(&q), e);
	buf_done(&q);
	return r;
}

static int rm_named(struct ctx *c, struct stop_args *o, struct args *args, struct err *e)
{
	int r = 1;
	size_t i;

	for (i = 0; i < args->n; i++) {
		struct sandbox b = { 0 };

		r = state_get(c->state, args->v[i], &b, e);
		sandbox_done(&b);
		if (r < 0)
			return r;
	}
	r = 1;
	if (!o->force && args->n)
		r = confirm_names("Remove", "and all files in it", args, e);
	if (r == 0)
		return err_set(e, -ECANCELED, "nothing was removed");
	r = r < 0 ? r : each(c, args, e, rm_one, o);
	return r < 0 ? r : flush_out(e);
}

static int run_rm(void *opt, struct args *args, struct err *e)
{
	struct stop_args *o = opt;
	struct args all = { 0 };
	struct ctx c;
	int r;

	if (o->all == (args->n > 0))
		return err_set(e, -EINVAL, "rm: name sandboxes, or use --all%s",
			       o->all ? ", not both" : "");
	r = ctx_open(&c, e);
	if (r == 0 && o->all)
		r = name_all(&c, &all, e);
	if (r == 0)
		r = rm_named(&c, o, o->all ? &all : args, e);
	free_names(&all);
	ctx_done(&c);
	return r;
}

const struct cmd rm_cmd = {
	.name = "rm",
	.usage = "[OPTIONS] [SANDBOX...]",
	.brief = "remove sandboxes and all that is in them",
	.opts = rm_opts,
	.n_opts = ARRAY_SIZE(rm_opts),
	.max_args = SIZE_MAX,
	.size = sizeof(struct stop_args),
	.run = run_rm,
};

/* ---- prune ---- */

static const struct opt prune_opts[] = {
	O(OPT_FLAG, dry_run, 0, "dry-run", NULL, "only show what would be removed"),
	O(OPT_FLAG, json, 0, "json", NULL, "print JSON"),
	O(OPT_LIST, filter, 0, "filter", "until=AGE",
	  "only those stopped for longer than AGE (72h), or before a time (RFC 3339 or seconds "
	  "since 1970)"),
	O(OPT_FLAG, force, 'f', "force", NULL, "do not ask"),
};

static bool is_prunable(struct ctx *c, const struct sandbox *b, int64_t cutoff)
{
	struct last_run last;

	if (b->lost || state_is_locked(c->state, b->id))
		return false;
	if (cutoff == INT64_MAX)
		return true;
	last_run_read(c, b->id, &last);
	return last.known && last.at && last.at < cutoff;
}

static int pick(struct ctx *c, int64_t cutoff, struct args *ret, struct err *e)
{
	struct args all = { 0 };
	size_t i, n = 0;
	int r = name_all(c, &all, e);

	for (i = 0; r == 0 && i < all.n; i++) {
		struct sandbox b = { 0 };

		if (state_get(c->state, all.v[i], &b, e) == 0 && is_prunable(c, &b, cutoff))
			all.v[n++] = all.v[i];
		else
			free(all.v[i]);
		sandbox_done(&b);
	}
	all.n = n;
	*ret = all;
	return r;
}

static int prune_one(struct ctx *c, const struct sandbox *b, void *user, struct err *e)
{
	struct stop_args *o = user;
	int r = halt_remove(c, b, HALT_IF_IDLE, e);

	if (r == 0 && !o->json)
		(void)printf("%s\n", b->name);
	return r;
}

static int print_pruned(const struct args *a, bool dry, bool json, struct err *e)
{
	json_t *list;
	size_t i;

	if (!json) {
		for (i = 0; dry && i < a->n; i++)
			(void)printf("%s\n", a->v[i]);
		if (!a->n)
			(void)printf("Nothing to remove.\n");
		return flush_out(e);
	}
	list = json_array();
	for (i = 0; i < a->n; i++)
		(void)json_array_append_new(list, json_string(a->v[i]));
	return print_json(json_pack("{s:o, s:b}", "removed", list, "dry_run", dry), e);
}

static int run_prune(void *opt, struct args *args, struct err *e)
{
	struct stop_args *o = opt;
	struct args names = { 0 };
	int64_t cutoff = 0;
	struct ctx c;
	int r;

	(void)args;
	r = cutoff_parse(&o->filter, &cutoff, e);
	if (r < 0)
		return r;
	r = ctx_open(&c, e);
	if (r == 0)
		r = pick(&c, cutoff, &names, e);
	if (r == 0 && names.n && !o->dry_run && !o->force) {
		r = confirm_names("Remove the stopped", "and all files in them", &names, e);
		r = r == 0 ? err_set(e, -ECANCELED, "nothing was removed") : MIN(r, 0);
	}
	if (r == 0 && !o->dry_run)
		r = each(&c, &names, e, prune_one, o);
	if (r == 0)
		r = print_pruned(&names, o->dry_run, o->json, e);
	free_names(&names);
	ctx_done(&c);
	return r;
}

const struct cmd prune_cmd = {
	.name = "prune",
	.usage = "[OPTIONS]",
	.brief = "remove stopped sandboxes",
	.opts = prune_opts,
	.n_opts = ARRAY_SIZE(prune_opts),
	.max_args = 0,
	.size = sizeof(struct stop_args),
	.run = run_prune,
};

/* ---- reset ---- */

static const struct opt reset_opts[] = {
	O(OPT_FLAG, force, 'f', "force", NULL, "do not ask"),
	O(OPT_FLAG, preserve, 0, "preserve-secrets", NULL, "keep secrets and approvals"),
};

static int forget_all(struct ctx *c, struct err *e)
{
	char *const gone[] = { c->dirs.state, c->dirs.cache, c->dirs.run };
	size_t i;
	int r = 0;

	c->state = state_free(c->state);
	for (i = 0; i < ARRAY_SIZE(gone) && r == 0; i++) {
		r = dirs_remove(AT_FDCWD, gone[i]);
		if (r < 0)
			r = err_errno(e, r, "cannot remove %s", gone[i]);
	}
	return r;
}

static int run_reset(void *opt, struct args *args, struct err *e)
{
	struct stop_args *o = opt;
	struct stop_args force = { .force = true };
	struct args names = { 0 };
	char question[512];
	struct ctx c;
	int r;

	(void)args;
	r = ctx_open(&c, e);
	if (r == 0)
		r = name_all(&c, &names, e);
	if (r == 0 && !o->force) {
		(void)snprintf(question, sizeof(question),
			       "Remove all %zu sandboxes with their files, all "
			       "templates, kernels, settings, network rules and logs%s?",
			       names.n, o->preserve ? "" : ", and all secrets");
		r = ask(question, e);
		r = r == 0 ? err_set(e, -ECANCELED, "nothing was removed") : MIN(r, 0);
	}
	if (r == 0)
		r = each(&c, &names, e, rm_one, &force);
	if (r == 0 && !o->preserve)
		secret_forget_all(&c);
	if (r == 0)
		r = forget_all(&c, e);
	free_names(&names);
	ctx_done(&c);
	return r;
}

const struct cmd reset_cmd = {
	.name = "reset",
	.usage = "[OPTIONS]",
	.brief = "remove everything that bac keeps: sandboxes, templates, kernels, settings, "
		 "rules, secrets",
	.opts = reset_opts,
	.n_opts = ARRAY_SIZE(reset_opts),
	.max_args = 0,
	.size = sizeof(struct stop_args),
	.run = run_reset,
};
