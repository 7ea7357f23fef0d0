#pragma once
/* The kits of one sandbox: found by their references when it is created, and kept in its directory, so that nothing else is needed later.
 *
 *	kit.json	which there are, in order, where each came from, their arguments, the variables of --env
 *	kit.d/NN	(or kit.e/NN, whichever kit.json names) one of them each: spec.yaml and files/, with the arguments in the files filled in
 *
 * The order is that of kit-load.h: parents, the farthest first, the sandbox kit, mixins. */
#include "cli/kit-load.h"

enum { KIT_BOX_MAX = 80 };

struct box_kit {
	struct kit kit;
	char *ref;       /* for people, and to know it again */
	char *dir;       /* where spec.yaml and files/ are */
	char digest[65]; /* of its files, before arguments were filled in */
	bool builtin, mixin;
};

struct kit_box {
	struct box_kit *v;
	size_t n, base;       /* base: which is the sandbox kit */
	struct kit kit;       /* all of them, composed */
	struct kit_texts env; /* NAME=value, of --env at creation; owned */
};

/* kit_load(); what it has to say is said. 0, or -Exxx with a message. kit_box_done() in any case. */
int kit_box_find(struct ctx *c, const struct kit_load_opts *o, struct kit_box *ret, struct err *e)
	_must_check_;
void kit_box_done(struct kit_box *k);

/* Keep them in the directory of a sandbox, in place of what is kept there. */
int kit_box_keep(struct ctx *c, const char *id, const struct kit_box *k, struct err *e)
	_must_check_;
/* What is kept. 0; 1: it has no kits (*ret is of zeros then); -Exxx with a message. kit_box_done() in any case. */
int kit_box_load(struct ctx *c, const char *id, struct kit_box *ret, struct err *e) _must_check_;

/* The reference of the sandbox kit, on the heap; NULL: there is none. */
char *kit_box_ref(struct ctx *c, const char *id);

/* Append a mixin and compose anew (bac kit add). */
int kit_box_add(struct ctx *c, struct kit_box *k, const struct kit_load_opts *o, struct err *e)
	_must_check_;
