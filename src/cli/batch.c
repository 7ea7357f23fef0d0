/* bac batch: the same task in many fresh sandboxes. */
#include "cli/batch.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cmds.h"
#include "cli/ctx.h"
#include "cli/kit-create.h"
#include "cli/policy.h"
#include "io/fd.h"
#include "sys/spawn.h"

enum { GIT_MS = 30 * 60 * 1000, GIT_OUT_MAX = 64 * 1024 };

static const uint64_t memory_default = (uint64_t)1 << 30;

#define O(kind, field, letter, name, arg, help) \
	{ \
		name, letter, kind, offsetof(struct batch_args, field), arg, help \
	}
static const struct opt opts[] = {
	O(OPT_U32, n, 'n', "number", "N", "how many runs"),
	O(OPT_LIST, kits, 0, "kit", "KIT",
	  "the agent or kit that works; further ones are added to it, as in 'bac create --kit'"),
	O(OPT_STR, prompt, 0, "prompt", "FILE", "the task; '-' reads it from stdin"),
	O(OPT_STR, out, 'o', "out", "DIR",
	  "where everything is kept; a batch that was cut off there goes on (default: bac-batch)"),
	O(OPT_U32, jobs, 'j', "jobs", "N",
	  "how many at once (default: one for two processors); never more than there is memory "
	  "for"),
	O(OPT_MS, timeout_ms, 0, "timeout", "DURATION",
	  "how long an agent may work, as in 30m (default: as long as it likes)"),
	O(OPT_FLAG, clone, 0, "clone", NULL,
	  "each run works on a clone of its own: always so, and the word may be said"),
	O(OPT_FLAG, keep, 0, "keep", NULL, "keep the sandboxes, stopped"),
	O(OPT_FLAG, json, 0, "json", NULL, "print the report as JSON"),
	O(OPT_SIZE, memory, 'm', "memory", "SIZE", "memory of each sandbox (default: 1g)"),
	O(OPT_U32, cpus, 0, "cpus", "N", "processors of each sandbox"),
	O(OPT_STR, tmpl, 't', "template", "TEMPLATE", "template to start from"),
	O(OPT_LIST, kit_arg, 0, "kit-arg", "NAME=VALUE", "a value for a kit; repeatable"),
	O(OPT_LIST, kit_args_file, 0, "kit-args-file", "FILE",
	  "values for kits from a file; repeatable"),
	O(OPT_LIST, env, 'e', "env", "NAME[=VALUE]", "set a variable for the agent; repeatable"),
	O(OPT_LIST, env_file, 0, "env-file", "FILE", "read variables from a file; repeatable"),
	O(OPT_LIST, allow_network, 0, "allow-network", "RESOURCES",
	  "let it reach these; repeatable"),
	O(OPT_LIST, deny_network, 0, "deny-network", "RESOURCES", "keep it from these; repeatable"),
	O(OPT_LIST, credentials, 0, "credentials", "FILE",
	  "what it may use of your secrets; repeatable"),
	O(OPT_LIST, approve, 0, "approve", "SERVICE=HOST",
	  "approve that it uses this secret at this host; repeatable"),
};

/* ---- what the words say ---- */

static int read_prompt(struct batch *b, struct err *e)
{
	const bool in = streq(b->o->prompt, "-");
	size_t n = 0;
	int r = fd_read_file(AT_FDCWD, in ? "/dev/stdin" : b->o->prompt, BATCH_PROMPT_MAX,
			     &b->prompt, &n);

	if (r == -EFBIG)
		return err_set(e, r, "--prompt: %s has more than %d KiB", b->o->prompt,
			       BATCH_PROMPT_MAX / 1024);
	if (r < 0)
		return err_errno(e, r, "--prompt: cannot read %s", b->o->prompt);
	if (!n || memchr(b->prompt, '\0', n) || !text_is_utf8(b->prompt, n))
		return err_set(e, -EINVAL, "--prompt: %s is %s", b->o->prompt,
			       n ? "no text in UTF-8" : "empty");
	return 0;
}

/* Our own program, "bac": what the runs call. */
static int find_bac(struct batch *b, struct err *e)
{
	ssize_t n = readlink("/proc/self/exe", b->bac, sizeof(b->bac) - 1);

	if (n < 0)
		return err_errno(e, -errno, "cannot find bac itself");
	b->bac[n] = '\0';
	return 0;
}

/* The agent of a kit: the first word of its entrypoint. */
static int find_agent(struct batch *b, struct err *e)
{
	const char *kit = b->o->kits.v[0], *const argv[] = { b->bac,   "kit", "inspect",
							     "--json", kit,   NULL };
	struct buf out = BUF_INIT(SYS_OUT_MAX);
	const char *first, *slash;
	json_t *j;
	int r;

	if (b->n_extra)
		return 0;
	r = sys_run(&(struct sys_cmd) { .argv = argv, .out = &out, .deadline_ms = GIT_MS }, e);
	j = r == 0 && buf_str(&out) ? json_loads(buf_str(&out), 0, NULL) : NULL;
	first = json_string_value(
		json_array_get(json_object_get(json_object_get(j, "sandbox"), "entrypoint"), 0));
	slash = first ? strrchr(first, '/') : NULL;
	b->agent = first ? batch_agent_find(slash ? slash + 1 : first) : NULL;
	if (r == 0 && !b->agent)
		r = err_set(e, -EINVAL,
			    "how '%.60s' works without a terminal is not known; say it: bac batch "
			    "... -- WORD... {prompt}",
			    kit);
	buf_done(&out);
	json_decref(j);
	return r > 0 ? err_set(e, -EINVAL, "%s", e->msg) : r;
}

/* The network policy, and what the kits cannot do without, are asked for once, before anything is made, as 'bac run' asks: each run would only meet it again. */
static int ask_once(const struct batch_args *o, struct err *e)
{
	const struct opt_list mixins = { o->kits.v + 1, o->kits.n - 1 };
	const struct kit_load_opts l = { .base = o->kits.v[0],
					 .kits = &mixins,
					 .args = &o->kit_arg,
					 .args_files = &o->kit_args_file };
	const struct cred_who who = { .id = "", .works = true };
	_cleanup_(cred_files_done) struct cred_files files = { 0 };
	struct kit_box kits = { 0 };
	struct ctx c;
	int r = ctx_open(&c, e);

	if (r == 0)
		r = policy_ensure(&c, e);
	if (r == 0)
		r = kit_box_find(&c, &l, &kits, e);
	if (r == 0)
		r = cred_files_read(&o->credentials, &files, e);
	if (r == 0)
		r = kit_create_credentials(&kits, &files, e);
	if (r == 0)
		r = cred_files_approve(&c, &files.declared, &o->approve, &who, e);
	kit_box_done(&kits);
	ctx_done(&c);
	return r;
}

static int git(const char *const *argv, char *line, size_t max, struct err *e)
{
	struct buf out = BUF_INIT(GIT_OUT_MAX);
	int r = sys_run(&(struct sys_cmd) { .argv = argv, .out = &out, .deadline_ms = GIT_MS }, e);
	const char *s = r == 0 ? buf_str(&out) : NULL;

	if (s && line)
		(void)snprintf(line, max, "%.*s", (int)strcspn(s, "\n"), s);
	buf_done(&out);
	return r > 0 ? -EIO : r;
}

/* OUT/base.git: all runs begin with its HEAD. Made once. */
static int take_repo(struct batch *b, const char *repo, struct err *e)
{
	char base[BATCH_PATH_MAX + 16], arg[BATCH_PATH_MAX + 32], dirty[256] = "";
	const char *const clone[] = { "git", "clone", "--quiet", "--bare", "--no-hardlinks",
				      "--",  repo,    base,      NULL };
	const char *const status[] = { "git", "-C", repo, "status", "--porcelain", NULL };
	const char *const head[] = { "git", arg, "rev-parse", "--verify", "HEAD^{commit}", NULL };
	struct err none = { 0 };
	int r = 0;

	(void)snprintf(base, sizeof(base), "%s/base.git", b->out);
	(void)snprintf(arg, sizeof(arg), "--git-dir=%s", base);
	if (access(base, F_OK) < 0) {
		r = git(clone, NULL, 0, e);
		if (r == 0 && git(status, dirty, sizeof(dirty), &none) == 0 && *dirty)
			say("what is not committed in %s is not part of the runs", repo);
	}
	if (r == 0)
		r = git(head, b->head, sizeof(b->head), e);
	if (r < 0) {
		none = *e;
		return err_set(e, r, "cannot clone %s: %s", repo, none.msg);
	}
	return 0;
}

/* ---- the batch's folder ---- */

static json_t *texts(const char *const *v, size_t n)
{
	json_t *j = json_array();

	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(j, json_string(v[i]));
	return j;
}

static json_t *describe(const struct batch *b, const char *repo)
{
	const struct batch_args *o = b->o;

	return json_pack("{s:i, s:s, s:o, s:s, s:s, s:s, s:o, s:I, s:I, s:i, s:s, s:o, s:o, s:o, "
			 "s:o, s:o, s:o}",
			 "version", 1, "id", b->id, "kits", texts(o->kits.v, o->kits.n), "prompt",
			 b->prompt, "repository", repo ? repo : "", "commit", b->head, "words",
			 texts((const char *const *)b->extra, b->n_extra), "timeout_ms",
			 (json_int_t)o->timeout_ms, "memory", (json_int_t)o->memory, "cpus",
			 (int)o->cpus, "template", o->tmpl ? o->tmpl : "", "kit_args",
			 texts(o->kit_arg.v, o->kit_arg.n), "allow_network",
			 texts(o->allow_network.v, o->allow_network.n), "deny_network",
			 texts(o->deny_network.v, o->deny_network.n), "credentials",
			 texts(o->credentials.v, o->credentials.n), "approve",
			 texts(o->approve.v, o->approve.n), "env", texts(o->env.v, o->env.n));
}

static int write_spec(const struct batch *b, struct err *e)
{
	_free_ char *text = json_dumps(b->spec, JSON_INDENT(2));
	char path[BATCH_PATH_MAX + 16];
	int r = -ENOMEM;

	(void)snprintf(path, sizeof(path), "%s/batch.json", b->out);
	if (text)
		r = fd_replace_file(AT_FDCWD, path, 0600, text, strlen(text));
	return r < 0 ? err_errno(e, r, "cannot write %s", path) : 0;
}

/* Is it the batch that was begun there? Its number of runs may have changed. */
static int same(const struct batch *b, const json_t *old, struct err *e)
{
	const char *key;
	json_t *value;

	json_object_foreach(b->spec, key, value) if (
		!streq(key, "n") &&
		!json_equal(
			value,
			json_object_get(old,
					key))) return err_set(e, -EEXIST,
							      "%s holds a batch with another '%s'; "
							      "choose another folder with --out, "
							      "or see it: bac batch report %s",
							      b->out, key, b->out);
	return 0;
}

static int open_out(struct batch *b, const char *repo, struct err *e)
{
	char path[BATCH_PATH_MAX + 16];
	uint8_t raw[3];
	json_t *old;
	int r;

	if (mkdir(b->o->out, 0700) < 0 && errno != EEXIST)
		return err_errno(e, -errno, "cannot make the folder %s", b->o->out);
	if (!realpath(b->o->out, b->out) || strlen(b->out) > BATCH_PATH_MAX - 256)
		return err_errno(e, errno ? -errno : -ENAMETOOLONG, "cannot use the folder %s",
				 b->o->out);
	(void)snprintf(path, sizeof(path), "%s/batch.json", b->out);
	old = json_load_file(path, 0, NULL);
	if (json_is_string(json_object_get(old, "id")) &&
	    strlen(json_string_value(json_object_get(old, "id"))) == 6)
		(void)snprintf(b->id, sizeof(b->id), "%s",
			       json_string_value(json_object_get(old, "id")));
	else if (getrandom(raw, sizeof(raw), 0) == sizeof(raw))
		(void)snprintf(b->id, sizeof(b->id), "%02x%02x%02x", raw[0], raw[1], raw[2]);
	r = repo ? take_repo(b, repo, e) : 0;
	if (r == 0) {
		b->spec = describe(b, repo);
		r = b->spec ? 0 : err_errno(e, -ENOMEM, "cannot begin");
	}
	if (r == 0 && old)
		r = same(b, old, e);
	if (r == 0)
		(void)json_object_set_new(b->spec, "n", json_integer(b->o->n));
	json_decref(old);
	return r == 0 ? write_spec(b, e) : r;
}

/* ---- the command ---- */

static int check(struct batch_args *o, const struct args *args, struct err *e)
{
	const size_t before = MIN(args->dashes, args->n);
	cpu_set_t set;

	if (!o->n || o->n > BATCH_RUNS_MAX)
		return err_set(e, -EINVAL, "say how many runs: -n N, from 1 to %d", BATCH_RUNS_MAX);
	if (!o->kits.n)
		return err_set(e, -EINVAL, "say who works: --kit KIT, as in --kit pi");
	if (!o->prompt)
		return err_set(e, -EINVAL, "say what to do: --prompt FILE");
	if (before > 1)
		return err_set(e, -EINVAL, "one repository at a time: '%.60s' is one too many",
			       args->v[1]);
	if (!o->jobs)
		o->jobs = sched_getaffinity(0, sizeof(set), &set) == 0
				  ? (uint32_t)MAX(CPU_COUNT(&set) / 2, 1)
				  : 1;
	if (!o->memory)
		o->memory = memory_default;
	if (!o->out)
		o->out = "bac-batch";
	return 0;
}

static int report(const struct batch_args *o, const struct args *args, struct err *e)
{
	char out[PATH_MAX];
	size_t failed;

	if (args->n != 2)
		return err_set(e, -EINVAL, "name one folder: bac batch report DIR");
	if (!realpath(args->v[1], out))
		return err_errno(e, -errno, "cannot find %s", args->v[1]);
	return batch_report(out, o->json, &failed, e);
}

/* The report of a batch that has come to its end. As with make -k and xargs, the status tells whether all went well. */
static int conclude(const struct batch *b, struct err *e)
{
	size_t failed = 0;
	int r = batch_report(b->out, b->o->json, &failed, e);

	if (r == 0 && failed)
		r = err_set(
			e, -EIO,
			"%zu of %u runs failed; %s/report.json has it all, or: bac batch report %s",
			failed, b->o->n, b->o->out, b->o->out);
	return r;
}

static int run_batch(void *opt, struct args *args, struct err *e)
{
	struct batch_args *o = opt;
	const size_t before = MIN(args->dashes, args->n);
	struct batch *b;
	int r;

	if (before && streq(args->v[0], "report"))
		return report(o, args, e);
	r = check(o, args, e);
	if (r < 0)
		return r;
	b = calloc(1, sizeof(*b));
	if (!b)
		return err_errno(e, -ENOMEM, "cannot begin");
	*b = (struct batch) { .o = o, .extra = args->v + before, .n_extra = args->n - before };
	r = read_prompt(b, e);
	if (r == 0)
		r = find_bac(b, e);
	if (r == 0)
		r = find_agent(b, e);
	if (r == 0)
		r = ask_once(o, e);
	if (r == 0)
		r = open_out(b, before ? args->v[0] : NULL, e);
	if (r == 0)
		r = batch_loop(b, e);
	if (r == 0)
		r = conclude(b, e);
	json_decref(b->spec);
	free(b->prompt);
	free(b);
	return r > 0 ? 128 + r : r;
}

const struct cmd batch_cmd = {
	.name = "batch",
	.usage = "-n N --kit KIT --prompt FILE [OPTIONS] [REPOSITORY] [-- WORD...]\n       bac "
		 "batch report [--json] DIR",
	.brief = "give one task to many fresh sandboxes, and compare what comes of it",
	.text = "Each run has a sandbox of its own and, where a repository is named, its own clone "
		"of what is committed "
		"there. DIR/run-NNN keeps\n"
		"work/, transcript.txt, changes.diff, network.json and result.json (status, exit, "
		"seconds, tokens where the agent tells "
		"them).\n"
		"A batch that was cut off goes on when it is called again with the same words: "
		"what is done is not done again.\n"
		"The exit status is 0 if every run is ok, 1 if any is not; that of 'report' is 0.\n"
		"WORDs are the agent's own; {prompt} among them stands for the task. Agents that "
		"are known need none.",
	.opts = opts,
	.n_opts = ARRAY_SIZE(opts),
	.max_args = SIZE_MAX,
	.size = sizeof(struct batch_args),
	.run = run_batch,
};
