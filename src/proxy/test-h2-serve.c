/* A server of HTTP/2 made of the front alone, for tools that speak to it from outside (test/proxy/h2spec.py): the descriptor of a
 * listening socket is its argument. What it answers is said by the path: "/echo" gives the request's body back, "/stall" takes
 * nothing of it, all else is answered with the same text. */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "proxy/chan.h"
#include "proxy/xchg.h"

struct xchg {
	const struct front_ops *ops;
	void *s;
	bool echo, stall;
};

static struct loop loop;
static struct watch listener = { .fd = -1 };
static const char text[] = "this is the answer\n";

struct conn {
	struct front *front;
};

static void finish(struct xchg *x)
{
	free(x);
}

static void answer(struct xchg *x, uint16_t status)
{
	struct xhead h = { .status = status };

	check(hfields_add(&h.fields, "content-type", 12, "text/plain", 10) == 0);
	x->ops->answer(x->s, &h);
	hfields_done(&h.fields);
}

static void end(struct xchg *x)
{
	x->ops->end(x->s, NULL);
	finish(x);
}

static void answer_text(struct xchg *x, uint16_t status)
{
	answer(x, status);
	(void)x->ops->data(x->s, (const uint8_t *)text, sizeof(text) - 1);
	x->ops->end(x->s, NULL);
	finish(x);
}

struct xchg *xchg_request(struct front *f, const struct front_ops *ops, void *s, struct xhead *h,
			  bool body)
{
	struct xchg *x = calloc(1, sizeof(*x));

	(void)f;
	check(x);
	*x = (struct xchg) { .ops = ops, .s = s };
	x->echo = !h->status && (streq(h->target, "/echo") || h->protocol[0]);
	x->stall = !h->status && streq(h->target, "/stall");
	if (x->echo)
		answer(x, 200);
	if (x->echo && !body)
		end(x);
	else if (!body)
		answer_text(x, h->status ? h->status : 200);
	xhead_done(h);
	return x;
}

size_t xchg_up(struct xchg *x, const uint8_t *p, size_t n)
{
	if (x->stall)
		return 0;
	return x->echo ? x->ops->data(x->s, p, n) : n;
}

void xchg_up_end(struct xchg *x, struct hfields *trailers)
{
	(void)trailers;
	if (x->echo)
		end(x);
	else
		answer_text(x, 200);
}

void xchg_front_gone(struct xchg *x, enum xchg_fault why)
{
	(void)why;
	finish(x);
}

void xchg_down_room(struct xchg *x)
{
	x->ops->resume(x->s);
}

/* ---- there is no back ---- */

void xchg_answer(struct xchg *x, struct xhead *h)
{
	(void)x;
	(void)h;
	check(false);
}

size_t xchg_down(struct xchg *x, const uint8_t *p, size_t n)
{
	(void)x;
	(void)p;
	return n;
}

void xchg_down_end(struct xchg *x, struct hfields *trailers)
{
	(void)x;
	(void)trailers;
	check(false);
}

void xchg_back_gone(struct xchg *x, enum xchg_fault why, const char *detail)
{
	(void)x;
	(void)why;
	(void)detail;
	check(false);
}

void xchg_up_room(struct xchg *x)
{
	(void)x;
	check(false);
}

/* ---- connections ---- */

static void on_closed(void *conn)
{
	struct conn *c = conn;

	c->front = c->front->free(c->front);
	free(c);
}

static void on_listener(struct watch *w, uint32_t events)
{
	int fd;

	(void)events;
	while ((fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct conn *c = calloc(1, sizeof(*c));
		struct chan *chan = chan_plain(&loop, fd, "h2");

		check(c && chan);
		c->front = front_h2(&loop, chan, c, on_closed, true);
		check(c->front);
	}
}

int main(int argc, char **argv)
{
	uint64_t fd;

	if (argc < 2) /* the tool starts it; alone it has nothing to do */
		return 0;
	check(text_u64(argv[1], 1000, &fd) == 0 && loop_open(&loop) == 0);
	listener.run = on_listener;
	check(loop_add(&loop, &listener, (int)fd, EPOLLIN) == 0);
	return uv_run(&loop.uv, UV_RUN_DEFAULT);
}
