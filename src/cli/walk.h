#pragma once
/* Every command of a table that is not hidden, in reading order, with its whole name. */
#include "base/opt.h"

enum {
	WALK_DEPTH = 4, /* "a b c d" is the deepest */
	WALK_PATH_MAX = 128,
	WALK_WORD_MAX = 64,
};

struct walk {
	const struct cmd *at[WALK_DEPTH]; /* the next one of each level */
	size_t len[WALK_DEPTH];           /* of path, without the last word */
	size_t depth;
	char path[WALK_PATH_MAX]; /* "template build" */
};

void walk_init(struct walk *w, const struct cmd *cmds);

/* The next command, or NULL at the end; w->path is its name until the next call. */
const struct cmd *walk_next(struct walk *w);

/* What a usage line says about the words that are not options. "[OPTIONS] SANDBOX [ARG...]": one
 * call yields SANDBOX, the next ARG with *ret_more set, the third NULL. *p moves on; dst (of
 * WALK_WORD_MAX bytes) holds the word and is what is returned. */
const char *walk_usage(const char **p, char *dst, bool *ret_more);
