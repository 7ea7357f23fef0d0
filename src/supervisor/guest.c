/* The guest wire and QMP: every byte that comes in here was written by the other side of the
 * hypervisor and is hostile. A frame that is not exactly what the protocol allows at this point ends the
 * sandbox: its owner can start it again, and nothing that it may have wanted is done. */
#include <sys/pidfd.h>

#include "io/fd.h"
#include "supervisor/net.h"
#include "supervisor/share.h"
#include "supervisor/sup.h"
#include "vm/qmp.h"

enum {
	GUEST_IN = WIRE_HEADER + WIRE_FRAME_MAX + 64 * 1024,
	GUEST_OUT = WIRE_STREAMS_MAX * (WIRE_WINDOW + 4096) + 2 * WIRE_EXEC_MAX,
	POLITE = 64 * 1024, /* no courtesy answers above this queue */
};

static void broken(struct sup *s, const char *what)
{
	if (s->wire_dead)
		return;
	s->wire_dead = true;
	sup_reason(s, "the guest broke the control protocol (%s)", what);
	sup_event(s, EV_WIRE_BROKEN);
}

void sup_guest_frame(struct sup *s, uint32_t stream, enum wire_type type, uint8_t chan,
		     const void *p, size_t n)
{
	if (s->wire_dead || !s->guest.open)
		return;
	if (wire_frame_add(&s->guest.out, stream, type, chan, p, n) < 0)
		broken(s, "it does not read");
	else
		conn_flush(&s->guest);
}

static void send_u64(struct sup *s, enum wire_type type, uint64_t v)
{
	if (s->wire_dead || !s->guest.open || wire_u64_add(&s->guest.out, type, v) < 0)
		return;
	conn_flush(&s->guest);
}

void sup_guest_time(struct sup *s)
{
	if (s->hello && s->guest.out.n < POLITE)
		send_u64(s, WIRE_TIME, fd_real_ns());
}

void sup_guest_shutdown(struct sup *s)
{
	if (s->guest.open && wire_u32_add(&s->guest.out, 0, WIRE_SHUTDOWN, 0, s->stop_ms) == 0)
		conn_flush(&s->guest);
}

/* ---- what the guest says about itself ---- */

static bool on_hello(struct sup *s, const struct wire_frame *f)
{
	struct wire_config c = { .hostname = s->order.hostname, .workdir = s->order.workdir };
	const struct wire_env image = { s->order.n_image_env, s->order.image_env };
	struct wire_hello m;

	if (s->hello || wire_hello_parse(&m, f) != WIRE_OK || m.version != WIRE_VERSION)
		return false;
	s->hello = true;
	slog_say(s->log, "the guest's kernel is %s; init runs %.3f s after QEMU's start", m.release,
		 (double)(fd_now_ns() - s->started_ns) / 1e9);
	c.realtime_ns = fd_real_ns();
	if ((s->order.image && wire_image_add(&s->guest.out, &image) < 0) ||
	    wire_config_add(&s->guest.out, &c) < 0 || sup_net_config(s) < 0 ||
	    sup_share_config(s) < 0)
		return false;
	conn_flush(&s->guest);
	return true;
}

static bool on_ready(struct sup *s, const struct wire_frame *f)
{
	uint64_t ns;

	if (!s->hello || s->boot_ns || wire_u64_parse(&ns, f) != WIRE_OK)
		return false;
	s->boot_ns = fd_now_ns() - s->started_ns;
	slog_say(s->log, "the guest is ready after %.3f s", (double)s->boot_ns / 1e9);
	sup_event(s, EV_READY);
	return true;
}

static bool on_fail(struct sup *s, const struct wire_frame *f)
{
	const char *why;

	if (wire_text_parse(&why, f) != WIRE_OK)
		return false;
	sup_reason(s, "the guest cannot come up: %s", why);
	sup_event(s, EV_FAIL);
	return true;
}

static bool on_note(struct sup *s, const struct wire_frame *f)
{
	const char *text;

	if (!s->hello || wire_text_parse(&text, f) != WIRE_OK)
		return false;
	(void)snprintf(s->note, sizeof(s->note), "%.*s", (int)strcspn(text, "\n"), text);
	return true;
}

static bool on_time_ask(struct sup *s, const struct wire_frame *f)
{
	(void)f;
	sup_guest_time(s);
	return true;
}

static bool on_pong(struct sup *s, const struct wire_frame *f)
{
	(void)f;
	sup_door_answer_status(s, true);
	return true;
}

static bool on_bye(struct sup *s, const struct wire_frame *f)
{
	(void)f;
	s->clean = true;
	return true;
}

static bool on_klog(struct sup *s, const struct wire_frame *f)
{
	slog_bytes(s->log, &s->kernel_carry, "kernel", f->data, f->len);
	return true;
}

enum { EARLY = 1, LATE = 2 }; /* before READY, after it */

static const struct {
	uint8_t when;
	bool (*run)(struct sup *s, const struct wire_frame *f);
} on_connection[] = {
	[WIRE_HELLO] = { EARLY, on_hello },
	[WIRE_READY] = { EARLY, on_ready },
	[WIRE_FAIL] = { EARLY | LATE, on_fail },
	[WIRE_NOTE] = { EARLY, on_note },
	[WIRE_TIME_ASK] = { EARLY | LATE, on_time_ask },
	[WIRE_MOUNTED] = { EARLY | LATE, sup_share_mounted },
	[WIRE_PONG] = { LATE, on_pong },
	[WIRE_BYE] = { EARLY | LATE, on_bye },
	[WIRE_KLOG] = { EARLY | LATE, on_klog },
};

static bool dispatch(struct sup *s, const struct wire_frame *f)
{
	unsigned season = s->boot_ns ? LATE : EARLY;

	if (f->stream)
		return season == LATE && sup_stream_from_guest(s, f);
	if (f->type >= ARRAY_SIZE(on_connection) || !(on_connection[f->type].when & season))
		return false;
	return on_connection[f->type].run(s, f);
}

static void take(struct sup *s, struct conn *c)
{
	struct wire_frame f;
	size_t used, done = 0;
	int ans;

	while (!s->wire_dead) {
		ans = wire_frame_parse(&f, &used, FROM_GUEST, buf_data(&c->in) + done,
				       c->in.n - done);
		if (ans == WIRE_AGAIN)
			break;
		if (ans != WIRE_OK) {
			broken(s, "a malformed frame");
			return;
		}
		if (!dispatch(s, &f)) {
			broken(s, wire_type_name(f.type));
			return;
		}
		done += used;
	}
	if (c->in.p)
		buf_consume(&c->in, done);
}

static void on_input(struct conn *c)
{
	struct sup *s = c->user;

	s->reading_guest = true;
	take(s, c);
	s->reading_guest = false;
	sup_door_flush(s);
}

/* Only QEMU can close the wire, by ending: the news of that says more, and is on its way. */
static void on_gone(struct conn *c)
{
	sup_life_wire_closed(c->user);
}

/* ---- QMP ---- */

static void on_qmp_input(struct conn *c)
{
	struct sup *s = c->user;
	enum qmp_event ev;
	char text[128];
	int r;

	while ((r = qmp_next(&c->in, &ev, text, sizeof(text))) > 0) {
		switch (ev) {
		case QMP_GREETING:
			r = qmp_command(&c->out, "qmp_capabilities");
			break;
		case QMP_RESUMED:
			sup_guest_time(s);
			break;
		case QMP_SHUTDOWN:
		case QMP_PANICKED:
			slog_say(s->log, "QEMU: %s",
				 ev == QMP_PANICKED ? "the guest's kernel panicked"
						    : "the machine ends");
			break;
		case QMP_ERROR:
			slog_say(s->log, "QEMU refused a command: %s", text);
			break;
		default:
			break;
		}
		if (r < 0)
			break;
	}
	if (r < 0)
		slog_say(s->log, "QEMU's monitor does not speak QMP; it is ignored");
	conn_flush(c);
}

static void on_qmp_gone(struct conn *c)
{
	(void)c; /* the process is watched by itself */
}

void sup_guest_quit(struct sup *s)
{
	if (s->qemu > 0)
		(void)pidfd_send_signal(s->qemu_pidfd, SIGKILL, NULL, 0);
}

int sup_guest_open(struct sup *s, int ctl_fd, int qmp_fd, struct err *e)
{
	int r;

	s->guest.user = s->qmp.user = s;
	s->guest.on_input = on_input;
	s->guest.on_gone = on_gone;
	s->qmp.on_input = on_qmp_input;
	s->qmp.on_gone = on_qmp_gone;
	r = conn_open(&s->guest, &s->loop, ctl_fd, GUEST_IN, GUEST_OUT);
	if (r < 0)
		return err_errno(e, r, "cannot watch the control wire");
	r = conn_open(&s->qmp, &s->loop, qmp_fd, QMP_LINE_MAX + 4096, 64UL * 1024);
	return r < 0 ? err_errno(e, r, "cannot watch QEMU's monitor") : 0;
}
