/* Channels.
 *
 * Pipes are watched edge-triggered, which costs two system calls in the life of an outlet instead of
 * two for each time its credit runs out and returns. So each outlet remembers what the last edge said:
 * `readable` until a read comes back short, and `hup` until the end itself is read, since one edge may
 * report both the last bytes and the end. */
#include "guest/init/chan.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "guest/init/die.h"
#include "io/fd.h"

enum {
	FRAMES_A_TURN = 16,         /* then other events are looked at */
	TTY_LAST = 1024 * 1024,     /* most that is read from a terminal after its leader ended */
	TTY_READ_MIN = 1024,        /* a terminal's read that is smaller than this was the last */
	LEFTOVER_READ = 256 * 1024, /* discarded at once */
};

struct leftover {
	struct watch w;
	struct chans *c;
	struct leftover *next;
};

void chans_init(struct chans *c, struct loop *l, struct port *p)
{
	*c = (struct chans) { .loop = l, .port = p };
	c->last = &c->first;
	c->newest = &c->old;
}

/* ---- leftovers ---- */

static void leftover_free(struct leftover *f)
{
	struct chans *c = f->c;
	struct leftover **p;

	for (p = &c->old; *p != f; p = &(*p)->next)
		;
	*p = f->next;
	if (!*p)
		c->newest = p;
	c->n_leftovers--;
	loop_unwatch(c->loop, &f->w);
	f->w.fd = fd_close(f->w.fd);
	free(f);
}

static void on_leftover(struct watch *w, uint32_t events)
{
	struct leftover *f = container_of(w, struct leftover, w);
	static char waste[LEFTOVER_READ];
	ssize_t n = read(w->fd, waste, sizeof(waste));

	(void)events;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		leftover_free(f);
}

/* Keep reading fd, so that those who still write to it are not ended by SIGPIPE. */
static void leftover_add(struct chans *c, int fd)
{
	struct leftover *f = calloc(1, sizeof(*f));

	if (!f) {
		(void)fd_close(fd);
		return;
	}
	*f = (struct leftover) { .w = { .fd = fd, .fn = on_leftover }, .c = c };
	if (loop_watch(c->loop, &f->w, EPOLLIN) < 0) {
		(void)fd_close(fd);
		free(f);
		return;
	}
	*c->newest = f;
	c->newest = &f->next;
	if (++c->n_leftovers > CHAN_LEFTOVERS_MAX)
		leftover_free(c->old);
}

/* ---- outlets ---- */

static bool has_turn(const struct outlet *o)
{
	if (o->w.fd < 0)
		return false;
	if (o->bounded && !o->left)
		return true;
	return o->flow.may_send && (o->readable || o->bounded);
}

static void enqueue(struct outlet *o)
{
	if (o->queued || !has_turn(o))
		return;
	o->queued = true;
	o->next = NULL;
	*o->c->last = o;
	o->c->last = &o->next;
}

static void dequeue(struct outlet *o)
{
	struct outlet **p;

	if (!o->queued)
		return;
	for (p = &o->c->first; *p != o; p = &(*p)->next)
		;
	*p = o->next;
	if (!*p)
		o->c->last = p;
	o->queued = false;
}

static void on_output(struct watch *w, uint32_t events)
{
	struct outlet *o = container_of(w, struct outlet, w);

	o->readable = true;
	if (events & (EPOLLHUP | EPOLLERR))
		o->hup = true;
	enqueue(o);
}

int outlet_open(struct outlet *o, struct chans *c, int fd)
{
	int r;

	o->c = c;
	o->w = (struct watch) { .fd = fd, .fn = on_output };
	o->flow = wire_flow_init();
	r = loop_watch(c->loop, &o->w, EPOLLIN | EPOLLET);
	if (r < 0)
		o->w.fd = fd_close(fd);
	return r;
}

bool outlet_credit(struct outlet *o, uint32_t n)
{
	if (!wire_flow_credit(&o->flow, n))
		return false;
	enqueue(o);
	return true;
}

void outlet_finish(struct outlet *o)
{
	int n = 0;

	if (o->w.fd < 0 || o->bounded)
		return;
	o->bounded = true;
	o->left = TTY_LAST;
	if (!o->tty)
		o->left = ioctl(o->w.fd, FIONREAD, &n) < 0 ? 0 : (size_t)n;
	enqueue(o);
}

static void detach(struct outlet *o, bool at_end)
{
	dequeue(o);
	loop_unwatch(o->c->loop, &o->w);
	if (at_end || o->tty)
		o->w.fd = fd_close(o->w.fd);
	else
		leftover_add(o->c, take_fd(&o->w.fd));
}

void outlet_drop(struct outlet *o)
{
	if (o->w.fd >= 0)
		detach(o, false);
}

/* True if nobody can write to the pipe any more; it is empty. */
static bool no_writers(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && p.revents & POLLHUP && !(p.revents & POLLIN);
}

/* The channel carries no more. May free o. */
static void end(struct outlet *o, bool at_end)
{
	detach(o, at_end);
	die_check(wire_frame_add(&o->c->port->out, o->stream, WIRE_EOF, o->chan, NULL, 0));
	o->on_end(o);
}

/* Read up to max bytes. A terminal gives a page at a time at most, so ask it until it has no more. */
static ssize_t read_output(struct outlet *o, uint8_t *to, size_t max)
{
	ssize_t n, all = 0;

	do {
		n = read(o->w.fd, to + all, max - (size_t)all);
		if (n > 0)
			all += n;
	} while (o->tty && n >= TTY_READ_MIN && (size_t)all < max);
	return all ? all : n;
}

/* One frame from o. May end the channel and free o. */
static void send_one(struct outlet *o)
{
	size_t max = MIN((size_t)PORT_DATA_MAX, (size_t)o->flow.may_send);
	struct port *p = o->c->port;
	uint8_t *to;
	ssize_t n;

	if (o->bounded)
		max = MIN(max, o->left);
	if (!max) {
		end(o, !o->tty && no_writers(o->w.fd));
		return;
	}
	to = port_data_begin(p);
	if (!to)
		die_check(-ENOMEM);
	n = read_output(o, to, max);
	if (n > 0) {
		port_data_end(p, o->stream, o->chan, (size_t)n);
		o->flow.may_send -= (uint32_t)n;
		o->left -= o->bounded ? (size_t)n : 0;
		o->readable = o->hup || o->tty || (size_t)n == max;
		enqueue(o);
		return;
	}
	/* A terminal whose other end is closed may be opened again while its command lives. */
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR && !o->tty)) {
		end(o, true);
		return;
	}
	o->readable = o->hup = false;
	if (o->bounded)
		end(o, false);
}

bool chans_pump(struct chans *c)
{
	int i;

	for (i = 0; c->first && i < FRAMES_A_TURN; i++) {
		struct outlet *o = c->first;

		if (!port_wants_data(c->port))
			port_flush(c->port);
		if (!port_wants_data(c->port))
			return false;
		dequeue(o);
		send_one(o);
	}
	port_flush(c->port);
	return c->first && !c->port->blocked;
}

/* ---- inlets ---- */

static void give_credit(struct inlet *in, size_t n)
{
	uint32_t credit = wire_flow_passed(&in->flow, (uint32_t)n, false);

	if (credit)
		die_check(wire_u32_add(&in->c->port->ctl, in->stream, WIRE_CREDIT, 0, credit));
}

void inlet_close(struct inlet *in)
{
	if (!in->c)
		return;
	if (in->waiting)
		loop_unwatch(in->c->loop, &in->w);
	in->waiting = false;
	in->w.fd = fd_close(in->w.fd);
	if (in->pending.n)
		give_credit(in, in->pending.n);
	buf_done(&in->pending);
}

/* Write what the command takes; the rest stays. Bytes written, or -errno when it takes no more. */
static ssize_t write_input(struct inlet *in, const void *p, size_t n)
{
	ssize_t k = write(in->w.fd, p, n);

	if (k >= 0)
		return k;
	return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

/* A terminal has no end that could be closed: type its end-of-file character instead. */
static int type_eof(struct inlet *in)
{
	struct termios t;

	if (tcgetattr(in->w.fd, &t) < 0)
		return -errno;
	return buf_add(&in->pending, &t.c_cc[VEOF], 1);
}

static void wait_for_room(struct inlet *in)
{
	bool want = in->pending.n > 0;

	if (want == in->waiting)
		return;
	in->waiting = want;
	if (!want)
		loop_unwatch(in->c->loop, &in->w);
	else if (loop_watch(in->c->loop, &in->w, EPOLLOUT) < 0)
		inlet_close(in);
}

static void push(struct inlet *in)
{
	ssize_t k = 0;

	if (in->pending.n)
		k = write_input(in, buf_data(&in->pending), in->pending.n);
	if (k < 0) {
		inlet_close(in);
		return;
	}
	buf_consume(&in->pending, (size_t)k);
	give_credit(in, (size_t)k);
	if (!in->pending.n && !in->open && !in->tty)
		inlet_close(in);
	else
		wait_for_room(in);
}

static void on_room(struct watch *w, uint32_t events)
{
	(void)events;
	push(container_of(w, struct inlet, w));
}

void inlet_open(struct inlet *in, struct chans *c, int fd)
{
	in->c = c;
	in->w = (struct watch) { .fd = fd, .fn = on_room };
	in->flow = wire_flow_init();
	in->open = true;
	buf_init(&in->pending, WIRE_WINDOW + 16);
}

bool inlet_data(struct inlet *in, const void *p, size_t n)
{
	ssize_t k = 0;

	if (!in->c)
		return true; /* a command without input */
	if (!wire_flow_came(&in->flow, (uint32_t)n))
		return false;
	if (in->w.fd < 0 || !in->open) {
		give_credit(in, n);
		return true;
	}
	if (!in->pending.n)
		k = write_input(in, p, n);
	if (k < 0) {
		inlet_close(in);
		give_credit(in, n);
		return true;
	}
	if ((size_t)k < n)
		die_check(buf_add(&in->pending, (const uint8_t *)p + k, n - (size_t)k));
	give_credit(in, (size_t)k);
	wait_for_room(in);
	return true;
}

void inlet_eof(struct inlet *in)
{
	if (!in->c || in->w.fd < 0 || !in->open)
		return;
	in->open = false;
	if (in->tty && type_eof(in) < 0) {
		inlet_close(in);
		return;
	}
	push(in);
}
