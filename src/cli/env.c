/* bac env: plan, create, run, exec and rm. */
#include "cli/env.h"

#include <stdio.h>

#include "cli/approve.h"
#include "cli/cmds.h"

enum { PLAN_MAX = 1024 * 1024 };

#define O(kind, field, letter, name, arg, help) \
	{ \
		name, letter, kind, offsetof(struct env_args, field), arg, help \
	}
#define COMMON \
	O(OPT_STR, name, 0, "name", "NAME", \
	  "name of the sandbox (default: of the file, else AGENT-FOLDER)"), \
		O(OPT_LIST, args, 0, "env-arg", "NAME=VALUE", \
		  "an argument of the file; repeatable"), \
		O(OPT_LIST, args_files, 0, "env-args-file", "FILE", \
		  "a file of them, one a line; repeatable")
/* clang-format off */
#define APPLY \
	O(OPT_FLAG, auto_approve, 0, "auto-approve", NULL, "do not ask, this once"), \
	O(OPT_FLAG, skip_host, 0, "skip-host-commands", NULL, "leave out the commands that run on this machine")
static const struct opt plan_opts[] = {
	COMMON,
	O(OPT_FLAG, skip_host, 0, "skip-host-commands", NULL, "leave out the commands that run on this machine"),
};
static const struct opt create_opts[] = { COMMON, APPLY };
static const struct opt run_opts[] = {
	COMMON, APPLY,
	O(OPT_FLAG, detached, 'd', "detached", NULL, "print the sandbox's id and return"),
};
static const struct opt rm_opts[] = {
	COMMON,
	O(OPT_FLAG, force, 'f', "force", NULL, "do not ask, and remove also what is in use"),
	O(OPT_FLAG, prune, 0, "prune-bindings", NULL, "remove the file's bindings too: those of each service it names, whoever else uses them"),
	O(OPT_FLAG, skip_host, 0, "skip-host-commands", NULL, "leave out the commands that run on this machine"),
};
static const struct opt exec_opts_[] = {
	COMMON,
	O(OPT_FLAG, interactive, 'i', "interactive", NULL, "pass standard input to the command"),
	O(OPT_FLAG, tty, 't', "tty", NULL, "give the command a terminal"),
	O(OPT_STR, user, 'u', "user", "USER", "name or uid, also with :group (default: agent)"),
	O(OPT_STR, workdir, 'w', "workdir", "DIR", "directory to run in"),
	O(OPT_LIST, env, 'e', "env", "NAME[=VALUE]", "set a variable, or copy the host's; repeatable"),
	O(OPT_LIST, env_file, 0, "env-file", "FILE", "read variables from a file; repeatable"),
	O(OPT_FLAG, detach, 'd', "detach", NULL, "leave it running and print its id"),
};
/* clang-format on */

static int run_plan(void *opt, struct args *args, struct err *e)
{
	struct buf out = BUF_INIT(PLAN_MAX);
	struct env v;
	int r = env_open(opt, args->v, args->n, &v, e);

	if (r == 0)
		r = env_plan_text(&v, ENV_APPLY, &out, e);
	if (r == 0) {
		(void)fwrite(buf_data(&out), 1, out.n, stdout);
		(void)printf("The sandbox %s.\n", v.there ? "is there" : "is not there yet");
		r = flush_out(e);
	}
	buf_done(&out);
	env_close(&v);
	return r;
}

/* Approved, initialised, and there: 0; 1: the user said no. *ret_made: it was made now. */
static int apply(struct env *v, bool may_be_there, bool *ret_made, struct err *e)
{
	int r = env_approve(v, ENV_APPLY, e);

	if (r != 0)
		return r;
	if (v->there && !may_be_there)
		return err_set(e, -EEXIST,
			       "sandbox '%s' is there already; enter it with bac env run", v->name);
	r = env_host_run(v, SBXENV_INITIALIZE, e);
	*ret_made = !v->there;
	if (r < 0 || v->there)
		return r;
	r = env_make(v, e);
	return r == 0 ? env_host_run(v, SBXENV_POST_CREATE, e) : r;
}

static int run_create(void *opt, struct args *args, struct err *e)
{
	struct env v;
	bool made = false;
	int r = env_open(opt, args->v, args->n, &v, e);

	if (r == 0)
		r = apply(&v, false, &made, e);
	if (r == 0) {
		(void)printf("Created environment '%s'. Enter it with: bac env run\n", v.name);
		r = flush_out(e);
	}
	env_close(&v);
	return r;
}

static void add_vars(const struct env *v, struct env_words *w)
{
	for (size_t i = 0; i < v->v.n_vars; i++) {
		env_word(w, "--env");
		env_word_printf(w, "%s=%s", v->v.vars[i].name, v->v.vars[i].value);
	}
}

static int run_run(void *opt, struct args *args, struct err *e)
{
	struct env_args *o = opt;
	struct env_words w = { 0 };
	size_t before = MIN(args->dashes, args->n);
	bool made = false;
	struct env v;
	int r = env_open(o, args->v, before, &v, e);

	if (r == 0)
		r = apply(&v, true, &made, e);
	if (r == 0) {
		env_word(&w, "bac");
		env_word(&w, "run");
		env_word(&w, "--name");
		env_word(&w, v.name);
		add_vars(&v, &w);
		if (o->detached)
			env_word(&w, "--detached");
		if (before < args->n)
			env_word(&w, "--");
		for (size_t i = before; i < args->n; i++)
			env_word(&w, args->v[i]);
		r = env_become(&w, e);
	}
	env_words_done(&w);
	env_close(&v);
	return r;
}

static void add_list(struct env_words *w, const char *option, const struct opt_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		env_word(w, option);
		env_word(w, l->v[i]);
	}
}

static void add_exec(struct env_words *w, const struct env_args *o)
{
	const struct {
		bool given;
		const char *option, *value;
	} list[] = { { o->interactive, "--interactive", NULL },
		     { o->tty, "--tty", NULL },
		     { o->detach, "--detach", NULL },
		     { o->user, "--user", o->user },
		     { o->workdir, "--workdir", o->workdir } };

	for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
		if (list[i].given)
			env_word(w, list[i].option);
		if (list[i].value)
			env_word(w, list[i].value);
	}
	add_list(w, "--env-file", &o->env_file);
	add_list(w, "--env", &o->env);
}

static int run_exec(void *opt, struct args *args, struct err *e)
{
	struct env_args *o = opt;
	struct env_words w = { 0 };
	size_t n = args->dashes == SIZE_MAX ? 0 : args->dashes;
	struct env v = { 0 };
	int r;

	if (n == args->n)
		return err_set(e, -EINVAL, "exec: there is no command behind --");
	r = env_open(o, args->v, n, &v, e);
	if (r == 0 && !v.there)
		r = err_set(e, -ENOENT, "sandbox '%s' not found; create it with bac env create",
			    v.name);
	if (r == 0) {
		env_word(&w, "bac");
		env_word(&w, "exec");
		add_vars(&v, &w);
		add_exec(&w, o);
		env_word(&w, v.name);
		for (size_t i = n; i < args->n; i++)
			env_word(&w, args->v[i]);
		r = env_become(&w, e);
	}
	env_words_done(&w);
	env_close(&v);
	return r;
}

static int prune(const struct env *v, struct err *e)
{
	int r = 0;

	for (size_t i = 0; v->o->prune && i < v->v.n_bindings && r == 0; i++)
		r = approve_drop(v->c.dirs.config, v->v.bindings[i].service, e);
	return r;
}

static int take_away(struct env *v, struct err *e)
{
	struct env_words w = { 0 };
	struct err bad = { 0 };
	int r = env_approve(v, ENV_REMOVE, e);

	if (r != 0)
		return r;
	if (env_host_run(v, SBXENV_PRE_REMOVE, &bad) < 0)
		say("warning: %s", bad.msg);
	env_word(&w, "bac");
	env_word(&w, "rm");
	env_word(&w, "--force");
	env_word(&w, v->name);
	if (v->there)
		r = env_bac(&w, NULL, 0, e);
	env_words_done(&w);
	if (r > 0)
		r = err_set(e, -EIO, "the environment '%s' was not removed", v->name);
	return r == 0 ? prune(v, e) : r;
}

static int run_rm(void *opt, struct args *args, struct err *e)
{
	struct env v;
	int r = env_open(opt, args->v, args->n, &v, e);

	if (r == 0)
		r = take_away(&v, e);
	env_close(&v);
	return r;
}

#define SUB(word, options, text_usage, about, function, least) \
	{ \
		.name = word, .usage = text_usage, .brief = about, .opts = options, \
		.n_opts = ARRAY_SIZE(options), .min_args = (least), .max_args = SIZE_MAX, \
		.size = sizeof(struct env_args), .run = function \
	}

static const struct cmd subs[] = {
	SUB("plan", plan_opts, "[OPTIONS] [PATH...]", "show what it would do, and do nothing",
	    run_plan, 0),
	SUB("create", create_opts, "[OPTIONS] [PATH...]", "create it, after approval", run_create,
	    0),
	SUB("run", run_opts, "[OPTIONS] [PATH...] [-- ARG...]",
	    "create it unless it is there, and enter it", run_run, 0),
	SUB("exec", exec_opts_, "[OPTIONS] [PATH... --] COMMAND [ARG...]", "run a command in it",
	    run_exec, 1),
	SUB("rm", rm_opts, "[OPTIONS] [PATH...]", "remove it, after approval", run_rm, 0),
	{ .name = NULL },
};

const struct cmd env_cmd = {
	.name = "env",
	.usage = "COMMAND",
	.brief = "environments as one file: agent, kits, folders, secrets and what is around them",
	.text = "PATH is a file, or a folder with an sbxenv.yaml; several are merged, later over "
		"earlier. "
		"Without one it is\n"
		"the current folder's, over the defaults in ~/.sbxenv.yaml. What it would do is "
		"shown and "
		"asked about; commands\n"
		"for this machine are asked about each time (setting env.rememberHostCommands). "
		"docs/env.md "
		"has the language.",
	.subs = subs,
};
