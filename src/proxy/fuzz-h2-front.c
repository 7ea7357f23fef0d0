/* Any bytes as a client of the front, and an exchange that does anything an exchange may do. The first 4 bytes are the dice's; the fifth says
 * whether a preface and SETTINGS go ahead. What must hold: nobody speaks of what is over, all that began ends, and what is held
 * stays within its bounds. */
#include "proxy/h2-fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

enum { LIVE_MAX = 256 };

struct xchg {
	const struct front_ops *ops;
	void *s;
	bool body, up_over, answered, over, full;
};

static struct loop loop;
static struct front *front;
static struct xchg *live[LIVE_MAX];
static size_t n_live;

static void over(struct xchg *x)
{
	check(!x->over);
	x->over = true;
}

static void act_answer(struct xchg *x)
{
	static const uint16_t statuses[] = { 100, 103, 200, 204, 304, 404, 500, 101 };
	struct xhead h = { .status = statuses[dice(8)] };

	h.no_body = h.status == 204 || h.status == 304 || !dice(4);
	h.has_length = !dice(3);
	h.length = dice(1000);
	fuzz_fields(&h.fields);
	if (!x->answered)
		x->ops->answer(x->s, &h);
	x->answered |= h.status >= 200;
	hfields_done(&h.fields);
}

static void act_data(struct xchg *x)
{
	static const uint8_t bytes[XCHG_HOLD_MAX];
	const size_t n = dice(sizeof(bytes));

	if (x->answered)
		x->full = x->ops->data(x->s, bytes, n) < n;
}

static void act_end(struct xchg *x)
{
	struct hfields f = { 0 };

	fuzz_fields(&f);
	over(x);
	x->ops->end(x->s, f.n ? &f : NULL);
	hfields_done(&f);
}

static void act_fail(struct xchg *x)
{
	over(x);
	x->ops->fail(x->s, (enum xchg_fault)(1 + dice(4)));
}

static void act_resume(struct xchg *x)
{
	x->ops->resume(x->s);
}

static void act(struct xchg *x)
{
	static void (*const acts[])(struct xchg * x) = { act_answer, act_data,   act_data,  act_end,
							 act_fail,   act_resume, act_resume };

	if (!x->over)
		acts[dice(ARRAY_SIZE(acts))](x);
}

static size_t take(struct xchg *x, size_t n)
{
	check(!x->over);
	if (!dice(6))
		act(x);
	return x->over ? n : dice(3) ? n : dice((uint32_t)n + 1);
}

struct xchg *xchg_request(struct front *f, const struct front_ops *ops, void *s, struct xhead *h,
			  bool body)
{
	struct xchg *x = !dice(20) || n_live == LIVE_MAX ? NULL : calloc(1, sizeof(*x));

	check(f == front && h->target);
	check(h->fields.n <= HTTP_FIELDS_MAX && h->fields.bytes <= HTTP_HEAD_MAX);
	check(h->status || (h->method[0] && h->host.kind != HOST_NONE));
	check(!body || !h->no_body);
	if (!x)
		return NULL;
	*x = (struct xchg) { .ops = ops, .s = s, .body = body, .up_over = !body };
	live[n_live++] = x;
	xhead_done(h);
	if (!dice(3))
		act(x);
	if (!dice(3))
		act(x);
	return x;
}

size_t xchg_up(struct xchg *x, const uint8_t *p, size_t n)
{
	check(p && n && !x->up_over);
	return take(x, n);
}

void xchg_up_end(struct xchg *x, struct hfields *trailers)
{
	check(!x->over && !x->up_over && (!trailers || trailers->n));
	x->up_over = true;
	if (!dice(2))
		act(x);
}

void xchg_front_gone(struct xchg *x, enum xchg_fault why)
{
	check(why);
	over(x);
}

void xchg_down_room(struct xchg *x)
{
	check(!x->over);
	act(x);
}

/* ---- not of a front ---- */

void xchg_answer(struct xchg *x, struct xhead *h)
{
	check(!x && !h);
}

size_t xchg_down(struct xchg *x, const uint8_t *p, size_t n)
{
	check(!x && !p);
	return n;
}

void xchg_down_end(struct xchg *x, struct hfields *trailers)
{
	check(!x && !trailers);
}

void xchg_back_gone(struct xchg *x, enum xchg_fault why, const char *detail)
{
	check(!x && !why && !detail);
}

void xchg_up_room(struct xchg *x)
{
	check(!x);
}

/* ---- rounds ---- */

static void closed(void *conn)
{
	check(conn == &live);
	front = front->free(front);
}

static void bounds(void)
{
	const struct h2 *h = fuzz_chan.arg;
	size_t in = 0, out = 0;

	for (const struct h2_stream *s = h->streams; s; s = s->next) {
		in += s->in.n;
		out += s->out.n;
		check(s->in.n <= H2_FRONT_WINDOW && s->out.n <= H2_OUT_MAX);
	}
	check(in <= H2_FRONT_CONN_WINDOW && out == h->out_held && out <= H2_OUT_ALL_MAX);
	check(h->n_open <= H2_STREAMS_MAX);
}

static void one(const uint8_t *p, size_t n)
{
	size_t before = n;

	front = front_h2(&loop, fuzz_open(p, n), &live, closed, dice(2));
	check(front);
	for (int idle = 0; front && idle < 4; idle += fuzz_chan.n == before) {
		before = fuzz_chan.n;
		fuzz_round();
		for (size_t i = 0; i < n_live; i++)
			if (!dice(3))
				act(live[i]);
		if (front && !dice(100))
			front->stop(front, !dice(2));
		if (front)
			bounds();
	}
	fuzz_chan.end = true;
	if (front && dice(2))
		fuzz_round();
	if (front)
		front = front->free(front);
	for (size_t i = 0; i < n_live; i++) {
		check(live[i]->over);
		free(live[i]);
	}
	n_live = 0;
	(void)uv_run(&loop.uv, UV_RUN_NOWAIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const uint8_t start[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
	uint8_t *all;

	if (n < 5 || n > 1 << 20)
		return 0;
	if (!loop.epoll)
		check(loop_open(&loop) == 0);
	memcpy(&fuzz_state, p, 4);
	fuzz_state |= 1;
	if (!p[4]) {
		one(p + 5, n - 5);
		return 0;
	}
	all = malloc(sizeof(start) + n);
	check(all);
	memcpy(all, start, sizeof(start));
	memcpy(all + sizeof(start), p + 5, n - 5);
	one(all, sizeof(start) + n - 5);
	free(all);
	return 0;
}
