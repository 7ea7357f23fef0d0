/* Payloads: what is written is read back the same, up to each limit and not beyond; and the page
 * that describes the wire says what the headers say. */
#include "wire/msg.h"

#include <ctype.h>

#include "base/check.h"
#include "config.h"

static struct buf out = BUF_INIT(4 * WIRE_EXEC_MAX);
static char x[WIRE_ARG_LEN_MAX + 2]; /* a long text; len(n) is one of n bytes */

static const char *len(size_t n)
{
	check(n < sizeof(x));
	return x + sizeof(x) - 1 - n;
}

/* The only frame in out, as the other side would read it. Lives until the next call. */
static const struct wire_frame *sent(enum wire_from from)
{
	static struct wire_frame f;
	static uint8_t *copy; /* of the very size, so that a byte too far is noticed */
	size_t used;
	uint8_t *p;

	check(wire_frame_parse(&f, &used, from, buf_data(&out), out.n) == WIRE_OK);
	check(used == out.n);
	p = malloc(f.len + !f.len);
	check(p);
	memcpy(p, f.data, f.len);
	free(copy);
	copy = p;
	f.data = p;
	buf_consume(&out, used);
	return &f;
}

/* Nothing was added, since it was too large. */
static bool refused(int r)
{
	return r == -ENOBUFS && out.n == 0;
}

/* parse() refuses the payload cut at any byte and with one more, and leaves the result alone. */
static void only_whole(const struct wire_frame *whole,
		       int (*parse)(void *, const struct wire_frame *))
{
	uint8_t ret[128], before[128];
	struct wire_frame f = *whole;
	size_t n;

	memset(ret, 0x5a, sizeof(ret));
	memcpy(before, ret, sizeof(ret));
	for (n = 0; n <= (size_t)whole->len + 1; n++) {
		uint8_t *p = calloc(1, n + !n);

		check(p);
		memcpy(p, whole->data, MIN(n, (size_t)whole->len));
		f.data = p;
		f.len = (uint32_t)n;
		if (n != whole->len) {
			check(parse(ret, &f) == WIRE_E_MALFORMED);
			check(!memcmp(ret, before, sizeof(ret)));
		}
		free(p);
	}
}

/* A parser by its true type, for only_whole(). */
#define WHOLE(name, type) \
	static int name##_any(void *ret, const struct wire_frame *f) \
	{ \
		return wire_##name##_parse((type *)ret, f); \
	}
WHOLE(hello, struct wire_hello)
WHOLE(config, struct wire_config)
WHOLE(u64, uint64_t)
WHOLE(u32, uint32_t)
WHOLE(text, const char *)
WHOLE(copy, struct wire_copy)
WHOLE(exit, struct wire_exit)
WHOLE(signal, uint8_t)
WHOLE(winsize, struct wire_winsize)
WHOLE(door, const char *)
WHOLE(status, struct wire_status)
WHOLE(stop, struct wire_stop)
WHOLE(failed, struct wire_failed)
WHOLE(job, struct wire_job)
WHOLE(job_kill, struct wire_job_kill)

/* What a frame says with one byte changed. */
static int bent(const struct wire_frame *f, size_t at, uint8_t v,
		int (*parse)(void *, const struct wire_frame *))
{
	_free_ uint8_t *p = malloc(f->len);
	struct wire_frame g = *f;
	uint8_t ret[128];

	check(p && at < f->len);
	memcpy(p, f->data, f->len);
	p[at] = v;
	g.data = p;
	return parse(ret, &g);
}

static void start(void)
{
	struct wire_hello h = { WIRE_VERSION, UINT64_MAX - 1, "6.12.1-cloud" }, h2;
	struct wire_config c = { 1234567890123456789, len(WIRE_NAME_MAX), len(WIRE_PATH_MAX) }, c2;
	const struct wire_frame *f;

	check(wire_hello_add(&out, &h) == 0);
	f = sent(FROM_GUEST);
	check(wire_hello_parse(&h2, f) == WIRE_OK && h2.version == WIRE_VERSION);
	check(h2.boot_ns == h.boot_ns && streq(h2.release, h.release));
	only_whole(f, hello_any);
	check(bent(f, 0, 0, hello_any) == WIRE_E_MALFORMED); /* magic */
	check(bent(f, 7, 1, hello_any) == WIRE_E_MALFORMED); /* zero */
	check(bent(f, 5, 9, hello_any) == WIRE_OK);          /* the caller looks at the version */
	h.release = len(WIRE_RELEASE_MAX + 1);
	check(wire_hello_add(&out, &h) == 0);
	check(wire_hello_parse(&h2, sent(FROM_GUEST)) == WIRE_OK);
	check(strlen(h2.release) == WIRE_RELEASE_MAX); /* cut */

	check(wire_config_add(&out, &c) == 0);
	f = sent(FROM_HOST);
	check(wire_config_parse(&c2, f) == WIRE_OK && c2.realtime_ns == c.realtime_ns);
	check(streq(c2.hostname, c.hostname) && streq(c2.workdir, c.workdir));
	only_whole(f, config_any);
	c.hostname = len(WIRE_NAME_MAX + 1);
	check(refused(wire_config_add(&out, &c)));
	c.hostname = "";
	c.workdir = len(WIRE_PATH_MAX + 1);
	check(refused(wire_config_add(&out, &c)));
}

static void numbers(void)
{
	static const struct {
		enum wire_type type;
		enum wire_from from;
		uint32_t stream;
		uint8_t chan;
	} rows[] = {
		{ WIRE_SHUTDOWN, FROM_HOST, 0, 0 },
		{ WIRE_STATUS, FROM_CLIENT, 0, 0 },
		{ WIRE_STARTED, FROM_GUEST, UINT32_MAX, 0 },
		{ WIRE_CREDIT, FROM_HOST, 1, 2 },
	};
	const struct wire_frame *f;
	uint64_t v = 0;
	uint32_t u = 0;
	size_t i;

	check(wire_u64_add(&out, WIRE_PING, UINT64_MAX) == 0);
	f = sent(FROM_HOST);
	check(wire_u64_parse(&v, f) == WIRE_OK && v == UINT64_MAX);
	only_whole(f, u64_any);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		check(wire_u32_add(&out, rows[i].stream, rows[i].type, rows[i].chan,
				   77 + (uint32_t)i) == 0);
		f = sent(rows[i].from);
		check(f->type == rows[i].type && f->stream == rows[i].stream &&
		      f->chan == rows[i].chan);
		check(wire_u32_parse(&u, f) == WIRE_OK && u == 77 + i);
		only_whole(f, u32_any);
	}
	check(wire_empty_add(&out, 0, WIRE_BYE) == 0);
	check(sent(FROM_GUEST)->type == WIRE_BYE);
	check(wire_empty_add(&out, 3, WIRE_HANGUP) == 0);
	check(sent(FROM_CLIENT)->stream == 3);
}

static void texts(void)
{
	char euro[WIRE_TEXT_MAX + 3];
	const struct wire_frame *f;
	const char *s;

	check(wire_text_add(&out, 0, WIRE_FAIL, "no root disk") == 0);
	f = sent(FROM_GUEST);
	check(wire_text_parse(&s, f) == WIRE_OK && streq(s, "no root disk"));
	only_whole(f, text_any);
	check(wire_text_add(&out, 0, WIRE_FAIL, NULL) == 0);
	check(wire_text_parse(&s, sent(FROM_GUEST)) == WIRE_OK && streq(s, ""));
	check(wire_text_add(&out, 0, WIRE_FAIL, len(WIRE_TEXT_MAX)) == 0);
	check(wire_text_parse(&s, sent(FROM_GUEST)) == WIRE_OK && strlen(s) == WIRE_TEXT_MAX);
	check(wire_text_add(&out, 0, WIRE_FAIL, len(WIRE_TEXT_MAX + 1)) == 0);
	check(wire_text_parse(&s, sent(FROM_GUEST)) == WIRE_OK && strlen(s) == WIRE_TEXT_MAX);

	/* cut before a character, not in it */
	memset(euro, 'e', sizeof(euro));
	memcpy(euro + WIRE_TEXT_MAX - 1, "\342\202\254", 4);
	check(wire_text_add(&out, 0, WIRE_FAIL, euro) == 0);
	check(wire_text_parse(&s, sent(FROM_GUEST)) == WIRE_OK && strlen(s) == WIRE_TEXT_MAX - 1);

	/* an id of any length makes a frame that the door can read */
	check(wire_text_add(&out, 1, WIRE_ATTACH, len(5000)) == 0);
	check(wire_text_parse(&s, sent(FROM_CLIENT)) == WIRE_OK && strlen(s) == 250);
	check(wire_text_add(&out, 1, WIRE_JOB_IS, "j1") == 0);
	check(wire_text_parse(&s, sent(FROM_DOOR)) == WIRE_OK && streq(s, "j1"));
}

static void copies(void)
{
	struct wire_copy m = { 3, "/tmp/x", "name", "agent:users" }, m2;
	const struct wire_frame *f;

	check(wire_copy_add(&out, 8, WIRE_COPY_IN, &m) == 0);
	f = sent(FROM_CLIENT);
	check(wire_copy_parse(&m2, f) == WIRE_OK && m2.flags == 3 && f->stream == 8);
	check(streq(m2.path, m.path) && streq(m2.name, m.name) && streq(m2.user, m.user));
	only_whole(f, copy_any);
	check(bent(f, 1, 4, copy_any) == WIRE_E_MALFORMED);   /* flag */
	check(bent(f, 6, 'x', copy_any) == WIRE_E_MALFORMED); /* not absolute */

	/* the longest ones: an absolute path, and a name */
	memset(x, '/', sizeof(x) - 1);
	m.path = len(WIRE_PATH_MAX);
	m.user = len(WIRE_USER_MAX);
	m.name = "";
	check(wire_copy_add(&out, 8, WIRE_COPY_OUT, &m) == 0);
	check(wire_copy_parse(&m2, sent(FROM_HOST)) == WIRE_OK);
	check(strlen(m2.path) == WIRE_PATH_MAX && strlen(m2.user) == WIRE_USER_MAX);
	m.path = len(WIRE_PATH_MAX + 1);
	check(refused(wire_copy_add(&out, 8, WIRE_COPY_OUT, &m)));
	m.path = "/";
	m.user = len(WIRE_USER_MAX + 1);
	check(refused(wire_copy_add(&out, 8, WIRE_COPY_OUT, &m)));
	memset(x, 'x', sizeof(x) - 1);
	m.user = "";
	m.name = len(WIRE_PATH_MAX + 1);
	check(refused(wire_copy_add(&out, 8, WIRE_COPY_OUT, &m)));
	m.name = len(WIRE_PATH_MAX);
	check(wire_copy_add(&out, 8, WIRE_COPY_IN, &m) == 0);
	check(wire_copy_parse(&m2, sent(FROM_HOST)) == WIRE_OK);

	for (const char *const *bad = (const char *const[]) { ".", "..", "a/b", "/", NULL }; *bad;
	     bad++) {
		m.name = *bad;
		check(wire_copy_add(&out, 8, WIRE_COPY_IN, &m) == 0);
		check(wire_copy_parse(&m2, sent(FROM_HOST)) == WIRE_E_MALFORMED);
	}
}

static void ends(void)
{
	static const struct {
		struct wire_exit m;
		int status;
	} rows[] = {
		{ { EXIT_STATUS, 0, "" }, 0 },
		{ { EXIT_STATUS, 255, "" }, 255 },
		{ { EXIT_SIGNAL, 9, "" }, 137 },
		{ { EXIT_NOT_STARTED, 127, "no such command" }, 127 },
		{ { EXIT_TIMEOUT, 124, "" }, 124 },
		{ { EXIT_REFUSED, 125, "why" }, 125 },
		{ { EXIT_COPIED, 1, "why" }, 1 },
	};
	struct wire_exit m;
	const struct wire_frame *f = NULL;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		check(wire_exit_add(&out, 2, &rows[i].m) == 0);
		f = sent(FROM_GUEST);
		check(wire_exit_parse(&m, f) == WIRE_OK && wire_exit_status(&m) == rows[i].status);
		check(m.how == rows[i].m.how && m.code == rows[i].m.code &&
		      streq(m.text, rows[i].m.text));
	}
	only_whole(f, exit_any);
	check(bent(f, 0, EXIT_HOW_N, exit_any) == WIRE_E_MALFORMED);
	check(bent(f, 3, 1, exit_any) == WIRE_E_MALFORMED);
	m.text = len(WIRE_TEXT_MAX + 7);
	check(wire_exit_add(&out, 2, &m) == 0);
	check(wire_exit_parse(&m, sent(FROM_DOOR)) == WIRE_OK && strlen(m.text) == WIRE_TEXT_MAX);
}

static void controls(void)
{
	const struct wire_frame *f;
	struct wire_winsize ws;
	uint8_t s;
	int i;

	for (i = 0; i < 256; i++) {
		check(wire_signal_add(&out, 1, (uint8_t)i) == 0);
		f = sent(FROM_CLIENT);
		check(wire_signal_parse(&s, f) == (i >= 1 && i <= 64 ? WIRE_OK : WIRE_E_MALFORMED));
	}
	only_whole(f, signal_any);
	check(wire_winsize_add(&out, 1, (struct wire_winsize) { 65535, 1 }) == 0);
	f = sent(FROM_HOST);
	check(wire_winsize_parse(&ws, f) == WIRE_OK && ws.rows == 65535 && ws.cols == 1);
	only_whole(f, winsize_any);
}

/* ---- EXEC ---- */

/* Put, parsed from bytes of the very size, compared. The payload's length, or 0 if refused. */
static size_t exec(const struct wire_exec *m)
{
	_free_ uint8_t *p = NULL;
	struct wire_exec m2;
	size_t n;
	uint32_t i;

	if (wire_exec_put(&out, m) < 0) {
		check(!out.n);
		return 0;
	}
	n = out.n;
	p = malloc(n);
	check(p);
	memcpy(p, buf_data(&out), n);
	buf_consume(&out, n);
	check(wire_exec_parse(&m2, p, n) == WIRE_OK);
	check(m2.flags == m->flags && m2.rows == m->rows && m2.cols == m->cols);
	check(m2.timeout_ms == m->timeout_ms && streq(m2.user, m->user) && streq(m2.cwd, m->cwd));
	check(m2.argc == m->argc && m2.envc == m->envc && !m2.argv[m2.argc] && !m2.env[m2.envc]);
	for (i = 0; i < m->argc; i++)
		check(streq(m2.argv[i], m->argv[i]));
	for (i = 0; i < m->envc; i++)
		check(streq(m2.env[i], m->env[i]));
	wire_exec_done(&m2);
	check(!m2.argv && !m2.env);
	return n;
}

static void exec_plain(void)
{
	const char *argv[] = { "ls", "-la", "", "gr\303\274n \377\001", NULL };
	const char *env[] = { "A=1", "B=", "C==", NULL };
	struct wire_exec m = { EXEC_TTY | EXEC_STDIN, 24,   80, 5000, "agent",
			       "/home/agent",         argv, 4,  env,  3 };
	struct wire_exec m2 = { .flags = 77 };
	size_t i, n = exec(&m);

	check(n);
	check(wire_exec_put(&out, &m) == 0 && out.n == n);
	for (i = 0; i < n; i++) {
		_free_ uint8_t *p = malloc(i + !i);

		check(p);
		memcpy(p, buf_data(&out), i);
		check(wire_exec_parse(&m2, p, i) == WIRE_E_MALFORMED && m2.flags == 77);
	}
	for (i = 0; i < n; i++) { /* no byte of it can be bent into a crash */
		out.p[out.off + i] ^= 0x11;
		if (wire_exec_parse(&m2, buf_data(&out), n) == WIRE_OK)
			wire_exec_done(&m2);
		out.p[out.off + i] ^= 0x11;
	}
	check(buf_add(&out, "", 1) == 0);
	check(wire_exec_parse(&m2, buf_data(&out), n + 1) == WIRE_E_MALFORMED);
	out.p[out.off + 1] = 32; /* a flag that there is not */
	check(wire_exec_parse(&m2, buf_data(&out), n) == WIRE_E_MALFORMED);
	buf_consume(&out, out.n);
}

static void exec_limits(void)
{
	_free_ const char **many = calloc(WIRE_ARGS_MAX + 1, sizeof(*many));
	const char *env[] = { "A", "=", "=x", NULL };
	struct wire_exec m = { .user = "", .cwd = "", .argv = many, .argc = 1, .env = env };
	struct wire_exec m2;
	size_t i, n;

	check(many);
	for (i = 0; i <= WIRE_ARGS_MAX; i++)
		many[i] = "A=";
	check(exec(&m));
	m.argc = 0; /* the parser wants a command */
	check(wire_exec_put(&out, &m) == 0);
	check(wire_exec_parse(&m2, buf_data(&out), out.n) == WIRE_E_MALFORMED);
	buf_consume(&out, out.n);
	m.argc = 1;
	for (i = 0; i < 3; i++) { /* an entry without a name or without '=' */
		m.env = env + i;
		m.envc = 1;
		check(wire_exec_put(&out, &m) == 0);
		check(wire_exec_parse(&m2, buf_data(&out), out.n) == WIRE_E_MALFORMED);
		buf_consume(&out, out.n);
	}
	m.envc = 0;
	m.argc = WIRE_ARGS_MAX;
	check(exec(&m));
	m.argc++;
	check(!exec(&m));
	m.argc = 1;
	m.env = many;
	m.envc = WIRE_ENV_MAX;
	check(exec(&m));
	m.envc++;
	check(!exec(&m));
	m.envc = 0;
	many[0] = len(WIRE_ARG_LEN_MAX);
	check(exec(&m));
	many[0] = len(WIRE_ARG_LEN_MAX + 1);
	check(!exec(&m));
	many[0] = "A=";
	m.user = len(WIRE_USER_MAX);
	m.cwd = len(WIRE_PATH_MAX);
	check(exec(&m));
	m.user = len(WIRE_USER_MAX + 1);
	check(!exec(&m));
	m.user = "";
	m.cwd = len(WIRE_PATH_MAX + 1);
	check(!exec(&m));

	/* all of WIRE_EXEC_MAX, and not a byte more */
	m.cwd = "";
	m.argc = 17;
	for (i = 0; i < 16; i++)
		many[i] = len(WIRE_ARG_LEN_MAX);
	many[16] = "";
	n = exec(&m);
	check(n && n < WIRE_EXEC_MAX && WIRE_EXEC_MAX - n <= WIRE_ARG_LEN_MAX);
	many[16] = len(WIRE_EXEC_MAX - n);
	check(exec(&m) == WIRE_EXEC_MAX);
	many[16] = len(WIRE_EXEC_MAX - n + 1);
	check(!exec(&m));
	check(wire_exec_parse(&m2, x, WIRE_EXEC_MAX + 1) == WIRE_E_TOO_LARGE);
}

/* A count that promises more than there is must not make us allocate for it. */
static void exec_promises(void)
{
	uint8_t b[64];
	struct wr w = wr_init(b, sizeof(b));
	struct wire_exec m;

	wr_be64(&w, 0);
	wr_be16(&w, 0);
	wr_str(&w, "");
	wr_str(&w, "");
	wr_be32(&w, WIRE_ARGS_MAX);
	wr_str(&w, "x");
	check(wire_exec_parse(&m, b, w.n) == WIRE_E_MALFORMED);
}

/* ---- the door ---- */

static void door_and_status(void)
{
	struct wire_status m = { STATE_RUNNING, 1, ACCEL_KVM, 3, 4, UINT64_MAX, 5, 6, "fine" }, m2;
	const struct wire_frame *f;
	const char *id;

	check(wire_door_add(&out, "0123456789abcdef0123456789abcdef") == 0);
	f = sent(FROM_DOOR);
	check(wire_door_parse(&id, f) == WIRE_OK && streq(id, "0123456789abcdef0123456789abcdef"));
	only_whole(f, door_any);
	check(bent(f, 3, 0, door_any) == WIRE_E_MALFORMED);
	check(bent(f, 5, 2, door_any) == WIRE_E_MALFORMED); /* another version */
	check(bent(f, 6, 1, door_any) == WIRE_E_MALFORMED);

	check(wire_status_add(&out, &m) == 0);
	f = sent(FROM_DOOR);
	check(wire_status_parse(&m2, f) == WIRE_OK && m2.state == m.state && m2.answers == 1);
	check(m2.accel == m.accel && m2.sessions == 3 && m2.jobs == 4 &&
	      m2.started_ns == UINT64_MAX);
	check(m2.boot_ns == 5 && m2.qemu_pid == 6 && streq(m2.remark, "fine"));
	only_whole(f, status_any);
	check(bent(f, 0, STATE_N, status_any) == WIRE_E_MALFORMED);
	check(bent(f, 1, 2, status_any) == WIRE_E_MALFORMED);
	check(bent(f, 2, ACCEL_N, status_any) == WIRE_E_MALFORMED);
	check(bent(f, 3, 1, status_any) == WIRE_E_MALFORMED);
	m.remark = len(WIRE_TEXT_MAX + 1);
	check(wire_status_add(&out, &m) == 0);
	check(wire_status_parse(&m2, sent(FROM_DOOR)) == WIRE_OK &&
	      strlen(m2.remark) == WIRE_TEXT_MAX);
	check(streq(wire_state_name(STATE_STARTING), "starting"));
	check(streq(wire_state_name(STATE_GONE), "stopped") &&
	      streq(wire_state_name(STATE_N), "unknown"));
}

static void stop_and_failed(void)
{
	struct wire_stop s = { 30000, STOP_NOW | STOP_IF_IDLE }, s2;
	static const uint32_t codes[] = { 0, 1, 4095, 4096 };
	struct wire_failed m = { EBUSY, "in use" }, m2;
	const struct wire_frame *f;
	size_t i;

	check(wire_stop_add(&out, &s) == 0);
	f = sent(FROM_CLIENT);
	check(wire_stop_parse(&s2, f) == WIRE_OK && s2.deadline_ms == 30000 && s2.flags == 3);
	only_whole(f, stop_any);
	check(bent(f, 4, 4, stop_any) == WIRE_E_MALFORMED);

	check(wire_failed_add(&out, &m) == 0);
	f = sent(FROM_DOOR);
	check(wire_failed_parse(&m2, f) == WIRE_OK && m2.code == EBUSY && streq(m2.text, "in use"));
	only_whole(f, failed_any);
	for (i = 0; i < ARRAY_SIZE(codes); i++) {
		m.code = codes[i];
		check(wire_failed_add(&out, &m) == 0);
		check(wire_failed_parse(&m2, sent(FROM_DOOR)) ==
		      (i == 1 || i == 2 ? WIRE_OK : WIRE_E_MALFORMED));
	}
	m.code = EIO;
	m.text = len(WIRE_TEXT_MAX + 1);
	check(wire_failed_add(&out, &m) == 0);
	check(wire_failed_parse(&m2, sent(FROM_DOOR)) == WIRE_OK &&
	      strlen(m2.text) == WIRE_TEXT_MAX);
}

static void jobs(void)
{
	struct wire_job m = { "j1", 0, EXIT_SIGNAL, 15, 1, 2, "sleep 5", "agent", JOB_AGENT }, m2;
	struct wire_job_kill k = { "j1", 9 }, k2;
	const struct wire_frame *f;

	check(wire_job_add(&out, &m) == 0);
	f = sent(FROM_DOOR);
	check(wire_job_parse(&m2, f) == WIRE_OK && streq(m2.id, "j1") && m2.how == EXIT_SIGNAL);
	check(!m2.running && m2.code == 15 && m2.started_ns == 1 && m2.ended_ns == 2);
	check(streq(m2.command, "sleep 5") && streq(m2.user, "agent"));
	only_whole(f, job_any);
	check(bent(f, 7, 2, job_any) == WIRE_E_MALFORMED);
	check(bent(f, 8, EXIT_HOW_N, job_any) == WIRE_E_MALFORMED);
	check(m2.flags == JOB_AGENT && bent(f, 10, JOB_FLAGS + 1, job_any) == WIRE_E_MALFORMED);
	m.command = len(DOOR_COMMAND_MAX + 1);
	m.user = len(WIRE_USER_MAX + 1);
	m.id = len(WIRE_NAME_MAX);
	check(wire_job_add(&out, &m) == 0);
	check(wire_job_parse(&m2, sent(FROM_DOOR)) == WIRE_OK);
	check(strlen(m2.command) == DOOR_COMMAND_MAX && strlen(m2.user) == WIRE_USER_MAX);

	check(wire_job_kill_add(&out, &k) == 0);
	f = sent(FROM_CLIENT);
	check(wire_job_kill_parse(&k2, f) == WIRE_OK && streq(k2.id, "j1") && k2.signo == 9);
	only_whole(f, job_kill_any);
	check(bent(f, 7, 0, job_kill_any) == WIRE_E_MALFORMED);
	check(bent(f, 7, 65, job_kill_any) == WIRE_E_MALFORMED);
	k.id = len(WIRE_NAME_MAX);
	check(wire_job_kill_add(&out, &k) == 0);
	check(wire_job_kill_parse(&k2, sent(FROM_CLIENT)) == WIRE_OK);
	k.id = len(200);
	check(refused(wire_job_kill_add(&out, &k)));
}

WHOLE(mount, struct wire_mount)
WHOLE(mounted, struct wire_mounted)
WHOLE(changed, struct wire_changed)

static void changes(void)
{
	struct wire_changed m = { .id = 3, .kind = CHANGED_CREATED, .dir = 1, .path = "a" }, m2;

	check(wire_changed_add(&out, &m) == 0);
	check(wire_changed_parse(&m2, sent(FROM_HOST)) == WIRE_OK);
	check(m2.id == 3 && m2.kind == CHANGED_CREATED && m2.dir == 1 && streq(m2.path, "a"));
	check(wire_changed_add(&out, &m) == 0);
	only_whole(sent(FROM_HOST), changed_any);
	m.kind = CHANGED_N;
	check(wire_changed_add(&out, &m) == 0);
	check(wire_changed_parse(&m2, sent(FROM_HOST)) == WIRE_E_MALFORMED);
	m.path = len(WIRE_PATH_MAX + 1);
	check(refused(wire_changed_add(&out, &m)));
}

static int trust_any(void *ret, const struct wire_frame *f)
{
	return wire_trust_parse(ret, f);
}

static void trust(void)
{
	const char *pem;

	check(wire_trust_add(&out, len(WIRE_PEM_MAX)) == 0);
	check(wire_trust_parse(&pem, sent(FROM_HOST)) == WIRE_OK && strlen(pem) == WIRE_PEM_MAX);
	check(refused(wire_trust_add(&out, len(WIRE_PEM_MAX + 1))));
	check(wire_trust_add(&out, "") == 0);
	check(wire_trust_parse(&pem, sent(FROM_HOST)) == WIRE_OK && !*pem);
	check(wire_trust_add(&out, "pem") == 0);
	only_whole(sent(FROM_HOST), trust_any);
}

/* The result, when there is one, is freed at once. */
static int env_any(void *ret, const struct wire_frame *f)
{
	struct wire_env m;
	int ans = wire_env_parse(&m, f);

	(void)ret;
	if (ans == WIRE_OK)
		wire_env_done(&m);
	return ans;
}

static void env_defaults(void)
{
	const char *v[WIRE_DEFAULTS_MAX + 2];
	struct wire_env m = { 2, v }, m2;

	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		v[i] = "NAME=value=x";
	check(wire_env_add(&out, &m) == 0);
	check(wire_env_parse(&m2, sent(FROM_HOST)) == WIRE_OK);
	check(m2.n == 2 && streq(m2.v[1], "NAME=value=x") && !m2.v[2]);
	wire_env_done(&m2);
	check(!m2.v);
	check(wire_image_add(&out, &m) == 0);
	check(env_any(NULL, sent(FROM_HOST)) == WIRE_OK);
	check(wire_env_add(&out, &m) == 0);
	only_whole(sent(FROM_HOST), env_any);
	check(wire_env_add(&out, &m) == 0);
	check(bent(sent(FROM_HOST), 8, '=', env_any) == WIRE_E_MALFORMED);
	m.n = WIRE_DEFAULTS_MAX;
	check(wire_env_add(&out, &m) == 0);
	check(env_any(NULL, sent(FROM_HOST)) == WIRE_OK);
	m.n++;
	check(refused(wire_env_add(&out, &m)));
	m.n = 1;
	v[0] = "NAME";
	check(refused(wire_env_add(&out, &m)));
	v[0] = "=x";
	check(refused(wire_env_add(&out, &m)));
	m.n = 0;
	check(wire_env_add(&out, &m) == 0);
	check(env_any(NULL, sent(FROM_HOST)) == WIRE_OK);
}

static void mounts(void)
{
	struct wire_mount m = {
		.id = 7, .flags = MOUNT_RO | MOUNT_FILE, .path = "/a b", .alias = ""
	};
	struct wire_mounted d = { .id = 7, .code = ENOENT, .text = "no" };
	struct wire_mounted d2;
	struct wire_mount m2;

	check(wire_mount_add(&out, WIRE_MOUNT, &m) == 0);
	check(wire_mount_parse(&m2, sent(FROM_HOST)) == WIRE_OK);
	check(m2.id == 7 && m2.flags == 3 && streq(m2.path, "/a b") && !*m2.alias);
	m.alias = "/c";
	check(wire_mount_add(&out, WIRE_UMOUNT, &m) == 0);
	only_whole(sent(FROM_CLIENT), mount_any);
	m.path = "a";
	check(wire_mount_add(&out, WIRE_MOUNT, &m) == 0);
	check(wire_mount_parse(&m2, sent(FROM_HOST)) == WIRE_E_MALFORMED);
	m.path = "/a";
	m.alias = "c";
	check(wire_mount_add(&out, WIRE_MOUNT, &m) == 0);
	check(wire_mount_parse(&m2, sent(FROM_HOST)) == WIRE_E_MALFORMED);
	m.alias = "";
	m.flags = 4;
	check(wire_mount_add(&out, WIRE_MOUNT, &m) == 0);
	check(wire_mount_parse(&m2, sent(FROM_HOST)) == WIRE_E_MALFORMED);
	m.flags = 0;
	m.path = len(WIRE_PATH_MAX + 1);
	check(refused(wire_mount_add(&out, WIRE_MOUNT, &m)));
	check(wire_mounted_add(&out, &d) == 0);
	only_whole(sent(FROM_GUEST), mounted_any);
	d.text = len(WIRE_TEXT_MAX + 1); /* for people: cut */
	check(wire_mounted_add(&out, &d) == 0);
	check(wire_mounted_parse(&d2, sent(FROM_GUEST)) == WIRE_OK);
	check(d2.id == 7 && d2.code == ENOENT && strlen(d2.text) == WIRE_TEXT_MAX);
}

/* ---- the page ---- */

static char *page(void)
{
	static char text[128 * 1024];
	FILE *f = fopen(BAC_SOURCE_DIR "/docs/protocol/ctl.md", "re");
	size_t n;

	if (!f)
		skip("docs/protocol/ctl.md is not there");
	n = fread(text, 1, sizeof(text) - 1, f);
	check(n && n < sizeof(text) - 1 && fclose(f) == 0);
	return text;
}

#define X(name, num, from, stream, min, max, more) { #name, num, from, stream },
static const struct {
	const char *name;
	unsigned num, from, stream;
} types[] = { WIRE_TYPES(X) };
#undef X

static unsigned who(const char *s)
{
	return (strstr(s, "guest") ? FROM_GUEST : 0U) | (strstr(s, "host") ? FROM_HOST : 0U) |
	       (strstr(s, "client") ? FROM_CLIENT : 0U) | (strstr(s, "door") ? FROM_DOOR : 0U) |
	       (strstr(s, "all") ? FROM_ALL : 0U);
}

/* Each "| number | NAME | from | stream |" is a type as the header has it, and each type is there. */
static void page_types(const char *text)
{
	unsigned found = 0, num, i;
	char name[32], from[64], stream[8];
	const char *at;

	for (at = text; at; at = strchr(at + 1, '\n')) {
		if (sscanf(at, "\n| %u | %31[A-Z_] | %63[a-z, ] | %7[0n] |", &num, name, from,
			   stream) != 4)
			continue;
		for (i = 0; i < ARRAY_SIZE(types) && !streq(types[i].name, name); i++)
			;
		if (i == ARRAY_SIZE(types) || types[i].num != num || types[i].from != who(from) ||
		    types[i].stream != (stream[0] == 'n')) {
			fprintf(stderr, "ctl.md and wire/frame.h differ about %s\n", name);
			check(false);
		}
		found++;
	}
	check(found == ARRAY_SIZE(types));
}

#define L(n) \
	{ \
#n, n \
	}
static const struct {
	const char *name;
	unsigned long v;
} limits[] = { L(WIRE_FRAME_MAX), L(WIRE_WINDOW), L(WIRE_EXEC_MAX), L(DOOR_JOB_RING),
	       L(DOOR_JOBS_MAX) };

/* "`NAME` (1,234)" */
static void page_limits(const char *text)
{
	bool seen[ARRAY_SIZE(limits)] = { 0 };
	const char *at = text;
	size_t i;

	while ((at = strchr(at, '`'))) {
		char name[32], number[32], *to = number;
		unsigned long v;

		if (sscanf(at++, "`%31[A-Z_]` (%31[0-9,])", name, number) != 2)
			continue;
		for (const char *from = number; *from; from++)
			if (isdigit((unsigned char)*from))
				*to++ = *from;
		*to = '\0';
		v = strtoul(number, NULL, 10);
		for (i = 0; i < ARRAY_SIZE(limits) && !streq(limits[i].name, name); i++)
			;
		if (i == ARRAY_SIZE(limits) || limits[i].v != v) {
			fprintf(stderr, "ctl.md and wire/limits.h differ about %s\n", name);
			check(false);
		}
		seen[i] = true;
	}
	for (i = 0; i < ARRAY_SIZE(limits); i++)
		check(seen[i]);
}

/* What the page says in words. */
static void page_words(const char *text)
{
	static const struct {
		const char *words;
		bool holds;
	} rows[] = {
		{ "be32 magic `0x62616301`, be16 version (1)",
		  WIRE_MAGIC == 0x62616301 && WIRE_VERSION == 1 },
		{ "(1 to 16,384)", WIRE_ARGS_MAX == 16384 },
		{ "(0 to 256)", WIRE_DEFAULTS_MAX == 256 },
		{ "(0 to 4,096)", WIRE_ENV_MAX == 4096 },
		{ "at most 4,095 bytes", WIRE_PATH_MAX == 4095 },
		{ "be32 length (1 to 1 MiB)", COPY_EXTENT_MAX == 1024 * 1024 },
		{ "(1 `TTY`, 2 `STDIN`, 4 `DETACH`",
		  EXEC_TTY == 1 && EXEC_STDIN == 2 && EXEC_DETACH == 4 },
		{ "| 5 | copy ended |", EXIT_COPIED == 5 && EXIT_HOW_N == 6 },
		{ "1 at once (no orderly shutdown), 2 refuse if in use",
		  STOP_NOW == 1 && STOP_IF_IDLE == 2 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!strstr(text, rows[i].words) || !rows[i].holds)
			fprintf(stderr, "ctl.md and the headers differ about: %s\n", rows[i].words);
		check(strstr(text, rows[i].words) && rows[i].holds);
	}
}

int main(void)
{
	memset(x, 'x', sizeof(x) - 1);
	start();
	numbers();
	texts();
	copies();
	ends();
	controls();
	exec_plain();
	exec_limits();
	exec_promises();
	door_and_status();
	stop_and_failed();
	jobs();
	mounts();
	changes();
	trust();
	env_defaults();
	buf_done(&out);
	page_types(page());
	page_limits(page());
	page_words(page());
	return 0;
}
