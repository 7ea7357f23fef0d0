/* Commands of an sbxenv.yaml that run on the host, as the user, after the user approved them.
 *
 * They get our environment and what the phase is about; neither the environment's variables nor its secrets. Their output goes to stderr: stdout is ours. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/env.h"
#include "io/fd.h"
#include "sys/spawn.h"

enum { VALUE_MAX = 64 * 1024, VALUE_MS = 60 * 1000, OWN = 7 };

static const char *const phase_names[] = { "initialize", "postCreate", "preRemove" };

static void env_free(char **env)
{
	for (size_t i = 0; env && env[i]; i++)
		free(env[i]);
	free(env);
}

static bool put(char **env, size_t *k, const char *name, const char *value)
{
	char *text = NULL;

	if (asprintf(&text, "SBX_%s=%s", name, value ? value : "") < 0)
		return false;
	env[(*k)++] = text;
	return true;
}

/* Ours, and SBX_*. */
static char **host_env(const struct env *v, enum sbxenv_phase phase)
{
	const char *const first = v->files[v->user && v->n_files > 1 ? 1 : 0];
	size_t n = 0, k = 0;
	char **env, *files = NULL;
	bool fine = true;

	while (environ[n])
		n++;
	env = calloc(n + OWN + 1, sizeof(*env));
	if (!env)
		return NULL;
	for (size_t i = 0; i < v->n_files && fine; i++) {
		char *more = NULL;

		fine = asprintf(&more, "%s%s%s", files ? files : "", files ? ":" : "",
				v->files[i]) >= 0;
		free(files);
		files = fine ? more : NULL;
	}
	for (size_t i = 0; i < n && fine; i++)
		if (!starts_with(environ[i], "SBX_"))
			fine = (env[k++] = strdup(environ[i])) != NULL;
	fine = fine && put(env, &k, "LIFECYCLE_PHASE", phase_names[phase]) &&
	       put(env, &k, "ENV_FILE", first) && put(env, &k, "ENV_FILES", files) &&
	       put(env, &k, "ENV_DIR", v->project) && put(env, &k, "SANDBOX_NAME", v->name) &&
	       put(env, &k, "AGENT", v->v.agent) && put(env, &k, "WORKSPACE", v->v.workspace);
	free(files);
	if (!fine)
		env_free(env);
	return fine ? env : NULL;
}

static int run_one(const struct sbxenv_command *c, char **env, struct err *e)
{
	const char *argv[] = { "/bin/sh", "-c", c->command, NULL };
	_close_ int pidfd = -1;
	int status = 0, r;
	pid_t pid;

	r = sys_spawn(&(struct sys_cmd) { .argv = argv,
					  .env = (const char *const *)env,
					  .dir = c->workdir,
					  .group = c->timeout_ms != 0,
					  .fds = (struct sys_fd[]) { { 2, 1 }, { 2, 2 } },
					  .n_fds = 2 },
		      &pid, &pidfd, e);
	if (r < 0)
		return err_ctx(e, "host command '%.100s'", c->name);
	r = sys_wait(pid, pidfd, c->timeout_ms ? fd_now_ns() + c->timeout_ms * 1000000 : UINT64_MAX,
		     &status);
	if (r == -ETIMEDOUT) {
		(void)kill(-pid, SIGKILL);
		sys_kill(pid);
		return err_set(e, r, "host command '%.100s' took too long", c->name);
	}
	if (r < 0)
		return err_errno(e, r, "host command '%.100s'", c->name);
	return status ? err_set(e, -EIO, "host command '%.100s' ended with status %d", c->name,
				status)
		      : 0;
}

int env_host_run(const struct env *v, enum sbxenv_phase phase, struct err *e)
{
	char **env;
	int r = 0;

	if (v->o->skip_host || !v->v.n_commands[phase])
		return 0;
	env = host_env(v, phase);
	if (!env)
		return err_errno(e, -ENOMEM, "cannot run host commands");
	for (size_t i = 0; i < v->v.n_commands[phase] && r == 0; i++) {
		/* a message of err_set() is fit for a terminal, whatever the file says */
		(void)err_set(e, 0, "%s: %.200s", phase_names[phase], v->v.commands[phase][i].name);
		say("%s", e->msg);
		r = run_one(&v->v.commands[phase][i], env, e);
	}
	env_free(env);
	return r;
}

int env_host_value(const struct env *v, const struct sbxenv_source *s, char **ret, size_t *ret_n,
		   struct err *e)
{
	const char *argv[] = { "/bin/sh", "-c", s->command, NULL };
	struct buf out = BUF_INIT(VALUE_MAX);
	int r = 0;

	if (s->value)
		r = buf_add(&out, s->value, strlen(s->value));
	else
		r = sys_run(&(struct sys_cmd) { .argv = argv,
						.dir = v->project,
						.group = true,
						.out = &out,
						.deadline_ms = VALUE_MS },
			    e);
	if (r == 0) {
		size_t n = out.n;

		while (n && (buf_data(&out)[n - 1] == '\n' || buf_data(&out)[n - 1] == '\r'))
			n--;
		*ret = n ? strndup((const char *)buf_data(&out), n) : NULL;
		*ret_n = n;
		if (!*ret)
			r = err_set(e, -ENODATA, "its value is empty");
	} else {
		r = err_set(e, -EIO, "the host command for it failed: %.200s", e->msg);
	}
	if (out.n)
		explicit_bzero(out.p + out.off, out.n);
	buf_done(&out);
	return r;
}
