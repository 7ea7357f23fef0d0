#pragma once
/* What the commands of 'bac policy' share. */
#include "base/opt.h"
#include "cli/ctx.h"
#include "state/rules.h"

/* The options of all of them; each has its own list. */
struct policy_args {
	const char *sandbox, *protocol, *method, *path, *resource, *id;
	const char *decision, *source, *type, *via;
	bool json, wide, verbose, force, apply;
};

#define POLICY_OPT(kind, field, letter, name, arg, help) \
	{ \
		name, letter, kind, offsetof(struct policy_args, field), arg, help \
	}

/* policy-rules.c, policy-show.c, policy-check.c, policy-suggest.c, policy-init.c; each ends with a NULL name */
extern const struct cmd policy_allow_subs[], policy_deny_subs[], policy_rm_subs[],
	policy_check_subs[];
int policy_run_init(void *opt, struct args *args, struct err *e);
int policy_run_reset(void *opt, struct args *args, struct err *e);
int policy_run_ls(void *opt, struct args *args, struct err *e);
int policy_run_inspect(void *opt, struct args *args, struct err *e);
int policy_run_suggest(void *opt, struct args *args, struct err *e);

/* The sandbox that --sandbox names; *ret_id is "" without one. */
int policy_scope(struct ctx *c, const char *name, char ret_id[STATE_ID_MAX + 1], struct err *e)
	_must_check_;

/* Cut "a:80,443,b" into resources: a part that is only a port belongs to the one before. each() gets
 * a text of its own each time; what it returns below 0 ends it. */
int policy_split(const char *list, int (*each)(void *arg, const char *resource, struct err *e),
		 void *arg, struct err *e) _must_check_;

/* The name of a rule's sandbox, or "all" for every one; "ID (gone)" never happens while rules_forget() works. */
const char *policy_applies_to(struct ctx *c, const char *id, char *dst, size_t max);

struct json_t;
struct json_t *policy_rule_json(struct ctx *c, const struct box_rule *r);

/* A preset must have been chosen before there is a sandbox with a network: on a terminal it is asked for. 0, or -ENOENT with a message
 * that says what to run. */
int policy_ensure(struct ctx *c, struct err *e) _must_check_;

/* The rules of --allow-network and --deny-network. */
int policy_provision(struct box_rules *ret, const struct opt_list *allow,
		     const struct opt_list *deny, const char *sandbox, struct err *e) _must_check_;

/* A policy as it is in force for one sandbox ("": for all). */
int policy_load(struct ctx *c, const char *sandbox, struct net_policy **ret, struct err *e)
	_must_check_;
