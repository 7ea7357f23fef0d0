#pragma once
/* bac kit: its commands, which kit.c has in a table. */
#include "cli/kit-source.h"
#include "base/opt.h"

struct kit_pack_args {
	const char *out;
	bool force;
};
int kit_run_pack(void *opt, struct args *args, struct err *e);
int kit_run_pull(void *opt, struct args *args, struct err *e);

/* What a kit's folder has and bac does not use, one line each. */
void kit_tell_ignored(const struct kit_source *s);
