#pragma once
/* Telling sandboxes that run what they may reach now. */
#include "cli/ctx.h"

/* b, or with NULL all that run. Ends when each applies it. A sandbox that does not take it is said and named in the error; the
 * others are told all the same. The caller holds rules_lock(). */
int net_push(struct ctx *c, const struct sandbox *b, struct err *e) _must_check_;
