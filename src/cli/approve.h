#pragma once
/* What the user has approved: which service's secret may be used at which host by something that is neither built in nor said by the user.
 *
 * $XDG_CONFIG_HOME/bac/credentials.yaml, also for people to read and write:
 *     bindings:
 *       SERVICE:
 *         apiKey:
 *           domains: [a.example, "*.b.example:8443"]
 *         oauth:
 *           domains: [...]
 * It grants, so it is believed only if it is ours and nobody else may write it; one that is damaged is refused with its line, and approves nothing. */
#include "base/err.h"

enum { APPROVALS_MAX = 2048 };

struct approval {
	char *service, *domain; /* canonical */
	bool oauth;
};

struct approvals {
	struct approval *v;
	size_t n;
};

/* A file that is not there approves nothing. 0, or -Exxx with a message. */
int approve_load(const char *config_dir, struct approvals *ret, struct err *e) _must_check_;
void approve_done(struct approvals *a);

bool approve_has(const struct approvals *a, const char *service, bool oauth, const char *domain);

/* Append copies. 0 or -ENOMEM. */
int approve_add(struct approvals *a, const char *service, bool oauth, const char *domain)
	_must_check_;

/* Add these to the file, under a lock. Its comments are lost. */
int approve_save(const char *config_dir, const struct approvals *more, struct err *e) _must_check_;

/* The text of a file, for tests: as approve_load() reads it. */
int approve_parse(const char *text, size_t n, struct approvals *ret, struct err *e) _must_check_;

/* Take all of one service's approvals out of the file, under the same lock. 0 also where there is none. */
int approve_drop(const char *config_dir, const char *service, struct err *e) _must_check_;
