/* Sessions. */
#include "guest/init/session.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest/init/copy.h"
#include "guest/init/die.h"
#include "guest/init/killer.h"
#include "guest/init/spawn.h"
#include "io/fd.h"

enum { KILL_AFTER_MS = 2000, REFUSED = 125, TIMED_OUT = 124, CANNOT_START = 126, MANY = 16 };

enum state { GATHERING, STARTING, RUNNING, ENDED };

struct session {
	struct sessions *all;
	struct session *next;
	uint32_t stream;
	enum state state;
	bool tty, copy;
	bool hung_up, timed_out;
	pid_t pid;             /* also its group and session; 0: not there */
	struct buf exec;       /* GATHERING */
	struct spawn_job *job; /* STARTING */
	struct watch report;   /* STARTING, or while a copy runs */
	uint8_t said[SPAWN_REPORT_MAX + 1];
	size_t n_said;
	struct inlet in;
	struct outlet out[2]; /* stdout or the terminal, stderr */
	struct timer timeout;
	struct wire_exit end; /* ENDED: how */
};

void sessions_init(struct sessions *ss, struct loop *l, struct port *p, struct authority *a)
{
	*ss = (struct sessions) {
		.loop = l, .port = p, .authority = a, .null_fd = -1, .pts_fd = -1, .proc_fd = -1
	};
	ss->workdir = "/";
	chans_init(&ss->chans, l, p);
}

static struct session *find(struct sessions *ss, uint32_t stream)
{
	struct session *s = ss->list;

	while (s && s->stream != stream)
		s = s->next;
	return s;
}

static void refuse(struct sessions *ss, uint32_t stream, uint8_t how, uint8_t code,
		   const char *text)
{
	struct wire_exit end = { .how = how, .code = code, .text = text };

	die_check(wire_exit_add(&ss->port->out, stream, &end));
}

static void on_timeout(struct timer *t);

static struct session *session_new(struct sessions *ss, uint32_t stream)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->all = ss;
	s->stream = stream;
	s->report.fd = s->in.w.fd = s->out[0].w.fd = s->out[1].w.fd = -1;
	s->timeout.fn = on_timeout;
	buf_init(&s->exec, WIRE_EXEC_MAX);
	s->next = ss->list;
	ss->list = s;
	ss->n++;
	ss->most = MAX(ss->most, ss->n);
	return s;
}

static void session_free(struct session *s)
{
	struct sessions *ss = s->all;
	struct session **p;

	for (p = &ss->list; *p != s; p = &(*p)->next)
		;
	*p = s->next;
	ss->n--;
	loop_cancel(ss->loop, &s->timeout);
	if (s->report.fd >= 0)
		loop_unwatch(ss->loop, &s->report);
	s->report.fd = fd_close(s->report.fd);
	inlet_close(&s->in);
	outlet_drop(&s->out[0]);
	outlet_drop(&s->out[1]);
	buf_done(&s->exec);
	free(s);
	if (!ss->n && ss->most >= MANY) {
		ss->most = 0;
		(void)malloc_trim(0);
	}
}

/* ---- the end ---- */

/* Send EXIT when nothing is left to drain. Frees s then. */
static void check_end(struct session *s)
{
	if (s->state != ENDED || s->out[0].w.fd >= 0 || s->out[1].w.fd >= 0)
		return;
	die_check(wire_exit_add(&s->all->port->out, s->stream, &s->end));
	session_free(s);
}

static void on_channel_end(struct outlet *o)
{
	struct session *s = NULL;

	s = o->chan == 2 ? container_of(o, struct session, out[1])
			 : container_of(o, struct session, out[0]);
	check_end(s);
}

static void started(struct session *s)
{
	s->state = RUNNING;
	die_check(wire_u32_add(&s->all->port->out, s->stream, WIRE_STARTED, 0, (uint32_t)s->pid));
}

/* Take in what the child reports. True at the end of the report. */
static bool read_report(struct session *s)
{
	ssize_t n;

	do {
		n = read(s->report.fd, s->said + s->n_said, sizeof(s->said) - 1 - s->n_said);
		if (n > 0)
			s->n_said += (size_t)n;
	} while (n > 0 && s->n_said < sizeof(s->said) - 1);
	return n >= 0 || errno != EAGAIN;
}

static void close_report(struct session *s)
{
	if (s->report.fd < 0)
		return;
	loop_unwatch(s->all->loop, &s->report);
	s->report.fd = fd_close(s->report.fd);
	s->job = spawn_job_free(s->job);
}

static void on_report(struct watch *w, uint32_t events)
{
	struct session *s = container_of(w, struct session, report);

	(void)events;
	if (!read_report(s))
		return;
	close_report(s);
	if (s->state == STARTING && !s->n_said)
		started(s);
	/* else: it exits now, and is reaped */
}

static void set_end(struct session *s, uint8_t how, uint8_t code, const char *text)
{
	s->end = (struct wire_exit) { .how = how, .code = code, .text = text };
}

static void decide_end(struct session *s, int status)
{
	const char *said = (const char *)s->said + 1;

	if (s->copy && WIFEXITED(status))
		set_end(s, EXIT_COPIED, WEXITSTATUS(status) ? 1 : 0, s->n_said ? said : "");
	else if (s->copy)
		set_end(s, EXIT_COPIED, 1, "the copy was interrupted");
	else if (s->state == STARTING && s->n_said)
		set_end(s, EXIT_NOT_STARTED, s->said[0], said);
	else if (s->timed_out)
		set_end(s, EXIT_TIMEOUT, TIMED_OUT, "");
	else if (WIFSIGNALED(status))
		set_end(s, EXIT_SIGNAL, (uint8_t)WTERMSIG(status), "");
	else
		set_end(s, EXIT_STATUS, (uint8_t)WEXITSTATUS(status), "");
}

static void ended(struct session *s, int status)
{
	if (s->report.fd >= 0)
		(void)read_report(s);
	close_report(s);
	decide_end(s, status);
	inlet_close(&s->in);
	loop_cancel(s->all->loop, &s->timeout);
	s->pid = 0;
	if (s->end.how == EXIT_NOT_STARTED) {
		outlet_drop(&s->out[0]);
		outlet_drop(&s->out[1]);
	} else if (s->state == STARTING && !s->copy) {
		started(s);
	}
	outlet_finish(&s->out[0]);
	outlet_finish(&s->out[1]);
	s->state = ENDED;
	check_end(s);
}

void sessions_reaped(struct sessions *ss, pid_t pid, int status)
{
	struct session *s = ss->list;

	while (s && s->pid != pid)
		s = s->next;
	if (s)
		ended(s, status);
}

/* ---- the beginning ---- */

/* Pipes or a terminal; the child's ends go into sp, which the caller closes. */
static int open_pipe(int *ret_ours, int *ret_theirs, bool we_write)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	(void)fcntl(p[we_write], F_SETFL, O_NONBLOCK);
	*ret_ours = p[we_write];
	*ret_theirs = p[!we_write];
	return 0;
}

static int open_output(struct session *s, int i, int fd, bool tty)
{
	struct outlet *o = &s->out[i];

	o->stream = s->stream;
	o->chan = (uint8_t)(i + 1);
	o->tty = tty;
	o->on_end = on_channel_end;
	return outlet_open(o, &s->all->chans, fd);
}

static void open_input(struct session *s, int fd, bool tty)
{
	s->in.stream = s->stream;
	s->in.tty = tty;
	inlet_open(&s->in, &s->all->chans, fd);
}

static int open_terminal(struct session *s, struct spawn *sp)
{
	int zero = 0,
	    fd = openat(s->all->pts_fd, "ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	int in, r;

	if (fd < 0)
		return -errno;
	sp->terminal = fd;
	if (ioctl(fd, TIOCSPTLCK, &zero) < 0) {
		r = -errno;
		(void)fd_close(fd);
		return r;
	}
	in = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	r = open_output(s, 0, fd, true);
	if (in < 0 || r < 0) {
		(void)fd_close(in);
		return r < 0 ? r : -EMFILE;
	}
	open_input(s, in, true);
	return 0;
}

static int open_pipes(struct session *s, struct spawn *sp, bool with_input)
{
	int ours = -1, r, i, *theirs[2] = { &sp->out, &sp->err };

	if (with_input) {
		r = open_pipe(&ours, &sp->in, true);
		if (r < 0)
			return r;
		open_input(s, ours, false);
	}
	for (i = 0; i < 2; i++) {
		r = open_pipe(&ours, theirs[i], false);
		if (r == 0)
			r = open_output(s, i, ours, false);
		if (r < 0)
			return r;
	}
	return 0;
}

/* 0 or -errno; then s->pid tells whether there is a child. */
static int start(struct session *s)
{
	const struct wire_exec *m = spawn_job_exec(s->job);
	_close_ int in = -1, out = -1, err = -1;
	struct spawn sp = { .in = -1, .out = -1, .err = -1, .terminal = -1 };
	int report = -1, r;
	pid_t pid;

	s->tty = m->flags & EXEC_TTY;
	sp.workdir = s->all->workdir;
	r = s->tty ? open_terminal(s, &sp) : open_pipes(s, &sp, m->flags & EXEC_STDIN);
	in = sp.in;
	out = sp.out;
	err = sp.err;
	if (r < 0)
		return r;
	if (in < 0)
		sp.in = s->all->null_fd;
	pid = spawn_start(s->job, &sp, &report);
	if (pid < 0)
		return pid;
	s->pid = pid;
	s->state = STARTING;
	s->report = (struct watch) { .fd = report, .fn = on_report };
	if (m->timeout_ms)
		loop_after(s->all->loop, &s->timeout, m->timeout_ms);
	return loop_watch(s->all->loop, &s->report, EPOLLIN);
}

static void exec(struct session *s, const void *p, size_t n)
{
	struct sessions *ss = s->all;
	uint32_t stream = s->stream;
	struct err e;
	int r;

	authority_settle(ss->authority);
	r = spawn_job_new(&s->job, p, n, ss->authority->all);
	buf_done(&s->exec);
	if (r > 0) {
		session_free(s);
		refuse(ss, stream, EXIT_REFUSED, REFUSED, "the request is not valid");
		return;
	}
	if (r == 0)
		r = start(s);
	if (r == 0)
		return;
	if (s->pid > 0) {
		(void)kill(s->pid, SIGKILL);
		s->job = NULL; /* the child may still be in it */
	}
	s->job = spawn_job_free(s->job);
	session_free(s);
	(void)err_errno(&e, r, "the sandbox cannot start another command");
	refuse(ss, stream, EXIT_NOT_STARTED, CANNOT_START, e.msg);
}

static struct session *admit(struct sessions *ss, uint32_t stream)
{
	struct session *s = NULL;

	if (ss->closed)
		refuse(ss, stream, EXIT_REFUSED, REFUSED, "the sandbox is stopping");
	else if (ss->n >= WIRE_STREAMS_MAX)
		refuse(ss, stream, EXIT_REFUSED, REFUSED,
		       "256 commands are running in the sandbox already; end some of them first");
	else if (!(s = session_new(ss, stream)))
		refuse(ss, stream, EXIT_REFUSED, REFUSED, "the sandbox is out of memory");
	return s;
}

static const char *on_exec(struct sessions *ss, struct session *s, const struct wire_frame *f)
{
	if (s && s->state != GATHERING)
		return "the host opened a stream twice";
	if (!s)
		s = admit(ss, f->stream);
	if (!s)
		return NULL;
	if (!s->exec.n && !(f->flags & WIRE_MORE)) {
		exec(s, f->data, f->len);
		return NULL;
	}
	if (buf_add(&s->exec, f->data, f->len) < 0) {
		session_free(s);
		refuse(ss, f->stream, EXIT_REFUSED, REFUSED, "the command is too long");
		return NULL;
	}
	if (!(f->flags & WIRE_MORE))
		exec(s, buf_data(&s->exec), s->exec.n);
	return NULL;
}

/* ---- copies ---- */

static int start_copy(struct session *s, const struct wire_copy *m, bool in)
{
	_close_ int theirs = -1;
	int ours = -1, report = -1;
	int r = open_pipe(&ours, &theirs, in);
	pid_t pid;

	if (r < 0)
		return r;
	if (in)
		open_input(s, ours, false);
	else
		r = open_output(s, 0, ours, false);
	if (r < 0)
		return r;
	pid = copy_start(in, m, theirs, &report);
	if (pid < 0)
		return pid;
	s->pid = pid;
	s->state = RUNNING;
	s->report = (struct watch) { .fd = report, .fn = on_report };
	return loop_watch(s->all->loop, &s->report, EPOLLIN);
}

static const char *on_copy(struct sessions *ss, struct session *s, const struct wire_frame *f)
{
	struct wire_copy m;
	struct err e;
	int r;

	if (s)
		return "the host opened a stream twice";
	s = admit(ss, f->stream);
	if (!s)
		return NULL;
	s->copy = true;
	if (wire_copy_parse(&m, f) != WIRE_OK) {
		session_free(s);
		refuse(ss, f->stream, EXIT_REFUSED, REFUSED, "the request is not valid");
		return NULL;
	}
	r = start_copy(s, &m, f->type == WIRE_COPY_IN);
	if (r < 0) {
		if (s->pid > 0)
			(void)kill(s->pid, SIGKILL);
		session_free(s);
		(void)err_errno(&e, r, "the sandbox cannot start a copy");
		refuse(ss, f->stream, EXIT_COPIED, 1, e.msg);
	}
	return NULL;
}

/* ---- signals, size, hang-up, time-out ---- */

/* With a terminal, the foreground group is meant. Before the child has made its group, or the terminal its
 * own, there is only the child. */
static void signal_group(const struct session *s, int signo)
{
	pid_t group = s->pid;

	if (s->tty && s->out[0].w.fd >= 0 &&
	    (ioctl(s->out[0].w.fd, TIOCGPGRP, &group) < 0 || group <= 0))
		group = s->pid;
	if (kill(-group, signo) < 0)
		(void)kill(s->pid, signo);
}

/* Ask all of it to end, and insist a little later. */
static void signal_all(struct session *s, int signo)
{
	if (kill(-s->pid, signo) < 0)
		(void)kill(s->pid, signo);
	if (s->tty)
		signal_group(s, signo);
	killer_start(s->all, s->pid, KILL_AFTER_MS);
}

static const char *on_signal(struct sessions *ss, struct session *s, const struct wire_frame *f)
{
	uint8_t signo;

	(void)ss;
	if (wire_signal_parse(&signo, f) != WIRE_OK)
		return "the host sent a signal that is not valid";
	if (s->pid)
		signal_group(s, signo);
	return NULL;
}

static const char *on_winsize(struct sessions *ss, struct session *s, const struct wire_frame *f)
{
	struct wire_winsize m;
	struct winsize ws = { 0 };

	(void)ss;
	if (wire_winsize_parse(&m, f) != WIRE_OK)
		return "the host sent a size that is not valid";
	ws.ws_row = m.rows;
	ws.ws_col = m.cols;
	if (s->tty && s->out[0].w.fd >= 0)
		(void)ioctl(s->out[0].w.fd, TIOCSWINSZ, &ws);
	return NULL;
}

static void hang_up(struct session *s)
{
	bool reads = s->out[0].w.fd >= 0;

	if (s->hung_up)
		return;
	s->hung_up = true;
	inlet_close(&s->in);
	outlet_drop(&s->out[0]);
	outlet_drop(&s->out[1]);
	if (!s->pid)
		return;
	/* A copy into the guest sees its stream end early, and cleans up behind itself. */
	if (s->copy && reads)
		(void)kill(s->pid, SIGKILL);
	else if (s->copy)
		killer_start(s->all, s->pid, KILL_AFTER_MS);
	else if (!s->tty)
		signal_all(s, SIGHUP);
}

static const char *on_hangup(struct sessions *ss, struct session *s, const struct wire_frame *f)
{
	(void)ss;
	(void)f;
	if (s->state == GATHERING) {
		session_free(s);
		return NULL;
	}
	hang_up(s);
	check_end(s);
	return NULL;
}

static void on_timeout(struct timer *t)
{
	struct session *s = container_of(t, struct session, timeout);

	s->timed_out = true;
	if (s->pid)
		signal_all(s, SIGTERM);
}

void sessions_close(struct sessions *ss)
{
	struct session *s, *next;

	ss->closed = true;
	for (s = ss->list; s; s = next) {
		next = s->next;
		if (!s->tty || s->state == ENDED)
			continue;
		inlet_close(&s->in);
		outlet_drop(&s->out[0]);
	}
}

/* ---- data ---- */

static const char *on_data(struct sessions *ss, struct session *s, const struct wire_frame *f)
{
	(void)ss;
	if (f->chan == 0 && !inlet_data(&s->in, f->data, f->len))
		return "the host sent more than it had credit for";
	return NULL;
}

static const char *on_eof(struct sessions *ss, struct session *s, const struct wire_frame *f)
{
	(void)ss;
	if (f->chan == 0)
		inlet_eof(&s->in);
	return NULL;
}

static const char *on_credit(struct sessions *ss, struct session *s, const struct wire_frame *f)
{
	uint32_t n;

	(void)ss;
	if (f->chan < 1 || wire_u32_parse(&n, f) != WIRE_OK)
		return "the host sent a credit that is not valid";
	if (s->out[f->chan - 1].w.fd >= 0 && !outlet_credit(&s->out[f->chan - 1], n))
		return "the host gave more credit than there is";
	return NULL;
}

typedef const char *frame_fn(struct sessions *ss, struct session *s, const struct wire_frame *f);

static const struct {
	frame_fn *fn;
	bool opens; /* makes a stream; the others are dropped if theirs is gone */
} table[] = {
	[WIRE_EXEC] = { on_exec, true },
	[WIRE_COPY_IN] = { on_copy, true },
	[WIRE_COPY_OUT] = { on_copy, true },
	[WIRE_DATA] = { on_data },
	[WIRE_EOF] = { on_eof },
	[WIRE_CREDIT] = { on_credit },
	[WIRE_SIGNAL] = { on_signal },
	[WIRE_WINSIZE] = { on_winsize },
	[WIRE_HANGUP] = { on_hangup },
};

const char *sessions_frame(struct sessions *ss, const struct wire_frame *f)
{
	struct session *s = find(ss, f->stream);

	if (f->type >= ARRAY_SIZE(table) || !table[f->type].fn)
		return "the host sent a frame that has no place on a stream";
	if (!s && !table[f->type].opens)
		return NULL;
	return table[f->type].fn(ss, s, f);
}
