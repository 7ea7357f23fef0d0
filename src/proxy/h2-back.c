/* The server's side: a client of HTTP/2. What is freed is wiped, since requests hold credentials. */
#include "proxy/h2.h"

#include <malloc.h>
#include <stdio.h>

struct back_h2 {
	struct h2 h2; /* first */
	struct back back;
	void (*changed)(void *owner);
	unsigned told_room;
	bool told_alive;
	nghttp2_mem mem;
};

static struct back_h2 *of(struct h2 *h)
{
	return (struct back_h2 *)h;
}

/* ---- memory of nghttp2's ---- */

static void *mem_malloc(size_t n, void *arg)
{
	(void)arg;
	return malloc(n);
}

static void mem_free(void *p, void *arg)
{
	(void)arg;
	if (p)
		explicit_bzero(p, malloc_usable_size(p));
	free(p);
}

static void *mem_calloc(size_t n, size_t size, void *arg)
{
	(void)arg;
	return calloc(n, size);
}

static void *mem_realloc(void *p, size_t n, void *arg)
{
	const size_t old = p ? malloc_usable_size(p) : 0;
	void *q = malloc(n);

	if (!q)
		return NULL;
	if (p)
		memcpy(q, p, MIN(old, n));
	mem_free(p, arg);
	return q;
}

/* ---- requests ---- */

static unsigned max_streams(const struct h2 *h)
{
	const uint32_t max = nghttp2_session_get_remote_settings(
		h->ses, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);

	return MIN(max, (uint32_t)H2_STREAMS_MAX);
}

static void update(struct back_h2 *b)
{
	const struct h2 *h = &b->h2;
	const unsigned max = max_streams(h);

	b->back.alive = !h->over && !h->draining && nghttp2_session_check_request_allowed(h->ses);
	b->back.room = b->back.alive && max > h->n_open ? max - h->n_open : 0;
	b->back.connect_protocol = nghttp2_session_get_remote_settings(
		h->ses, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL);
}

static void end(void *arg, struct hfields *trailers)
{
	h2_stream_end(arg, trailers);
}

/* What was said in a tunnel is delivered. */
static void cancel(void *arg)
{
	struct h2_stream *s = arg;

	if (!s->tunnel) {
		h2_stream_reset(s, NGHTTP2_CANCEL);
		return;
	}
	h2_stream_end(s, NULL);
	h2_stream_over(s);
	if (s->sent_end)
		h2_stream_reset(s, NGHTTP2_CANCEL);
}

static int begin(struct back *back, struct xchg *x, const struct xhead *head, bool body,
		 void **ret_s, const struct back_ops **ret_ops)
{
	static const struct back_ops ops = {
		.data = h2_stream_data, .end = end, .cancel = cancel, .resume = h2_stream_resume
	};
	struct back_h2 *b = (struct back_h2 *)((char *)back - offsetof(struct back_h2, back));
	struct h2_stream *s;
	nghttp2_data_provider source = { .read_callback = h2_stream_read };
	struct h2_nva a;

	update(b);
	if (!back->room || (head->protocol[0] && !back->connect_protocol))
		return -EAGAIN;
	s = h2_stream_new(&b->h2, 0);
	if (!s)
		return -ENOMEM;
	s->head_only = streq(head->method, "HEAD");
	s->tunnel = streq(head->method, "CONNECT");
	s->body = body;
	body |= s->tunnel;
	s->out_end = !body;
	source.source.ptr = s;
	h2_nva_request(&a, head);
	s->id = nghttp2_submit_request(b->h2.ses, NULL, a.v, a.n, body ? &source : NULL, s);
	if (s->id < 0) {
		const int r = s->id == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EAGAIN;

		(void)h2_stream_free(s);
		return r;
	}
	s->x = x;
	*ret_s = s;
	*ret_ops = &ops;
	update(b);
	h2_poke(&b->h2);
	return 0;
}

/* ---- answers ---- */

static void gone(struct h2_stream *s, enum xchg_fault why, const char *detail)
{
	struct xchg *x = take_ptr(s->x);

	s->over = true;
	if (x)
		xchg_back_gone(x, why, detail);
}

static void spoil(struct h2_stream *s, uint32_t code, enum xchg_fault why, const char *detail)
{
	struct xchg *x = s->x;

	h2_stream_reset(s, code);
	if (x)
		xchg_back_gone(x, why, detail);
}

static void head(struct h2_stream *s, bool no_more)
{
	struct xhead *h = &s->head;

	if (s->fault) {
		spoil(s, NGHTTP2_PROTOCOL_ERROR, s->fault == 431 ? XCHG_LIMIT : XCHG_BAD, s->why);
		return;
	}
	if (h->status / 100 == 1 && ++s->informed > H2_INFORMED_MAX) {
		spoil(s, NGHTTP2_ENHANCE_YOUR_CALM, XCHG_LIMIT, "too many answers of 1xx");
		return;
	}
	s->head_done = h->status / 100 != 1;
	h->no_body =
		no_more || !s->head_done || s->head_only || h->status == 204 || h->status == 304;
	if (s->head_done)
		s->tunnel &= h->status / 100 == 2;
	if (s->x)
		xchg_answer(s->x, h);
	*h = (struct xhead) { 0 };
	if (s->head_done)
		h2_stream_deliver(s);
}

/* With the answer it is over, unless it is a tunnel or the request is not whole: then the exchange will say cancel(). */
static void take_end(struct h2_stream *s, struct hfields *trailers)
{
	of(s->h2)->back.used = true;
	xchg_down_end(s->x, trailers);
	if (!s->x || s->tunnel || (s->body && !s->out_end))
		return;
	h2_stream_over(s);
	if (!s->closed && !s->out_end)
		h2_stream_reset(s, NGHTTP2_CANCEL);
}

static void received(struct h2 *h, const nghttp2_frame *f)
{
	if (f->hd.type != NGHTTP2_GOAWAY)
		return;
	h->draining = true;
	if (f->goaway.error_code != NGHTTP2_NO_ERROR)
		h->detail = nghttp2_http2_strerror(f->goaway.error_code);
}

/* What is still held is delivered first: the answer was whole. */
static void closed(struct h2_stream *s)
{
	char text[128];

	if (!s->x || (s->in_end && s->code == NGHTTP2_NO_ERROR))
		return;
	if (s->in_end && s->reset && !s->malformed)
		return; /* it has said all, and needs no more of the request */
	if (s->malformed || !s->reset) {
		const bool refused = s->code == NGHTTP2_REFUSED_STREAM;

		gone(s, refused ? XCHG_UNTOUCHED : XCHG_BAD,
		     refused ? "the server ends the connection and has not begun with it"
			     : "the server's answer is malformed");
		return;
	}
	(void)snprintf(text, sizeof(text), "the server reset the stream: %s",
		       nghttp2_http2_strerror(s->code));
	gone(s, s->code == NGHTTP2_REFUSED_STREAM ? XCHG_UNTOUCHED : XCHG_CUT, text);
}

/* Over: a used connection that died before it had said anything to this request is as good as one that refused it. */
static void cut(struct h2_stream *s)
{
	const struct h2 *h = s->h2;
	const bool untouched = !s->head_done && !s->informed && s->born == h->bytes && h->started &&
			       of(s->h2)->back.used;

	of(s->h2)->back.alive = false;
	gone(s, untouched ? XCHG_UNTOUCHED : XCHG_CUT,
	     h->detail ? h->detail : "the connection was closed");
}

static void settle(struct h2 *h, bool over)
{
	struct back_h2 *b = of(h);

	(void)over;
	update(b);
	if (b->back.room == b->told_room && b->back.alive == b->told_alive)
		return;
	b->told_room = b->back.room;
	b->told_alive = b->back.alive;
	b->changed(b->back.owner);
}

/* ---- life ---- */

static struct back *back_free(struct back *back)
{
	if (back) {
		back->alive = false;
		h2_done((struct h2 *)((char *)back - offsetof(struct back_h2, back)));
	}
	return NULL;
}

struct back *back_h2(struct loop *l, struct chan *c, void *owner, void (*changed)(void *owner))
{
	static const struct h2_side side = { .window = H2_BACK_WINDOW,
					     .conn_window = H2_BACK_CONN_WINDOW,
					     .start_ms = H2_BACK_START_MS,
					     .head = head,
					     .take = xchg_down,
					     .take_end = take_end,
					     .room = xchg_up_room,
					     .closed = closed,
					     .cut = cut,
					     .received = received,
					     .settle = settle };
	static const nghttp2_settings_entry set[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_BACK_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP_HEAD_MAX },
	};
	struct back_h2 *b = calloc(1, sizeof(*b));

	if (!b) {
		(void)chan_free(c, true);
		return NULL;
	}
	b->changed = changed;
	b->mem = (nghttp2_mem) { NULL, mem_malloc, mem_free, mem_calloc, mem_realloc };
	b->back =
		(struct back) { .owner = owner, .proto = "h2", .begin = begin, .free = back_free };
	if (h2_open(&b->h2, &side, l, c, set, ARRAY_SIZE(set), &b->mem) < 0) {
		h2_done(&b->h2);
		return NULL;
	}
	update(b);
	b->told_room = b->back.room;
	b->told_alive = b->back.alive;
	return &b->back;
}
