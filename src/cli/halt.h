#pragma once
/* Ending sandboxes: the steps that stop, rm, prune and reset share. */
#include "cli/ctx.h"

enum {
	HALT_NOW = 1,     /* no orderly shutdown */
	HALT_IF_IDLE = 2, /* refuse if a command runs in it */
};

/* Stop it if it runs, and take its lock. Works whatever is sick: a supervisor that does not answer
 * is killed, and its machine with it. 0 and *ret_lock, 1 in *ret_ran if it ran; -EBUSY if in use. */
int halt_sandbox(struct ctx *c, const struct sandbox *b, unsigned flags, bool *ret_ran,
		 int *ret_lock, struct err *e) _must_check_;

/* Stop it if it runs, and wait until its supervisor is gone, for a caller that holds its lock as well. 0, or -Exxx with a message. */
int halt_and_wait(struct ctx *c, const struct sandbox *b, bool now, struct err *e) _must_check_;

/* Stop it, then remove all that is left of it. */
int halt_remove(struct ctx *c, const struct sandbox *b, unsigned flags, struct err *e) _must_check_;
