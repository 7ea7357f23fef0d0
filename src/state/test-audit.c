/* The log: written, cut off, rotated, tampered with, read and judged. With an argument it writes a chain there, for a
 * stranger's check of it. */
#include "state/audit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "sys/dirs.h"

static char top[] = "/tmp/test-audit-XXXXXX";
static const uint64_t T0 = 1795996800000000000; /* 2026-11-30T00:00:00Z */

static const struct receipt plain = {
	.event = RECEIPT_DECISION,
	.kind = RK_TLS,
	.via = RV_TRANSPARENT,
	.port = 443,
	.count = 1,
	.host = "evil.example",
	.reason = "default-deny",
};

static int dir_new(void)
{
	static unsigned n;
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%u", top, n++);
	check(mkdir(path, 0700) == 0);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(fd >= 0);
	return fd;
}

static struct audit_chain *chain_open(int dir, uint64_t file_size)
{
	const struct audit_config c = { "web", file_size, 3 * file_size };
	struct audit_chain *chain = NULL;

	check(audit_chain_open(dir, &c, &chain) == 0);
	return chain;
}

static void add(struct audit_chain *c, unsigned n)
{
	char host[32];
	struct receipt r = plain;

	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(host, sizeof(host), "h%u.example", i);
		r.host = host;
		check(audit_chain_add(c, &r, T0 + i) == 0);
	}
	check(audit_chain_pending(c) && audit_chain_flush(c) == 0 && !audit_chain_pending(c));
	check(audit_chain_settle(c) == 0 && audit_chain_settled(c));
}

static void write_some(int dir, unsigned n)
{
	struct audit_chain *c = chain_open(dir, 1 << 20);

	add(c, n);
	check(!audit_chain_close(c));
}

static struct audit_verdict verdict(int dir)
{
	struct audit_verdict v;

	check(audit_verify(dir, &v) == 0);
	return v;
}

static void holds(int dir, uint64_t records)
{
	struct audit_verdict v = verdict(dir);

	if (v.broken || v.records != records)
		(void)fprintf(stderr, "%llu of %llu records; file %llu line %llu seq %llu: %s\n",
			      (unsigned long long)v.records, (unsigned long long)records,
			      (unsigned long long)v.place.file, (unsigned long long)v.place.line,
			      (unsigned long long)v.seq, v.what);
	check(!v.broken && v.records == records && !v.rest);
}

static void broken(int dir, uint64_t file, uint64_t line, uint64_t seq, const char *what)
{
	struct audit_verdict v = verdict(dir);

	if (!v.broken || v.place.file != file || v.place.line != line || v.seq != seq ||
	    !strstr(v.what, what))
		(void)fprintf(stderr, "file %llu line %llu seq %llu: %s\n",
			      (unsigned long long)v.place.file, (unsigned long long)v.place.line,
			      (unsigned long long)v.seq, v.what);
	check(v.broken && v.place.file == file && v.place.line == line && v.seq == seq);
	check(strstr(v.what, what));
}

static char *slurp(int dir, const char *name, size_t *ret_n)
{
	char *p = NULL;

	check(fd_read_file(dir, name, 1 << 24, &p, ret_n) == 0);
	return p;
}

static void spit(int dir, const char *name, const void *p, size_t n)
{
	_close_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	check(fd >= 0 && fd_write_all(fd, p, n) == 0);
}

/* The record at a line of all that there is, and how many there are. */
static size_t record_at(int dir, size_t want, struct audit_record *ret)
{
	_cleanup_(audit_reader_freep) struct audit_reader *r = NULL;
	struct audit_place at;
	const char *line;
	size_t n, k = 0;
	int what;

	check(audit_reader_new(dir, &r) == 0);
	while ((what = audit_reader_next(r, &line, &n, &at)) != AUDIT_END) {
		check(what == AUDIT_LINE && audit_line_holds(line, n));
		if (k++ == want)
			check(audit_record_parse(ret, line, n) == 0);
	}
	return k;
}

static struct audit_record rec;

/* ---- records ---- */

static void written(void)
{
	_close_ int dir = dir_new();
	struct audit_chain *c = chain_open(dir, 1 << 20);
	struct receipt r = plain;
	char name[8] = "";
	_close_ int fd = -1;
	struct stat st;

	check(audit_chain_add(c, &r, T0 + 123456789) == 0);
	r = (struct receipt) { .event = RECEIPT_END,
			       .kind = RK_HTTP,
			       .via = RV_FORWARD,
			       .allowed = true,
			       .flow = 7,
			       .sent = 1,
			       .received = UINT64_MAX,
			       .duration_us = 1234567,
			       .path = "/\"\\\x1b]0;x\x07\n\x7f",
			       .note = "\xc3\xa4 \xf0\x9f\x98\x80 \xff\xc2 \xe2\x80\xae",
			       .address = "192.0.2.1",
			       .method = "GET",
			       .rule = "id",
			       .count = 1 };
	check(audit_chain_add(c, &r, T0) == 0 && audit_chain_note(c, "by hand", T0) == 0);
	check(audit_chain_flush(c) == 0);
	check(record_at(dir, 0, &rec) == 3 && rec.seq == 1 && rec.port == 443 && rec.count == 1);
	check(streq(rec.time, "2026-11-30T00:00:00.123456Z") && streq(rec.sandbox, "web"));
	check(streq(rec.event, "decision") && streq(rec.kind, "tls") &&
	      streq(rec.via, "transparent"));
	check(streq(rec.decision, "deny") && streq(rec.host, "evil.example"));
	check(streq(rec.reason, "default-deny") && streq(rec.rule, "") && streq(rec.path, ""));
	check(strspn(rec.prev, "0") == AUDIT_HASH);
	(void)record_at(dir, 1, &rec);
	check(streq(rec.path, r.path) && streq(rec.decision, "allow") && rec.flow == 7);
	check(streq(rec.note, "\xc3\xa4 \xf0\x9f\x98\x80 \xef\xbf\xbd\xef\xbf\xbd \xe2\x80\xae"));
	check(rec.sent == 1 && rec.received == UINT64_MAX && rec.duration_ms == 1234 && !rec.port);
	(void)record_at(dir, 2, &rec);
	check(streq(rec.event, "note") && streq(rec.kind, "log") && streq(rec.note, "by hand"));
	check(audit_chain_open(dir, &(struct audit_config) { "web", 1, 1 }, &c) == -EBUSY);
	check(!audit_chain_close(c));
	holds(dir, 3);
	fd = openat(dir, AUDIT_NAME, O_RDONLY | O_CLOEXEC);
	check(fd >= 0 && read(fd, name, sizeof(name)) == 4 && !memcmp(name, "web\n", 4));
	check(fstatat(dir, "000001.jsonl", &st, 0) == 0 && (st.st_mode & 0777) == 0600);
}

static void dates(void)
{
	static const struct {
		uint64_t s;
		const char *want;
	} rows[] = {
		{ 0, "1970-01-01T00:00:00.000000Z" },
		{ 951782399, "2000-02-28T23:59:59.000000Z" },
		{ 951782400, "2000-02-29T00:00:00.000000Z" },
		{ 951868800, "2000-03-01T00:00:00.000000Z" },
		{ 4107542399, "2100-02-28T23:59:59.000000Z" },
		{ 4107542400, "2100-03-01T00:00:00.000000Z" },
		{ 1767225599, "2025-12-31T23:59:59.000000Z" },
		{ 1767225600, "2026-01-01T00:00:00.000000Z" },
	};
	char line[AUDIT_LINE_MAX], hash[AUDIT_HASH + 1], prev[AUDIT_HASH + 1];

	memset(prev, '0', AUDIT_HASH);
	prev[AUDIT_HASH] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct audit_stamp s = { 1, rows[i].s * 1000000000, "x", prev };
		size_t n = audit_line(line, &s, &plain, NULL, hash);

		check(n && audit_record_parse(&rec, line, n - 1) == 0);
		check(streq(rec.time, rows[i].want) && strlen(rec.time) == AUDIT_TIME);
	}
}

/* The longest record that there can be is a line; a longer one is refused. */
static void largest(void)
{
	_close_ int dir = dir_new();
	struct audit_chain *c = chain_open(dir, 1 << 20);
	static char big[AUDIT_LINE_MAX];
	struct receipt r = { .event = RECEIPT_END,
			     .kind = RK_SANDBOX,
			     .via = RV_FORWARD_BYPASS,
			     .port = 65535,
			     .flow = UINT64_MAX,
			     .count = 1,
			     .sent = UINT64_MAX,
			     .received = UINT64_MAX,
			     .duration_us = UINT64_MAX };
	struct buf b = BUF_INIT(RECEIPT_MAX);
	struct rd in;

	memset(big, 0xff, sizeof(big) - 1);
	r.host = r.address = r.method = r.path = r.rule = r.reason = r.note = big;
	check(audit_chain_add(c, &r, UINT64_MAX) == -EMSGSIZE);
	check(receipt_put(&b, &r) == 0);
	in = rd_init(buf_data(&b), b.n);
	check(receipt_get(&in, &r) == 0 && audit_chain_add(c, &r, UINT64_MAX) == 0);
	check(audit_chain_flush(c) == 0);
	check(record_at(dir, 0, &rec) == 1 && strlen(rec.note) == 3 * RECEIPT_TEXT_MAX);
	check(!audit_chain_close(c));
	holds(dir, 1);
	buf_done(&b);
}

static void not_records(void)
{
#define Z16 "0000000000000000"
#define Z   Z16 Z16 Z16 Z16
#define END ",\"prev\":\"" Z "\",\"hash\":\"" Z "\"}"
	static const char *const bad[] = {
		"",
		"{",
		"{}",
		"x",
		"[]",
		"{\"seq\":1}",
		"{\"seq\":0" END,
		"{\"seq\":1" END "x",
		"{\"seq\":1 " END,
		" {\"seq\":1" END,
		"{\"seq\":01x" END,
		"{\"seq\":-1" END,
		"{\"seq\":\"1\"" END,
		"{\"seq\":18446744073709551616" END,
		"{\"seq\":1,\"seq\":1" END,
		"{\"seq\":1,\"host\":1" END,
		"{\"seq\":1,\"host\":{}" END,
		"{\"seq\":1,\"host\":null" END,
		"{\"seq\":1,\"host\":\"\\x\"" END,
		"{\"seq\":1,\"host\":\"\\u12\"" END,
		"{\"seq\":1,\"host\":\"\n\"" END,
		"{\"seq\":1,\"host\":\"\xc3\xa4\"" END,
		"{\"seq\":1,\"host\":\"" END,
		"{\"seq\":1,," END,
		"{\"seq\":1,\"prev\":\"0\",\"hash\":\"" Z "\"}",
		"{\"seq\":1,\"prev\":\"" Z "\"}",
	};
	static const char good[] =
		"{\"seq\":1,\"new\":5.25,\"newer\":\"x\",\"host\":\"\\ud83d\\ude00\\ud83d\\u0000"
		"\\/\\b\"" END;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check(audit_record_parse(&rec, bad[i], strlen(bad[i])) == -EBADMSG);
	check(audit_record_parse(&rec, good, sizeof(good) - 1) == 0);
	check(streq(rec.host, "\xf0\x9f\x98\x80\xef\xbf\xbd\xef\xbf\xbd/\b"));
	for (size_t i = 0; i < sizeof(good) - 1; i++)
		check(audit_record_parse(&rec, good, i) == -EBADMSG);
	check(!audit_line_holds(good, sizeof(good) - 1) && !audit_line_holds("", 0));
}

/* ---- what a crash leaves ---- */

/* The writer ended within its last line, wherever that was: the next one cuts and says so. */
static void half_written(void)
{
	_close_ int dir = dir_new();
	_free_ char *head = NULL, *all = NULL;
	size_t head_n, n, two;

	write_some(dir, 2);
	head = slurp(dir, AUDIT_HEAD, &head_n);
	free(slurp(dir, "000001.jsonl", &two));
	write_some(dir, 1);
	all = slurp(dir, "000001.jsonl", &n);
	for (size_t cut = two; cut < n; cut += 7) {
		spit(dir, "000001.jsonl", all, cut);
		spit(dir, AUDIT_HEAD, head, head_n);
		check(verdict(dir).rest == cut - two && !verdict(dir).broken);
		write_some(dir, 1);
		holds(dir, cut == two ? 3 : 4);
		(void)record_at(dir, 2, &rec);
		check(cut == two || strstr(rec.note, "was not finished"));
	}
	spit(dir, "000001.jsonl", all, 9); /* not even one */
	check(unlinkat(dir, AUDIT_HEAD, 0) == 0);
	write_some(dir, 1);
	holds(dir, 2);
	spit(dir, "000002.jsonl", "", 0); /* made, and not yet written to */
	check(unlinkat(dir, AUDIT_HEAD, 0) == 0);
	write_some(dir, 1);
	holds(dir, 1);
}

/* Lines that were written are gone: the chain goes on behind what the head says, and the gap shows. */
static void lost(void)
{
	_close_ int dir = dir_new();
	_free_ char *all = NULL;
	size_t one, n;

	write_some(dir, 1);
	free(slurp(dir, "000001.jsonl", &one));
	write_some(dir, 3);
	all = slurp(dir, "000001.jsonl", &n);
	spit(dir, "000001.jsonl", all, one);
	broken(dir, 0, 0, 1, "record 4 had been written");
	write_some(dir, 1);
	broken(dir, 1, 2, 5, "records 2 to 4 are missing before it");
	check(unlinkat(dir, "000001.jsonl", 0) == 0);
	broken(dir, 0, 0, 0, "the log was cut");
	write_some(dir, 1);
	broken(dir, 0, 0, 7, "no record says");
}

static void unreadable(void)
{
	_close_ int dir = dir_new();
	_free_ char *all = NULL;
	static char junk[3 * AUDIT_LINE_MAX];
	size_t n;

	write_some(dir, 2);
	all = slurp(dir, "000001.jsonl", &n);
	memcpy(all + n - 20, "junkjunkjunkjunkjunk", 19);
	spit(dir, "000001.jsonl", all, n);
	write_some(dir, 1);
	broken(dir, 1, 2, 0, "it is not a record");
	memset(junk, 'j', sizeof(junk));
	spit(dir, "000002.jsonl", junk, sizeof(junk)); /* a line that never ends */
	write_some(dir, 1);
	spit(dir, "000001.jsonl", "", 0);
	broken(dir, 2, 1, 0, "it is not a record");
	spit(dir, "000002.jsonl", "", 0);
	check(symlinkat("/etc/passwd", dir, "000009.jsonl") == 0);
	check(audit_chain_open(dir, &(struct audit_config) { "web", 1, 1 },
			       &(struct audit_chain *) { 0 }) == -ELOOP);
}

/* ---- tampering ---- */

/* No byte of any file can be changed unnoticed. */
static void every_byte(void)
{
	_close_ int dir = dir_new();
	_free_ char *all = NULL, *head = NULL;
	size_t n;

	write_some(dir, 3);
	all = slurp(dir, "000001.jsonl", &n);
	for (size_t i = 0; i < n; i++) {
		all[i] ^= 1;
		spit(dir, "000001.jsonl", all, n);
		check(verdict(dir).broken);
		all[i] ^= 1;
	}
	spit(dir, "000001.jsonl", all, n);
	holds(dir, 3);
	for (size_t i = 1; i < n; i++) {
		spit(dir, "000001.jsonl", all, i);
		check(verdict(dir).broken);
	}
	spit(dir, "000001.jsonl", all, n);
	head = slurp(dir, AUDIT_HEAD, &n);
	head[40] = head[40] == '0' ? '1' : '0';
	spit(dir, AUDIT_HEAD, head, n);
	broken(dir, 0, 0, 3, "written anew");
	spit(dir, AUDIT_HEAD, "x", 1);
	broken(dir, 0, 0, 0, "missing or damaged");
	check(unlinkat(dir, AUDIT_HEAD, 0) == 0);
	broken(dir, 0, 0, 0, "missing or damaged");
}

static void lines(void)
{
	_close_ int dir = dir_new();
	_free_ char *all = NULL, *out = NULL;
	char *line[5];
	size_t n;

	write_some(dir, 4);
	all = slurp(dir, "000001.jsonl", &n);
	out = calloc(1, 2 * n);
	check(out);
	line[0] = all;
	for (int i = 1; i < 5; i++)
		line[i] = strchr(line[i - 1], '\n') + 1;
#define OUT(a) \
	do { \
		memcpy(out + at, line[a], (size_t)(line[(a) + 1] - line[a])); \
		at += (size_t)(line[(a) + 1] - line[a]); \
	} while (0)
	for (int kind = 0; kind < 4; kind++) {
		static const int order[4][6] = {
			{ 0, 2, 3, -1 }, { 0, 2, 1, 3, -1 }, { 0, 1, 1, 2, 3, -1 }, { 1, 2, 3, -1 }
		};
		size_t at = 0;

		for (int i = 0; order[kind][i] >= 0; i++)
			OUT(order[kind][i]);
		spit(dir, "000001.jsonl", out, at);
		if (kind == 0)
			broken(dir, 1, 2, 3, "records 2 to 2 are missing");
		else if (kind == 1)
			broken(dir, 1, 2, 3, "records 2 to 2 are missing");
		else if (kind == 2)
			broken(dir, 1, 3, 2, "repeated or put in another order");
		else
			broken(dir, 0, 0, 2, "records 1 to 1 are missing");
	}
}

/* Somebody made a record of his own, with a hash that is right. */
static void forged(void)
{
	_close_ int dir = dir_new();
	_free_ char *all = NULL, *out = calloc(1, AUDIT_LINE_MAX * 2);
	char hash[AUDIT_HASH + 1];
	struct receipt r = plain;
	size_t n, first, len;

	check(out);
	write_some(dir, 3);
	all = slurp(dir, "000001.jsonl", &n);
	(void)record_at(dir, 0, &rec);
	first = (size_t)(strchr(all, '\n') + 1 - all);
	r.allowed = true;
	len = audit_line(out, &(struct audit_stamp) { 1, T0, "web", rec.prev }, &r, NULL, hash);
	memcpy(out + len, all + first, n - first);
	spit(dir, "000001.jsonl", out, len + n - first);
	broken(dir, 1, 2, 2, "one of the two was replaced");
}

/* ---- rotation ---- */

static size_t files(int dir, uint64_t *ret_low, off_t *ret_total)
{
	char name[32];
	struct stat st;
	size_t n = 0;

	*ret_total = 0;
	*ret_low = 0;
	for (unsigned i = 1; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), "%06u.jsonl", i);
		if (fstatat(dir, name, &st, 0) < 0)
			continue;
		if (!n++)
			*ret_low = i;
		*ret_total += st.st_size;
		check(st.st_size <= AUDIT_LINE_MAX);
	}
	return n;
}

static void rotation(void)
{
	_close_ int dir = dir_new();
	struct audit_chain *c = chain_open(dir, AUDIT_LINE_MAX);
	_free_ char *old = NULL;
	char name[32];
	uint64_t low, before;
	off_t total;
	size_t n, k;

	for (int i = 0; i < 200; i++)
		add(c, 10);
	k = files(dir, &low, &total);
	check(k >= 3 && k <= 4 && low > 10 && total <= 4 * AUDIT_LINE_MAX);
	check(!verdict(dir).broken && verdict(dir).last > 2000 && verdict(dir).first > 1000);
	/* the writer ended between the record and the removal */
	(void)snprintf(name, sizeof(name), "%06u.jsonl", (unsigned)low);
	old = slurp(dir, name, &n);
	before = low;
	while (low == before) {
		add(c, 10);
		(void)files(dir, &low, &total);
	}
	check(!audit_chain_close(c));
	check(!verdict(dir).broken);
	spit(dir, name, old, n);
	check(!verdict(dir).broken && verdict(dir).place.file == 0);
	c = chain_open(dir, AUDIT_LINE_MAX);
	add(c, 1);
	(void)files(dir, &low, &total);
	check(low > before && !verdict(dir).broken);
	check(!audit_chain_close(c));
	/* a file in the middle, and the oldest, go by hand */
	(void)snprintf(name, sizeof(name), "%06u.jsonl", (unsigned)low + 1);
	old = (free(old), slurp(dir, name, &n));
	check(unlinkat(dir, name, 0) == 0);
	check(verdict(dir).broken && strstr(verdict(dir).what, "are missing before it"));
	check(verdict(dir).place.file == low + 2 && verdict(dir).place.line == 1);
	spit(dir, name, old, n);
	check(!verdict(dir).broken);
	(void)snprintf(name, sizeof(name), "%06u.jsonl", (unsigned)low);
	check(unlinkat(dir, name, 0) == 0);
	check(verdict(dir).broken && strstr(verdict(dir).what, "no record says"));
}

/* The disk is full in the middle of a line; later there is room. */
static void full(void)
{
	_close_ int dir = dir_new();
	struct audit_chain *c = chain_open(dir, 1 << 20);
	struct rlimit was, l;
	struct receipt r = plain;

	check(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && getrlimit(RLIMIT_FSIZE, &was) == 0);
	l = was;
	add(c, 1);
	for (rlim_t size = 400; size < 2000; size += 113) {
		l.rlim_cur = size;
		check(setrlimit(RLIMIT_FSIZE, &l) == 0);
		check(audit_chain_add(c, &r, T0) == 0 && audit_chain_add(c, &r, T0) == 0);
		while (audit_chain_flush(c) == -EFBIG) {
			check(audit_chain_flush(c) == -EFBIG && audit_chain_pending(c));
			l.rlim_cur += 50;
			check(setrlimit(RLIMIT_FSIZE, &l) == 0);
		}
		check(!audit_chain_pending(c));
	}
	check(setrlimit(RLIMIT_FSIZE, &was) == 0);
	check(!audit_chain_close(c));
	holds(dir, 31);
}

static void too_much_at_once(void)
{
	_close_ int dir = dir_new();
	struct audit_chain *c = chain_open(dir, 1 << 20);
	unsigned n = 0, total = 0;

	for (int round = 0; round < 3; round++) {
		for (n = 0; audit_chain_add(c, &plain, T0) == 0; n++)
			;
		check(n > 1000 && audit_chain_add(c, &plain, T0) == -ENOBUFS);
		check(audit_chain_flush(c) == 0);
		total += n;
	}
	check(!audit_chain_close(c));
	holds(dir, total);
}

/* ---- reading while it is written ---- */

static void following(void)
{
	_close_ int dir = dir_new();
	struct audit_chain *c = chain_open(dir, AUDIT_LINE_MAX);
	_cleanup_(audit_reader_freep) struct audit_reader *r = NULL;
	struct audit_place at;
	const char *line;
	uint64_t seen = 0;
	size_t n;

	check(audit_reader_new(dir, &r) == 0);
	check(audit_reader_next(r, &line, &n, &at) == AUDIT_END);
	for (int i = 0; i < 300; i++) {
		add(c, 3);
		while (audit_reader_next(r, &line, &n, &at) == AUDIT_LINE) {
			check(audit_record_parse(&rec, line, n) == 0 && rec.seq == ++seen);
			check(audit_line_holds(line, n));
		}
		check(audit_reader_rest(r) == 0);
	}
	check(seen > 900 && at.file > 10);
	check(!audit_chain_close(c));
}

static void escapes(void)
{
	char t[16];

	check(streq(audit_escape(t, sizeof(t), "a\"b\\"), "a\"b\\\\"));
	check(streq(audit_escape(t, sizeof(t), "\x1b["), "\\u001b["));
	check(streq(audit_escape(t, sizeof(t), "\xe2\x80\xae"), "\\u202e"));
	check(streq(audit_escape(t, sizeof(t), "123456789012345"), "123456789012345"));
	check(streq(audit_escape(t, sizeof(t), "1234567890123456"), "123456789012..."));
	check(streq(audit_escape(t, sizeof(t), "1234567890\x1b"), "1234567890..."));
	check(streq(audit_escape(t, 1, "x"), "") && streq(audit_escape(t, 4, "xxxxxxxx"), "xxx"));
}

int main(int argc, char **argv)
{
	if (argc == 2) {
		_close_ int dir = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		struct audit_chain *c;

		check(dir >= 0);
		c = chain_open(dir, AUDIT_LINE_MAX);
		for (int i = 0; i < 60; i++)
			add(c, 10);
		check(!audit_chain_close(c));
		return 0;
	}
	check(mkdtemp(top));
	written();
	dates();
	escapes();
	largest();
	not_records();
	half_written();
	lost();
	unreadable();
	every_byte();
	lines();
	forged();
	rotation();
	full();
	too_much_at_once();
	following();
	check(dirs_remove(AT_FDCWD, top) == 0);
	return 0;
}
