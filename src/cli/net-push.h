#pragma once
/* Telling sandboxes that run what they may reach now. */
#include "cli/ctx.h"

/* b, or with NULL all that run. Ends when each applies it. A sandbox that does not take it is said and named in the error; the
 * others are told all the same. The caller holds rules_lock(). */
int net_push(struct ctx *c, const struct sandbox *b, struct err *e) _must_check_;

/* What holds for a sandbox, as a memory file that nobody can change any more; the caller owns *ret_fd. Where nobody has chosen a
 * preset it allows nothing, or is -ENOENT if chosen is set. 0, or -Exxx with a message. */
int net_push_file(struct ctx *c, const char *sandbox, bool chosen, int *ret_fd, struct err *e)
	_must_check_;
