/* bac policy log: what sandboxes were refused and allowed, as two tables, as raw lines, or as it comes. */
#include "cli/policy-log.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "cli/cmds.h"

#define OPT(kind, field, letter, name, arg, help) \
	{ \
		name, letter, kind, offsetof(struct policy_log_args, field), arg, help \
	}
const struct opt policy_log_opts[POLICY_LOG_OPTS] = {
	OPT(OPT_FLAG, json, 0, "json", NULL,
	    "print the records as they are in the log, a JSON object a line"),
	OPT(OPT_FLAG, follow, 'f', "follow", NULL, "go on with what is added"),
	OPT(OPT_U32, limit, 0, "limit", "N",
	    "at most N rows a table, or the last N records; 0: all"),
	OPT(OPT_STR, type, 0, "type", "all|network|filesystem", "only decisions of this type"),
	OPT(OPT_FLAG, quiet, 'q', "quiet", NULL, "print the destinations only, blocked ones first"),
};

const char policy_log_text[] =
	"Without SANDBOX: all of them, also those that are removed. Decisions are counted by where "
	"they "
	"led;\n"
	"RULE is for 'bac policy inspect'. A name that was asked for has a row only if nothing "
	"was\n"
	"connected to it. 'bac audit verify' says whether the log is as it was written.";

enum type { T_ALL, T_NETWORK, T_FILES };

static int type_of(const char *text, enum type *ret, struct err *e)
{
	*ret = !text || streq(text, "all") ? T_ALL : streq(text, "network") ? T_NETWORK : T_FILES;
	if (*ret == T_FILES && !streq(text, "filesystem"))
		return err_set(e, -EINVAL, "--type is all, network or filesystem, not '%.60s'",
			       text);
	return 0;
}

/* What bac says about itself is of no type. */
static bool wanted(const struct audit_record *r, enum type type)
{
	const bool file = streq(r->kind, "file");
	const bool other =
		streq(r->kind, "log") || streq(r->kind, "policy") || streq(r->kind, "sandbox");

	return type == T_ALL || (type == T_FILES ? file : !file && !other);
}

/* One log that is being read. */
struct source {
	int dir; /* of the log; borrowed */
	struct audit_reader *reader;
	uint64_t skip; /* lines that come before the last N */
};

struct show {
	const struct policy_log_args *o;
	enum type type;
	struct tally *tally;
	bool live; /* what is there already was shown */
	struct source *v;
	size_t n;
	struct audit_record rec;
};

static void show_json(struct source *x, const char *line, size_t n)
{
	if (x->skip) {
		x->skip--;
		return;
	}
	(void)fwrite(line, 1, n, stdout);
	(void)putchar('\n');
}

/* A line that is no record may hold anything, and is not shown: it stays in the file, and verify names it. */
static int show_one(struct show *s, struct source *x, const char *line, size_t n)
{
	if (audit_record_parse(&s->rec, line, n) < 0 || !wanted(&s->rec, s->type))
		return 0;
	if (s->o->json) {
		show_json(x, line, n);
		return 0;
	}
	if (!streq(s->rec.event, "decision"))
		return 0;
	if (!s->live)
		return tally_add(s->tally, &s->rec);
	tally_line(&s->rec);
	return 0;
}

/* All that there is for now. */
static int drain(struct show *s, struct source *x)
{
	struct audit_place at;
	const char *line;
	size_t n;
	int what;

	while ((what = audit_reader_next(x->reader, &line, &n, &at)) > 0) {
		int r = what == AUDIT_LINE ? show_one(s, x, line, n) : 0;

		if (r < 0)
			return r;
	}
	return what;
}

/* For the last N records: how many come before them. */
static int count(struct show *s, struct source *x)
{
	_cleanup_(audit_reader_freep) struct audit_reader *r = NULL;
	struct audit_place at;
	const char *line;
	uint64_t total = 0;
	size_t n;
	int what = audit_reader_new(x->dir, &r);

	while (what == 0 && (what = audit_reader_next(r, &line, &n, &at)) > 0) {
		if (what == AUDIT_LINE && audit_record_parse(&s->rec, line, n) == 0 &&
		    wanted(&s->rec, s->type))
			total++;
		what = 0;
	}
	x->skip = total > s->o->limit ? total - s->o->limit : 0;
	return what;
}

static int source_open(struct show *s, const struct receipts_log *log)
{
	struct source *x = &s->v[s->n];
	int r;

	*x = (struct source) { .dir = log->dir };
	r = audit_reader_new(log->dir, &x->reader);
	if (r < 0)
		return r;
	s->n++;
	return s->o->json && s->o->limit ? count(s, x) : 0;
}

static int watch(const struct show *s, int *ret)
{
	_close_ int in = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char path[64];

	if (in < 0)
		return -errno;
	for (size_t i = 0; i < s->n; i++) {
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", s->v[i].dir);
		if (inotify_add_watch(in, path, IN_MODIFY | IN_CREATE) < 0)
			return -errno;
	}
	*ret = take_fd(&in);
	return 0;
}

static int follow(struct show *s, int in, struct err *e)
{
	char events[4096];
	int r = 0;

	while (r == 0) {
		struct pollfd f[2] = { { in, POLLIN, 0 }, { STDOUT_FILENO, 0, 0 } };

		for (size_t i = 0; i < s->n && r == 0; i++)
			r = drain(s, &s->v[i]);
		if (r < 0)
			return err_errno(e, r, "cannot read the log");
		r = flush_out(e);
		if (r < 0 || (poll(f, 2, -1) < 0 && errno != EINTR) ||
		    f[1].revents & (POLLERR | POLLHUP))
			break;
		while (read(in, events, sizeof(events)) > 0)
			;
	}
	return r;
}

static int show(struct show *s, const struct receipts_logs *l, struct err *e)
{
	_close_ int in = -1;
	int r = 0;

	s->v = calloc(l->n + 1, sizeof(*s->v));
	if (!s->v)
		return err_errno(e, -ENOMEM, "cannot show the log");
	for (size_t i = 0; i < l->n && r == 0; i++)
		r = source_open(s, &l->v[i]);
	if (r == 0 && s->o->follow)
		r = watch(s, &in);
	for (size_t i = 0; i < s->n && r == 0; i++)
		r = drain(s, &s->v[i]);
	if (r < 0)
		return err_errno(e, r, "cannot read the log");
	if (s->o->quiet && !s->o->json)
		tally_names(s->tally, s->o->limit);
	else if (!s->o->json)
		tally_print(s->tally, s->o->limit);
	s->live = true;
	return s->o->follow ? follow(s, in, e) : flush_out(e);
}

static void show_done(struct show *s)
{
	for (size_t i = 0; i < s->n; i++)
		(void)audit_reader_free(s->v[i].reader);
	free(s->v);
	(void)tally_free(s->tally);
	free(s);
}

/* A sandbox that has no log yet is no mistake. */
static int find(struct ctx *c, const char *name, struct receipts_logs *l, struct err *e)
{
	struct sandbox b = { 0 };
	struct err none;
	int r = receipts_find(c, name, l, e);

	if (r < 0 || !name || l->n)
		return r;
	if (state_get(c->state, name, &b, &none) < 0)
		r = err_set(e, -ENOENT, "there is no sandbox '%s', and no log of one", name);
	sandbox_done(&b);
	return r;
}

int policy_run_log(void *opt, struct args *args, struct err *e)
{
	struct receipts_logs l = { 0 };
	struct show *s = calloc(1, sizeof(*s));
	struct ctx c;
	int r = ctx_open(&c, e);

	if (r == 0 && (!s || tally_new(&s->tally) < 0))
		r = err_errno(e, -ENOMEM, "cannot show the log");
	if (r == 0) {
		s->o = opt;
		r = type_of(s->o->type, &s->type, e);
	}
	if (r == 0)
		r = find(&c, args->n ? args->v[0] : NULL, &l, e);
	if (r == 0)
		r = show(s, &l, e);
	if (s)
		show_done(s);
	receipts_done(&l);
	ctx_done(&c);
	return r;
}
