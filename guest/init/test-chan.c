/* Channels between pipes and a port that is a socket pair. */
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "guest/init/chan.h"
#include "io/fd.h"

enum { STREAMS = 8 };

static struct {
	struct loop loop;
	struct port port;
	struct chans chans;
	int host; /* our end of the port */
	struct buf got;
	size_t bytes[STREAMS][3];
	uint32_t credit[STREAMS];
	bool eof[STREAMS][3];
	unsigned ends;
	int first; /* stream of the first DATA since it was cleared */
} t;

static void on_end(struct outlet *o)
{
	(void)o;
	t.ends++;
}

static void on_frame(void *user, const struct wire_frame *f)
{
	(void)user;
	(void)f;
	check(!"the host says nothing here");
}

static void on_lost(void *user, const char *why)
{
	(void)user;
	fprintf(stderr, "%s\n", why);
	abort();
}

static void setup(void)
{
	int p[2];

	memset(&t, 0, sizeof(t));
	buf_init(&t.got, 16 * 1024 * 1024);
	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, p) == 0);
	t.host = p[0];
	check(loop_init(&t.loop) == 0);
	t.port = (struct port) { .w = { .fd = p[1] },
				 .in = BUF_INIT(PORT_IN_MAX),
				 .ctl = BUF_INIT(PORT_OUT_MAX),
				 .out = BUF_INIT(PORT_OUT_MAX),
				 .on_frame = on_frame,
				 .on_lost = on_lost };
	check(port_watch(&t.port, &t.loop) == 0);
	chans_init(&t.chans, &t.loop, &t.port);
}

static void teardown(void)
{
	loop_unwatch(&t.loop, &t.port.w);
	(void)close(t.port.w.fd);
	(void)close(t.host);
	(void)close(t.loop.epfd);
	buf_done(&t.port.in);
	buf_done(&t.port.ctl);
	buf_done(&t.port.out);
	buf_done(&t.got);
}

static void take(const struct wire_frame *f)
{
	check(f->stream < STREAMS && f->chan < 3);
	if (f->type == WIRE_DATA) {
		check(!t.eof[f->stream][f->chan]);
		t.bytes[f->stream][f->chan] += f->len;
		t.first = t.first ? t.first : (int)f->stream;
	} else if (f->type == WIRE_EOF) {
		t.eof[f->stream][f->chan] = true;
	} else if (f->type == WIRE_CREDIT) {
		uint32_t n;

		check(wire_u32_parse(&n, f) == WIRE_OK);
		t.credit[f->stream] += n;
	}
}

/* The host reads what there is. */
static void host_reads(void)
{
	struct wire_frame f;
	size_t used;
	ssize_t n;

	do {
		void *to = buf_room(&t.got, 65536);

		check(to);
		n = read(t.host, to, 65536);
		if (n > 0)
			buf_added(&t.got, (size_t)n);
	} while (n > 0);
	while (wire_frame_parse(&f, &used, FROM_GUEST, buf_data(&t.got), t.got.n) == WIRE_OK) {
		take(&f);
		buf_consume(&t.got, used);
	}
}

static void turns(int n, bool read_too)
{
	while (n--) {
		check(loop_turn(&t.loop, true) == 0);
		(void)chans_pump(&t.chans);
		if (read_too)
			host_reads();
	}
}

/* An outlet on the reading end of a new pipe; the writing end, which does not block. */
static int new_outlet(struct outlet *o, uint32_t stream)
{
	int p[2];

	check(pipe2(p, O_CLOEXEC | O_NONBLOCK) == 0);
	(void)fcntl(p[1], F_SETPIPE_SZ, 1024 * 1024);
	*o = (struct outlet) { .stream = stream, .chan = 1, .on_end = on_end };
	check(outlet_open(o, &t.chans, p[0]) == 0);
	return p[1];
}

static void fill(int fd, size_t n)
{
	static char zeros[65536];

	while (n) {
		ssize_t k = write(fd, zeros, MIN(n, sizeof(zeros)));

		check(k > 0);
		n -= (size_t)k;
	}
}

static void until_the_end(void)
{
	struct outlet o;
	int w;

	setup();
	w = new_outlet(&o, 1);
	fill(w, 100000);
	(void)close(w);
	turns(20, true);
	check(t.bytes[1][1] == 100000 && t.eof[1][1] && t.ends == 1 && o.w.fd == -1);
	teardown();
}

/* Without credit nothing more is read, and another stream goes on. */
static void credit_holds(void)
{
	struct outlet a, b;
	int wa, wb;

	setup();
	wa = new_outlet(&a, 1);
	wb = new_outlet(&b, 2);
	fill(wa, 500000);
	turns(30, true);
	check(t.bytes[1][1] == WIRE_WINDOW);
	fill(wb, 1000);
	turns(2, true);
	check(t.bytes[2][1] == 1000 && t.bytes[1][1] == WIRE_WINDOW);
	check(outlet_credit(&a, 1000) && !outlet_credit(&a, WIRE_WINDOW));
	turns(2, true);
	check(t.bytes[1][1] == WIRE_WINDOW + 1000);
	check(outlet_credit(&a, WIRE_WINDOW));
	turns(30, true);
	check(t.bytes[1][1] == 500000);
	outlet_drop(&a);
	outlet_drop(&b);
	(void)close(wa);
	(void)close(wb);
	turns(3, true);
	check(!t.chans.n_leftovers && !t.ends && !t.eof[1][1]);
	teardown();
}

/* The host does not read the port: what is stored stays small. */
static void port_is_full(void)
{
	struct outlet o[4];
	int w[4], i;

	setup();
	for (i = 0; i < 4; i++) {
		w[i] = new_outlet(&o[i], (uint32_t)i + 1);
		fill(w[i], 200000);
		(void)close(w[i]);
	}
	turns(50, false);
	check(t.port.blocked && t.port.out.n < (size_t)2 * PORT_WRITE_MAX);
	turns(100, true);
	for (i = 0; i < 4; i++)
		check(t.bytes[i + 1][1] == 200000 && t.eof[i + 1][1]);
	teardown();
}

/* A small output does not wait behind all of a large one. */
static void in_turn(void)
{
	struct outlet a, b;
	int wa, wb;

	setup();
	wa = new_outlet(&a, 1);
	wb = new_outlet(&b, 2);
	fill(wa, 250000);
	fill(wb, 10);
	check(loop_turn(&t.loop, true) == 0);
	(void)chans_pump(&t.chans);
	host_reads();
	check(t.bytes[2][1] == 10);
	outlet_drop(&a);
	outlet_drop(&b);
	(void)close(wa);
	(void)close(wb);
	turns(3, true);
	teardown();
}

/* The command has ended, and a child of it keeps the pipe open. */
static void finish_with_writers(void)
{
	struct outlet o;
	int w;

	setup();
	w = new_outlet(&o, 1);
	fill(w, 300000);
	outlet_finish(&o);
	fill(w, 5000);
	turns(20, true);
	check(!t.ends && t.bytes[1][1] == WIRE_WINDOW);
	check(outlet_credit(&o, WIRE_WINDOW));
	turns(20, true);
	check(t.ends == 1 && t.eof[1][1] && t.bytes[1][1] == 300000);
	check(t.chans.n_leftovers == 1);
	fill(w, 900000); /* nobody is ended by SIGPIPE */
	turns(10, true);
	fill(w, 900000);
	(void)close(w);
	turns(10, true);
	check(!t.chans.n_leftovers && t.bytes[1][1] == 300000);
	teardown();
}

static void leftovers_are_bounded(void)
{
	static int w[CHAN_LEFTOVERS_MAX + 10];
	size_t i;

	setup();
	for (i = 0; i < ARRAY_SIZE(w); i++) {
		struct outlet o;

		w[i] = new_outlet(&o, 1);
		outlet_drop(&o);
	}
	check(t.chans.n_leftovers == CHAN_LEFTOVERS_MAX);
	check(write(w[0], "x", 1) < 0 && errno == EPIPE);
	check(write(w[10], "x", 1) == 1);
	for (i = 0; i < ARRAY_SIZE(w); i++)
		(void)close(w[i]);
	turns(20, true);
	check(!t.chans.n_leftovers);
	teardown();
}

static void new_inlet(struct inlet *in, int *ret_read)
{
	int p[2];

	check(pipe2(p, O_CLOEXEC | O_NONBLOCK) == 0);
	*in = (struct inlet) { .stream = 3 };
	inlet_open(in, &t.chans, p[1]);
	*ret_read = p[0];
}

/* A command that does not read gets what fits and a window; then the host has no credit. */
static void input_waits(void)
{
	static char data[WIRE_WINDOW];
	size_t got = 0;
	struct inlet in;
	ssize_t n;
	int r, i;

	setup();
	new_inlet(&in, &r);
	check(inlet_data(&in, data, sizeof(data)));
	turns(3, true);
	check(t.credit[3] == 65536); /* what the pipe took */
	check(!inlet_data(&in, data, sizeof(data)));
	check(inlet_data(&in, data, 65536));
	inlet_eof(&in);
	for (i = 0; i < 100; i++) {
		while ((n = read(r, data, sizeof(data))) > 0)
			got += (size_t)n;
		turns(1, true);
	}
	check(got == WIRE_WINDOW + 65536 && n == 0 && in.w.fd == -1);
	check(t.credit[3] == WIRE_WINDOW + 65536);
	inlet_close(&in);
	(void)close(r);
	teardown();
}

/* A command that closed its input: everything is dropped, and credit given. */
static void input_is_closed(void)
{
	static char data[65536];
	struct inlet in;
	int r, i;

	setup();
	new_inlet(&in, &r);
	(void)close(r);
	for (i = 0; i < 20; i++)
		check(inlet_data(&in, data, sizeof(data)));
	turns(2, true);
	check(t.credit[3] == 20 * sizeof(data));
	inlet_eof(&in);
	inlet_close(&in);
	teardown();
}

int main(void)
{
	(void)signal(SIGPIPE, SIG_IGN);
	until_the_end();
	credit_holds();
	port_is_full();
	in_turn();
	finish_with_writers();
	leftovers_are_bounded();
	input_waits();
	input_is_closed();
	return 0;
}
