#pragma once
/* Running one command in a sandbox; shared by exec and run. */
#include "cli/envs.h"
#include "cli/start.h"

struct exec_spec {
	const struct sandbox *box;
	const char *user, *cwd; /* NULL: the default */
	const char **argv;
	size_t argc;
	struct envs *env;
	uint64_t timeout_ms;
	bool tty, input, detach;
};

/* Send it over a ready door and stay until it ends. The exit status for the shell, or -Exxx. */
int exec_over(struct door *d, const struct exec_spec *x, struct err *e);
