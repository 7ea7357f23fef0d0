/* bac exec: the whole of it: a sandbox that may have to be started, and the detached commands. */
#include <jansson.h>
#include <signal.h>
#include <time.h>

#include "base/text.h"
#include "cli/cmds.h"
#include "cli/ctx.h"
#include "cli/exec.h"
#include "cli/session.h"
#include "cli/start.h"
#include "cli/tty.h"
#include "io/fd.h"

static int run_command(struct ctx *c, const struct sandbox *b, const struct exec_args *o,
		       const struct args *args, struct err *e)
{
	struct start_opts so = { .accel = o->accel };
	struct envs env = { 0 };
	struct exec_spec x;
	struct door d;
	int r;

	r = exec_spec(o, args, &x, e);
	if (r < 0)
		return r;
	x.name = b->name;
	x.env = &env;
	r = exec_env(o, &env, e);
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
	struct keys keys;
	int r = keys_parse(a->detach_keys ? a->detach_keys : KEYS_DEFAULT, &keys, e);

	if (r < 0)
		return r;
	o.keys = &keys;
	r = wire_text_add(&d->out, SESSION_STREAM, WIRE_ATTACH, id);
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
	EXEC_PARSE,
	.run = run,
};
