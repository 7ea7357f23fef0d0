/* bac exec: a command in a sandbox that runs. */
#include "cli/exec.h"

#include <unistd.h>

#include "base/text.h"
#include "cli/session.h"
#include "cli/tty.h"

#define O(kind, field, letter, name, arg, help) \
	{ \
		name, letter, kind, offsetof(struct exec_args, field), arg, help \
	}
/* clang-format off */
const struct opt exec_opts[EXEC_OPTS] = {
	O(OPT_FLAG, interactive, 'i', "interactive", NULL, "pass standard input to the command"),
	O(OPT_FLAG, tty, 't', "tty", NULL, "give the command a terminal"),
	O(OPT_STR, user, 'u', "user", "USER", "name or uid, also with :group (default: agent)"),
	O(OPT_STR, workdir, 'w', "workdir", "DIR", "directory to run in"),
	O(OPT_LIST, env, 'e', "env", "NAME[=VALUE]", "set a variable, or copy the host's; repeatable"),
	O(OPT_LIST, env_file, 0, "env-file", "FILE", "read variables from a file; repeatable"),
	O(OPT_MS, timeout, 0, "timeout", "DURATION", "end the command and its group after this time (status 124)"),
	O(OPT_FLAG, detach, 'd', "detach", NULL, "leave it running and print its id"),
	O(OPT_FLAG, list, 0, "list", NULL, "list the detached commands of SANDBOX"),
	O(OPT_FLAG, attach, 0, "attach", NULL, "show the output of detached command JOB until it ends; Ctrl-C leaves (with -it: Ctrl-\\)"),
	O(OPT_FLAG, kill, 0, "kill", NULL, "send a signal to detached command JOB and its group"),
	O(OPT_STR, detach_keys, 0, "detach-keys", "KEYS", "with --attach -it: keys that leave it, as in ctrl-p,ctrl-q; 'none' (default: ctrl-\\)"),
	O(OPT_STR, signal, 0, "signal", "SIGNAL", "the signal for --kill (default: TERM)"),
	O(OPT_FLAG, json, 0, "json", NULL, "print --list as JSON"),
	O(OPT_STR, accel, 0, "accel", "kvm|tcg", "accelerator, should the sandbox have to be started"),
};
/* clang-format on */

int exec_put(struct door *d, const struct exec_spec *x, struct err *e)
{
	struct buf payload = BUF_INIT(WIRE_EXEC_MAX);
	struct wire_exec m = { .user = x->user ? x->user : "",
			       .cwd = x->cwd ? x->cwd : "",
			       .argv = x->argv,
			       .argc = (uint32_t)x->argc,
			       .env = (const char **)x->env->v,
			       .envc = (uint32_t)x->env->n,
			       .timeout_ms = (uint32_t)MIN(x->timeout_ms, (uint64_t)UINT32_MAX) };
	int r;

	m.flags = (uint16_t)((x->tty ? EXEC_TTY : 0) | (x->input ? EXEC_STDIN : 0) |
			     (x->detach ? EXEC_DETACH : 0) | x->flags);
	if (x->tty)
		tty_size(STDOUT_FILENO, &m.rows, &m.cols);
	r = wire_exec_put(&payload, &m);
	if (r == 0)
		r = wire_message_add(&d->out, SESSION_STREAM, WIRE_EXEC, buf_data(&payload),
				     payload.n);
	buf_done(&payload);
	return r < 0 ? err_set(e, -E2BIG,
			       "the command and its environment are too long (2 MiB in all)")
		     : 0;
}

/* What a person should know beside the status. */
static void explain(const struct exec_spec *x, const struct wire_exit *m)
{
	char t[32];

	if (m->how == EXIT_TIMEOUT)
		say("'%s' was ended after %s (--timeout)", x->argv[0],
		    text_from_ms(t, sizeof(t), x->timeout_ms));
	else if (m->text[0])
		say("%s%s", m->how == EXIT_REFUSED ? "" : "exec: ", m->text);
}

int exec_job(struct door *d, const struct exec_spec *x, char *ret_id, size_t max, int *ret_status,
	     struct err *e)
{
	struct wire_frame f;
	struct wire_exit m;
	const char *id;
	int r = door_flush(d, door_in_ms(10000));

	if (r == 0)
		r = door_next(d, door_in_ms(10000), &f);
	if (r != 0)
		return err_errno(e, r, "sandbox '%s' does not answer", x->name);
	if (f.type == WIRE_JOB_IS && wire_text_parse(&id, &f) == WIRE_OK &&
	    text_copy(ret_id, max, id) == 0)
		return 0;
	if (f.type != WIRE_EXIT || wire_exit_parse(&m, &f) != WIRE_OK)
		return err_set(e, -EPROTO, "sandbox '%s' gave an answer that makes no sense",
			       x->name);
	*ret_status = wire_exit_status(&m);
	(void)err_set(e, -EIO, "%s", m.text);
	return 1;
}

static int detached(struct door *d, const struct exec_spec *x, struct err *e)
{
	char id[WIRE_NAME_MAX + 1];
	int status, r = exec_job(d, x, id, sizeof(id), &status, e);

	if (r < 0)
		return r;
	if (r > 0) {
		say("%s", e->msg);
		return status;
	}
	(void)printf("%s\n", id);
	return flush_out(e);
}

int exec_over(struct door *d, const struct exec_spec *x, struct err *e)
{
	struct session_opts o = { .input = x->input,
				  .tty = x->tty,
				  .in_fd = STDIN_FILENO,
				  .out_fd = STDOUT_FILENO,
				  .err_fd = STDERR_FILENO };
	char text[WIRE_TEXT_MAX + 1];
	struct wire_exit m;
	int r;

	r = exec_put(d, x, e);
	if (r < 0)
		return r;
	if (x->detach)
		return detached(d, x, e);
	r = session_run(d, x->name, &o, &m, text, e);
	if (r < 0)
		return r;
	explain(x, &m);
	return wire_exit_status(&m);
}

static int add_term(struct envs *s, struct err *e)
{
	const char *term = getenv("TERM");
	_free_ char *entry = NULL;

	if (!term || !*term)
		return 0;
	if (asprintf(&entry, "TERM=%s", term) < 0)
		return err_errno(e, -ENOMEM, "environment");
	return envs_add(s, entry, e);
}

static int check_terminal(const struct exec_spec *x, struct err *e)
{
	if (x->tty && x->input && !x->detach && !isatty(STDIN_FILENO))
		return err_set(e, -ENOTTY, "standard input is not a terminal; leave out -t");
	return 0;
}

int exec_spec(const struct exec_args *o, const struct args *args, struct exec_spec *ret,
	      struct err *e)
{
	struct exec_spec x = { .name = args->v[0],
			       .user = o->user,
			       .cwd = o->workdir,
			       .argv = (const char **)args->v + 1,
			       .argc = args->n - 1,
			       .timeout_ms = o->timeout,
			       .tty = o->tty,
			       .input = o->interactive,
			       .detach = o->detach };

	if (x.argc && streq(x.argv[0], "--")) {
		x.argv++;
		x.argc--;
	}
	if (!x.argc)
		return err_set(e, -EINVAL, "exec: no command given (usage: bac exec %s)",
			       EXEC_USAGE);
	if (x.cwd && x.cwd[0] != '/')
		return err_set(e, -EINVAL, "--workdir: '%.80s' is not an absolute path", x.cwd);
	*ret = x;
	return check_terminal(&x, e);
}

int exec_env(const struct exec_args *o, struct envs *env, struct err *e)
{
	int r = o->tty ? add_term(env, e) : 0;

	return r < 0 ? r : envs_collect(env, &o->env_file, &o->env, e);
}
