#pragma once
/* Network rules as they are kept: those of every sandbox and those of one, and which preset was chosen.
 *
 * Copies lie beside (policy.json in the state directory and in each sandbox's own), from which repair
 * rebuilds the tables. Nobody changes rules without rules_lock(): so that copies, database and what running sandboxes are
 * told come in one order. */
#include "policy/net.h"
#include "state/state.h"

enum { RULE_ID_MAX = 36 };

struct box_rule {
	char id[RULE_ID_MAX + 1];       /* UUID */
	char sandbox[STATE_ID_MAX + 1]; /* "": every sandbox */
	bool allow;
	char *resource, *method, *path; /* canonical; method and path are "" where there is none */
	const char *
		via; /* "default" (a preset's), "added" (by a command), "provisioned" (at creation) */
	char *group;     /* a preset's group; "kit:NAME" for one that a kit brought; or "" */
	int64_t created; /* seconds since 1970 */
};

struct box_rules {
	struct box_rule *v; /* at most NET_RULES_MAX */
	size_t n;
};
void rules_done(struct box_rules *r);

/* Append a new rule with a new id. Texts are checked, brought into their canonical form and copied; method and path may be
 * NULL. 0, or -EINVAL and others with a message. */
int rules_append(struct box_rules *r, const struct net_rule *rule, const char *sandbox,
		 const char *via, const char *group, struct err *e) _must_check_;

/* A kit brought it. */
bool rules_is_kit(const struct box_rule *r);

/* One command at a time changes rules, waiting for others at most two minutes. 0 or -Exxx with a message. */
int rules_lock(const struct state *s, int *ret_fd, struct err *e) _must_check_;

/* The preset that was chosen, on the heap; NULL: none was. */
int rules_preset(struct state *s, char **ret, struct err *e) _must_check_;

/* sandbox NULL: all rules; "": those of every sandbox; else those of one. In the order in which they were made. */
int rules_list(struct state *s, const char *sandbox, struct box_rules *ret, struct err *e)
	_must_check_;

/* All or none. -E2BIG where a sandbox would have more than NET_RULES_MAX. */
int rules_add(struct state *s, const struct box_rules *more, struct err *e) _must_check_;
/* By id, all or none. */
int rules_remove(struct state *s, const struct box_rules *gone, struct err *e) _must_check_;

/* Choose a preset with its rules. -EEXIST with a message if one was chosen. */
int rules_init(struct state *s, const char *preset, const struct box_rules *rules, struct err *e)
	_must_check_;
/* No preset, no rule, of any sandbox. */
int rules_reset(struct state *s, struct err *e) _must_check_;

/* What holds for one sandbox, as net_text. -ENOENT with a message that says what to run if no preset was chosen. */
int rules_text(struct state *s, const char *sandbox, struct buf *out, struct err *e) _must_check_;
