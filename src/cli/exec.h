#pragma once
/* Running one command in a sandbox that runs; shared by exec and run, and by the front (front.c), so it knows
 * no database. */
#include "cli/door.h"
#include "cli/envs.h"

struct exec_args {
	bool interactive, tty, detach, list, attach, kill, json;
	const char *user, *workdir, *accel, *signal, *detach_keys;
	struct opt_list env, env_file;
	uint64_t timeout;
};

#define EXEC_USAGE "[OPTIONS] SANDBOX COMMAND [ARG...]"
enum { EXEC_OPTS = 15 };
extern const struct opt exec_opts[EXEC_OPTS];

/* What the parser of options wants to know of a struct cmd. */
#define EXEC_PARSE \
	.usage = EXEC_USAGE, .opts = exec_opts, .n_opts = EXEC_OPTS, .min_args = 1, \
	.max_args = SIZE_MAX, .stop_at_first = true, .size = sizeof(struct exec_args)

struct exec_spec {
	const char *name;       /* the sandbox's, for messages */
	const char *user, *cwd; /* NULL: the default */
	const char **argv;
	size_t argc;
	struct envs *env;
	uint64_t timeout_ms;
	bool tty, input, detach;
	uint16_t flags; /* EXEC_AGENT, EXEC_STARTUP: with detach */
};

/* Queue it as stream SESSION_STREAM. 0, or -E2BIG with a message. */
int exec_put(struct door *d, const struct exec_spec *x, struct err *e) _must_check_;

/* After exec_put() of one with detach: the job's id. 0; 1 if it was refused, with what is to be said in e and the exit status in *ret_status; -Exxx. */
int exec_job(struct door *d, const struct exec_spec *x, char *ret_id, size_t max, int *ret_status,
	     struct err *e) _must_check_;

/* What was asked for, all but the environment; borrows from both. Reads and changes nothing outside. 0 or -Exxx. */
int exec_spec(const struct exec_args *o, const struct args *args, struct exec_spec *ret,
	      struct err *e) _must_check_;

/* The command's environment, from the options; their files are read. 0 or -Exxx; envs_done() in any case. */
int exec_env(const struct exec_args *o, struct envs *env, struct err *e) _must_check_;

/* Send it over a ready door and stay until it ends. The exit status for the shell, or -Exxx. */
int exec_over(struct door *d, const struct exec_spec *x, struct err *e);
