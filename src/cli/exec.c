/* bac exec: a command in a sandbox, and the detached ones. */
#include "cli/exec.h"

#include <jansson.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cmds.h"
#include "cli/session.h"
#include "cli/tty.h"
#include "io/fd.h"

struct exec_args {
	bool interactive, tty, detach, list, attach, kill, json;
	const char *user, *workdir, *accel, *signal;
	struct opt_list env, env_file;
	uint64_t timeout;
};

#define O(kind, field, letter, name, arg, help) \
	{ \
		name, letter, kind, offsetof(struct exec_args, field), arg, help \
	}
/* clang-format off */
static const struct opt opts[] = {
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
	O(OPT_STR, signal, 0, "signal", "SIGNAL", "the signal for --kill (default: TERM)"),
	O(OPT_FLAG, json, 0, "json", NULL, "print --list as JSON"),
	O(OPT_STR, accel, 0, "accel", "kvm|tcg", "accelerator, should the sandbox have to be started"),
};
/* clang-format on */

static int put_exec(struct door *d, const struct exec_spec *x, struct err *e)
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
			     (x->detach ? EXEC_DETACH : 0));
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

static int detached(struct door *d, const struct exec_spec *x, struct err *e)
{
	struct wire_frame f;
	struct wire_exit m;
	const char *id;
	int r = door_flush(d, door_in_ms(10000));

	if (r == 0)
		r = door_next(d, door_in_ms(10000), &f);
	if (r < 0)
		return err_errno(e, r, "sandbox '%s' does not answer", x->box->name);
	if (f.type == WIRE_JOB_IS && wire_text_parse(&id, &f) == WIRE_OK) {
		(void)printf("%s\n", id);
		return flush_out(e);
	}
	if (f.type == WIRE_EXIT && wire_exit_parse(&m, &f) == WIRE_OK) {
		explain(x, &m);
		return wire_exit_status(&m);
	}
	return err_set(e, -EPROTO, "sandbox '%s' gave an answer that makes no sense", x->box->name);
}

static int check_terminal(const struct exec_spec *x, struct err *e)
{
	if (x->tty && x->input && !x->detach && !isatty(STDIN_FILENO))
		return err_set(e, -ENOTTY, "standard input is not a terminal; leave out -t");
	return 0;
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

	r = put_exec(d, x, e);
	if (r < 0)
		return r;
	if (x->detach)
		return detached(d, x, e);
	r = session_run(d, x->box->name, &o, &m, text, e);
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

static int run_command(struct ctx *c, const struct sandbox *b, struct exec_args *o,
		       struct args *args, struct err *e)
{
	struct start_opts so = { .accel = o->accel };
	struct envs env = { 0 };
	struct exec_spec x = { .box = b,
			       .user = o->user,
			       .cwd = o->workdir,
			       .env = &env,
			       .timeout_ms = o->timeout,
			       .tty = o->tty,
			       .input = o->interactive,
			       .detach = o->detach };
	struct door d;
	int r;

	x.argv = (const char **)args->v + 1;
	x.argc = args->n - 1;
	if (x.argc && streq(x.argv[0], "--")) {
		x.argv++;
		x.argc--;
	}
	if (!x.argc)
		return err_set(e, -EINVAL, "exec: no command given (usage: bac exec %s)",
			       exec_cmd.usage);
	if (x.cwd && x.cwd[0] != '/')
		return err_set(e, -EINVAL, "--workdir: '%.80s' is not an absolute path", x.cwd);
	r = check_terminal(&x, e);
	if (r == 0 && o->tty)
		r = add_term(&env, e);
	if (r == 0)
		r = envs_collect(&env, &o->env_file, &o->env, e);
	if (r == 0)
		r = start_sandbox(c, b, &so, &d, e);
	if (r == 0) {
		r = exec_over(&d, &x, e);
		door_done(&d);
	}
	envs_done(&env);
	return r;
}

/* ---- detached commands ---- */

static json_t *job_json(const struct wire_job *m)
{
	struct wire_exit x = { .how = m->how, .code = m->code };
	char start[32], end[32];
	json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:s}", "id", m->id, "status",
			      m->running ? "running" : "exited", "command", m->command, "user",
			      m->user, "started_at",
			      utc(start, sizeof(start), (int64_t)(m->started_ns / 1000000000)));

	if (j && !m->running) {
		(void)json_object_set_new(j, "exit_code", json_integer(wire_exit_status(&x)));
		(void)json_object_set_new(
			j, "ended_at",
			json_string(utc(end, sizeof(end), (int64_t)(m->ended_ns / 1000000000))));
	}
	return j;
}

static void job_line(const struct wire_job *m)
{
	struct wire_exit x = { .how = m->how, .code = m->code };
	uint64_t end = m->running ? fd_real_ns() : m->ended_ns;
	char status[32], age[32];

	if (m->running)
		(void)snprintf(status, sizeof(status), "running");
	else
		(void)snprintf(status, sizeof(status), "exited (%d)", wire_exit_status(&x));
	(void)printf("%-6s  %-13s  %-12s  %-10s  %s\n", m->id, status,
		     text_from_ms(age, sizeof(age), (end - m->started_ns) / 1000000), m->user,
		     m->command);
}

static int list_jobs(struct door *d, const char *name, bool json, struct err *e)
{
	json_t *list = json_array();
	struct wire_frame f;
	struct wire_job m;
	size_t n = 0;
	int r = wire_empty_add(&d->out, 0, WIRE_JOBS);

	if (r == 0)
		r = door_flush(d, door_in_ms(5000));
	while (r == 0) {
		r = door_next(d, door_in_ms(5000), &f);
		if (r < 0 || f.type != WIRE_JOB || wire_job_parse(&m, &f) != WIRE_OK)
			break;
		if (json)
			(void)json_array_append_new(list, job_json(&m));
		else if (n++ == 0)
			(void)printf("%-6s  %-13s  %-12s  %-10s  %s\n", "JOB", "STATUS", "TIME",
				     "USER", "COMMAND");
		if (!json)
			job_line(&m);
	}
	if (r < 0) {
		json_decref(list);
		return err_errno(e, r, "sandbox '%s' does not answer", name);
	}
	if (json)
		return print_json(json_pack("{s:o}", "jobs", list), e);
	json_decref(list);
	if (!n)
		(void)printf("No detached commands.\n");
	return flush_out(e);
}

static int signal_number(const char *s, uint8_t *ret)
{
	uint64_t n;
	int i;

	if (text_u64(s, 64, &n) == 0 && n) {
		*ret = (uint8_t)n;
		return 0;
	}
	if (strncasecmp(s, "SIG", 3) == 0)
		s += 3;
	for (i = 1; i <= 31; i++)
		if (sigabbrev_np(i) && strcasecmp(sigabbrev_np(i), s) == 0) {
			*ret = (uint8_t)i;
			return 0;
		}
	return -EINVAL;
}

static int kill_job(struct door *d, const char *name, const char *id, const char *sig,
		    struct err *e)
{
	struct wire_job_kill m = { .id = id, .signo = SIGTERM };
	struct wire_frame f;

	if (sig && signal_number(sig, &m.signo) < 0)
		return err_set(e, -EINVAL, "--signal: '%.40s' is not a signal", sig);
	if (wire_job_kill_add(&d->out, &m) < 0)
		return err_set(e, -EINVAL, "'%.40s' is not a job's id", id);
	return door_answer(d, name, WIRE_DONE, door_in_ms(5000), &f, e);
}

static int attach_job(struct door *d, const char *name, const char *id, const struct exec_args *a,
		      struct err *e)
{
	struct session_opts o = { .input = a->interactive,
				  .tty = a->tty,
				  .viewer = true,
				  .in_fd = STDIN_FILENO,
				  .out_fd = STDOUT_FILENO,
				  .err_fd = STDERR_FILENO };
	char text[WIRE_TEXT_MAX + 1];
	struct wire_winsize w;
	struct wire_exit m;
	int r = wire_text_add(&d->out, SESSION_STREAM, WIRE_ATTACH, id);

	if (r == 0 && a->tty) {
		tty_size(STDOUT_FILENO, &w.rows, &w.cols);
		r = wire_winsize_add(&d->out, SESSION_STREAM, w);
	}
	if (r < 0)
		return err_set(e, -EINVAL, "'%.40s' is not a job's id", id);
	r = session_run(d, name, &o, &m, text, e);
	if (r > 0) {
		say("left %s running; 'bac exec --attach %s %s' comes back to it", id, name, id);
		return 0;
	}
	if (r < 0)
		return r;
	if (m.text[0])
		say("%s", m.text);
	return wire_exit_status(&m);
}

static int jobs_command(struct ctx *c, const struct sandbox *b, const struct exec_args *o,
			const struct args *args, struct err *e)
{
	struct door d;
	int r;

	if (o->list + o->attach + o->kill > 1)
		return err_set(e, -EINVAL, "--list, --attach and --kill exclude each other");
	if (args->n != (o->list ? 1U : 2U))
		return err_set(
			e, -EINVAL,
			"usage: bac exec --list SANDBOX, bac exec --attach|--kill SANDBOX JOB");
	r = start_connect(c, b, door_in_ms(5000), &d, e);
	if (r > 0)
		return err_set(e, -ENOENT, "sandbox '%s' is stopped: it has no running commands",
			       b->name);
	if (r < 0)
		return r;
	if (o->list)
		r = list_jobs(&d, b->name, o->json, e);
	else if (o->kill)
		r = kill_job(&d, b->name, args->v[1], o->signal, e);
	else
		r = attach_job(&d, b->name, args->v[1], o, e);
	door_done(&d);
	return r;
}

static int run(void *opt, struct args *args, struct err *e)
{
	struct exec_args *o = opt;
	struct sandbox b = { 0 };
	struct ctx c;
	int r;

	r = ctx_open(&c, e);
	if (r == 0)
		r = state_get(c.state, args->v[0], &b, e);
	if (r == 0)
		r = o->list || o->attach || o->kill ? jobs_command(&c, &b, o, args, e)
						    : run_command(&c, &b, o, args, e);
	sandbox_done(&b);
	ctx_done(&c);
	return r;
}

const struct cmd exec_cmd = {
	.name = "exec",
	.usage = "[OPTIONS] SANDBOX COMMAND [ARG...]",
	.brief = "run a command in a sandbox",
	.text = "A stopped sandbox is started first. The command gets its arguments as they are, "
		"no\n"
		"shell in between; its exit status is bac's (128 + n for signal n, 126 and 127 as "
		"in\n"
		"shells, 124 for a time-out, 125 when bac itself failed). Standard output and "
		"error stay\n"
		"apart without -t. Without -i the command's input is empty.\n\n"
		"With -d the command stays when bac ends; --list, --attach and --kill manage such "
		"commands.",
	.opts = opts,
	.n_opts = ARRAY_SIZE(opts),
	.min_args = 1,
	.max_args = SIZE_MAX,
	.stop_at_first = true,
	.size = sizeof(struct exec_args),
	.run = run,
};
