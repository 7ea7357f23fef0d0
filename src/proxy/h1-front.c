/* A front of HTTP/1: requests one at a time. What the client sends ahead waits, in the kernel for the most part, until it is its turn.
 *
 * Calls back into this file come from within its own calls into xchg; so whoever changes what is under way does it before he calls, and the loop in run() looks at all
 * of it anew. The owner hears closed() from a round of its own. */
#include "proxy/h1.h"
#include "proxy/xchg.h"

enum { OUT_MAX = HTTP_HEAD_MAX + 4096 };

struct front_h1 {
	struct front front; /* first */
	struct loop *loop;
	struct chan *c;
	void *conn;
	void (*closed)(void *conn);
	struct again again;
	struct h1_in in;
	struct xchg *x; /* under way */
	struct h1_body body;
	char protocol[64];
	bool up_over, up_full; /* the request's body; xchg has no room */
	bool tunnel, keep, http10, head_only;
	bool answered, chunked, down_full;
	uint64_t down_left; /* of a length that was said; UINT64_MAX: none was */
	bool stopping, dead, over;
};

static void die(struct front_h1 *f, bool reset)
{
	if (f->dead)
		return;
	f->dead = true;
	f->c = chan_free(f->c, reset);
	loop_again(f->loop, &f->again);
}

static void on_again(struct again *a)
{
	struct front_h1 *f = (struct front_h1 *)((char *)a - offsetof(struct front_h1, again));

	f->closed(f->conn);
}

/* ---- from xchg ---- */

static void put_answer(struct front_h1 *f, const struct xhead *h, const struct h1_answer *a)
{
	struct buf out = BUF_INIT(OUT_MAX);

	if (h1_put_answer(&out, h, a) < 0)
		f->keep = false;
	else
		(void)chan_write(f->c, buf_data(&out), out.n);
	buf_done(&out);
}

static bool has_no_body(const struct front_h1 *f, const struct xhead *h)
{
	return f->head_only || h->status == 204 || h->status == 304 || h->status / 100 == 1;
}

static void on_answer(void *s, struct xhead *h)
{
	struct front_h1 *f = s;
	struct h1_answer a = { .has_length = h->has_length, .length = h->length };

	if (f->dead || f->answered)
		return;
	if (h->status == 101) {
		f->answered = f->tunnel = true;
		f->keep = false;
		put_answer(f, h, &(struct h1_answer) { .upgrade = f->protocol });
		chan_again(f->c);
		return;
	}
	if (h->status < 200) {
		if (!f->http10)
			put_answer(f, h, &(struct h1_answer) { 0 });
		return;
	}
	f->answered = true;
	if (has_no_body(f, h)) {
		a.has_length = h->has_length && h->status != 204;
	} else if (h->no_body) {
		a.has_length = true;
		a.length = 0;
	} else if (!h->has_length) {
		f->chunked = a.chunked = !f->http10;
		f->keep &= !f->http10;
	}
	if (h->close || f->stopping)
		f->keep = false;
	f->down_left = a.has_length && !has_no_body(f, h) ? a.length : UINT64_MAX;
	a.close = !f->keep;
	a.say_keep_alive = f->keep && f->http10;
	put_answer(f, h, &a);
}

static size_t on_data(void *s, const uint8_t *p, size_t n)
{
	struct front_h1 *f = s;
	const size_t whole = n;
	size_t k;

	if (f->dead || f->head_only)
		return n;
	if (n > f->down_left) { /* what follows would be an answer of its own */
		f->keep = false;
		n = f->down_left;
	}
	k = n ? h1_put_data(f->c, f->chunked, p, n) : 0;
	if (f->down_left != UINT64_MAX)
		f->down_left -= k;
	f->down_full = k < n;
	return k == n ? whole : k;
}

static void on_end(void *s, struct hfields *trailers)
{
	struct front_h1 *f = s;

	f->x = NULL;
	f->over = true;
	if (f->dead)
		return;
	if (f->chunked)
		h1_put_end(f->c, trailers);
	if (f->down_left && f->down_left != UINT64_MAX) {
		die(f, true); /* so that it is seen that something is missing */
		return;
	}
	if (!f->keep || !f->up_over || f->stopping) {
		die(f, false);
		return;
	}
	h1_body_done(&f->body);
	chan_again(f->c); /* the next may be there; others have their turn first */
}

static void on_fail(void *s, enum xchg_fault why)
{
	struct front_h1 *f = s;

	(void)why;
	f->x = NULL;
	f->over = true;
	die(f, true);
}

static void on_resume(void *s)
{
	struct front_h1 *f = s;

	f->up_full = false;
	if (!f->dead)
		chan_again(f->c);
}

static const struct front_ops ops = { on_answer, on_data, on_end, on_fail, on_resume };

/* ---- requests ---- */

static void request(struct front_h1 *f, struct xhead *h, bool body)
{
	struct xchg *x;

	f->over = false;
	f->up_over = !body;
	f->up_full = f->answered = f->chunked = f->down_full = false;
	f->down_left = UINT64_MAX;
	(void)memcpy(f->protocol, h->protocol, sizeof(f->protocol));
	x = xchg_request(&f->front, &ops, f, h, body);
	if (!x) {
		xhead_done(h);
		die(f, true);
		return;
	}
	f->x = f->over ? NULL : x;
}

/* Not HTTP that everybody reads alike: an exchange all the same, which answers and tells. */
static void malformed(struct front_h1 *f, enum http_result y, const char *why)
{
	struct xhead h = { .status = y == HTTP_TOO_LARGE ? 431 : 400, .no_body = true };

	f->keep = f->http10 = f->head_only = false;
	h.target = strdup(why ? why : "this is not HTTP");
	buf_consume(&f->in.bytes, f->in.bytes.n);
	request(f, &h, false);
}

/* False: more bytes are needed. */
static bool take_head(struct front_h1 *f)
{
	struct http_head *head;
	struct xhead h = { 0 };
	enum http_result y;
	bool body;
	int r;

	if (!f->in.bytes.n)
		return false;
	head = malloc(sizeof(*head));
	y = head ? http_request(head, buf_data(&f->in.bytes), f->in.bytes.n) : HTTP_TOO_LARGE;
	if (y == HTTP_MORE) {
		free(head);
		return false;
	}
	if (y != HTTP_OK) {
		malformed(f, y, y == HTTP_BAD ? head->why : NULL);
		free(head);
		return true;
	}
	r = xhead_from_http1(&h, head, buf_data(&f->in.bytes));
	body = head->body == BODY_CHUNKED || (head->body == BODY_LENGTH && head->length);
	buf_consume(&f->in.bytes, head->size);
	f->keep = head->keep_alive;
	f->http10 = !head->minor;
	f->head_only = streq(head->method, "HEAD");
	h1_body_begin(&f->body, head);
	free(head);
	if (r < 0)
		malformed(f, HTTP_TOO_LARGE, "the head is too large");
	else
		request(f, &h, body);
	return true;
}

static size_t give(void *arg, const uint8_t *p, size_t n)
{
	struct front_h1 *f = arg;

	return f->x ? xchg_up(f->x, p, n) : n;
}

static void gone(struct front_h1 *f)
{
	struct xchg *x = take_ptr(f->x);

	die(f, true);
	if (x)
		xchg_front_gone(x, XCHG_CUT);
}

static void take_body(struct front_h1 *f)
{
	struct hfields trailers = { 0 };
	int r;

	switch (h1_body_run(&f->body, &f->in, give, f)) {
	case H1_MORE:
		if (f->in.ended || f->in.broken)
			gone(f);
		return;
	case H1_FULL:
		f->up_full = true;
		return;
	case H1_DONE:
		r = h1_body_trailers(&f->body, &trailers);
		if (r < 0) {
			gone(f);
			return;
		}
		f->up_over = true;
		if (f->x)
			xchg_up_end(f->x, r ? &trailers : NULL);
		hfields_done(&trailers);
		return;
	case H1_BAD:
		gone(f);
		return;
	}
}

static void take_bytes(struct front_h1 *f)
{
	if (f->in.bytes.n) {
		const size_t n = f->in.bytes.n;
		const size_t k = give(f, buf_data(&f->in.bytes), n);

		if (f->dead)
			return;
		buf_consume(&f->in.bytes, k);
		f->up_full = k < n;
	} else if (f->in.ended && !f->up_over) {
		f->up_over = true;
		if (f->x)
			xchg_up_end(f->x, NULL);
	}
}

/* One step. True: another may be possible. */
static bool step(struct front_h1 *f)
{
	const size_t before = f->in.bytes.n;

	if (!f->x) {
		if (f->stopping || (f->in.broken && !f->in.bytes.n))
			die(f, f->in.broken);
		else if (!take_head(f) && (f->in.ended || f->in.broken))
			die(f, false);
		return !f->dead && f->x;
	}
	if (f->in.broken) {
		gone(f);
		return false;
	}
	if (f->tunnel && !f->up_full)
		take_bytes(f);
	else if (!f->tunnel && !f->up_over && !f->up_full)
		take_body(f);
	return !f->dead && f->in.bytes.n < before && !f->up_full;
}

static void edge(void *arg)
{
	struct front_h1 *f = arg;
	struct xchg *x = f->x;
	int share = 16;

	if (f->dead)
		return;
	if (x && f->down_full && chan_space(f->c) >= CHAN_OUT_MAX / 2) {
		f->down_full = false;
		xchg_down_room(x);
	}
	do {
		if (f->dead)
			return;
		h1_fill(&f->in, f->c);
	} while (step(f) && --share);
	if (!f->dead && !share)
		chan_again(f->c);
}

static const struct chan_ops chan_ops = { edge };

/* ---- life ---- */

static void stop(struct front *front, bool now)
{
	struct front_h1 *f = (struct front_h1 *)front;

	f->stopping = true;
	if (f->dead)
		return;
	if (now && f->x)
		gone(f);
	else if (!f->x)
		chan_again(f->c);
}

static struct front *free_front(struct front *front)
{
	struct front_h1 *f = (struct front_h1 *)front;

	if (!f)
		return NULL;
	if (!f->dead && f->x)
		gone(f);
	die(f, false);
	loop_forget(f->loop, &f->again);
	h1_in_done(&f->in);
	h1_body_done(&f->body);
	free(f);
	return NULL;
}

struct front *front_h1(struct loop *l, struct chan *c, void *conn, void (*closed)(void *conn))
{
	struct front_h1 *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->front = (struct front) { .conn = conn, .proto = "h1", .stop = stop, .free = free_front };
	f->loop = l;
	f->c = c;
	f->conn = conn;
	f->closed = closed;
	f->again.run = on_again;
	h1_in_init(&f->in);
	buf_init(&f->body.trailers, 0);
	chan_owner(c, &chan_ops, f);
	chan_again(c);
	return &f->front;
}
