#pragma once
/* The agent of a sandbox: its command, and the one session that every terminal comes back to. */
#include "base/opt.h"
#include "cli/ctx.h"
#include "cli/door.h"
#include "cli/kit-box.h"

struct kit_run {
	const struct opt_list *env, *env_file;
	const char *detach_keys; /* NULL: KEYS_DEFAULT */
	bool own; /* nobody named an agent: of the agent shell an image's own command is meant, if it has one */
	const char **extra; /* what came after "--" */
	size_t n_extra;
};

/* With a terminal: attach to the agent's session, and start it if there is none; without one, or with arguments and an agent that runs already, a session of its own that ends with this command. The
 * exit status for the shell, or -Exxx. */
int kit_run(struct ctx *c, struct door *d, const struct sandbox *b, const struct kit_run *o,
	    struct err *e) _must_check_;
