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
	    "at most N rows a table, or the last N records of each log; 0: all"),
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
	char id[STATE_ID_MAX + 1];
	int dir;
	struct audit_reader *reader;
	uint64_t skip; /* lines that come before the last N */
};

struct show {
	const struct ctx *c;
	const struct policy_log_args *o;
	const char *name; /* NULL: all */
	enum type type;
	struct tally *tally;
	bool live; /* what is there already was shown */
	int in;    /* inotify; -1: nobody follows */
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

static int watch(int in, const char *path)
{
	return inotify_add_watch(in, path, IN_MODIFY | IN_CREATE) < 0 ? -errno : 0;
}

/* Takes the log's directory. */
static int source_open(struct show *s, struct receipts_log *log)
{
	struct source *x, *more = reallocarray(s->v, s->n + 1, sizeof(*s->v));
	char path[64];
	int r;

	if (!more)
		return -ENOMEM;
	s->v = more;
	x = &s->v[s->n++];
	*x = (struct source) { .dir = take_fd(&log->dir) };
	memcpy(x->id, log->id, sizeof(x->id));
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", x->dir);
	r = s->in < 0 ? 0 : watch(s->in, path);
	if (r == 0)
		r = audit_reader_new(x->dir, &x->reader);
	return r == 0 && s->o->json && s->o->limit && !s->live ? count(s, x) : r;
}

static bool is_open(const struct show *s, const char *id)
{
	for (size_t i = 0; i < s->n; i++)
		if (streq(s->v[i].id, id))
			return true;
	return false;
}

/* Logs that were not there before. */
static int sources_find(struct show *s, struct err *e)
{
	struct receipts_logs l;
	int r = receipts_find(s->c, s->name, &l, e);

	for (size_t i = 0; i < l.n && r == 0; i++) {
		if (is_open(s, l.v[i].id))
			continue;
		r = source_open(s, &l.v[i]);
		if (r < 0)
			r = err_errno(e, r, "cannot read the log of '%s'", l.v[i].name);
	}
	receipts_done(&l);
	return r;
}

static int drain_all(struct show *s, struct err *e)
{
	for (size_t i = 0; i < s->n; i++) {
		int r = drain(s, &s->v[i]);

		if (r < 0 && r != -ENOENT) /* a log may be removed with its sandbox */
			return err_errno(e, r, "cannot read a log");
	}
	return 0;
}

/* Before anything is read, so that nothing is missed. */
static int follow_begin(struct show *s, struct err *e)
{
	_free_ char *dir = dirs_join(s->c->dirs.state, "audit");
	int r = dir ? dirs_make(dir) : -ENOMEM;

	if (r == 0) {
		s->in = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
		r = s->in < 0 ? -errno : watch(s->in, dir);
	}
	return r < 0 ? err_errno(e, r, "cannot follow the log") : 0;
}

static int follow(struct show *s, struct err *e)
{
	char events[4096];
	int r = 0;

	while (r == 0) {
		struct pollfd f[2] = { { s->in, POLLIN, 0 }, { STDOUT_FILENO, 0, 0 } };

		r = sources_find(s, e);
		if (r == 0)
			r = drain_all(s, e);
		if (r == 0)
			r = flush_out(e);
		if (r < 0 || (poll(f, 2, -1) < 0 && errno != EINTR) ||
		    f[1].revents & (POLLERR | POLLHUP))
			break;
		while (read(s->in, events, sizeof(events)) > 0)
			;
	}
	return r;
}

static int show(struct show *s, struct err *e)
{
	struct sandbox b = { 0 };
	struct err none;
	int r = s->o->follow ? follow_begin(s, e) : 0;

	if (r == 0)
		r = sources_find(s, e);
	/* a sandbox that has no log yet is no mistake */
	if (r == 0 && s->name && !s->n && state_get(s->c->state, s->name, &b, &none) < 0)
		r = err_set(e, -ENOENT, "there is no sandbox '%s', and no log of one", s->name);
	sandbox_done(&b);
	if (r == 0)
		r = drain_all(s, e);
	if (r < 0)
		return r;
	if (s->o->quiet && !s->o->json)
		tally_names(s->tally, s->o->limit);
	else if (!s->o->json)
		tally_print(s->tally, s->o->limit);
	s->live = true;
	return s->o->follow ? follow(s, e) : flush_out(e);
}

static void show_done(struct show *s)
{
	for (size_t i = 0; i < s->n; i++) {
		(void)audit_reader_free(s->v[i].reader);
		(void)fd_close(s->v[i].dir);
	}
	(void)fd_close(s->in);
	free(s->v);
	(void)tally_free(s->tally);
	free(s);
}

int policy_run_log(void *opt, struct args *args, struct err *e)
{
	struct show *s = calloc(1, sizeof(*s));
	struct ctx c;
	int r;

	if (!s)
		return err_errno(e, -ENOMEM, "cannot show the log");
	s->c = &c;
	s->o = opt;
	s->name = args->n ? args->v[0] : NULL;
	s->in = -1;
	r = ctx_open(&c, e);
	if (r == 0)
		r = type_of(s->o->type, &s->type, e);
	if (r == 0 && tally_new(&s->tally) < 0)
		r = err_errno(e, -ENOMEM, "cannot show the log");
	if (r == 0)
		r = show(s, e);
	show_done(s);
	ctx_done(&c);
	return r;
}
