#pragma once
/* What 'bac run' runs in a sandbox whose template is an image that bac did not build. */
#include "cli/ctx.h"

struct image_run_words {
	const char **argv; /* heap; the words borrow from t and extra */
	size_t argc;
	const char *user; /* NULL: agent */
	struct image_template *t;
};
void image_run_done(struct image_run_words *w);

/* own: nobody named an agent, so the image's own command is meant, ENTRYPOINT and CMD, if it has one; words behind "--" take the place of CMD. Else,
 * or if it has none, a shell: bash if it is there. 0; 1: the template is none of an image, and nothing is set. */
int image_run_words(struct ctx *c, const struct sandbox *b, bool own, const char **extra, size_t n,
		    struct image_run_words *ret, struct err *e) _must_check_;
