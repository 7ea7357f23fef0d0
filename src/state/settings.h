#pragma once
/* The settings: one table of keys, types, defaults and explanations.
 *
 * A value comes from the environment (BAC_ and the key in capitals, dots and humps as underscores:
 * vm.requireKvm is BAC_VM_REQUIRE_KVM), else from the state, else it is the default. */
#include "state/state.h"

enum setting_kind { SET_BOOL, SET_INT, SET_SIZE, SET_MS, SET_TEXT };

struct setting {
	const char *key;
	enum setting_kind kind;
	const char *standard; /* the default, as text */
	const char *help;
};

/* The table; ends with a NULL key. */
extern const struct setting settings[];

/* -EINVAL with a message that names the nearest key. */
const struct setting *setting_find(const char *key, struct err *e);

/* 0 if value fits the key's kind, else -EINVAL with a message. */
int setting_check(const struct setting *s, const char *value, struct err *e) _must_check_;

/* The value in force, on the heap; *ret_source is "env", "override" or "default". A value in the
 * environment that does not fit is an error. */
int setting_get(struct state *st, const char *key, char **ret, const char **ret_source,
		struct err *e) _must_check_;

/* Of a checked workspace.rules, one rule a line, in place. */
void setting_rules_lines(char *text);

/* The same as a number (bytes, ms, 0 or 1). */
int setting_number(struct state *st, const char *key, uint64_t *ret, struct err *e) _must_check_;
