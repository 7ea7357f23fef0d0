#pragma once
/* bac policy log. */
#include "base/opt.h"
#include "cli/receipts.h"

struct policy_log_args {
	const char *type; /* NULL: all */
	uint32_t limit;   /* 0: all */
	bool json, follow, quiet;
};
enum { POLICY_LOG_OPTS = 5 };
extern const struct opt policy_log_opts[POLICY_LOG_OPTS];
extern const char policy_log_text[];
int policy_run_log(void *opt, struct args *args, struct err *e);

/* For the table of 'bac policy'. */
#define POLICY_LOG_CMD \
	{ \
		.name = "log", .usage = "[OPTIONS] [SANDBOX]", \
		.brief = "show what sandboxes were refused and allowed", .text = policy_log_text, \
		.opts = policy_log_opts, .n_opts = POLICY_LOG_OPTS, .max_args = 1, \
		.size = sizeof(struct policy_log_args), .run = policy_run_log \
	}

/* ---- policy-tally.c: the two tables ---- */

struct tally;
int tally_new(struct tally **ret) _must_check_;
struct tally *tally_free(struct tally *t);
DEFINE_FREEP(struct tally, tally_free)

/* A decision. 0, -ENOMEM. Beyond TALLY_MAX destinations new ones are only counted. */
enum { TALLY_MAX = 50000 };
int tally_add(struct tally *t, const struct audit_record *r) _must_check_;

/* Print both, newest first; at most limit rows each (0: all). */
void tally_print(struct tally *t, uint32_t limit);
/* Print the destinations alone, those that were blocked first. */
void tally_names(struct tally *t, uint32_t limit);

/* One decision as a line, as it comes. */
void tally_line(const struct audit_record *r);
