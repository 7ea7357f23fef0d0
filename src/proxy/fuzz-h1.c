/* Any bytes as a client of the front of HTTP/1, or as a server of its back, and an exchange that does anything an exchange may do. The first 4 bytes are the dice's, the
 * fifth says which half. What must hold: nobody speaks of what is over, all that began ends, and heads are within their limits. */
#include "base/text.h"
#include "proxy/h2-fuzz.h"
#include "proxy/h1.h"
#include "proxy/xchg.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

enum { LIVE_MAX = 256 };

struct xchg {
	const struct front_ops *fops;
	const struct back_ops *bops;
	void *s;
	bool body, up_over, answered, final, over;
};

static struct loop loop;
static struct front *front;
static struct back *back;
static struct xchg *live[LIVE_MAX];
static size_t n_live;

static void over(struct xchg *x)
{
	check(!x->over);
	x->over = true;
}

static struct xchg *make(void)
{
	struct xchg *x = n_live < LIVE_MAX ? calloc(1, sizeof(*x)) : NULL;

	if (x)
		live[n_live++] = x;
	return x;
}

static void limits(const struct xhead *h)
{
	check(h->fields.n <= HTTP_FIELDS_MAX && h->fields.bytes <= HTTP_HEAD_MAX);
}

/* ---- an exchange, towards a front ---- */

static void front_answer(struct xchg *x)
{
	static const uint16_t statuses[] = { 100, 103, 200, 204, 304, 404, 500, 101 };
	struct xhead h = { .status = statuses[dice(8)] };

	h.no_body = h.status == 204 || h.status == 304 || !dice(4);
	h.has_length = !dice(3);
	h.length = dice(1000);
	fuzz_fields(&h.fields);
	if (!x->answered)
		x->fops->answer(x->s, &h);
	x->answered |= h.status >= 200 || h.status == 101;
	hfields_done(&h.fields);
}

static void front_data(struct xchg *x)
{
	static const uint8_t bytes[4096];

	if (x->answered)
		(void)x->fops->data(x->s, bytes, 1 + dice(sizeof(bytes) - 1));
}

static void front_end(struct xchg *x)
{
	struct hfields f = { 0 };

	fuzz_fields(&f);
	over(x);
	x->fops->end(x->s, f.n ? &f : NULL);
	hfields_done(&f);
}

static void front_fail(struct xchg *x)
{
	over(x);
	x->fops->fail(x->s, (enum xchg_fault)(1 + dice(4)));
}

static void front_resume(struct xchg *x)
{
	x->fops->resume(x->s);
}

/* ---- and towards a back ---- */

static void back_data(struct xchg *x)
{
	static const uint8_t bytes[4096];

	if (x->body && !x->up_over)
		(void)x->bops->data(x->s, bytes, 1 + dice(sizeof(bytes) - 1));
}

static void back_end(struct xchg *x)
{
	struct hfields f = { 0 };

	if (!x->body || x->up_over)
		return;
	fuzz_fields(&f);
	x->up_over = true;
	x->bops->end(x->s, f.n ? &f : NULL);
	hfields_done(&f);
}

static void back_cancel(struct xchg *x)
{
	over(x);
	x->bops->cancel(x->s);
}

static void back_resume(struct xchg *x)
{
	x->bops->resume(x->s);
}

static void act(struct xchg *x)
{
	static void (*const acts[2][5])(struct xchg * x) = {
		{ front_answer, front_data, front_end, front_resume, front_fail },
		{ back_data, back_data, back_end, back_resume, back_cancel },
	};

	if (!x->over && (x->fops || x->bops))
		acts[x->bops != NULL][dice(20) ? dice(4) : 4](x);
}

static size_t take(struct xchg *x, size_t n)
{
	check(!x->over);
	if (!dice(6))
		act(x);
	return x->over ? n : dice(3) ? n : dice((uint32_t)n + 1);
}

/* ---- what a front calls ---- */

struct xchg *xchg_request(struct front *f, const struct front_ops *ops, void *s, struct xhead *h,
			  bool body)
{
	struct xchg *x = dice(20) ? make() : NULL;

	check(f == front && h->target);
	limits(h);
	check(h->status || h->method[0]);
	check(!body || !h->no_body);
	if (!x)
		return NULL;
	x->fops = ops;
	x->s = s;
	x->body = body;
	x->up_over = !body;
	xhead_done(h);
	if (!dice(3))
		act(x);
	return x;
}

size_t xchg_up(struct xchg *x, const uint8_t *p, size_t n)
{
	check(p && n);
	return take(x, n);
}

void xchg_up_end(struct xchg *x, struct hfields *trailers)
{
	check(!x->over && (!trailers || trailers->n));
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

/* ---- what a back calls ---- */

void xchg_answer(struct xchg *x, struct xhead *h)
{
	check(!x->over && !x->final);
	check(h->status >= 100 && h->status <= 999);
	limits(h);
	x->final = h->status >= 200 || h->status == 101;
	xhead_done(h);
	if (!dice(4))
		act(x);
}

size_t xchg_down(struct xchg *x, const uint8_t *p, size_t n)
{
	check(p && n && x->final);
	return take(x, n);
}

void xchg_down_end(struct xchg *x, struct hfields *trailers)
{
	check(!x->over && x->final && (!trailers || trailers->n));
	over(x);
	if (x->body && !x->up_over)
		x->bops->cancel(x->s);
}

void xchg_back_gone(struct xchg *x, enum xchg_fault why, const char *detail)
{
	check(why && detail);
	over(x);
}

void xchg_up_room(struct xchg *x)
{
	check(!x->over);
	act(x);
}

void chan_shut(struct chan *c)
{
	check(!c->freed);
}

/* ---- rounds ---- */

static void closed(void *conn)
{
	check(conn == &live);
	front = front->free(front);
}

static void changed(void *owner)
{
	check(owner == &live);
	if (!back->alive && dice(2))
		back = back->free(back);
}

static void begin(void)
{
	static const char *const methods[] = { "GET", "HEAD", "POST", "CONNECT" };
	struct xhead h = { .port = (uint16_t)dice(500), .has_length = !dice(3), .length = 1000 };
	struct xchg *x = back->room ? make() : NULL;

	if (!x)
		return;
	check(text_copy(h.method, sizeof(h.method), methods[dice(4)]) == 0);
	check(text_copy(h.protocol, sizeof(h.protocol), dice(3) ? "" : "websocket") == 0);
	h.target = strdup("/a?b");
	check(h.target);
	fuzz_fields(&h.fields);
	x->body = dice(2);
	if (back->begin(back, x, &h, x->body, &x->s, &x->bops) < 0)
		x->over = true;
	xhead_done(&h);
}

static void run(void)
{
	for (int idle = 0; (front || back) && idle < 4; idle += !fuzz_chan.n || fuzz_chan.freed) {
		if (back && back->room && dice(4))
			begin();
		if (!fuzz_chan.freed)
			fuzz_round();
		for (size_t i = 0; i < n_live; i++)
			if (!dice(3))
				act(live[i]);
		if (front && !dice(100))
			front->stop(front, !dice(2));
		if (!dice(3))
			(void)uv_run(&loop.uv, UV_RUN_NOWAIT);
	}
	fuzz_chan.end = true;
	if ((front || back) && !fuzz_chan.freed && dice(2))
		fuzz_round();
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	if (n < 5 || n > 1 << 20)
		return 0;
	if (!loop.epoll)
		check(loop_open(&loop) == 0);
	memcpy(&fuzz_state, p, 4);
	fuzz_state |= 1;
	if (p[4] & 1)
		back = back_h1(&loop, fuzz_open(p + 5, n - 5), &live, changed);
	else
		front = front_h1(&loop, fuzz_open(p + 5, n - 5), &live, closed);
	check(front || back);
	run();
	if (front)
		front = front->free(front);
	if (back)
		back = back->free(back);
	for (size_t i = 0; i < n_live; i++) {
		check(live[i]->over);
		free(live[i]);
	}
	n_live = 0;
	(void)uv_run(&loop.uv, UV_RUN_NOWAIT);
	return 0;
}
