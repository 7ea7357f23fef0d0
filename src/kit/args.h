#pragma once
/* Arguments of kits: ${{ kit.args.NAME }} in a specification and in its files.
 *
 * A reference is replaced inside of a value that YAML has read already: whatever an argument says, it is a text, and never becomes a key, a list or another
 * line of the specification. */
#include "base/buf.h"
#include "base/err.h"

enum {
	KIT_ARGS_MAX = 128,
	KIT_ARG_NAME_MAX = 63,
	KIT_ARG_VALUE_MAX = 4096,
	KIT_ARGS_FILE_MAX = 64 * 1024
};

struct kit_arg {
	char *kit; /* NULL: of every kit that has it */
	char *name, *value;
	char *description; /* as declared, or NULL */
	bool used;         /* a kit has it: set by kit_parse() */
};

struct kit_args {
	struct kit_arg *v;
	size_t n;
};

/* "name=value" or "kit.name=value", of --kit-arg; replaces what was said before for the same. 0; -EINVAL, -E2BIG with a message; -ENOMEM. */
int kit_args_add(struct kit_args *a, const char *text, struct err *e) _must_check_;
/* The text of a file of them: one a line, '#' begins a comment. What a holds already wins if it came from the command line: read files first. */
int kit_args_file(struct kit_args *a, const char *file, const char *text, size_t n, struct err *e)
	_must_check_;
void kit_args_done(struct kit_args *a);
/* After all kits of a composition are parsed: 0, or -EINVAL and the name of one that no kit has. */
int kit_args_used(const struct kit_args *a, struct err *e) _must_check_;
/* Replaces references in a text of files/ by the values of a kit (struct kit: args). What is not such a reference stays, also "${{ x }}". 0; -EINVAL with line and column: it
 * refers to what is not declared; -ENOBUFS; -ENOMEM. */
int kit_args_apply(const struct kit_args *a, const char *text, size_t n, struct buf *out,
		   struct err *e) _must_check_;
