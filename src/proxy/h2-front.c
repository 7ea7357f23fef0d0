/* The guest's side: a server of HTTP/2. */
#include "proxy/h2.h"

struct front_h2 {
	struct h2 h2; /* first */
	struct front front;
	void (*closed)(void *conn);
};

static struct front_h2 *of(struct h2 *h)
{
	return (struct front_h2 *)h;
}

/* ---- what xchg calls ---- */

static void answer(void *arg, struct xhead *h)
{
	struct h2_stream *s = arg;
	const nghttp2_data_provider body = { .source.ptr = s, .read_callback = h2_stream_read };
	struct h2_nva a;
	int r;

	if (s->closed || s->answered)
		return;
	h2_nva_answer(&a, h);
	if (h->status / 100 == 1) {
		r = nghttp2_submit_headers(s->h2->ses, NGHTTP2_FLAG_NONE, s->id, NULL, a.v, a.n,
					   NULL);
	} else {
		s->answered = true;
		s->out_end = h->no_body;
		r = nghttp2_submit_response(s->h2->ses, s->id, a.v, a.n, h->no_body ? NULL : &body);
	}
	if (r < 0)
		(void)nghttp2_submit_rst_stream(s->h2->ses, NGHTTP2_FLAG_NONE, s->id,
						NGHTTP2_INTERNAL_ERROR);
	h2_poke(s->h2);
}

static void end(void *arg, struct hfields *trailers)
{
	struct h2_stream *s = arg;

	if (!s->answered) {
		h2_stream_reset(s, NGHTTP2_INTERNAL_ERROR);
		return;
	}
	h2_stream_end(s, trailers);
	h2_stream_over(s);
	if (s->sent_end)
		h2_linger(s);
}

/* What was given is delivered first. REFUSED_STREAM says that nothing was done: a client tries again, whatever it was. */
static void fail(void *arg, enum xchg_fault why)
{
	static const uint32_t codes[] = {
		[XCHG_CUT] = NGHTTP2_INTERNAL_ERROR,
		[XCHG_UNTOUCHED] = NGHTTP2_REFUSED_STREAM,
		[XCHG_BAD] = NGHTTP2_INTERNAL_ERROR,
		[XCHG_LIMIT] = NGHTTP2_ENHANCE_YOUR_CALM,
	};
	struct h2_stream *s = arg;

	if (!s->answered || s->closed || s->out_end) {
		h2_stream_reset(s, codes[why]);
		return;
	}
	s->spoilt = true;
	(void)nghttp2_session_resume_data(s->h2->ses, s->id);
	h2_stream_over(s);
}

static const struct front_ops ops = { .answer = answer,
				      .data = h2_stream_data,
				      .end = end,
				      .fail = fail,
				      .resume = h2_stream_resume };

/* ---- what the connection tells ---- */

static struct h2_stream *begin(struct h2 *h, int32_t id)
{
	struct h2_stream *s = h2_stream_new(h, id);

	if (s)
		(void)nghttp2_session_set_stream_user_data(h->ses, id, s);
	return s;
}

/* What cannot be read as a request: an exchange all the same, which answers and tells. */
static void misunderstood(struct h2_stream *s)
{
	xhead_done(&s->head);
	s->head.status = s->fault;
	s->head.target = strdup(s->why);
	s->head.path[0] = '\0';
	s->fault = 0; /* of trailers, from here on */
}

static void head(struct h2_stream *s, bool no_more)
{
	struct xchg *x;
	bool body;

	h2_head_request(s);
	body = !no_more && !s->fault;
	s->head_done = true;
	if (s->fault)
		misunderstood(s);
	s->head.no_body = s->deaf = !body;
	x = xchg_request(&of(s->h2)->front, &ops, s, &s->head, body);
	if (!x)
		xhead_done(&s->head);
	s->head.target = NULL; /* taken over */
	s->head.fields = (struct hfields) { 0 };
	if (!x && !s->over)
		h2_stream_reset(s, NGHTTP2_INTERNAL_ERROR);
	else if (!s->over) /* else it has ended within the call */
		s->x = x;
}

static void take_end(struct h2_stream *s, struct hfields *trailers)
{
	xchg_up_end(s->x, trailers);
}

/* Requests that a client takes back, or makes us reset, before it has seen anything of their answer cost us and not him. */
static void count_reset(struct h2_stream *s)
{
	if (!s->sent_head && (s->reset || s->malformed || s->x) && ++s->h2->resets > H2_RESETS_MAX)
		h2_calm(s->h2);
}

static void closed(struct h2_stream *s)
{
	struct xchg *x = s->x;

	count_reset(s);
	if (!x || (s->sent_end && s->in_end && s->code == NGHTTP2_NO_ERROR))
		return; /* an answer without a body is with the client: end() comes */
	s->x = NULL;
	s->over = true;
	xchg_front_gone(x, s->malformed ? XCHG_BAD : XCHG_CUT);
}

static void cut(struct h2_stream *s)
{
	s->over = true;
	xchg_front_gone(take_ptr(s->x), XCHG_CUT);
}

static void settle(struct h2 *h, bool over)
{
	if (over)
		of(h)->closed(of(h)->front.conn);
}

/* ---- life ---- */

static void stop(struct front *f, bool now)
{
	h2_stop((struct h2 *)((char *)f - offsetof(struct front_h2, front)), now);
}

static struct front *front_free(struct front *f)
{
	if (f)
		h2_done((struct h2 *)((char *)f - offsetof(struct front_h2, front)));
	return NULL;
}

struct front *front_h2(struct loop *l, struct chan *c, void *conn, void (*closed_fn)(void *conn),
		       bool connect_protocol)
{
	static const struct h2_side side = { .window = H2_FRONT_WINDOW,
					     .conn_window = H2_FRONT_CONN_WINDOW,
					     .start_ms = H2_FRONT_START_MS,
					     .begin = begin,
					     .head = head,
					     .take = xchg_up,
					     .take_end = take_end,
					     .room = xchg_down_room,
					     .closed = closed,
					     .cut = cut,
					     .settle = settle };
	const nghttp2_settings_entry set[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, H2_STREAMS_MAX },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_FRONT_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP_HEAD_MAX },
		{ NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1 },
	};
	struct front_h2 *f = calloc(1, sizeof(*f));

	if (!f) {
		(void)chan_free(c, true);
		return NULL;
	}
	f->closed = closed_fn;
	f->front = (struct front) { .conn = conn, .proto = "h2", .stop = stop, .free = front_free };
	if (h2_open(&f->h2, &side, l, c, set, ARRAY_SIZE(set) - !connect_protocol, NULL) < 0) {
		h2_done(&f->h2);
		return NULL;
	}
	return &f->front;
}
