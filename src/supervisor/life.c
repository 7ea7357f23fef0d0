/* The life of a sandbox, as a table of states and events.
 *
 * A supervisor lives for one run of one machine: STARTING when QEMU has been started, RUNNING when the
 * guest said READY, STOPPING when it was asked to end, GONE when QEMU has been reaped. A boot that hangs is not
 * repeated here, since by then this process can start nothing any more (seal.c): it ends with a word to the
 * command that started it, and that starts another.
 *
 * An empty cell means: no meaning here; log it and stay. */
#include <stdarg.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "io/fd.h"
#include "supervisor/net.h"
#include "supervisor/share.h"
#include "supervisor/sup.h"

typedef enum wire_state step_fn(struct sup *s);

#define X(n) #n,
static const char *const event_names[] = { SUP_EVENTS(X) };
#undef X

enum { STARVED_FACTOR = 6, GRACE_MS = 3000 };

void sup_reason(struct sup *s, const char *fmt, ...)
{
	va_list ap;

	if (s->reason[0])
		return; /* the first cause is the cause */
	va_start(ap, fmt);
	(void)vsnprintf(s->reason, sizeof(s->reason), fmt, ap);
	va_end(ap);
	slog_say(s->log, "%s", s->reason);
}

static void on_deadline(uv_timer_t *t)
{
	sup_event(t->data, EV_DEADLINE);
}

static void on_idle(uv_timer_t *t)
{
	sup_event(t->data, EV_IDLE);
}

void sup_use_changed(struct sup *s)
{
	if (s->state != STATE_RUNNING || !s->order.idle_ms || s->n_streams > sup_jobs_startup(s))
		(void)uv_timer_stop(&s->idle);
	else
		(void)uv_timer_start(&s->idle, on_idle, s->order.idle_ms, 0);
}

static void tell_starter(struct sup *s, char kind, const char *text)
{
	char line[300];
	int n = snprintf(line, sizeof(line), "%c%s\n", kind, text);

	if (s->ready_fd < 0)
		return;
	if (n > 0 && fd_write_all(s->ready_fd, line, MIN((size_t)n, sizeof(line) - 1)) < 0)
		slog_say(s->log, "the command that started us is gone");
	s->ready_fd = fd_close(s->ready_fd);
}

static void on_closed_long(uv_timer_t *t)
{
	struct sup *s = t->data;

	sup_reason(s, "QEMU closed the control wire and did not end");
	sup_event(s, EV_WIRE_BROKEN);
}

void sup_life_wire_closed(struct sup *s)
{
	if (s->state == STATE_RUNNING)
		(void)uv_timer_start(&s->deadline, on_closed_long, GRACE_MS, 0);
}

/* ---- steps: what happens, and the state that follows ---- */

static enum wire_state ready(struct sup *s)
{
	(void)uv_timer_stop(&s->deadline);
	return STATE_RUNNING;
}

static enum wire_state kill_it(struct sup *s)
{
	sup_guest_quit(s);
	(void)uv_timer_stop(&s->deadline);
	return STATE_STOPPING;
}

static enum wire_state idle(struct sup *s)
{
	char t[32];

	sup_reason(s, "stopped after %s without use", text_from_ms(t, sizeof(t), s->order.idle_ms));
	s->stop_ms = (uint32_t)s->order.stop_ms;
	sup_guest_shutdown(s);
	(void)uv_timer_start(&s->deadline, on_deadline, s->stop_ms + GRACE_MS, 0);
	return STATE_STOPPING;
}

/* Orderly, as far as it goes: what waits for the file server is ended with the guest's own means. */
static enum wire_state ask(struct sup *s)
{
	if (!s->stop_ms)
		s->stop_ms = (uint32_t)s->order.stop_ms;
	sup_guest_shutdown(s);
	(void)uv_timer_start(&s->deadline, on_deadline, s->stop_ms + GRACE_MS, 0);
	return STATE_STOPPING;
}

static uint64_t cpu_ms(pid_t pid)
{
	struct timespec ts;
	clockid_t id;

	if (clock_getcpuclockid(pid, &id) != 0 || clock_gettime(id, &ts) < 0)
		return UINT64_MAX / 2;
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* A boot that has had its time is hung, unless it has not had the processor either: on a loaded machine
 * many guests boot at once, and patience is right as long as nobody spins. */
static enum wire_state late(struct sup *s)
{
	uint64_t wall = (fd_now_ns() - s->started_ns) / 1000000;

	if (cpu_ms(s->qemu) < s->order.boot_ms / 2 && wall < s->order.boot_ms * STARVED_FACTOR) {
		(void)uv_timer_start(&s->deadline, on_deadline, 1000, 0);
		return STATE_STARTING;
	}
	s->hung = true;
	sup_reason(s, "the guest did not come up within %llu s (see 'bac logs %s')",
		   (unsigned long long)(wall / 1000), s->order.name);
	return kill_it(s);
}

static enum wire_state gone(struct sup *s)
{
	(void)uv_timer_stop(&s->deadline);
	return STATE_GONE;
}

static step_fn *const step[STATE_N][EV_N] = {
	[STATE_STARTING] = { [EV_READY] = ready,
			     [EV_FAIL] = kill_it,
			     [EV_STOP] = kill_it,
			     [EV_STOP_NOW] = kill_it,
			     [EV_SHARE_GONE] = kill_it,
			     [EV_NET_GONE] = kill_it,
			     [EV_WIRE_BROKEN] = kill_it,
			     [EV_DEADLINE] = late,
			     [EV_QEMU_GONE] = gone },
	[STATE_RUNNING] = { [EV_FAIL] = kill_it,
			    [EV_STOP] = ask,
			    [EV_STOP_NOW] = kill_it,
			    [EV_IDLE] = idle,
			    [EV_SHARE_GONE] = ask,
			    [EV_NET_GONE] = ask,
			    [EV_WIRE_BROKEN] = kill_it,
			    [EV_QEMU_GONE] = gone },
	[STATE_STOPPING] = { [EV_FAIL] = kill_it,
			     [EV_STOP_NOW] = kill_it,
			     [EV_WIRE_BROKEN] = kill_it,
			     [EV_DEADLINE] = kill_it,
			     [EV_QEMU_GONE] = gone },
	[STATE_GONE] = { 0 },
};

/* run.json: what the next command reads when we are gone. Written in place: a torn one reads as "ended
 * without a word", which is then true enough. */
static void write_run(struct sup *s)
{
	char text[768];
	int n;

	if (s->state == STATE_GONE)
		n = snprintf(text, sizeof(text),
			     "{\"state\": \"stopped\", \"clean\": %s, \"at\": %llu, \"reason\": "
			     "\"%s\"}\n",
			     s->clean ? "true" : "false",
			     (unsigned long long)(fd_real_ns() / 1000000000), s->reason);
	else
		n = snprintf(text, sizeof(text),
			     "{\"state\": \"running\", \"pid\": %ld, \"at\": %llu}\n",
			     (long)getpid(), (unsigned long long)(s->started_real_ns / 1000000000));
	if (ftruncate(s->run_json, 0) < 0 || pwrite(s->run_json, text, (size_t)n, 0) != n)
		slog_say(s->log, "cannot write run.json: %s", err_text(errno));
}

static void clean_reason(struct sup *s)
{
	char *p;

	for (p = s->reason; *p; p++)
		if (*p == '"' || *p == '\\')
			*p = '\'';
}

static void close_handle(uv_handle_t *h, void *arg)
{
	(void)arg;
	if (!uv_is_closing(h))
		uv_close(h, NULL);
}

static void finish(struct sup *s)
{
	sup_share_end(s);
	sup_net_end(s);
	sup_door_close(s);
	conn_close(&s->guest);
	conn_close(&s->qmp);
	uv_walk(&s->loop, close_handle, NULL);
}

static void entered(struct sup *s)
{
	switch (s->state) {
	case STATE_RUNNING:
		tell_starter(s, 'R', s->note);
		sup_use_changed(s);
		break;
	case STATE_GONE:
		clean_reason(s);
		sup_streams_all_gone(s);
		write_run(s);
		tell_starter(s, s->hung ? 'H' : 'E', s->reason);
		break;
	default:
		(void)uv_timer_stop(&s->idle);
	}
	sup_door_settle(s);
	if (s->state == STATE_GONE)
		finish(s);
}

void sup_event(struct sup *s, enum sup_event ev)
{
	step_fn *fn = step[s->state][ev];
	enum wire_state before = s->state;

	if (!fn) {
		slog_say(s->log, "ignored %s in state %s", event_names[ev],
			 wire_state_name((uint8_t)s->state));
		return;
	}
	s->state = fn(s);
	if (s->state != before)
		entered(s);
}

/* ---- what the kernel tells us ---- */

static void say_how_it_ended(struct sup *s, int status)
{
	/* An emulated kernel may die in silence, and QEMU end with status 0: as good as a hang. */
	if (s->state == STATE_STARTING && !s->reason[0])
		s->hung = true;
	if (WIFSIGNALED(status) && s->state == STATE_RUNNING)
		sup_reason(s, "QEMU was killed by signal %d (%s)", WTERMSIG(status),
			   WTERMSIG(status) == SIGKILL ? "out of memory, or by somebody"
						       : strsignal(WTERMSIG(status)));
	else if (s->state == STATE_STARTING)
		sup_reason(s, "QEMU ended before the guest was up (see 'bac logs %s')",
			   s->order.name);
	else if (s->clean)
		sup_reason(s, "the guest powered off");
	else
		sup_reason(s, "QEMU ended (status %d)",
			   WIFEXITED(status) ? WEXITSTATUS(status) : 0);
}

static void on_sigchld(uv_signal_t *h, int signo)
{
	struct sup *s = h->data;
	int status;
	pid_t pid;

	(void)signo;
	(void)sup_share_reap(s);
	(void)sup_net_reap(s);
	while (s->qemu > 0 &&
	       (pid = waitpid(s->qemu, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
		if (WIFCONTINUED(status)) {
			sup_guest_time(s); /* it slept, and its clock may have */
			continue;
		}
		if (WIFSTOPPED(status))
			continue;
		say_how_it_ended(s, status);
		s->qemu = -1;
		sup_event(s, EV_QEMU_GONE);
	}
}

static void on_sigterm(uv_signal_t *h, int signo)
{
	(void)signo;
	sup_reason(h->data, "stopped by the system (SIGTERM)");
	sup_event(h->data, EV_STOP);
}

/* A timer on the wall clock that never rings, but is cancelled by the kernel whenever that clock is set or the
 * machine wakes up: timerfd_create(2), TFD_TIMER_CANCEL_ON_SET. No polling. */
static int arm_clock(struct sup *s)
{
	struct itimerspec far = { .it_value.tv_sec = (time_t)1 << 40 };

	return timerfd_settime(s->clock_fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far,
			       NULL);
}

static void on_clock_jump(uv_poll_t *p, int status, int events)
{
	struct sup *s = p->data;
	uint64_t n;

	(void)status;
	(void)events;
	if (read(s->clock_fd, &n, sizeof(n)) < 0 && errno == ECANCELED)
		sup_guest_time(s);
	(void)arm_clock(s);
}

static void on_console(uv_poll_t *p, int status, int events)
{
	struct sup *s = p->data;
	char bytes[4096];
	ssize_t n;

	(void)status;
	(void)events;
	n = read(s->console_fd, bytes, sizeof(bytes));
	if (n > 0)
		slog_bytes(s->log, &s->console_carry, "console", bytes, (size_t)n);
	else if (n == 0 || errno != EAGAIN)
		(void)uv_poll_stop(p);
}

static int start_polls(struct sup *s)
{
	int r = 0;

	s->clock_fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->clock_fd >= 0 && arm_clock(s) == 0) {
		r = uv_poll_init(&s->loop, &s->clock_jump, s->clock_fd);
		if (r == 0)
			r = uv_poll_start(&s->clock_jump, UV_READABLE, on_clock_jump);
	}
	if (r == 0)
		r = uv_poll_init(&s->loop, &s->console, s->console_fd);
	return r < 0 ? r : uv_poll_start(&s->console, UV_READABLE, on_console);
}

static int start_signals(struct sup *s)
{
	int r = uv_signal_init(&s->loop, &s->sigchld);

	if (r == 0)
		r = uv_signal_start(&s->sigchld, on_sigchld, SIGCHLD);
	if (r == 0)
		r = uv_signal_init(&s->loop, &s->sigterm);
	return r < 0 ? r : uv_signal_start(&s->sigterm, on_sigterm, SIGTERM);
}

int sup_life_start(struct sup *s, struct err *e)
{
	int r;

	s->sigchld.data = s->sigterm.data = s->deadline.data = s->idle.data = s;
	s->clock_jump.data = s->console.data = s;
	(void)uv_timer_init(&s->loop, &s->deadline);
	(void)uv_timer_init(&s->loop, &s->idle);
	r = start_signals(s);
	return r < 0 ? err_errno(e, r, "cannot watch for signals") : 0;
}

int sup_life_watch(struct sup *s, struct err *e)
{
	int r = start_polls(s);

	if (r < 0)
		return err_errno(e, r, "cannot watch QEMU");
	(void)uv_timer_start(&s->deadline, on_deadline, s->order.boot_ms, 0);
	write_run(s);
	return 0;
}
