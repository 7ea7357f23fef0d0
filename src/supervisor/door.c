/* The door: the commands of the user, over ctl.sock.
 *
 * The socket is 0600 in a 0700 directory, and each peer's uid is checked besides: ours or root's. A peer
 * that breaks the protocol is dropped; nobody else notices. */
#include <fcntl.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "io/fd.h"
#include "supervisor/net.h"
#include "supervisor/share.h"
#include "supervisor/sup.h"

enum {
	CLIENT_IN = WIRE_HEADER + WIRE_FRAME_MAX + 64 * 1024,
	CLIENT_OUT = SUP_CLIENT_STREAMS * 2 * (WIRE_WINDOW + 8192) + 256 * 1024,
};

/* What one read of the guest's wire brings for a client goes out in one piece, when it ends. */
static void flush(struct client *c)
{
	if (!c->sup->reading_guest)
		conn_flush(&c->conn);
}

void sup_door_flush(struct sup *s)
{
	struct client *c, *next;

	for (c = s->clients; c; c = next) {
		next = c->next;
		if (c->conn.out.n)
			conn_flush(&c->conn);
	}
}

void sup_client_frame(struct client *c, uint32_t stream, enum wire_type type, uint8_t chan,
		      const void *p, size_t n)
{
	if (!c->conn.open || c->conn.gone)
		return;
	if (wire_frame_add(&c->conn.out, stream, type, chan, p, n) == 0)
		flush(c);
}

void sup_client_exit(struct client *c, uint32_t client_id, const struct wire_exit *x)
{
	if (c->conn.open && !c->conn.gone && wire_exit_add(&c->conn.out, client_id, x) == 0)
		flush(c);
}

static void done(struct client *c)
{
	sup_client_frame(c, 0, WIRE_DONE, 0, NULL, 0);
}

void sup_client_failed(struct client *c, int code, const char *text)
{
	struct wire_failed m = { .code = (uint32_t)code, .text = text };

	if (c->conn.open && !c->conn.gone && wire_failed_add(&c->conn.out, &m) == 0)
		flush(c);
}

/* ---- requests ---- */

static void send_status(struct client *c, bool answers)
{
	struct sup *s = c->sup;
	struct wire_status m = { .state = (uint8_t)s->state,
				 .answers = answers,
				 .accel = (uint8_t)s->order.accel,
				 .jobs = sup_jobs_running(s),
				 .started_ns = s->started_real_ns,
				 .boot_ns = s->boot_ns,
				 .qemu_pid = (uint32_t)MAX(s->qemu, 0),
				 .remark = *s->reason ? s->reason : sup_net_remark(s) };

	m.sessions = s->n_streams - m.jobs - sup_jobs_startup(s);
	c->waits_status = false;
	if (c->conn.open && !c->conn.gone && wire_status_add(&c->conn.out, &m) == 0)
		conn_flush(&c->conn);
}

void sup_door_answer_status(struct sup *s, bool guest_answers)
{
	struct client *c;

	(void)uv_timer_stop(&s->ping);
	for (c = s->clients; c; c = c->next)
		if (c->waits_status)
			send_status(c, guest_answers);
}

static void on_ping_deadline(uv_timer_t *t)
{
	sup_door_answer_status(t->data, false);
}

static bool on_status(struct client *c, const struct wire_frame *f)
{
	struct sup *s = c->sup;
	uint8_t token[8] = { 0 };
	uint32_t ms;

	if (wire_u32_parse(&ms, f) != WIRE_OK)
		return false;
	if (s->state != STATE_RUNNING || !ms) {
		send_status(c, false);
		return true;
	}
	c->waits_status = true;
	sup_guest_frame(s, 0, WIRE_PING, 0, token, sizeof(token));
	if (!uv_is_active((uv_handle_t *)&s->ping))
		(void)uv_timer_start(&s->ping, on_ping_deadline, MIN(ms, 60000U), 0);
	return true;
}

static bool on_wait(struct client *c, const struct wire_frame *f)
{
	(void)f;
	c->waits_ready = true;
	sup_door_settle(c->sup);
	return true;
}

static bool on_stop(struct client *c, const struct wire_frame *f)
{
	struct sup *s = c->sup;
	struct wire_stop m;

	if (wire_stop_parse(&m, f) != WIRE_OK)
		return false;
	if ((m.flags & STOP_IF_IDLE) && s->n_streams > sup_jobs_startup(s)) {
		sup_client_failed(c, EBUSY, "the sandbox is in use (a command runs in it)");
		return true;
	}
	c->waits_gone = true;
	s->stop_ms = m.deadline_ms;
	sup_reason(s, "stopped by the user");
	sup_event(s, m.flags & STOP_NOW ? EV_STOP_NOW : EV_STOP);
	return true;
}

static bool on_jobs(struct client *c, const struct wire_frame *f)
{
	(void)f;
	sup_job_list(c);
	return true;
}

static bool on_job_kill(struct client *c, const struct wire_frame *f)
{
	struct wire_job_kill m;

	if (wire_job_kill_parse(&m, f) != WIRE_OK)
		return false;
	sup_job_kill(c, &m);
	return true;
}

static bool on_attach(struct client *c, const struct wire_frame *f)
{
	const char *id;

	if (wire_text_parse(&id, f) != WIRE_OK || sup_stream_of(c, f->stream))
		return false;
	sup_job_attach(c, f->stream, id);
	return true;
}

static bool dispatch(struct client *c, const struct wire_frame *f)
{
	switch (f->type) {
	case WIRE_MOUNT:
		return sup_share_mount(c, f);
	case WIRE_UMOUNT:
		return sup_share_umount(c, f);
	case WIRE_POLICY:
		return sup_net_policy(c, f);
	case WIRE_CREDENTIALS:
		return sup_net_credentials(c, f);
	case WIRE_STATUS:
		return on_status(c, f);
	case WIRE_WAIT:
		return on_wait(c, f);
	case WIRE_STOP:
		return on_stop(c, f);
	case WIRE_JOBS:
		return on_jobs(c, f);
	case WIRE_JOB_KILL:
		return on_job_kill(c, f);
	case WIRE_ATTACH:
		return on_attach(c, f);
	default:
		return f->stream && sup_stream_from_client(c, f);
	}
}

/* ---- connections ---- */

static void drop(struct client *c)
{
	struct sup *s = c->sup;
	struct client **at;
	unsigned i;

	for (at = &s->clients; *at && *at != c; at = &(*at)->next)
		;
	if (!*at)
		return;
	*at = c->next;
	s->n_clients--;
	for (i = 0; i < s->n_streams; i++)
		if (s->streams[i]->client == c)
			sup_stream_orphan(s, s->streams[i]);
	sup_job_viewer_gone(c);
	sup_share_client_gone(c);
	sup_net_client_gone(c);
	conn_close(&c->conn); /* asking how it is, is no use: the idle time goes on */
}

static void on_gone(struct conn *conn)
{
	drop(conn->user);
}

static void on_closed(struct conn *conn)
{
	struct client *c = conn->user;

	buf_done(&c->gather);
	free(c);
}

static void on_input(struct conn *conn)
{
	struct client *c = conn->user;
	struct wire_frame f;
	size_t used, taken = 0;
	int ans;

	while (conn->open && !conn->gone) {
		ans = wire_frame_parse(&f, &used, FROM_CLIENT, buf_data(&conn->in) + taken,
				       conn->in.n - taken);
		if (ans == WIRE_AGAIN)
			break;
		if (ans != WIRE_OK || !dispatch(c, &f)) {
			slog_say(c->sup->log, "a client broke the protocol and was dropped");
			drop(c);
			return;
		}
		taken += used;
	}
	if (conn->open && conn->in.p)
		buf_consume(&conn->in, taken);
}

static bool may_enter(struct sup *s, int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (s->n_clients >= DOOR_CLIENTS_MAX)
		return false;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return false;
	return peer.uid == geteuid() || peer.uid == 0;
}

static void on_listen(uv_poll_t *p, int status, int events)
{
	struct sup *s = p->data;
	_close_ int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *c;

	(void)events;
	if (status < 0 || fd < 0 || !may_enter(s, fd))
		return;
	c = calloc(1, sizeof(*c));
	if (!c)
		return;
	c->sup = s;
	buf_init(&c->gather, WIRE_EXEC_MAX);
	c->conn.user = c;
	c->conn.takes_fd = true;
	c->conn.on_input = on_input;
	c->conn.on_gone = on_gone;
	c->conn.on_closed = on_closed;
	if (conn_open(&c->conn, &s->loop, fd, CLIENT_IN, CLIENT_OUT) < 0) {
		free(c);
		return;
	}
	(void)take_fd(&fd);
	c->next = s->clients;
	s->clients = c;
	s->n_clients++;
	if (wire_door_add(&c->conn.out, s->order.id) == 0)
		conn_look(&c->conn); /* often it has asked already: one answer with the greeting */
	conn_flush(&c->conn);
}

void sup_door_settle(struct sup *s)
{
	struct client *c, *next;

	for (c = s->clients; c; c = next) {
		next = c->next;
		if (c->waits_ready && s->state == STATE_RUNNING) {
			c->waits_ready = false;
			done(c);
		} else if (c->waits_ready && s->state != STATE_STARTING) {
			c->waits_ready = false;
			sup_client_failed(c, s->hung ? ETIMEDOUT : ECANCELED, s->reason);
		}
		if (s->state == STATE_GONE && c->waits_status)
			send_status(c, false);
		if (s->state == STATE_GONE && c->waits_gone) {
			c->waits_gone = false;
			done(c);
		}
	}
}

static int bind_here(struct sup *s)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t old;
	int r;

	if (fd < 0)
		return -errno;
	/* Through the descriptor: the path of a socket is limited to 107 bytes, a directory's is not. */
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/ctl.sock", s->run_fd);
	(void)unlinkat(s->run_fd, "ctl.sock", 0);
	old = umask(0177);
	r = bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ? -errno : 0;
	(void)umask(old);
	if (r == 0 && listen(fd, 128) < 0)
		r = -errno;
	if (r < 0)
		return r;
	s->listen_fd = take_fd(&fd);
	return 0;
}

int sup_door_open(struct sup *s, struct err *e)
{
	int r = bind_here(s);

	if (r == 0) {
		s->listener.data = s->ping.data = s;
		r = uv_timer_init(&s->loop, &s->ping);
	}
	if (r == 0)
		r = uv_poll_init(&s->loop, &s->listener, s->listen_fd);
	if (r == 0)
		r = uv_poll_start(&s->listener, UV_READABLE, on_listen);
	return r < 0 ? err_errno(e, r, "cannot open the door %s/ctl.sock", s->order.run_dir) : 0;
}

void sup_door_close(struct sup *s)
{
	(void)unlinkat(s->run_fd, "ctl.sock", 0);
	sup_door_flush(s);
	while (s->clients)
		drop(s->clients);
}
