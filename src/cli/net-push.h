#pragma once
/* Telling sandboxes that run what they may reach now. */
#include "cli/ctx.h"
#include "cli/door.h"

/* b, or with NULL all that run. Ends when each applies it. A sandbox that does not take it is said and named in the error; the
 * others are told all the same. The caller holds rules_lock(). */
int net_push(struct ctx *c, const struct sandbox *b, struct err *e) _must_check_;

/* What holds for a sandbox now, as a memory file that nobody can change any more; empty without a network. The caller owns *ret_fd.
 * 0, or -Exxx with a message: -ENOENT if no preset was chosen, unless or_nothing: then it allows nothing. */
int net_push_file(struct ctx *c, const struct sandbox *b, bool or_nothing, int *ret_fd,
		  struct err *e) _must_check_;

/* A sandbox that has just started with the policy `given`: rules that were changed while it did are told to it. */
int net_push_if_changed(struct ctx *c, const struct sandbox *b, int given, struct door *d,
			struct err *e) _must_check_;
