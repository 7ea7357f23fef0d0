#pragma once
/* Files of logins, written into sandboxes that run. */
#include "cli/compose.h"

/* Each is written where there is none, or one that differs from it in times alone: what somebody has logged in with inside stays. Never behind a link, nor where
 * something of the host is mounted. Whatever fails is a line of warning. */
void login_push(struct ctx *c, const struct sandbox *b, const struct logins *l);
/* The same for b, or with NULL for all that run, after a login was stored. */
void login_push_new(struct ctx *c, const struct sandbox *b);
