#pragma once
/* bac kit: its commands, which kit.c has in a table. */
#include "base/opt.h"
#include "cli/kit-load.h"

struct kit_pack_args {
	const char *out;
	bool force;
};
struct kit_add_args {
	struct opt_list args, args_files;
};
int kit_run_add(void *opt, struct args *args, struct err *e);
int kit_run_pack(void *opt, struct args *args, struct err *e);
int kit_run_pull(void *opt, struct args *args, struct err *e);

/* validate and inspect */
struct kit_show_args {
	bool json;
	struct opt_list args, args_files;
};
int kit_run_validate(void *opt, struct args *args, struct err *e);
int kit_run_inspect(void *opt, struct args *args, struct err *e);
/* One kit, by itself. As kit_load(). */
int kit_load_one(struct ctx *c, const struct kit_show_args *o, const char *ref,
		 struct kit_loaded *ret, struct err *e) _must_check_;
/* All warnings and faults, a line each, to stderr. */
void kit_tell(const struct kit_report *rep);
struct json_t;
struct json_t *kit_warnings_json(const struct kit_report *rep);

/* init */
struct kit_init_args {
	const char *name;
	bool force;
};
int kit_run_init(void *opt, struct args *args, struct err *e);
