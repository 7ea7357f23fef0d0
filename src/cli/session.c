/* The loop between the user's descriptors and a stream.
 *
 * Nothing here may wait for one thing while another could go on: a reader of stdout that stalls must not hold up
 * stderr, nor the exit of a command whose stdin nobody will ever end. So every output is written without
 * blocking. The descriptors we inherit are shared with other processes, whose O_NONBLOCK is not ours to
 * change; pipes and terminals are therefore opened anew through /proc/self/fd, sockets are written with
 * MSG_DONTWAIT, and files never block. */
#include "cli/session.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/term.h"
#include "cli/tty.h"
#include "io/fd.h"
#include "wire/flow.h"

struct out {
	int fd;
	bool ours; /* opened anew */
	bool socket;
	bool broken; /* its reader is gone: bytes are dropped */
	struct buf q;
	struct wire_flow flow;
};

struct session {
	struct door *d;
	const struct session_opts *o;
	struct out out[3]; /* 1 and 2 are used */
	struct wire_flow in_flow;
	bool in_open;
	bool ended;
	bool detached;
	bool told_pipe;
	uint64_t resize_at; /* when the terminal's real size is told at the latest; 0: it was */
	struct keys keys;
	struct term term; /* the modes that were shown */
	int signals;
	struct wire_exit *exit;
	char *exit_text;
};

enum { REDRAW_MS = 400 };

static const int passed_on[] = { SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2 };

static int out_open(struct out *o, int fd)
{
	char path[64];
	struct stat st;

	o->fd = fd;
	buf_init(&o->q, WIRE_WINDOW + WIRE_FRAME_MAX);
	o->flow = wire_flow_init();
	if (fstat(fd, &st) < 0) {
		o->broken = true; /* closed by the caller: nobody reads */
		return 0;
	}
	if (S_ISSOCK(st.st_mode)) {
		o->socket = true;
		return 0;
	}
	if (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode))
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd >= 0) {
		o->fd = fd;
		o->ours = true;
	}
	return 0;
}

static void out_done(struct out *o)
{
	if (o->ours)
		(void)fd_close(o->fd);
	buf_done(&o->q);
}

static void session_done(struct session *s)
{
	out_done(&s->out[1]);
	out_done(&s->out[2]);
	(void)fd_close(s->signals);
}

/* What was passed on (or dropped) is given back as credit. */
static int passed(struct session *s, uint8_t chan, size_t n)
{
	uint32_t back = wire_flow_passed(&s->out[chan].flow, (uint32_t)n, false);

	return back ? wire_u32_add(&s->d->out, SESSION_STREAM, WIRE_CREDIT, chan, back) : 0;
}

/* Nobody reads any more: the command learns it as it would in a pipeline. */
static int reader_gone(struct session *s, struct out *o)
{
	o->broken = true;
	if (s->told_pipe || s->o->viewer || s->o->tty)
		return 0;
	s->told_pipe = true;
	return wire_signal_add(&s->d->out, SESSION_STREAM, SIGPIPE);
}

static int push(struct session *s, uint8_t chan)
{
	struct out *o = &s->out[chan];
	size_t before = o->q.n;
	int r = 0;

	while (o->q.n) {
		ssize_t k = (ssize_t)o->q.n;

		if (!o->broken)
			k = o->socket ? send(o->fd, buf_data(&o->q), o->q.n,
					     MSG_DONTWAIT | MSG_NOSIGNAL)
				      : write(o->fd, buf_data(&o->q), o->q.n);
		if (k >= 0) {
			buf_consume(&o->q, (size_t)k);
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN)
			break;
		if (errno != EPIPE && errno != EBADF && errno != EIO && errno != ECONNRESET)
			return -errno;
		r = reader_gone(s, o);
		if (r < 0)
			return r;
	}
	return before > o->q.n ? passed(s, chan, before - o->q.n) : 0;
}

static int on_frame(struct session *s, const struct wire_frame *f)
{
	struct wire_exit x;
	uint32_t n;

	switch (f->type) {
	case WIRE_DATA:
		if (f->chan == 0 || !wire_flow_came(&s->out[f->chan].flow, f->len))
			return -EPROTO;
		if (s->o->viewer && s->o->tty)
			term_see(&s->term, f->data, f->len);
		if (buf_add(&s->out[f->chan].q, f->data, f->len) < 0)
			return -EPROTO;
		return push(s, f->chan);
	case WIRE_CREDIT:
		if (f->chan != 0 || wire_u32_parse(&n, f) != WIRE_OK ||
		    !wire_flow_credit(&s->in_flow, n))
			return -EPROTO;
		return 0;
	case WIRE_EXIT:
		if (wire_exit_parse(&x, f) != WIRE_OK)
			return -EPROTO;
		s->ended = true;
		s->exit->how = x.how;
		s->exit->code = x.code;
		(void)snprintf(s->exit_text, WIRE_TEXT_MAX + 1, "%s", x.text);
		s->exit->text = s->exit_text;
		return 0;
	default:
		return 0;
	}
}

/* All frames that are there. */
static int from_door(struct session *s)
{
	struct wire_frame f;
	int r = 0;

	while (r == 0 && !s->ended) {
		r = door_next(s->d, 0, &f);
		if (r == -ETIMEDOUT)
			return 0;
		if (r == 0)
			r = on_frame(s, &f);
	}
	return r;
}

static int from_input(struct session *s)
{
	uint8_t bytes[WIRE_FRAME_MAX], on[WIRE_FRAME_MAX];
	bool looks = s->o->viewer && s->o->tty;
	size_t most = sizeof(bytes) - (looks ? KEYS_HELD_MAX : 0), k = 0;
	size_t room = MIN(most, (size_t)s->in_flow.may_send);
	ssize_t n;

	if (looks && s->in_flow.may_send < sizeof(bytes))
		return 0; /* what is held back needs credit too */
	n = read(s->o->in_fd, bytes, room);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n <= 0) {
		s->in_open = false;
		return wire_frame_add(&s->d->out, SESSION_STREAM, WIRE_EOF, 0, NULL, 0);
	}
	if (!looks) {
		s->in_flow.may_send -= (uint32_t)n;
		return wire_frame_add(&s->d->out, SESSION_STREAM, WIRE_DATA, 0, bytes, (size_t)n);
	}
	s->detached = keys_feed(&s->keys, bytes, (size_t)n, on, &k);
	s->in_flow.may_send -= (uint32_t)k;
	return k ? wire_frame_add(&s->d->out, SESSION_STREAM, WIRE_DATA, 0, on, k) : 0;
}

static int tell_size(struct session *s, unsigned less)
{
	struct wire_winsize w;

	tty_size(s->o->out_fd, &w.rows, &w.cols);
	w.rows = (uint16_t)(w.rows > less ? w.rows - less : w.rows);
	w.cols = (uint16_t)(w.cols > less ? w.cols - less : w.cols);
	return wire_winsize_add(&s->d->out, SESSION_STREAM, w);
}

/* A program draws anew when its size changes, and it must have seen the one size before it is told of the other. */
static int tell_true_size(struct session *s)
{
	s->resize_at = 0;
	return tell_size(s, 0);
}

static int on_signal(struct session *s)
{
	struct signalfd_siginfo si;

	if (read(s->signals, &si, sizeof(si)) != sizeof(si))
		return 0;
	if (si.ssi_signo == SIGWINCH) {
		if (!s->o->tty)
			return 0;
		return tell_true_size(s);
	}
	if (s->o->viewer) {
		s->detached = true;
		return 0;
	}
	return wire_signal_add(&s->d->out, SESSION_STREAM, (uint8_t)si.ssi_signo);
}

static int watch_signals(struct session *s, sigset_t *ret_before)
{
	sigset_t set;
	size_t i;

	(void)sigemptyset(&set);
	for (i = 0; i < ARRAY_SIZE(passed_on); i++)
		(void)sigaddset(&set, passed_on[i]);
	(void)sigaddset(&set, SIGWINCH);
	(void)sigaddset(&set, SIGPIPE);
	if (sigprocmask(SIG_BLOCK, &set, ret_before) < 0)
		return -errno;
	(void)sigdelset(&set, SIGPIPE);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signals < 0 ? -errno : 0;
}

enum { P_DOOR, P_SIGNALS, P_INPUT, P_OUT, P_ERR, P_N };

/* How long to wait for something to happen, in ms; -1: for ever. */
static int patience(const struct session *s)
{
	uint64_t now = s->resize_at ? fd_now_ns() : 0;

	return !s->resize_at        ? -1
	       : s->resize_at > now ? (int)((s->resize_at - now) / 1000000) + 1
				    : 0;
}

static int once(struct session *s)
{
	struct pollfd p[P_N] = {
		[P_DOOR] = { s->d->fd, (short)(POLLIN | (s->d->out.n ? POLLOUT : 0)), 0 },
		[P_SIGNALS] = { s->signals, POLLIN, 0 },
		[P_INPUT] = { s->in_open && s->in_flow.may_send && s->d->out.n < WIRE_WINDOW
				      ? s->o->in_fd
				      : -1,
			      POLLIN, 0 },
		[P_OUT] = { s->out[1].q.n ? s->out[1].fd : -1, POLLOUT, 0 },
		[P_ERR] = { s->out[2].q.n ? s->out[2].fd : -1, POLLOUT, 0 },
	};
	int r = 0;

	if (poll(p, P_N, patience(s)) < 0)
		return errno == EINTR ? 0 : -errno;
	if (s->resize_at && fd_now_ns() >= s->resize_at)
		r = tell_true_size(s);
	if (r == 0 && p[P_DOOR].revents & (POLLIN | POLLHUP | POLLERR))
		r = from_door(s);
	if (r == 0 && p[P_SIGNALS].revents)
		r = on_signal(s);
	if (r == 0 && p[P_INPUT].revents)
		r = from_input(s);
	if (r == 0 && p[P_OUT].revents)
		r = push(s, 1);
	if (r == 0 && p[P_ERR].revents)
		r = push(s, 2);
	if (r == 0 && s->d->out.n) {
		r = door_flush(s->d, 0);
		r = r == -ETIMEDOUT ? 0 : r;
	}
	return r;
}

/* After EXIT only the outputs are left to be written. */
static int drain(struct session *s)
{
	while (s->out[1].q.n || s->out[2].q.n) {
		struct pollfd p[2] = { { s->out[1].q.n ? s->out[1].fd : -1, POLLOUT, 0 },
				       { s->out[2].q.n ? s->out[2].fd : -1, POLLOUT, 0 } };
		int r;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return -errno;
		r = push(s, 1);
		if (r == 0)
			r = push(s, 2);
		if (r < 0)
			return r;
		buf_consume(&s->d->out, s->d->out.n); /* credit has no taker any more */
	}
	return 0;
}

static int carry(struct session *s)
{
	int r = 0;

	if (s->o->redraw && s->o->tty) {
		s->resize_at = fd_now_ns() + (uint64_t)REDRAW_MS * 1000000;
		r = tell_size(s, 1);
	}
	if (r == 0)
		r = door_flush(s->d, 0);
	if (r == -ETIMEDOUT)
		r = 0;
	if (r == 0)
		r = from_door(s);
	while (r == 0 && !s->ended && !s->detached)
		r = once(s);
	if (r == 0 && (s->ended || s->detached))
		r = drain(s);
	return r;
}

/* The terminal is the shell's again, whatever mode it was in. */
static void leave_terminal(struct session *s)
{
	struct buf undo = BUF_INIT(TERM_TEXT_MAX);

	if (s->o->viewer && s->o->tty && isatty(s->o->out_fd) && term_undo(&s->term, &undo) == 0 &&
	    (!s->detached || buf_add(&undo, "\r\n", 2) == 0) &&
	    fd_write_all(s->o->out_fd, buf_data(&undo), undo.n) < 0)
		errno = 0; /* it is gone */
	buf_done(&undo);
}

int session_run(struct door *d, const char *name, const struct session_opts *o,
		struct wire_exit *ret, char *ret_text, struct err *e)
{
	struct session s = { .d = d,
			     .o = o,
			     .signals = -1,
			     .exit = ret,
			     .in_open = o->input,
			     .in_flow = wire_flow_init() };
	struct tty *tty = NULL;
	sigset_t before;
	int r;

	s.exit_text = ret_text;
	if (o->keys)
		s.keys = *o->keys;
	else if (keys_parse(KEYS_DEFAULT, &s.keys, e) < 0)
		return e->code;
	r = watch_signals(&s, &before);
	if (r == 0)
		r = out_open(&s.out[1], o->out_fd);
	if (r == 0)
		r = out_open(&s.out[2], o->err_fd);
	if (r == 0 && o->tty && o->input && isatty(o->in_fd))
		r = tty_raw(o->in_fd, &tty);
	if (r == 0)
		r = carry(&s);
	leave_terminal(&s);
	tty_restore(tty);
	session_done(&s);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (r == -EPIPE)
		return err_set(e, r, "sandbox '%s' ended while the command ran (see 'bac logs %s')",
			       name, name);
	if (r < 0)
		return err_errno(e, r, "lost the command in sandbox '%s'", name);
	return s.ended ? 0 : 1;
}
