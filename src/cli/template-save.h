#pragma once
/* bac template save: a sandbox's file system as a template, and as a file. */
#include "base/opt.h"

struct template_save_args {
	const char *output;
	bool force, quiet, json;
};

enum { TEMPLATE_SAVE_OPTS = 4 };
extern const struct opt template_save_opts[TEMPLATE_SAVE_OPTS];

int template_run_save(void *opt, struct args *args, struct err *e);
