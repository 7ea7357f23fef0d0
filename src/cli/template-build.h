#pragma once
/* What image_load() and its kin are given by a command. */
#include "cli/ctx.h"
#include "image/image.h"

struct template_build {
	struct image_build b;
	char *init, *layer; /* what b borrows */
};

/* 0 and *ret (template_build_done()), or -Exxx with a message. */
int template_build_begin(struct ctx *c, const struct image_progress *p, struct template_build *ret,
			 struct err *e) _must_check_;
void template_build_done(struct template_build *b);
