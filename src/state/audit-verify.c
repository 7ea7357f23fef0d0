/* The judge. A chain is whole if each record has the hash that it says, names the hash of the one before it and the next
 * number; if what is missing in front is what a "rotate" record says went; and if the record that the head names is there.
 *
 * The head is read first, since a writer may add records meanwhile: they come on top of what it says. Files that go meanwhile
 * are the oldest: then the reading begins once more. */
#include <stdarg.h>
#include <stdio.h>

#include "state/audit-priv.h"

struct judge {
	struct audit_verdict *v;
	char hash[AUDIT_HASH + 1];       /* of the last record */
	char first_prev[AUDIT_HASH + 1]; /* prev of the first */
	bool front_told;                 /* a rotate record accounts for what is missing in front */
	uint64_t head_seq;
	char head_hash[AUDIT_HASH + 1];
	bool head_met;
	struct audit_record rec;
};

_printf_(4, 5) static void fault(struct judge *j, struct audit_place at, uint64_t seq,
				 const char *fmt, ...)
{
	va_list ap;

	j->v->broken = true;
	j->v->place = at;
	j->v->seq = seq;
	va_start(ap, fmt);
	(void)vsnprintf(j->v->what, sizeof(j->v->what), fmt, ap);
	va_end(ap);
}

/* Against the one before. */
static void judge_link(struct judge *j, struct audit_place at)
{
	const struct audit_record *r = &j->rec;
	const uint64_t want = j->v->last + 1;

	if (r->seq > want)
		fault(j, at, r->seq, "records %llu to %llu are missing before it",
		      (unsigned long long)want, (unsigned long long)r->seq - 1);
	else if (r->seq < want)
		fault(j, at, r->seq,
		      "its number comes after %llu: records were repeated or put in another order",
		      (unsigned long long)j->v->last);
	else if (!streq(r->prev, j->hash))
		fault(j, at, r->seq,
		      "it does not follow the record before it: one of the two was replaced");
}

static void judge_record(struct judge *j, const char *line, size_t n, struct audit_place at)
{
	const struct audit_record *r = &j->rec;
	int bad = audit_record_parse(&j->rec, line, n);

	if (bad < 0 || !audit_line_holds(line, n)) {
		fault(j, at, bad < 0 ? 0 : r->seq,
		      bad < 0 ? "it is not a record"
			      : "its hash is not that of its text: it was changed");
		return;
	}
	if (j->v->records) {
		judge_link(j, at);
	} else {
		j->v->first = r->seq;
		memcpy(j->first_prev, r->prev, sizeof(j->first_prev));
	}
	if (j->v->broken)
		return;
	j->v->records++;
	j->v->last = r->seq;
	memcpy(j->hash, r->hash, sizeof(j->hash));
	if (streq(r->event, "rotate") && streq(r->kind, "log") && r->last == j->v->first - 1 &&
	    streq(r->last_hash, j->first_prev))
		j->front_told = true;
	if (r->seq == j->head_seq && streq(r->hash, j->head_hash))
		j->head_met = true;
}

/* What no single record shows. */
static void judge_whole(struct judge *j, bool head)
{
	struct audit_verdict *v = j->v;
	const bool whole_front = v->first == 1 && streq(j->first_prev, audit_zeros);

	if (v->records && !whole_front && !j->front_told)
		fault(j, (struct audit_place) { 0 }, v->first,
		      v->first == 1
			      ? "the first record has something before it"
			      : "records 1 to %llu are missing, and no record says that their "
				"files were rotated away",
		      (unsigned long long)v->first - 1);
	else if (head && v->last < j->head_seq)
		fault(j, (struct audit_place) { 0 }, v->last,
		      "the log was cut: its last record is %llu, and record %llu had been written",
		      (unsigned long long)v->last, (unsigned long long)j->head_seq);
	else if (head && j->head_seq && !j->head_met)
		fault(j, (struct audit_place) { 0 }, j->head_seq,
		      "record %llu is not the one that had been written: the log was written anew",
		      (unsigned long long)j->head_seq);
	else if (!head && v->records)
		fault(j, (struct audit_place) { 0 }, 0,
		      "its file '" AUDIT_HEAD "' is missing or damaged");
}

static int read_all(struct judge *j, int dir)
{
	_cleanup_(audit_reader_freep) struct audit_reader *r = NULL;
	struct audit_place at;
	const char *line;
	size_t n;
	int e = audit_reader_new(dir, &r);

	while (e == 0 && !j->v->broken) {
		int what = audit_reader_next(r, &line, &n, &at);

		if (what < 0)
			e = what;
		else if (what == AUDIT_END)
			break;
		else if (what == AUDIT_BAD)
			fault(j, at, 0, "it is not a record");
		else
			judge_record(j, line, n, at);
	}
	j->v->rest = r ? audit_reader_rest(r) : 0;
	return e;
}

/* 0; 1: files went while it read. */
static int verify_once(int dir, struct judge *j)
{
	_free_ uint64_t *before = NULL, *after = NULL;
	size_t n = 0, m = 0;
	int head = audit_head_read(dir, &j->head_seq, j->head_hash), e;

	if (head < 0 && head != -ENOENT && head != -EBADMSG)
		return head;
	e = audit_files(dir, &before, &n);
	if (e == 0)
		e = read_all(j, dir);
	if (e == 0 && !j->v->broken)
		judge_whole(j, head == 0);
	if (e == 0)
		e = audit_files(dir, &after, &m);
	if (e < 0)
		return e;
	return j->v->broken && n && (!m || before[0] != after[0]);
}

int audit_verify(int dir, struct audit_verdict *ret)
{
	struct judge *j = calloc(1, sizeof(*j));
	int r = 1;

	if (!j)
		return -ENOMEM;
	j->v = ret;
	for (int i = 0; i < 5 && r == 1; i++) {
		memset(ret, 0, sizeof(*ret));
		*j = (struct judge) { .v = ret };
		r = verify_once(dir, j);
	}
	free(j);
	return MIN(r, 0);
}
