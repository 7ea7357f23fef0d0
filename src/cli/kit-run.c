/* The agent's session outlives the terminal: it is a detached job of the supervisor that says of itself that it is the agent. Whoever comes attaches to it; several may, each sees
 * all and may type, and the size is that of the one who came or changed last. */
#include "cli/kit-run.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/exec.h"
#include "cli/image-run.h"
#include "cli/kit-argv.h"
#include "cli/session.h"
#include "cli/tty.h"
#include "io/fd.h"

enum { JOBS_MS = 10000 };

/* ---- the agent that runs ---- */

/* One command at a time looks and starts. */
static int lock_agent(struct ctx *c, const struct sandbox *b, int *ret_fd, struct err *e)
{
	char path[STATE_ID_MAX + 16];
	_close_ int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/agent.lock", b->id);
	fd = openat(state_sandboxes_fd(c->state), path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return err_errno(e, -errno, "cannot lock the agent of '%s'", b->name);
	*ret_fd = take_fd(&fd);
	return 0;
}

/* Its job's id; "": it does not run. */
static int find_agent(struct door *d, const char *name, char id[WIRE_NAME_MAX + 1], struct err *e)
{
	struct wire_frame f;
	struct wire_job m;
	int r = wire_empty_add(&d->out, 0, WIRE_JOBS);

	id[0] = '\0';
	if (r == 0)
		r = door_flush(d, door_in_ms(JOBS_MS));
	while (r == 0) {
		r = door_next(d, door_in_ms(JOBS_MS), &f);
		if (r < 0 || f.type != WIRE_JOB || wire_job_parse(&m, &f) != WIRE_OK)
			break;
		if (m.running && m.flags & JOB_AGENT)
			(void)snprintf(id, WIRE_NAME_MAX + 1, "%s", m.id);
	}
	return r < 0 ? err_errno(e, r, "sandbox '%s' does not answer", name) : 0;
}

static int attach(struct door *d, const struct sandbox *b, const char *id, bool again,
		  const struct kit_run *run, struct err *e)
{
	struct session_opts o = { .input = true,
				  .tty = true,
				  .viewer = true,
				  .redraw = again,
				  .in_fd = STDIN_FILENO,
				  .out_fd = STDOUT_FILENO,
				  .err_fd = STDERR_FILENO };
	char text[WIRE_TEXT_MAX + 1] = "";
	struct wire_exit m;
	struct keys keys;
	int r = keys_parse(run->detach_keys ? run->detach_keys : KEYS_DEFAULT, &keys, e);

	if (r < 0)
		return r;
	o.keys = &keys;
	if (wire_text_add(&d->out, SESSION_STREAM, WIRE_ATTACH, id) < 0)
		return err_set(e, -EINVAL, "'%.40s' is not a job's id", id);
	r = session_run(d, b->name, &o, &m, text, e);
	if (r > 0) {
		say("left the agent of '%s' running; come back with: bac run --name %s", b->name,
		    b->name);
		return 0;
	}
	if (r < 0)
		return r;
	if (m.text[0])
		say("%s", m.text);
	return wire_exit_status(&m);
}

/* 0; 1 with the exit status in *ret_status: it could not be started. */
static int start_agent(struct door *d, const struct exec_spec *x, char id[WIRE_NAME_MAX + 1],
		       int *ret_status, struct err *e)
{
	struct exec_spec job = *x;
	int r;

	job.detach = true;
	job.flags = EXEC_AGENT;
	r = exec_put(d, &job, e);
	if (r < 0)
		return r;
	r = exec_job(d, &job, id, WIRE_NAME_MAX + 1, ret_status, e);
	if (r > 0)
		say("%s", e->msg);
	return r;
}

static int on_terminal(struct ctx *c, struct door *d, const struct sandbox *b,
		       const struct exec_spec *x, const struct kit_run *o, struct err *e)
{
	char id[WIRE_NAME_MAX + 1];
	_close_ int lock = -1;
	bool again;
	int r = lock_agent(c, b, &lock, e);

	if (r == 0)
		r = find_agent(d, b->name, id, e);
	if (r < 0)
		return r;
	again = id[0];
	if (again && o->n_extra)
		return exec_over(d, x, e); /* the arguments are for an agent of their own */
	if (again && (o->env->n || o->env_file->n))
		say("warning: the agent of '%s' runs already; --env is for one that is started",
		    b->name);
	if (!again) {
		int status;

		r = start_agent(d, x, id, &status, e);
		if (r != 0)
			return r > 0 ? status : r;
	}
	lock = fd_close(lock);
	return attach(d, b, id, again, o, e);
}

/* ---- its environment ---- */

/* Of a sandbox without a network: there what tells the guest of variables is not at work. */
static int kit_env(const struct sandbox *b, const struct kit_box *k, struct envs *env,
		   struct err *e)
{
	int r = 0;

	for (size_t i = 0; b->no_network && i < k->kit.n_vars && r == 0; i++) {
		const struct kit_var *v = &k->kit.vars[i];
		_free_ char *entry = NULL;

		if (streq(v->name, "PATH"))
			continue;
		if (asprintf(&entry, "%s=%s", v->name, v->value) < 0)
			return err_errno(e, -ENOMEM, "environment");
		r = envs_add(env, entry, e);
	}
	for (size_t i = 0; b->no_network && i < k->env.n && r == 0; i++)
		r = envs_add(env, k->env.v[i], e);
	return r;
}

static int all_env(const struct sandbox *b, const struct kit_box *k, const struct kit_run *o,
		   bool tty, struct envs *env, struct err *e)
{
	const char *term = getenv("TERM");
	char entry[128];
	int r = kit_env(b, k, env, e);

	if (r == 0 && tty && term && *term) {
		(void)snprintf(entry, sizeof(entry), "TERM=%.100s", term);
		r = envs_add(env, entry, e);
	}
	return r == 0 ? envs_collect(env, o->env_file, o->env, e) : r;
}

/* What is run: what the kit says. That of the agent shell, which is also what an image without an agent has, is in an image that bac did not build the image's own command, or
 * a shell that it has. w is what x borrows from. */
static int command(struct ctx *c, const struct sandbox *b, const struct kit *kit, bool tty,
		   const struct kit_run *o, struct exec_spec *x, struct image_run_words *w,
		   struct err *e)
{
	int r = 1;

	if (streq(b->agent, "shell"))
		r = image_run_words(c, b, o->own, o->extra, o->n_extra, w, e);
	if (r == 0) {
		x->argv = w->argv;
		x->argc = w->argc;
		x->user = w->user;
	} else if (r == 1) {
		x->argv = kit_argv(kit, tty, o->extra, o->n_extra, &x->argc);
		r = 0;
	}
	return r;
}

int kit_run(struct ctx *c, struct door *d, const struct sandbox *b, const struct kit_run *o,
	    struct err *e)
{
	bool tty = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	struct kit_box k = { 0 };
	struct envs env = { 0 };
	struct exec_spec x = { .name = b->name, .env = &env, .tty = tty, .input = true };
	struct image_run_words w = { 0 };
	int r = kit_box_load(c, b->id, &k, e);

	if (r >= 0)
		r = command(c, b, r == 0 ? &k.kit : NULL, tty, o, &x, &w, e);
	if (r == 0)
		r = x.argv ? all_env(b, &k, o, tty, &env, e)
			   : err_errno(e, -ENOMEM, "cannot run '%s'", b->name);
	if (r == 0)
		r = tty ? on_terminal(c, d, b, &x, o, e) : exec_over(d, &x, e);
	envs_done(&env);
	if (!w.t)
		free(x.argv);
	image_run_done(&w);
	kit_box_done(&k);
	return r;
}
