/* A back of HTTP/1: one exchange at a time on a connection that is kept. See h1-front.c for how calls nest. */
#include "proxy/h1.h"
#include "proxy/xchg.h"

enum { OUT_MAX = HTTP_HEAD_MAX + HTTP_TARGET_MAX + 4096 };

struct back_h1 {
	struct back back; /* first */
	struct loop *loop;
	struct chan *c;
	void (*changed)(void *owner);
	struct again again;
	struct h1_in in;
	struct xchg *x; /* under way */
	struct h1_body body;
	char method[24];
	bool asked_upgrade;
	bool up_over, up_chunked, up_full;
	uint64_t up_left; /* of a length that was said */
	bool answered, tunnel, keep, heard, down_full, down_over;
};

static void on_again(struct again *a)
{
	struct back_h1 *b = (struct back_h1 *)((char *)a - offsetof(struct back_h1, again));

	b->changed(b->back.owner);
}

static void tell(struct back_h1 *b)
{
	loop_again(b->loop, &b->again);
}

static void die(struct back_h1 *b, bool reset)
{
	if (!b->c)
		return;
	b->back.alive = false;
	b->back.room = 0;
	b->c = chan_free(b->c, reset);
	tell(b);
}

static void gone(struct back_h1 *b, enum xchg_fault why, const char *detail)
{
	struct xchg *x = take_ptr(b->x);

	die(b, true);
	if (x)
		xchg_back_gone(x, why, detail);
}

/* ---- from xchg ---- */

static size_t on_data(void *s, const uint8_t *p, size_t n)
{
	struct back_h1 *b = s;
	size_t k;

	if (!b->c)
		return n;
	if (!b->tunnel && !b->up_chunked &&
	    n > b->up_left) { /* what follows would be a request of its own */
		gone(b, XCHG_BAD, "the request's body is longer than it was said to be");
		return n;
	}
	k = h1_put_data(b->c, b->up_chunked && !b->tunnel, p, n);
	b->up_left -= b->up_chunked || b->tunnel ? 0 : k;
	b->up_full = k < n;
	return k;
}

static void on_end(void *s, struct hfields *trailers)
{
	struct back_h1 *b = s;

	if (!b->c)
		return;
	b->up_over = true;
	if (b->tunnel)
		chan_shut(b->c);
	else if (b->up_chunked)
		h1_put_end(b->c, trailers);
	else if (b->up_left)
		gone(b, XCHG_BAD, "the request's body is shorter than it was said to be");
}

static void on_cancel(void *s)
{
	struct back_h1 *b = s;

	b->x = NULL;
	die(b, !b->tunnel); /* what was said in it is delivered */
}

static void on_resume(void *s)
{
	struct back_h1 *b = s;

	b->down_full = false;
	if (b->c)
		chan_again(b->c);
}

static const struct back_ops ops = { on_data, on_end, on_cancel, on_resume };

static int begin(struct back *back, struct xchg *x, const struct xhead *h, bool body, void **ret_s,
		 const struct back_ops **ret_ops)
{
	struct back_h1 *b = (struct back_h1 *)back;
	struct buf out = BUF_INIT(OUT_MAX);
	int r;

	if (!back->alive || !back->room || b->x)
		return -EAGAIN;
	b->up_chunked = body && !h->has_length;
	r = h1_put_request(&out, h, b->up_chunked);
	if (r == 0)
		(void)chan_write(b->c, buf_data(&out), out.n);
	if (out.p) /* it may hold a credential */
		explicit_bzero(out.p, out.cap);
	buf_done(&out);
	if (r < 0)
		return -ENOMEM;
	memcpy(b->method, h->method, sizeof(b->method));
	b->asked_upgrade = h->protocol[0];
	b->up_over = !body;
	b->up_left = body && h->has_length ? h->length : 0;
	b->up_full = b->answered = b->tunnel = b->heard = b->down_full = b->down_over = false;
	b->x = x;
	back->room = 0;
	*ret_s = b;
	*ret_ops = &ops;
	return 0;
}

/* ---- answers ---- */

static bool take_answer(struct back_h1 *b, const struct http_head *head)
{
	struct xhead h = { 0 };
	int r = xhead_from_http1(&h, head, buf_data(&b->in.bytes));

	if (r < 0) {
		gone(b, r == -ENOMEM ? XCHG_LIMIT : XCHG_BAD,
		     "the head of the server's answer is too large");
		return false;
	}
	buf_consume(&b->in.bytes, head->size);
	if (head->status == 101) {
		if (!b->asked_upgrade || head->h2c) {
			xhead_done(&h);
			gone(b, XCHG_BAD,
			     "the server switches to a protocol that was not asked for");
			return false;
		}
		b->tunnel = true;
		b->keep = false;
	}
	if (head->status >= 200) {
		b->keep = head->keep_alive && head->body != BODY_UNTIL_CLOSE;
		h1_body_done(&b->body);
		h1_body_begin(&b->body, head);
	}
	b->answered = head->status >= 200 || head->status == 101;
	if (b->answered && !b->tunnel)
		h.no_body = b->body.scan.done;
	xchg_answer(b->x, &h);
	return true;
}

/* False: more bytes are needed, or it is over. */
static bool take_head(struct back_h1 *b)
{
	struct http_head *head = malloc(sizeof(*head));
	enum http_result y = HTTP_MORE;
	bool more = false;

	if (!head) {
		gone(b, XCHG_LIMIT, "no memory");
		return false;
	}
	if (b->in.bytes.n)
		y = http_response(head, buf_data(&b->in.bytes), b->in.bytes.n, b->method);
	if (y == HTTP_OK)
		more = take_answer(b, head);
	else if (y != HTTP_MORE)
		gone(b, XCHG_BAD,
		     y == HTTP_BAD && head->why ? head->why : "the server's answer is not HTTP/1");
	else if (b->in.ended || b->in.broken)
		gone(b, b->back.used && !b->heard ? XCHG_UNTOUCHED : XCHG_CUT,
		     "the server hung up without an answer");
	free(head);
	return more && b->c && b->x;
}

static size_t give(void *arg, const uint8_t *p, size_t n)
{
	struct back_h1 *b = arg;

	return b->x ? xchg_down(b->x, p, n) : n;
}

static void exchange_over(struct back_h1 *b, struct hfields *trailers)
{
	struct xchg *x = b->x;

	b->down_over = true;
	b->back.used = true;
	if (b->up_over)
		b->x = NULL; /* else xchg says when it is over */
	xchg_down_end(x, trailers);
	if (!b->c)
		return;
	if (b->x || !b->keep || b->in.ended || b->in.broken || b->in.bytes.n) {
		b->x = NULL;
		die(b, false);
		return;
	}
	b->back.room = 1;
	tell(b);
}

static void take_body(struct back_h1 *b)
{
	struct hfields trailers = { 0 };
	int r;

	switch (h1_body_run(&b->body, &b->in, give, b)) {
	case H1_FULL:
		b->down_full = true;
		return;
	case H1_MORE:
		if (!b->c || (!b->in.ended && !b->in.broken))
			return;
		if (b->in.ended && b->body.scan.kind == BODY_UNTIL_CLOSE)
			exchange_over(b, NULL);
		else
			gone(b, XCHG_CUT, "the server hung up within its answer");
		return;
	case H1_DONE:
		r = h1_body_trailers(&b->body, &trailers);
		if (r < 0)
			gone(b, XCHG_BAD, "the trailers of the server's answer are malformed");
		else if (b->x)
			exchange_over(b, r ? &trailers : NULL);
		hfields_done(&trailers);
		return;
	case H1_BAD:
		gone(b, XCHG_BAD, "the body of the server's answer is malformed");
		return;
	}
}

static void take_bytes(struct back_h1 *b)
{
	if (b->in.bytes.n) {
		const size_t n = b->in.bytes.n;
		const size_t k = give(b, buf_data(&b->in.bytes), n);

		if (!b->c)
			return;
		buf_consume(&b->in.bytes, k);
		b->down_full = k < n;
	} else if (b->in.ended && !b->down_over) {
		struct xchg *x = take_ptr(b->x);

		b->down_over = true;
		if (x)
			xchg_down_end(x, NULL);
		die(b, false);
	} else if (b->in.broken) {
		gone(b, XCHG_CUT, "the connection broke");
	}
}

/* True: another step may be possible. */
static bool step(struct back_h1 *b)
{
	const size_t before = b->in.bytes.n;

	if (!b->x) {
		/* between two, a server may leave; it has nothing to say */
		if (b->in.bytes.n || b->in.ended || b->in.broken)
			die(b, b->in.bytes.n);
		return false;
	}
	b->heard |= before;
	if (!b->answered)
		return take_head(b);
	if (b->down_full || b->down_over) {
		if (b->in.broken)
			gone(b, XCHG_CUT, "the connection broke");
		return false;
	}
	if (b->tunnel)
		take_bytes(b);
	else
		take_body(b);
	return b->c && b->x && b->in.bytes.n < before && !b->down_full;
}

static void edge(void *arg)
{
	struct back_h1 *b = arg;
	int share = 16;

	if (!b->c)
		return;
	if (b->x && b->up_full && chan_space(b->c) >= CHAN_OUT_MAX / 2) {
		b->up_full = false;
		xchg_up_room(b->x);
	}
	do {
		if (!b->c)
			return;
		h1_fill(&b->in, b->c);
	} while (step(b) && --share);
	if (b->c && !share)
		chan_again(b->c);
}

static const struct chan_ops chan_ops = { edge };

/* ---- life ---- */

static struct back *free_back(struct back *back)
{
	struct back_h1 *b = (struct back_h1 *)back;

	if (!b)
		return NULL;
	if (b->x)
		gone(b, XCHG_CUT, "the connection was closed");
	die(b, false);
	loop_forget(b->loop, &b->again);
	h1_in_done(&b->in);
	h1_body_done(&b->body);
	free(b);
	return NULL;
}

struct back *back_h1(struct loop *l, struct chan *c, void *owner, void (*changed)(void *owner))
{
	struct back_h1 *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->back = (struct back) { .owner = owner,
				  .proto = "h1",
				  .room = 1,
				  .alive = true,
				  .begin = begin,
				  .free = free_back };
	b->loop = l;
	b->c = c;
	b->changed = changed;
	b->again.run = on_again;
	h1_in_init(&b->in);
	buf_init(&b->body.trailers, 0);
	chan_owner(c, &chan_ops, b);
	chan_again(c);
	return &b->back;
}
