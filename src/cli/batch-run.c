/* One run: a table of steps, each a program.
 *
 * The agent works on a clone of its own, in the run's folder `work`; it may write what it wants into the clone's .git. So git on the host never looks there: what
 * changed is told by comparing the files with the batch's own repository, OUT/base.git, whose configuration no agent can reach. */
#include <fcntl.h>
#include <fts.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/batch.h"
#include "cli/say.h"
#include "io/fd.h"
#include "sys/dirs.h"
#include "sys/spawn.h"

enum {
	WORDS_MAX = 512,
	TREE_MAX = 1000000,
	NESTED_MAX = 200,
	ENV_MAX = 8,
	QUICK_MS = 10 * 60 * 1000,
	LAST_MAX = 64 * 1024,
	TRANSCRIPT_MAX = 256 * 1024 * 1024
};

/* Words of a command, on the heap. */
struct words {
	char *v[WORDS_MAX + 1];
	size_t n;
	bool bad;
};

static void words_done(struct words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->v[i]);
}

static _printf_(2, 3) void word(struct words *w, const char *fmt, ...)
{
	va_list ap;

	if (w->n == WORDS_MAX) {
		w->bad = true;
		return;
	}
	va_start(ap, fmt);
	if (vasprintf(&w->v[w->n], fmt, ap) < 0)
		w->bad = true;
	else
		w->n++;
	va_end(ap);
}

static void each(struct words *w, const char *option, const struct opt_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		word(w, "%s", option);
		word(w, "%s", list->v[i]);
	}
}

/* ---- the steps' commands ---- */

/* git on the batch's own repository and this run's files; what is new goes into a store of the run's. */
static void git(const struct batch *b, const struct batch_run *r, struct words *w)
{
	word(w, "git");
	word(w, "--git-dir=%s/base.git", b->out);
	word(w, "--work-tree=%s/work", r->dir);
	word(w, "-c");
	word(w, "core.bare=false");
	word(w, "-c");
	word(w, "core.hooksPath=/dev/null");
	word(w, "-c");
	word(w, "core.fsmonitor=false");
	word(w, "-c");
	word(w, "core.quotePath=false");
}

static void clone(const struct batch *b, const struct batch_run *r, struct words *w)
{
	word(w, "git");
	word(w, "clone");
	word(w, "--quiet");
	word(w, "--no-hardlinks");
	word(w, "%s/base.git", b->out);
	word(w, "%s/work", r->dir);
}

static void create(const struct batch *b, const struct batch_run *r, struct words *w)
{
	const struct batch_args *o = b->o;

	word(w, "%s", b->bac);
	word(w, "create");
	word(w, "--quiet");
	word(w, "--name");
	word(w, "%s", r->name);
	word(w, "--memory");
	word(w, "%llu", (unsigned long long)o->memory);
	if (o->cpus) {
		word(w, "--cpus");
		word(w, "%u", o->cpus);
	}
	if (o->tmpl) {
		word(w, "--template");
		word(w, "%s", o->tmpl);
	}
	for (size_t i = 1; i < o->kits.n; i++) {
		word(w, "--kit");
		word(w, "%s", o->kits.v[i]);
	}
	each(w, "--kit-arg", &o->kit_arg);
	each(w, "--kit-args-file", &o->kit_args_file);
	each(w, "--allow-network", &o->allow_network);
	each(w, "--deny-network", &o->deny_network);
	each(w, "--credentials", &o->credentials);
	each(w, "--approve", &o->approve);
	word(w, "%s", o->kits.v[0]);
	word(w, "%s/work", r->dir);
}

static void agent(const struct batch *b, const struct batch_run *r, struct words *w)
{
	word(w, "%s", b->bac);
	word(w, "run");
	word(w, "--name");
	word(w, "%s", r->name);
	each(w, "--env-file", &b->o->env_file);
	each(w, "--env", &b->o->env);
	word(w, "--");
	for (size_t i = 0; i < b->n_extra; i++)
		word(w, "%s", streq(b->extra[i], BATCH_PROMPT) ? b->prompt : b->extra[i]);
	for (size_t i = 0; !b->n_extra && b->agent && b->agent->words[i]; i++)
		word(w, "%s",
		     streq(b->agent->words[i], BATCH_PROMPT) ? b->prompt : b->agent->words[i]);
}

static void stop(const struct batch *b, const struct batch_run *r, struct words *w)
{
	word(w, "%s", b->bac);
	word(w, "stop");
	word(w, "%s", r->name);
}

static void network(const struct batch *b, const struct batch_run *r, struct words *w)
{
	word(w, "%s", b->bac);
	word(w, "policy");
	word(w, "log");
	word(w, "--json");
	word(w, "--limit");
	word(w, "0");
	word(w, "%s", r->name);
}

static void read_tree(const struct batch *b, const struct batch_run *r, struct words *w)
{
	git(b, r, w);
	word(w, "read-tree");
	word(w, "%s", b->head);
}

/* Repositories that the agent made below the clone: git would take each for a submodule, or fail. Their folders below work/, into a JSON list. */
static json_t *nested(const struct batch_run *r)
{
	char top[BATCH_PATH_MAX + 8], *const tops[] = { top, NULL };
	json_t *list = json_array();
	size_t seen = 0;
	FTSENT *f;
	FTS *tree;

	(void)snprintf(top, sizeof(top), "%s/work", r->dir);
	tree = fts_open(tops, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, NULL);
	while (list && tree && seen++ < TREE_MAX && json_array_size(list) < NESTED_MAX &&
	       (f = fts_read(tree))) {
		if (f->fts_info == FTS_DP || !streq(f->fts_name, ".git"))
			continue;
		(void)fts_set(tree, f, FTS_SKIP);
		if (f->fts_level > 1)
			(void)json_array_append_new(
				list, json_stringn_nocheck(f->fts_path + strlen(top) + 1,
							   f->fts_pathlen - strlen(top) -
								   strlen("/.git") - 1));
	}
	if (tree)
		(void)fts_close(tree);
	return list;
}

static void add(const struct batch *b, const struct batch_run *r, struct words *w)
{
	json_t *list = nested(r);

	git(b, r, w);
	word(w, "add");
	word(w, "--all");
	word(w, "--");
	word(w, ".");
	for (size_t i = 0; i < json_array_size(list); i++)
		word(w, ":(exclude,literal)%s", json_string_value(json_array_get(list, i)));
	json_decref(list);
}

static void diff(const struct batch *b, const struct batch_run *r, struct words *w)
{
	git(b, r, w);
	word(w, "diff");
	word(w, "--cached");
	word(w, "--binary");
	word(w, "--no-ext-diff");
	word(w, "--no-textconv");
	word(w, "%s", b->head);
}

static void numstat(const struct batch *b, const struct batch_run *r, struct words *w)
{
	git(b, r, w);
	word(w, "diff");
	word(w, "--cached");
	word(w, "--no-ext-diff");
	word(w, "--no-textconv");
	word(w, "--no-renames");
	word(w, "--numstat");
	word(w, "-z");
	word(w, "%s", b->head);
}

static void rm(const struct batch *b, const struct batch_run *r, struct words *w)
{
	word(w, "%s", b->bac);
	word(w, "rm");
	word(w, "--force");
	word(w, "%s", r->name);
}

enum {
	STEP_MUST = 1, /* without it the run has failed, and ends */
	STEP_REPO = 2, /* only where there is a repository */
	STEP_LAST = 4, /* not where its sandbox is to be kept */
	STEP_AGENT = 8,
};

static const struct step {
	const char *name;
	void (*words)(const struct batch *b, const struct batch_run *r, struct words *w);
	const char *out; /* file for what it prints; NULL: log.txt */
	unsigned flags;
} steps[] = {
	{ "clone", clone, NULL, STEP_MUST | STEP_REPO },
	{ "create", create, NULL, STEP_MUST },
	{ "agent", agent, "transcript.txt", STEP_AGENT },
	{ "stop", stop, NULL, 0 },
	{ "network", network, "network.json", 0 },
	{ "index", read_tree, NULL, STEP_REPO },
	{ "add", add, NULL, STEP_REPO },
	{ "diff", diff, "changes.diff", STEP_REPO },
	{ "count", numstat, "changes.count", STEP_REPO },
	{ "rm", rm, NULL, STEP_LAST },
};

/* ---- a step ---- */

void batch_run_dir(const char *out, uint32_t number, char ret[BATCH_PATH_MAX])
{
	(void)snprintf(ret, BATCH_PATH_MAX, "%.3800s/run-%03u", out, number);
}

static int open_out(const struct batch_run *r, const char *name, int flags, struct err *e)
{
	char path[BATCH_PATH_MAX + 64];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", r->dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
	return fd < 0 ? err_errno(e, -errno, "cannot write %s", path) : fd;
}

/* Our environment, and git's own places. */
static const char **environment(const struct batch_run *r, struct words *w, const char *base)
{
	size_t n = 0, k = 0;
	const char **env;

	word(w, "GIT_INDEX_FILE=%s/index", r->dir);
	word(w, "GIT_OBJECT_DIRECTORY=%s/objects", r->dir);
	word(w, "GIT_ALTERNATE_OBJECT_DIRECTORIES=%s/base.git/objects", base);
	word(w, "GIT_CONFIG_NOSYSTEM=1");
	word(w, "GIT_CONFIG_GLOBAL=/dev/null");
	word(w, "GIT_TERMINAL_PROMPT=0");
	while (environ[n])
		n++;
	env = calloc(n + w->n + 1, sizeof(*env));
	for (size_t i = 0; env && i < n; i++)
		if (!starts_with(environ[i], "GIT_"))
			env[k++] = environ[i];
	for (size_t i = 0; env && i < w->n; i++)
		env[k++] = w->v[i];
	return env;
}

static int spawn_step(const struct batch *b, struct batch_run *r, const struct step *s,
		      struct err *e)
{
	struct words w = { 0 }, more = { 0 };
	_close_ int out = open_out(r, s->out ? s->out : "log.txt", s->out ? O_TRUNC : O_APPEND, e),
		    log = -1;
	_free_ const char **env = NULL;
	const bool git = s->flags & STEP_REPO && s->words != clone;
	int k = out < 0 ? out : 0;

	if (k == 0)
		log = open_out(r, s->flags & STEP_AGENT ? "errors.txt" : "log.txt", O_APPEND, e);
	if (k == 0 && log < 0)
		k = log;
	s->words(b, r, &w);
	if (git)
		env = environment(r, &more, b->out);
	if (k == 0 && (w.bad || more.bad || (git && !env)))
		k = err_errno(e, -E2BIG, "cannot run the step '%s'", s->name);
	if (k == 0) {
		const struct sys_fd fds[] = { { out, 1 }, { log, 2 } };
		const struct sys_cmd c = { .argv = (const char *const *)w.v,
					   .env = env,
					   .fds = fds,
					   .n_fds = ARRAY_SIZE(fds),
					   .group = true };

		k = sys_spawn(&c, &r->pid, &r->pidfd, e);
	}
	words_done(&w);
	words_done(&more);
	return k;
}

static void note_text(struct batch_run *r, const char *key, const char *text)
{
	(void)json_object_set_new(r->result, key, json_stringn_nocheck(text, strlen(text)));
}

static void note_number(struct batch_run *r, const char *key, uint64_t n)
{
	(void)json_object_set_new(r->result, key, json_integer((json_int_t)n));
}

static void note_seconds(struct batch_run *r, const char *key, uint64_t ns)
{
	json_t *all = json_object_get(r->result, "seconds");
	const uint64_t ms = ns / 1000000; /* no finer than that */

	(void)json_object_set_new(all, key, json_real((double)ms / 1000));
}

/* The last line of a file, for people. */
static void last_line(const struct batch_run *r, const char *name, char ret[256])
{
	char path[BATCH_PATH_MAX + 64], text[LAST_MAX];
	ssize_t n, from;
	_close_ int fd = -1;
	struct stat st;

	*ret = '\0';
	(void)snprintf(path, sizeof(path), "%s/%s", r->dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	n = pread(fd, text, sizeof(text), MAX(st.st_size - (off_t)sizeof(text), (off_t)0));
	while (n > 0 && text[n - 1] == '\n')
		n--;
	for (from = n; from > 0 && text[from - 1] != '\n'; from--)
		;
	if (n > from && text_is_utf8(text + from, (size_t)(n - from)))
		(void)snprintf(ret, 256, "%.*s", (int)MIN(n - from, 255), text + from);
}

/* The first step from here on that is for this run; the number of steps if there is none. */
static unsigned next_step(const struct batch *b, const struct batch_run *r, unsigned from)
{
	unsigned i = from;

	for (; i < ARRAY_SIZE(steps); i++) {
		if (steps[i].flags & STEP_REPO && !*b->head)
			continue;
		if (steps[i].flags & STEP_LAST && b->o->keep)
			continue;
		if (r->failed && !(steps[i].flags & STEP_LAST))
			continue;
		break;
	}
	return i;
}

static int start(const struct batch *b, struct batch_run *r, struct err *e)
{
	const struct step *s = &steps[r->step];

	r->step_since = fd_now_ns();
	r->deadline = UINT64_MAX;
	if (!(s->flags & STEP_AGENT))
		r->deadline = r->step_since + (uint64_t)QUICK_MS * 6 * 1000000;
	else if (b->o->timeout_ms)
		r->deadline = r->step_since + b->o->timeout_ms * 1000000;
	return spawn_step(b, r, s, e);
}

int batch_run_begin(const struct batch *b, struct batch_run *r, uint32_t number, struct err *e)
{
	struct err none = { 0 };
	struct words w = { 0 };
	int k;

	*r = (struct batch_run) { .number = number, .pidfd = -1, .since = fd_now_ns() };
	batch_run_dir(b->out, number, r->dir);
	(void)snprintf(r->name, sizeof(r->name), "batch-%s-%03u", b->id, number);
	/* what a call that was cut off left; mostly there is nothing */
	rm(b, r, &w);
	k = w.bad ? -ENOMEM
		  : sys_run(&(struct sys_cmd) { .argv = (const char *const *)w.v,
						.deadline_ms = QUICK_MS },
			    &none);
	words_done(&w);
	k = dirs_remove(AT_FDCWD, r->dir);
	if (k == 0)
		k = dirs_make(r->dir);
	if (k < 0)
		return err_errno(e, k, "cannot make the folder %s", r->dir);
	if (!*b->head) {
		char path[BATCH_PATH_MAX + 8];

		(void)snprintf(path, sizeof(path), "%s/work", r->dir);
		k = dirs_make(path);
	} else {
		char path[BATCH_PATH_MAX + 16];

		(void)snprintf(path, sizeof(path), "%s/objects", r->dir);
		k = dirs_make(path);
	}
	r->result =
		json_pack("{s:i, s:s, s:{}}", "run", (int)number, "sandbox", r->name, "seconds");
	if (k < 0 || !r->result)
		return err_errno(e, k < 0 ? k : -ENOMEM, "cannot begin run %u", number);
	r->step = next_step(b, r, 0);
	return start(b, r, e);
}

/* ---- what came of it ---- */

/* "ADDED<tab>REMOVED<tab>NAME<NUL>", "-" for what is binary. */
static void note_changes(struct batch_run *r)
{
	char path[BATCH_PATH_MAX + 64];
	_free_ char *text = NULL;
	uint64_t files = 0, plus = 0, minus = 0;
	size_t n = 0;

	(void)snprintf(path, sizeof(path), "%s/changes.count", r->dir);
	if (fd_read_file(AT_FDCWD, path, TRANSCRIPT_MAX, &text, &n) < 0)
		return;
	for (const char *p = text; p < text + n; p += strlen(p) + 1) {
		unsigned long long a = 0, m = 0;

		files++;
		if (sscanf(p, "%llu\t%llu", &a, &m) == 2) {
			plus += a;
			minus += m;
		}
	}
	(void)unlink(path);
	(void)json_object_set_new(r->result, "changes",
				  json_pack("{s:I, s:I, s:I}", "files", (json_int_t)files, "added",
					    (json_int_t)plus, "removed", (json_int_t)minus));
}

/* A record a line. */
static void note_network(struct batch_run *r)
{
	json_int_t allowed = 0, denied = 0;
	char path[BATCH_PATH_MAX + 64];
	_free_ char *line = NULL;
	size_t max = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/network.json", r->dir);
	f = fopen(path, "re");
	if (!f)
		return;
	while (getline(&line, &max, f) > 0) {
		json_t *j = json_loads(line, 0, NULL);
		const char *d = json_string_value(json_object_get(j, "decision"));
		const json_int_t n =
			MAX(json_integer_value(json_object_get(j, "count")), (json_int_t)1);

		allowed += d && streq(d, "allow") ? n : 0;
		denied += d && streq(d, "deny") ? n : 0;
		json_decref(j);
	}
	(void)fclose(f);
	(void)json_object_set_new(r->result, "network",
				  json_pack("{s:I, s:I}", "allowed", allowed, "denied", denied));
}

static void note_tokens(const struct batch *b, struct batch_run *r)
{
	char path[BATCH_PATH_MAX + 64];
	_free_ char *text = NULL;
	struct batch_tokens t = { 0 };
	size_t n = 0;

	(void)snprintf(path, sizeof(path), "%s/transcript.txt", r->dir);
	if (fd_read_file(AT_FDCWD, path, TRANSCRIPT_MAX, &text, &n) == 0)
		t = batch_tokens(b->agent, text, n);
	(void)json_object_set_new(r->result, "tokens",
				  t.known ? json_pack("{s:I, s:I}", "input", (json_int_t)t.in,
						      "output", (json_int_t)t.out)
					  : json_null());
}

static int finish(const struct batch *b, struct batch_run *r, struct err *e)
{
	char path[BATCH_PATH_MAX + 64];
	_free_ char *text = NULL;
	int k = -ENOMEM;

	json_t *list = *b->head ? nested(r) : NULL;

	note_tokens(b, r);
	note_network(r);
	note_changes(r);
	if (json_array_size(list))
		(void)json_object_set(r->result, "left_out", list);
	json_decref(list);
	if (!json_object_get(r->result, "status"))
		note_text(r, "status", "failed");
	note_seconds(r, "total", fd_now_ns() - r->since);
	(void)snprintf(path, sizeof(path), "%s/objects", r->dir);
	(void)dirs_remove(AT_FDCWD, path);
	(void)snprintf(path, sizeof(path), "%s/index", r->dir);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/result.json", r->dir);
	text = json_dumps(r->result, JSON_INDENT(2));
	if (text)
		k = fd_replace_file(AT_FDCWD, path, 0600, text, strlen(text));
	json_decref(r->result);
	r->result = NULL;
	return k < 0 ? err_errno(e, k, "cannot write %s", path) : 0;
}

/* The step's program has ended, or is ended now. */
static int reap(struct batch_run *r)
{
	int status = 0;

	if (fd_now_ns() >= r->deadline) {
		r->timed_out = true;
		(void)kill(-r->pid, SIGTERM);
		if (sys_wait(r->pid, r->pidfd, fd_now_ns() + 10000000000ULL, &status) < 0) {
			(void)kill(-r->pid, SIGKILL);
			sys_kill(r->pid);
			status = 137;
		}
	} else if (sys_wait(r->pid, r->pidfd, UINT64_MAX, &status) < 0) {
		status = 255;
	}
	r->pid = 0;
	r->pidfd = fd_close(r->pidfd);
	return status;
}

static void judge(struct batch_run *r, const struct step *s, int status)
{
	char line[256];

	note_seconds(r, s->name, fd_now_ns() - r->step_since);
	if (s->flags & STEP_AGENT) {
		note_number(r, "exit", (uint64_t)status);
		note_text(r, "status", r->timed_out ? "timeout" : status ? "failed" : "ok");
		last_line(r, "errors.txt", line);
		if (status && *line)
			note_text(r, "error", line);
	} else if (status && !r->failed) {
		last_line(r, "log.txt", line);
		note_text(r, "error", *line ? line : s->name);
		if (s->flags & STEP_MUST) {
			note_text(r, "status", "failed");
			note_text(r, "step", s->name);
			r->failed = true;
		}
	}
	r->timed_out = false;
}

int batch_run_next(const struct batch *b, struct batch_run *r, struct err *e)
{
	const struct step *s = &steps[r->step];
	int k;

	judge(r, s, reap(r));
	r->step = next_step(b, r, r->step + 1);
	if (r->step == ARRAY_SIZE(steps))
		return finish(b, r, e);
	k = start(b, r, e);
	return k < 0 ? k : 1;
}

void batch_run_cut(const struct batch *b, struct batch_run *r)
{
	struct err none = { 0 };
	struct words w = { 0 };

	if (r->pid) {
		(void)kill(-r->pid, SIGTERM);
		if (sys_wait(r->pid, r->pidfd, fd_now_ns() + 10000000000ULL, &(int) { 0 }) < 0)
			sys_kill(r->pid);
		r->pid = 0;
		r->pidfd = fd_close(r->pidfd);
	}
	json_decref(r->result);
	r->result = NULL;
	rm(b, r, &w);
	if (!w.bad &&
	    sys_run(&(struct sys_cmd) { .argv = (const char *const *)w.v, .deadline_ms = QUICK_MS },
		    &none) != 0)
		say("%s", none.msg);
	words_done(&w);
}
