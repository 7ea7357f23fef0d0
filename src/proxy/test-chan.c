/* Two plain chans over a socketpair: order, back-pressure, ends. */
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "proxy/chan.h"

enum { BIG = 3 * 1024 * 1024 };

struct end {
	struct chan *c;
	size_t sent, want, got;
	bool ended, broken, stalled;
	unsigned edges;
};

static struct loop loop;

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 7 + i / 251);
}

static void feed(struct end *e)
{
	uint8_t b[10000];

	while (e->sent < e->want) {
		const size_t n = MIN(sizeof(b), e->want - e->sent);
		size_t k;

		for (size_t i = 0; i < n; i++)
			b[i] = byte_at(e->sent + i);
		k = chan_write(e->c, b, n);
		e->sent += k;
		if (k < n)
			return;
	}
	if (e->want)
		chan_shut(e->c);
}

static void edge(void *arg)
{
	struct end *e = arg;
	uint8_t b[5000];
	ssize_t n;

	e->edges++;
	feed(e);
	while (!e->stalled && (n = chan_read(e->c, b, sizeof(b))) != CHAN_WAIT) {
		e->ended |= n == CHAN_END;
		e->broken |= n == CHAN_BROKEN;
		if (n <= 0)
			break;
		for (ssize_t i = 0; i < n; i++)
			check(b[i] == byte_at(e->got + (size_t)i));
		e->got += (size_t)n;
	}
}

static const struct chan_ops ops = { edge };

static void pair(struct end *a, struct end *b)
{
	int fd[2];

	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) == 0);
	*a = *b = (struct end) { 0 };
	a->c = chan_plain(&loop, fd[0], "http/1.1");
	b->c = chan_plain(&loop, fd[1], "h2");
	check(a->c && b->c && streq(chan_alpn(b->c), "h2"));
	chan_owner(a->c, &ops, a);
	chan_owner(b->c, &ops, b);
}

static void round_(void)
{
	(void)uv_run(&loop.uv, UV_RUN_NOWAIT);
}

/* With a reader that stalls until the writer is full. */
static void transfer(void)
{
	struct end a, b;

	pair(&a, &b);
	a.want = BIG;
	b.stalled = true;
	chan_again(a.c);
	for (int i = 0; i < 50; i++)
		round_();
	check(a.sent < BIG && !chan_flushed(a.c) && chan_space(a.c) < CHAN_OUT_MAX && !b.got);
	b.stalled = false;
	chan_again(b.c);
	while (!b.ended)
		(void)uv_run(&loop.uv, UV_RUN_ONCE);
	check(b.got == BIG && !b.broken && !a.ended && chan_flushed(a.c));
	b.want = 5; /* reading goes on after the last byte */
	chan_again(b.c);
	while (!a.ended)
		(void)uv_run(&loop.uv, UV_RUN_ONCE);
	check(a.got == 5);
	(void)chan_free(a.c, false);
	(void)chan_free(b.c, false);
	round_();
}

/* What was written before chan_free() arrives. */
static void parting(void)
{
	struct end a, b;

	pair(&a, &b);
	a.want = 1000;
	feed(&a);
	(void)chan_free(a.c, false);
	while (!b.ended)
		(void)uv_run(&loop.uv, UV_RUN_ONCE);
	check(b.got == 1000);
	(void)chan_free(b.c, true);
	(void)chan_free(NULL, true);
	round_();
}

static void broken(void)
{
	struct end a, b;

	pair(&a, &b);
	(void)chan_free(b.c, true);
	round_();
	for (int i = 0; i < 5 && !a.ended; i++)
		(void)uv_run(&loop.uv, UV_RUN_ONCE);
	check(a.ended && chan_write(a.c, "x", 1) == 1);
	for (int i = 0; i < 5; i++)
		round_();
	check(chan_flushed(a.c) && chan_write(a.c, "x", 1) == 1);
	(void)chan_free(a.c, false);
	round_();
}

int main(void)
{
	check(loop_open(&loop) == 0);
	transfer();
	parting();
	broken();
	return 0;
}
