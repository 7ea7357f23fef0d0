#pragma once
/* The logs of sandboxes (state/audit.h), also of those that are removed. */
#include "cli/ctx.h"
#include "state/audit.h"

struct receipts_log {
	char id[STATE_ID_MAX + 1];
	char name[AUDIT_NAME_MAX + 1]; /* of the sandbox; its id if the log does not say */
	int dir;
};
struct receipts_logs {
	struct receipts_log *v;
	size_t n;
};

/* The logs of a sandbox, by its name or id, or all of them (NULL), by name. A sandbox that was removed and made again has two.
 * 0, also with none; -errno with a message. receipts_done() in any case. */
int receipts_find(const struct ctx *c, const char *name, struct receipts_logs *ret, struct err *e)
	_must_check_;
void receipts_done(struct receipts_logs *l);
