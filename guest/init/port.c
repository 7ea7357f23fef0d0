/* The control port.
 *
 * The driver of a virtio port copies each write into a buffer of its own and takes all of it or
 * nothing, at most 32 KiB at once; it never waits for the host unless its ring is full. A read gives
 * what the host put into one page. So: fill each write with whole frames, and keep little here, since
 * what is here is also what a small answer has to wait behind. */
#include "guest/init/port.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "io/fd.h"

enum { READS_IN_A_ROW = 16, PAGE = 4096 };

static void nap(long ms)
{
	struct timespec ts = { .tv_nsec = ms * 1000000 };

	(void)nanosleep(&ts, NULL);
}

/* The device name of the port that the host calls "ctl". */
static int find_name(char *dst, size_t max)
{
	DIR *d = opendir("/sys/class/virtio-ports");
	struct dirent *e;
	int r = -ENOENT;

	if (!d)
		return -errno;
	while (r < 0 && (e = readdir(d))) {
		char path[320], name[16] = "";
		_close_ int fd = -1;

		(void)snprintf(path, sizeof(path), "%s/name", e->d_name);
		fd = openat(dirfd(d), path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || fd_read_all(fd, name, sizeof(name) - 1) < 0 || !streq(name, "ctl\n"))
			continue;
		r = snprintf(dst, max, "/dev/%s", e->d_name) < (int)max ? 0 : -ENAMETOOLONG;
	}
	(void)closedir(d);
	return r;
}

int port_open(struct port *p, uint64_t ms, const char **ret_why)
{
	uint64_t end = loop_now() + ms * 1000000;
	char path[320];
	long wait = 1;

	*p = (struct port) { .w = { .fd = -1 },
			     .in = BUF_INIT(PORT_IN_MAX),
			     .ctl = BUF_INIT(PORT_OUT_MAX),
			     .out = BUF_INIT(PORT_OUT_MAX) };
	for (;;) {
		struct pollfd pfd = { .fd = p->w.fd, .events = POLLOUT };

		if (p->w.fd < 0 && find_name(path, sizeof(path)) == 0)
			p->w.fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		pfd.fd = p->w.fd;
		if (p->w.fd >= 0 && poll(&pfd, 1, 0) > 0 && !(pfd.revents & POLLHUP))
			return 0;
		if (loop_now() > end)
			break;
		nap(wait);
		wait = MIN(wait * 2, 20L);
	}
	*ret_why = p->w.fd < 0 ? "there is no virtio port named 'ctl'"
			       : "nobody has opened the host's end of the port 'ctl'";
	return -ETIMEDOUT;
}

static void rearm(struct port *p)
{
	uint32_t want = p->blocked ? EPOLLOUT : 0;

	if (p->out.n + p->ctl.n < PORT_PAUSE)
		want |= EPOLLIN;
	if (!p->loop || want == p->armed)
		return;
	p->armed = want;
	if (loop_rewatch(p->loop, &p->w, want) < 0)
		p->on_lost(p->user, "the port cannot be watched");
}

/* How many bytes of q make up one write: whole frames, as many as fit. */
static size_t whole_frames(const struct buf *q)
{
	const uint8_t *p = buf_data(q);
	size_t n = 0;

	while (n < q->n) {
		struct rd r = rd_init(p + n, q->n - n);
		size_t len = WIRE_HEADER + (size_t)rd_be32(&r);

		if (n && n + len > PORT_WRITE_MAX)
			break;
		n += len;
	}
	return MIN(n, (size_t)PORT_WRITE_MAX);
}

/* One write. False: the driver is full, or there is nothing to write. */
static bool write_some(struct port *p)
{
	struct buf *q = p->mid ? p->mid : p->ctl.n ? &p->ctl : &p->out;
	size_t n = p->mid ? p->mid_left : whole_frames(q);
	ssize_t k;

	if (!n)
		return false;
	k = write(p->w.fd, buf_data(q), n);
	if (k <= 0) {
		p->blocked = true;
		return false;
	}
	buf_consume(q, (size_t)k);
	p->mid_left = n - (size_t)k;
	p->mid = p->mid_left ? q : NULL;
	return true;
}

void port_flush(struct port *p)
{
	while (!p->blocked && write_some(p))
		;
	rearm(p);
}

bool port_drain(struct port *p, uint64_t ms)
{
	uint64_t end = loop_now() + ms * 1000000;

	for (;;) {
		struct pollfd pfd = { .fd = p->w.fd, .events = POLLOUT };

		p->blocked = false;
		while (write_some(p))
			;
		if (!p->ctl.n && !p->out.n)
			return true;
		if (p->w.fd < 0 || loop_now() > end ||
		    (poll(&pfd, 1, 20) > 0 && pfd.revents & POLLHUP))
			return false;
	}
}

uint8_t *port_data_begin(struct port *p)
{
	uint8_t *to = buf_room(&p->out, PORT_WRITE_MAX);

	return to ? to + WIRE_HEADER : NULL;
}

void port_data_end(struct port *p, uint32_t stream, uint8_t chan, size_t n)
{
	uint8_t *to = p->out.p + p->out.off + p->out.n;

	if (!n)
		return;
	wire_header_put(to, stream, WIRE_DATA, chan, 0, (uint32_t)n);
	buf_added(&p->out, WIRE_HEADER + n);
}

/* Hand out the frames that are complete. */
static bool parse(struct port *p)
{
	struct wire_frame f;
	size_t used;
	int ans;

	while ((ans = wire_frame_parse(&f, &used, FROM_HOST, buf_data(&p->in), p->in.n)) ==
	       WIRE_OK) {
		p->on_frame(p->user, &f);
		buf_consume(&p->in, used);
	}
	if (ans == WIRE_AGAIN)
		return true;
	p->on_lost(p->user, "the host sent a frame that is not valid");
	return false;
}

static void take_in(struct port *p)
{
	int i;

	for (i = 0; i < READS_IN_A_ROW && p->out.n + p->ctl.n < PORT_PAUSE; i++) {
		void *to = buf_room(&p->in, PAGE);
		ssize_t k;

		if (!to) {
			p->on_lost(p->user, "no memory for what the host sent");
			return;
		}
		k = read(p->w.fd, to, PAGE);
		if (k <= 0)
			return;
		buf_added(&p->in, (size_t)k);
		if (!parse(p) || k < PAGE)
			return;
	}
}

static void on_event(struct watch *w, uint32_t events)
{
	struct port *p = container_of(w, struct port, w);

	if (events & EPOLLOUT)
		p->blocked = false;
	if (events & EPOLLIN)
		take_in(p);
	if (events & (EPOLLHUP | EPOLLERR))
		p->on_lost(p->user, "the host has closed the control port");
}

int port_watch(struct port *p, struct loop *l)
{
	p->loop = l;
	p->w.fn = on_event;
	p->armed = EPOLLIN;
	return loop_watch(l, &p->w, p->armed);
}
