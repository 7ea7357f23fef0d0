#pragma once
/* What bac itself does in a sandbox that runs: commands for the application of kits, one after another. */
#include "cli/ctx.h"

struct guest_cmd {
	const char *user, *cwd;  /* NULL: the agent, its working directory */
	const char *const *argv; /* NULL-terminated */
	const char *const *env;  /* NULL-terminated, or NULL */
	const void *in;          /* its standard input, or NULL */
	size_t n_in;
	int out; /* takes what it writes, both outputs; -1: nobody does */
};

/* Run it to its end; signals that come meanwhile are passed on to it. Its exit status as in a shell, with what there is to say in e ("" for nothing) if it is not 0; -Exxx with a message
 * if the sandbox is gone. */
int guest_run(struct ctx *c, const struct sandbox *b, const struct guest_cmd *g, struct err *e)
	_must_check_;

/* Copy what is in a folder of the host into a folder of the sandbox, as `bac cp LOCAL/. SANDBOX:REMOTE` does. What is made belongs to the agent. Nothing below remote is followed. */
int guest_copy(struct ctx *c, const struct sandbox *b, const char *local, const char *remote,
	       struct err *e) _must_check_;
