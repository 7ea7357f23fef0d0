#pragma once
/* One sandbox kit and its mixins, from what they are called to what they mean together: what create, validate and inspect have in common. */
#include "cli/kit-source.h"
#include "kit/kit.h"

struct opt_list;

struct kit_load_opts {
	const char *base; /* the sandbox kit: an agent's name or a reference; NULL: none */
	const struct opt_list *kits;              /* --kit: mixins, in order; NULL: none */
	const struct opt_list *args, *args_files; /* --kit-arg, --kit-args-file; NULL: none */
	bool single; /* of base alone, mixin or not: nothing is composed, parents are not looked for */
};

/* One kit of a composition, in the order in which its files go over each other. */
struct kit_part {
	struct kit_source source;
	struct kit kit;
	bool mixin;
};

struct kit_loaded {
	struct kit kit;           /* composed; of single, empty: v[0].kit is it */
	struct kit_part *v;       /* the farthest parent first, the sandbox kit, then the mixins */
	size_t n, base;           /* base: which is the sandbox kit */
	struct kit_report report; /* warnings; on failure all faults */
};

/* 0; -EINVAL with the faults in ret->report and the first in e; -Exxx with a message. *ret is to be done in any case. */
int kit_load(struct ctx *c, const struct kit_load_opts *o, struct kit_loaded *ret, struct err *e)
	_must_check_;
void kit_loaded_done(struct kit_loaded *l);
