/* bac audit verify: does the log of a sandbox hold? */
#include <stdio.h>

#include "cli/cmds.h"
#include "cli/receipts.h"

struct audit_args {
	bool quiet;
};

static const struct opt opts[] = {
	{ "quiet", 'q', OPT_FLAG, offsetof(struct audit_args, quiet), NULL,
	  "print nothing for a log that holds" },
};

/* One line. 1: it does not hold. */
static int show(const struct receipts_log *l, const struct audit_args *o, struct err *e)
{
	struct audit_verdict v;
	int r = audit_verify(l->dir, &v);

	if (r < 0)
		return err_errno(e, r, "cannot read the log of '%s'", l->name);
	if (v.broken) {
		(void)printf("%s (%s): broken", l->name, l->id);
		if (v.seq)
			(void)printf(" at record %llu", (unsigned long long)v.seq);
		if (v.place.line)
			(void)printf(", %06llu.jsonl line %llu", (unsigned long long)v.place.file,
				     (unsigned long long)v.place.line);
		(void)printf(": %s\n", v.what);
		return 1;
	}
	if (o->quiet)
		return 0;
	if (v.records)
		(void)printf("%s (%s): holds, %llu records, %llu to %llu%s\n", l->name, l->id,
			     (unsigned long long)v.records, (unsigned long long)v.first,
			     (unsigned long long)v.last,
			     v.rest ? "; one more is not finished" : "");
	else
		(void)printf("%s (%s): holds, no records yet\n", l->name, l->id);
	return 0;
}

static int verify(struct ctx *c, const char *name, const struct audit_args *o, struct err *e)
{
	struct receipts_logs l;
	int r = receipts_find(c, name, &l, e), broken = 0;

	if (r == 0 && name && !l.n)
		r = err_set(e, -ENOENT, "there is no log of a sandbox '%s'", name);
	for (size_t i = 0; r >= 0 && i < l.n; i++) {
		r = show(&l.v[i], o, e);
		broken |= r > 0;
	}
	receipts_done(&l);
	if (r >= 0)
		r = flush_out(e);
	return r < 0 ? r : broken ? STATUS_FAILED : 0;
}

static int run(void *opt, struct args *args, struct err *e)
{
	struct ctx c;
	int r = ctx_open(&c, e);

	if (r == 0)
		r = verify(&c, args->n ? args->v[0] : NULL, opt, e);
	ctx_done(&c);
	return r;
}

static const struct cmd subs[] = {
	{
		.name = "verify",
		.usage = "[OPTIONS] [SANDBOX]",
		.brief = "say whether logs hold, or which record is the first that does not",
		.text = "Each record of a log has the hash of the one before. What was changed, "
			"removed, repeated or\n"
			"moved afterwards shows, and so does a log that was cut at its end; what "
			"was "
			"rotated away is\n"
			"accounted for. Without SANDBOX: all logs, also of sandboxes that are "
			"removed. "
			"Exits with 1 if\n"
			"one does not hold. docs/protocol/audit.md says how to check one without "
			"bac.",
		.opts = opts,
		.n_opts = ARRAY_SIZE(opts),
		.max_args = 1,
		.size = sizeof(struct audit_args),
		.run = run,
	},
	{ .name = NULL },
};

const struct cmd audit_cmd = {
	.name = "audit",
	.usage = "COMMAND",
	.brief = "check the logs of what was allowed and refused",
	.subs = subs,
};
