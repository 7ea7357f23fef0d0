#pragma once
/* References to arguments in a text, before YAML reads it.
 *
 * A specification is read in three steps. Each reference becomes a word of the same length that means nothing to YAML (args_text_mask()), wherever it stands, in quotes or not. YAML
 * is read. Then the words in its values become what the arguments say (args_text_fill()). So a value can neither end a quote nor begin a line, and lines and columns stay true. */
#include "kit/args.h"
#include "kit/take.h"

/* U+FDD0, which is no character: what such a word begins with. A text that has it is refused if it has references. */
#define ARGS_TEXT_MARK "\xef\xb7\x90"

struct args_ref {
	size_t at, n;     /* "${{ kit.args.NAME }}" in the text */
	const char *name; /* NULL: it begins as "${{ kit." and is no such reference */
	size_t name_n;
};

/* [A-Za-z_][A-Za-z0-9_-]*, at most KIT_ARG_NAME_MAX. */
bool kit_args_is_name(const char *s, size_t n) _must_check_;
/* The next reference from `from`. */
bool args_text_next(const char *text, size_t n, size_t from, struct args_ref *ret) _must_check_;
/* Line and column, from 1, of an offset. */
void args_text_place(const char *text, size_t at, unsigned *ret_line, unsigned *ret_column);

struct args_text {
	const char *text; /* the original */
	size_t n;
	char *masked; /* or NULL: there is no reference */
	struct args_ref *v;
	size_t n_v;
};

/* Faults are in the report. 0; -EINVAL; -ENOMEM. */
int args_text_mask(struct args_text *a, const char *file, const char *text, size_t n,
		   struct kit_report *rep) _must_check_;
void args_text_done(struct args_text *a);
/* In all of a tree but its `args`, where none may be, from the values in args. Faults are in the report: nothing of the tree is to be read then. 0; -EINVAL; -ENOMEM. */
int args_text_fill(const struct args_text *a, struct take *t, struct yaml *tree,
		   const struct kit_args *args) _must_check_;
