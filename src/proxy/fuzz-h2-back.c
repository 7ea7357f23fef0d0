/* Any bytes as a server that the back speaks with, and exchanges that do anything an exchange may do. The first 4 bytes are the dice's; the
 * fifth says whether SETTINGS go ahead. */
#include "base/text.h"
#include "proxy/h2-fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

enum { LIVE_MAX = 64 };

struct xchg {
	const struct back_ops *ops;
	void *s;
	bool body, up_over, connect, tunnel, answered, down_over, over;
};

static struct loop loop;
static struct back *back;
static struct xchg *live[LIVE_MAX];
static size_t n_live;

static void over(struct xchg *x)
{
	check(!x->over);
	x->over = true;
}

static void act_data(struct xchg *x)
{
	static const uint8_t bytes[XCHG_HOLD_MAX];

	if (x->body && !x->up_over)
		check(x->ops->data(x->s, bytes, dice(sizeof(bytes))) <= sizeof(bytes));
}

static void act_end(struct xchg *x)
{
	struct hfields f = { 0 };

	if (!x->body || x->up_over || x->down_over)
		return;
	fuzz_fields(&f);
	x->up_over = true;
	x->ops->end(x->s, f.n ? &f : NULL);
	hfields_done(&f);
}

static void act_cancel(struct xchg *x)
{
	over(x);
	x->ops->cancel(x->s);
}

static void act_resume(struct xchg *x)
{
	x->ops->resume(x->s);
}

static void act(struct xchg *x)
{
	static void (*const acts[])(struct xchg * x) = { act_data,   act_data,   act_data,  act_end,
							 act_cancel, act_resume, act_resume };

	if (!x->over && x->ops)
		acts[dice(ARRAY_SIZE(acts))](x);
}

static void begin(void)
{
	static const char *const methods[] = { "GET", "HEAD", "POST", "CONNECT" };
	struct xhead h = { .method = "GET", .port = (uint16_t)dice(500), .has_length = !dice(3) };
	struct xchg *x = calloc(1, sizeof(*x));
	int r;

	check(x);
	check(text_copy(h.method, sizeof(h.method), methods[dice(4)]) == 0);
	h.target = strdup("/a?b");
	check(h.target);
	memcpy(h.host.text, "a.example", 10);
	h.host.kind = HOST_NAME;
	x->connect = streq(h.method, "CONNECT");
	if (x->connect)
		memcpy(h.protocol, "websocket", 10);
	x->body = x->connect || dice(2);
	fuzz_fields(&h.fields);
	r = back->begin(back, x, &h, x->body, &x->s, &x->ops);
	check(r == 0 || r == -EAGAIN);
	check(r == 0 || !back->room || x->connect);
	xhead_done(&h);
	if (r < 0)
		free(x);
	else
		live[n_live++] = x;
}

/* ---- what a back calls ---- */

void xchg_answer(struct xchg *x, struct xhead *h)
{
	check(!x->over && !x->answered && !x->down_over && h->status >= 100);
	check(h->fields.n <= HTTP_FIELDS_MAX && h->fields.bytes <= HTTP_HEAD_MAX);
	x->answered = h->status >= 200;
	x->tunnel = x->connect && h->status / 100 == 2;
	xhead_done(h);
	if (!dice(4))
		act(x);
}

size_t xchg_down(struct xchg *x, const uint8_t *p, size_t n)
{
	check(!x->over && x->answered && !x->down_over && p && n);
	if (!dice(6))
		act(x);
	return x->over ? n : dice(3) ? n : dice((uint32_t)n + 1);
}

void xchg_down_end(struct xchg *x, struct hfields *trailers)
{
	check(!x->over && x->answered && !x->down_over && (!trailers || trailers->n));
	x->down_over = true;
	if (!x->tunnel && (!x->body || x->up_over))
		over(x); /* it has let go */
	else if (dice(2))
		act_cancel(x);
}

void xchg_back_gone(struct xchg *x, enum xchg_fault why, const char *detail)
{
	check(why && detail);
	over(x);
	if (back && back->alive && back->room && n_live < LIVE_MAX && dice(2))
		begin(); /* on the same, perhaps */
}

void xchg_up_room(struct xchg *x)
{
	check(!x->over);
	act(x);
}

/* ---- not of a back ---- */

struct xchg *xchg_request(struct front *f, const struct front_ops *ops, void *s, struct xhead *h,
			  bool body)
{
	check(!f && !ops && !s && !h && !body);
	return NULL;
}

size_t xchg_up(struct xchg *x, const uint8_t *p, size_t n)
{
	check(!x && !p);
	return n;
}

void xchg_up_end(struct xchg *x, struct hfields *trailers)
{
	check(!x && !trailers);
}

void xchg_front_gone(struct xchg *x, enum xchg_fault why)
{
	check(!x && !why);
}

void xchg_down_room(struct xchg *x)
{
	check(!x);
}

/* ---- rounds ---- */

static void changed(void *owner)
{
	check(owner == &live);
	if (!back->alive && !dice(2))
		back = back->free(back);
}

static void bounds(void)
{
	const struct h2 *h = fuzz_chan.arg;
	size_t in = 0, out = 0;

	for (const struct h2_stream *s = h->streams; s; s = s->next) {
		in += s->in.n;
		out += s->out.n;
		check(s->in.n <= H2_BACK_WINDOW && s->out.n <= H2_OUT_MAX);
	}
	check(in <= H2_BACK_CONN_WINDOW && out == h->out_held && out <= H2_OUT_ALL_MAX);
	check(h->n_open <= H2_STREAMS_MAX);
}

static void one(const uint8_t *p, size_t n)
{
	size_t before = n;

	back = back_h2(&loop, fuzz_open(p, n), &live, changed);
	check(back);
	for (int idle = 0; back && idle < 4; idle += fuzz_chan.n == before) {
		before = fuzz_chan.n;
		if (n_live < LIVE_MAX && (!n_live || !dice(3)))
			begin();
		fuzz_round();
		for (size_t i = 0; i < n_live; i++)
			if (!dice(4))
				act(live[i]);
		if (back)
			bounds();
	}
	fuzz_chan.end = true;
	if (back && dice(2))
		fuzz_round();
	if (back)
		back = back->free(back);
	for (size_t i = 0; i < n_live; i++) {
		check(live[i]->over);
		free(live[i]);
	}
	n_live = 0;
	(void)uv_run(&loop.uv, UV_RUN_NOWAIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const uint8_t start[15] = { 0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 1 };
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
