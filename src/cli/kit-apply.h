#pragma once
/* What a kit does to a sandbox that has started. The order, when it is created: network and variables (before the start), files/home, setup.install (kit-install.h), setup.files,
 * instructions, setup.startup, files/workspace; at a later start only volumes, startup and files/workspace. */
#include "cli/kit-box.h"
#include "cli/kit-stage.h"
#include "cli/start.h"

/* It has just started: all of the above that is due. A failure is one only while it is created; later it is said, since a sandbox that half works is better than none. */
int kit_apply_start(struct ctx *c, const struct sandbox *b, const struct start_opts *o,
		    struct err *e) _must_check_;

/* files/home of all kits, later ones over earlier ones. */
int kit_apply_home(struct ctx *c, const struct sandbox *b, const struct kit_box *k, struct err *e)
	_must_check_;

/* kit-notes.c: agentInstructions of all kits: into the stage where that can be, else at once. */
int kit_apply_notes(struct ctx *c, const struct sandbox *b, const struct kit_box *k,
		    struct kit_stage *s, struct err *e) _must_check_;

/* kit-startup.c: volumes are there; startup commands are started, and left to themselves. */
int kit_apply_volumes(struct ctx *c, const struct sandbox *b, const struct kit_box *k,
		      struct err *e) _must_check_;
int kit_apply_startup(struct ctx *c, const struct sandbox *b, const struct kit_box *k,
		      struct err *e) _must_check_;

/* Run a script of bac's own (for /bin/sh) in the sandbox; what it says when it fails is in e, behind `what`. words: NULL-terminated, $1 and so on. user NULL: the agent. */
struct kit_script {
	const char *user, *script, *what;
	const char *const *words;
	const void *in;
	size_t n_in;
};
int kit_apply_script(struct ctx *c, const struct sandbox *b, const struct kit_script *s,
		     struct err *e) _must_check_;
