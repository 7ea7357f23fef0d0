/* The clock is set forward at once, and backward at once if it is off by more than half a second.
 * A smaller step backward is made by letting it run a little slower, since programs (make, databases)
 * do not expect time to return. */
#include "guest/init/clock.h"

#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "guest/init/die.h"
#include "io/fd.h"

enum {
	ASK_EVERY_MS = 600 * 1000,
	ASK_AT_MOST_MS = 1000,
	NS_PER_US = 1000,
};

#define SECOND    1000000000LL
#define STEP_BACK (SECOND / 2)
#define TOLERANCE (SECOND / 1000) /* the way of a frame takes longer than that */

static void ask(struct clock *c)
{
	uint64_t now = loop_now();

	if (c->asked && now - c->asked < (uint64_t)ASK_AT_MOST_MS * 1000000)
		return;
	c->asked = now;
	die_check(wire_empty_add(&c->port->ctl, 0, WIRE_TIME_ASK));
}

static void on_regular(struct timer *t)
{
	struct clock *c = container_of(t, struct clock, regular);

	ask(c);
	loop_after(c->loop, &c->regular, ASK_EVERY_MS);
}

/* A timer in the far future that ends with ECANCELED when the clock is set. */
static void arm(struct clock *c)
{
	struct itimerspec far = { .it_value = { .tv_sec = 1LL << 40 } };

	(void)timerfd_settime(c->w.fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far, NULL);
}

/* True if the clock was set since the last time. */
static bool was_set(struct clock *c)
{
	uint64_t n;

	if (read(c->w.fd, &n, sizeof(n)) < 0 && errno != ECANCELED)
		return false;
	arm(c);
	return true;
}

static void on_change(struct watch *w, uint32_t events)
{
	struct clock *c = container_of(w, struct clock, w);

	(void)events;
	if (!was_set(c))
		return;
	if (c->asked && loop_now() - c->asked < (uint64_t)ASK_AT_MOST_MS * 1000000)
		loop_after(c->loop, &c->regular, ASK_AT_MOST_MS); /* somebody sets it in a row */
	else
		ask(c);
}

void clock_start(struct clock *c, struct loop *l, struct port *p)
{
	int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);

	c->loop = l;
	c->port = p;
	c->w = (struct watch) { .fd = fd, .fn = on_change };
	c->regular.fn = on_regular;
	loop_after(l, &c->regular, ASK_EVERY_MS);
	if (fd < 0)
		return;
	arm(c);
	if (loop_watch(l, &c->w, EPOLLIN) < 0)
		c->w.fd = fd_close(fd);
}

void clock_set(struct clock *c, uint64_t realtime_ns)
{
	int64_t off = (int64_t)(realtime_ns - fd_real_ns());
	struct timespec ts = { .tv_sec = (time_t)(realtime_ns / SECOND),
			       .tv_nsec = (long)(realtime_ns % SECOND) };
	struct timeval slew = { 0 };

	if (off > TOLERANCE || off < -STEP_BACK) {
		if (clock_settime(CLOCK_REALTIME, &ts) < 0)
			die_note("cannot set the clock: %s", err_text(errno));
		(void)was_set(c); /* by us */
	} else {
		slew.tv_usec = (suseconds_t)(off / NS_PER_US);
		if (slew.tv_usec < 0) { /* seconds may be negative, microseconds may not */
			slew.tv_sec = -1;
			slew.tv_usec += 1000000;
		}
		(void)adjtime(&slew, NULL);
	}
}
