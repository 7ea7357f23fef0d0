#pragma once
/* Options and commands as tables. One parser reads them; --help, the completion scripts and the
 * manual page are printed from the same tables, so they cannot disagree. */
#include "base/buf.h"
#include "base/err.h"

enum opt_kind {
	OPT_FLAG, /* bool */
	OPT_STR,  /* const char *, borrowed from argv */
	OPT_U32,  /* uint32_t */
	OPT_SIZE, /* uint64_t, bytes */
	OPT_MS,   /* uint64_t, milliseconds */
	OPT_LIST, /* struct opt_list, may be given several times */
};

struct opt {
	const char *name; /* long name without dashes */
	char letter;      /* short name, or 0 */
	enum opt_kind kind;
	size_t off;      /* where in the command's struct */
	const char *arg; /* what the value is called in the help; NULL for a flag */
	const char *help;
};

struct opt_list {
	const char **v; /* borrowed texts; the array is freed by opts_done() */
	size_t n;
};

enum { OPT_LIST_MAX = 4096 };

/* What is left when the options are taken out. */
struct args {
	char **v; /* borrowed from argv, NULL-terminated */
	size_t n;
	size_t dashes; /* how many stood before a "--", or SIZE_MAX without one */
};

struct cmd {
	const char *name;  /* "exec", or "template build" is name "build" below "template" */
	const char *usage; /* "[OPTIONS] SANDBOX COMMAND [ARG...]" */
	const char *brief; /* one line, no full stop */
	const char *text;  /* paragraphs for --help and the manual; may be NULL */
	const struct opt *opts;
	size_t n_opts;
	const struct cmd *subs;    /* ends with a NULL name; then run is NULL */
	size_t min_args, max_args; /* positional ones; SIZE_MAX for no limit */
	bool stop_at_first;        /* options end at the first positional (exec) */
	bool hidden;               /* absent from the help */
	size_t size;               /* of the struct that the options fill */
	int (*run)(void *opts, struct args *args,
		   struct err *e); /* exit status or -Exxx with *e set */
};

/* Parse argv (NULL-terminated, without the command's name) into the struct at into, which the
 * caller zeroed. argv is reordered: positional arguments come first. --help and -h are not
 * options of the table: ask opts_wants_help() before. 0, or -EINVAL with a message that names
 * the nearest option. */
int opts_parse(const struct cmd *c, void *into, char **argv, struct args *ret, struct err *e)
	_must_check_;

/* Free the lists that opts_parse() made. */
void opts_done(const struct cmd *c, void *into);

/* True if -h or --help stands among the options (before "--" and, for stop_at_first commands,
 * before the first positional). */
bool opts_wants_help(const struct cmd *c, char **argv);

/* The command among n that has this name, or NULL with a message that names the nearest. */
const struct cmd *cmd_find(const struct cmd *list, const char *name, const char *parent,
			   struct err *e);

/* The whole --help text of a command; path is "bac exec". 0, -ENOMEM or -ENOBUFS. */
int cmd_help(struct buf *out, const char *path, const struct cmd *c) _must_check_;
