#pragma once
/* Files of a new sandbox, gathered in its directory and copied into it all at once: each command in the guest costs a second where machines are emulated and busy, and a copy none.
 *
 * What is copied belongs to the agent. */
#include "cli/ctx.h"

struct kit_stage {
	int dir;    /* -1: nothing was put */
	size_t n;   /* entries */
	char *path; /* of dir */
};

#define KIT_STAGE_INIT \
	{ \
		.dir = -1 \
	}

/* Absolute paths without "..", as they will be in the sandbox; what was put there before is replaced. 0 or -errno. */
int kit_stage_put(struct ctx *c, const struct sandbox *b, struct kit_stage *s, const char *path,
		  mode_t mode, const void *p, size_t n) _must_check_;
int kit_stage_link(struct ctx *c, const struct sandbox *b, struct kit_stage *s, const char *path,
		   const char *target) _must_check_;

/* Copy all of it. 0, or -Exxx with a message. */
int kit_stage_send(struct ctx *c, const struct sandbox *b, const struct kit_stage *s, struct err *e)
	_must_check_;
/* Nothing of it is left on the host. */
void kit_stage_done(struct kit_stage *s);
