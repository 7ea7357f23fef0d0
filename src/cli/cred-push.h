#pragma once
/* Credentials of sandboxes that start or run: made, and told. */
#include "cli/ctx.h"
#include "cli/door.h"

/* One command at a time composes and tells, so that no sandbox gets an older text after a newer one. 0, or -Exxx with a message. */
int cred_lock(struct ctx *c, int *ret_fd, struct err *e) _must_check_;

/* The file for a sandbox that is about to start, sealed; empty if it has none. Says what people should know: what is not approved, what is missing.
 * The caller owns *ret_fd. */
int cred_push_file(struct ctx *c, const struct sandbox *b, int *ret_fd, struct err *e) _must_check_;

/* b, or with NULL all that run, get what holds now, and forget each value that they had. */
int cred_push(struct ctx *c, const struct sandbox *b, struct err *e) _must_check_;

/* A sandbox that has just started with the file `given`: what was changed while it did is told to it, and, with `files`, those of its logins are written. */
int cred_push_if_changed(struct ctx *c, const struct sandbox *b, int given, struct door *d,
			 bool files, struct err *e) _must_check_;
