#pragma once
/* What the commands of 'bac template' share. */
#include "base/opt.h"
#include "cli/ctx.h"
#include "image/image.h"

/* Digits of a digest that people are shown. */
enum { TEMPLATE_DIGITS = 12 };

/* For --json. */
struct json_t;
struct json_t *template_json(const struct image_template *t);

/* How many sandboxes stand on it; the first one's name is copied to *ret_first (on the heap) if that is not NULL. -Exxx with a message. */
int template_users(struct ctx *c, const char *digest, char **ret_first, struct err *e) _must_check_;

/* The setting template.maxSize, when t has come: of the templates that no sandbox uses the least recently used ones go until all fit (said on
 * stderr), but not t, nor the default. -EFBIG with a message if that is not enough; then t has been removed, if it was not there
 * before (fresh). */
int template_fit(struct ctx *c, const struct image_template *t, bool fresh, struct err *e)
	_must_check_;

/* The commands; the tables are in template.c's. */
enum {
	TEMPLATE_INSPECT_OPTS = 1,
	TEMPLATE_LOAD_OPTS = 3,
	TEMPLATE_LS_OPTS = 2,
	TEMPLATE_PRUNE_OPTS = 4,
	TEMPLATE_RM_OPTS = 1
};
extern const struct opt template_inspect_opts[TEMPLATE_INSPECT_OPTS],
	template_load_opts[TEMPLATE_LOAD_OPTS], template_ls_opts[TEMPLATE_LS_OPTS],
	template_prune_opts[TEMPLATE_PRUNE_OPTS], template_rm_opts[TEMPLATE_RM_OPTS];

struct template_args {
	const char *tag;
	bool json, quiet, force, dry_run;
	struct opt_list filter;
};
int template_run_inspect(void *opt, struct args *args, struct err *e);
int template_run_load(void *opt, struct args *args, struct err *e);
int template_run_ls(void *opt, struct args *args, struct err *e);
int template_run_prune(void *opt, struct args *args, struct err *e);
int template_run_rm(void *opt, struct args *args, struct err *e);
