#pragma once
/* bac env: environments of sbxenv.yaml (kit/sbxenv.h, docs/env.md). */
#include "base/opt.h"
#include "cli/ctx.h"
#include "kit/sbxenv.h"

struct env_args {
	const char *name;
	struct opt_list args, args_files;
	bool auto_approve, skip_host, force, prune, detached, quiet;
	/* exec */
	bool interactive, tty, detach;
	const char *user, *workdir;
	struct opt_list env, env_file;
};

/* An environment that was read. */
struct env {
	const struct env_args *o;
	struct ctx c;
	struct sbxenv v;
	char *project;                 /* absolute */
	char *files[SBXENV_FILES_MAX]; /* absolute, in the order of merging */
	size_t n_files;
	bool user;     /* the first is the user's defaults */
	char name[64]; /* the sandbox's */
	struct sandbox box;
	bool there; /* box: it exists */
};

/* The files of paths (none: sbxenv.yaml here, over ~/.sbxenv.yaml), and whether the sandbox is there. env_close() in any case. */
int env_open(const struct env_args *o, char **paths, size_t n, struct env *ret, struct err *e)
	_must_check_;
void env_close(struct env *v);

/* ---- env-plan.c ---- */

enum env_plan { ENV_APPLY, ENV_REMOVE };

/* What would be done outside of the sandbox and with it, a line each. */
int env_plan_text(const struct env *v, enum env_plan what, struct buf *out, struct err *e)
	_must_check_;
/* Shown and asked about, unless that very plan was approved before. 0: go on; 1: the user said no; -Exxx. */
int env_approve(const struct env *v, enum env_plan what, struct err *e) _must_check_;

/* ---- env-host.c ---- */

/* The commands of a phase, in order, up to the first that fails. */
int env_host_run(const struct env *v, enum sbxenv_phase phase, struct err *e) _must_check_;
/* A secret's value: literal, or what its command prints, on the heap. */
int env_host_value(const struct env *v, const struct sbxenv_source *s, char **ret, size_t *ret_n,
		   struct err *e) _must_check_;

/* ---- env-make.c ---- */

/* Words for another command of bac. */
struct env_words {
	const char **v; /* NULL-terminated */
	char **own;     /* those that are ours to free */
	size_t n, n_own;
	bool failed; /* no memory: asked at the end */
};
void env_word(struct env_words *w, const char *word);
void env_word_printf(struct env_words *w, const char *fmt, ...) _printf_(2, 3);
void env_words_done(struct env_words *w);
/* Run it with our terminal. Its status, or -Exxx. in: its stdin's bytes, or NULL. */
int env_bac(struct env_words *w, const void *in, size_t n_in, struct err *e) _must_check_;
/* Become it. Only returns if that fails. */
int env_become(struct env_words *w, struct err *e);

/* Create it: sandbox, approvals, secrets. */
int env_make(struct env *v, struct err *e) _must_check_;
/* Does bac create have this option? */
bool env_create_has(const char *option);
