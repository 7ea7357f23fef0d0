#include "base/rdwr.h"
#include "proxy/h2.h"

enum {
	READ_MAX = 16 * 1024,
	ROUND_MAX = 256 * 1024, /* then others have their turn */
	TURNS_MAX = 8,
	FRAME_GOAWAY_SIZE = 17,
	BLOCK_MAX = 256 * 1024, /* of headers that we send, as nghttp2 estimates it */
};
static const uint8_t drain_ping[8] = { 'd', 'r', 'a', 'i', 'n', 'i', 'n', 'g' };

void h2_poke(struct h2 *h)
{
	h->poke = true;
	if (!h->busy && h->chan)
		chan_again(h->chan);
}

void h2_calm(struct h2 *h)
{
	h->detail = "too much traffic without a purpose";
	(void)nghttp2_session_terminate_session(h->ses, NGHTTP2_ENHANCE_YOUR_CALM);
}

/* ---- what nghttp2 tells ---- */

/* The answer of each callback: whether the owner has gone meanwhile. */
static int go_on(const struct h2 *h)
{
	return h->freed ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static struct h2_stream *stream_of(struct h2 *h, int32_t id)
{
	return nghttp2_session_get_stream_user_data(h->ses, id);
}

static int on_begin_frame(nghttp2_session *ses, const nghttp2_frame_hd *hd, void *user)
{
	struct h2 *h = user;
	const uint64_t now = loop_now(h->loop);

	(void)ses;
	if (now - h->flood_at > H2_FLOOD_MS) {
		h->flood_at = now;
		h->resets = h->idle_frames = h->sent_frames = 0;
	}
	if (hd->type != NGHTTP2_CONTINUATION)
		h->block_at = 0;
	if (hd->type == NGHTTP2_HEADERS || hd->type == NGHTTP2_CONTINUATION ||
	    (hd->type == NGHTTP2_DATA && hd->length))
		return 0;
	if (++h->idle_frames > H2_IDLE_FRAMES_MAX + 4 * (uint64_t)h->sent_frames)
		h2_calm(h);
	return 0;
}

static int on_begin_headers(nghttp2_session *ses, const nghttp2_frame *f, void *user)
{
	struct h2 *h = user;

	(void)ses;
	if (f->hd.type == NGHTTP2_HEADERS && f->headers.cat == NGHTTP2_HCAT_REQUEST &&
	    (!h->side->begin || !h->side->begin(h, f->hd.stream_id)))
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	h->block_at = loop_now(h->loop);
	return 0;
}

static int on_header(nghttp2_session *ses, const nghttp2_frame *f, const uint8_t *name, size_t n,
		     const uint8_t *value, size_t value_n, uint8_t flags, void *user)
{
	struct h2_stream *s = stream_of(user, f->hd.stream_id);

	(void)ses;
	(void)flags;
	if (s)
		h2_head_field(s, (const char *)name, n, (const char *)value, value_n);
	return 0;
}

/* A field with bytes that none may have. nghttp2 would leave it out; RFC 9113 8.2.1 calls the message malformed. */
static int on_invalid_header(nghttp2_session *ses, const nghttp2_frame *f, const uint8_t *name,
			     size_t n, const uint8_t *value, size_t value_n, uint8_t flags,
			     void *user)
{
	struct h2 *h = user;
	struct h2_stream *s = stream_of(h, f->hd.stream_id);

	(void)name;
	(void)n;
	(void)value;
	(void)value_n;
	(void)flags;
	h->block_at = 0;
	if (s)
		s->malformed = true;
	(void)nghttp2_submit_rst_stream(ses, NGHTTP2_FLAG_NONE, f->hd.stream_id,
					NGHTTP2_PROTOCOL_ERROR);
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int on_data(nghttp2_session *ses, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
		   void *user)
{
	struct h2_stream *s = stream_of(user, id);

	(void)flags;
	if (!s)
		(void)nghttp2_session_consume(ses, id, n);
	else if (h2_stream_take(s, p, n) < 0)
		(void)nghttp2_submit_rst_stream(ses, NGHTTP2_FLAG_NONE, id, NGHTTP2_INTERNAL_ERROR);
	return go_on(user);
}

static void block_whole(struct h2 *h, struct h2_stream *s, const nghttp2_frame *f)
{
	const bool end = f->hd.flags & NGHTTP2_FLAG_END_STREAM;

	h->block_at = 0;
	if (!s)
		return;
	s->in_end |= end;
	if (!s->head_done) {
		h->side->head(s, end);
		return;
	}
	if (s->fault) { /* trailers that cannot be taken */
		s->malformed = true;
		(void)nghttp2_submit_rst_stream(h->ses, NGHTTP2_FLAG_NONE, s->id,
						NGHTTP2_PROTOCOL_ERROR);
		return;
	}
	h2_stream_deliver(s);
}

static int on_frame(nghttp2_session *ses, const nghttp2_frame *f, void *user)
{
	struct h2 *h = user;
	struct h2_stream *s = f->hd.stream_id ? stream_of(h, f->hd.stream_id) : NULL;

	switch (f->hd.type) {
	case NGHTTP2_HEADERS:
		block_whole(h, s, f);
		break;
	case NGHTTP2_DATA:
		if (s && (f->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
			s->in_end = true;
			h2_stream_deliver(s);
		}
		break;
	case NGHTTP2_RST_STREAM:
		if (s)
			s->reset = true;
		break;
	case NGHTTP2_SETTINGS:
		h->started = true;
		break;
	case NGHTTP2_PING:
		if ((f->hd.flags & NGHTTP2_FLAG_ACK) && h->draining &&
		    !memcmp(f->ping.opaque_data, drain_ping, sizeof(drain_ping)))
			h->drain_at = 1; /* now */
		break;
	default:
		break;
	}
	if (h->side->received)
		h->side->received(h, f);
	(void)ses;
	return go_on(h);
}

static int on_invalid_frame(nghttp2_session *ses, const nghttp2_frame *f, int error, void *user)
{
	struct h2 *h = user;
	struct h2_stream *s = f->hd.stream_id ? stream_of(h, f->hd.stream_id) : NULL;

	(void)ses;
	h->block_at = 0;
	if (s)
		s->malformed = true;
	else if (!h->detail)
		h->detail = nghttp2_strerror(error);
	return 0;
}

/* An answer that came before the request was whole. The client may be told at once that it need not go on (RFC 9113 8.1), but there
 * are those who take that for an error of the answer (curl 7.88): it is told only if it does not see by itself. */
void h2_linger(struct h2_stream *s)
{
	struct h2 *h = s->h2;

	if (s->closed || nghttp2_session_get_stream_remote_close(h->ses, s->id) != 0)
		return;
	if (!h->side->begin)
		(void)nghttp2_submit_rst_stream(h->ses, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
	else if (!h->linger_at)
		h->linger_at = loop_now(h->loop) + H2_LINGER_MS;
}

static void end_lingering(struct h2 *h)
{
	h->linger_at = 0;
	for (struct h2_stream *s = h->streams; s; s = s->next)
		if (s->over && s->sent_end && !s->closed)
			(void)nghttp2_submit_rst_stream(h->ses, NGHTTP2_FLAG_NONE, s->id,
							NGHTTP2_NO_ERROR);
}

static int on_sent(nghttp2_session *ses, const nghttp2_frame *f, void *user)
{
	struct h2 *h = user;
	struct h2_stream *s;

	if (f->hd.type != NGHTTP2_DATA && f->hd.type != NGHTTP2_HEADERS)
		return 0;
	(void)ses;
	h->sent_frames++;
	s = stream_of(h, f->hd.stream_id);
	if (s)
		s->sent_head |= s->answered;
	if (!(f->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	if (s)
		s->sent_end = true;
	if (s && s->over)
		h2_linger(s);
	return 0;
}

static void stream_closed(struct h2_stream *s, uint32_t code)
{
	if (s->closed)
		return;
	s->closed = true;
	s->code = code;
	s->h2->n_open--;
	s->h2->sweep = true;
	s->h2->side->closed(s);
}

static int on_closed(nghttp2_session *ses, int32_t id, uint32_t code, void *user)
{
	struct h2_stream *s = stream_of(user, id);

	(void)ses;
	if (s)
		stream_closed(s, code);
	return go_on(user);
}

/* A request that could not be begun (GOAWAY came in between) was never a stream of nghttp2's. */
static int on_not_sent(nghttp2_session *ses, const nghttp2_frame *f, int error, void *user)
{
	struct h2 *h = user;

	(void)ses;
	(void)error;
	if (f->hd.type != NGHTTP2_HEADERS || f->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	for (struct h2_stream *s = h->streams; s; s = s->next)
		if (s->id == f->hd.stream_id)
			stream_closed(s, NGHTTP2_REFUSED_STREAM);
	return go_on(h);
}

/* ---- rounds ---- */

/* The last word, when nghttp2 cannot say it any more. */
static void last_goaway(struct h2 *h, uint32_t code)
{
	uint8_t frame[FRAME_GOAWAY_SIZE];
	struct wr w = wr_init(frame, sizeof(frame));

	if (h->rest_n || chan_space(h->chan) < sizeof(frame))
		return;
	wr_be32(&w, 8U << 8 | NGHTTP2_GOAWAY);
	wr_u8(&w, NGHTTP2_FLAG_NONE);
	wr_be32(&w, 0);
	wr_be32(&w, (uint32_t)nghttp2_session_get_last_proc_stream_id(h->ses));
	wr_be32(&w, code);
	(void)chan_write(h->chan, frame, w.n);
}

static void fatal(struct h2 *h, int error)
{
	static const struct {
		int error;
		uint32_t code;
	} table[] = {
		{ NGHTTP2_ERR_BAD_CLIENT_MAGIC, NGHTTP2_PROTOCOL_ERROR },
		{ NGHTTP2_ERR_FLOODED, NGHTTP2_ENHANCE_YOUR_CALM },
		{ NGHTTP2_ERR_TOO_MANY_SETTINGS, NGHTTP2_ENHANCE_YOUR_CALM },
		{ NGHTTP2_ERR_TOO_MANY_CONTINUATIONS, NGHTTP2_ENHANCE_YOUR_CALM },
	};
	uint32_t code = NGHTTP2_INTERNAL_ERROR;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].error == error)
			code = table[i].code;
	h->detail = nghttp2_strerror(error);
	h->over = true;
	last_goaway(h, code);
}

/* False: the chan is full. */
static bool push_rest(struct h2 *h)
{
	const size_t k = chan_write(h->chan, h->rest, h->rest_n);

	h->rest += k;
	h->rest_n -= k;
	return !h->rest_n;
}

static void push(struct h2 *h)
{
	ssize_t n;

	while (!h->over && (!h->rest_n || push_rest(h))) {
		n = nghttp2_session_mem_send(h->ses, &h->rest);
		if (n < 0)
			fatal(h, (int)n);
		if (n <= 0)
			return;
		h->rest_n = (size_t)n;
	}
}

static void ended(struct h2 *h, ssize_t how)
{
	h->over = true;
	if (!h->detail)
		h->detail = how == CHAN_END ? "the connection was closed" : "the connection broke";
}

static void pull(struct h2 *h)
{
	uint8_t bytes[READ_MAX];
	size_t moved = 0;

	while (!h->over && moved < ROUND_MAX && nghttp2_session_want_read(h->ses)) {
		const ssize_t n = chan_read(h->chan, bytes, sizeof(bytes));
		ssize_t r;

		if (n == CHAN_WAIT)
			return;
		if (n <= 0) {
			ended(h, n);
			return;
		}
		moved += (size_t)n;
		h->bytes += (uint64_t)n;
		h->active_at = loop_now(h->loop);
		r = nghttp2_session_mem_recv(h->ses, bytes, (size_t)n);
		if (r < 0) {
			fatal(h, (int)r);
			return;
		}
		push(h);
		if (nghttp2_session_get_outbound_queue_size(h->ses) > H2_QUEUE_MAX)
			fatal(h, NGHTTP2_ERR_FLOODED);
	}
	if (!h->over && moved >= ROUND_MAX)
		chan_again(h->chan);
}

/* Those who were waiting. True if somebody was told. */
static bool wake(struct h2 *h)
{
	bool any = false;

	for (struct h2_stream *s = h->streams; s; s = s->next) {
		if (s->resumed) {
			s->resumed = false;
			h2_stream_deliver(s);
			any = true;
		}
		if (h2_stream_roomy(s)) {
			s->out_wanted = false;
			h->side->room(s->x);
			any = true;
		}
	}
	return any;
}

static void sweep(struct h2 *h)
{
	struct h2_stream *s = h->streams, *next;

	if (!h->sweep)
		return;
	h->sweep = false;
	for (; s; s = next) {
		next = s->next;
		if (s->closed && !s->x)
			(void)h2_stream_free(s);
	}
}

static void cut_all(struct h2 *h)
{
	for (struct h2_stream *s = h->streams; s; s = s->next)
		if (s->x)
			h->side->cut(s);
}

/* ---- time ---- */

static uint64_t deadline(const struct h2 *h)
{
	uint64_t at = UINT64_MAX;

	if (!h->started)
		at = h->opened_at + h->side->start_ms;
	else if (!h->streams)
		at = h->active_at + H2_IDLE_MS;
	if (h->block_at)
		at = MIN(at, h->block_at + H2_HEAD_MS);
	if (h->drain_at)
		at = MIN(at, h->drain_at);
	if (h->leave_at)
		at = MIN(at, h->leave_at);
	if (h->linger_at)
		at = MIN(at, h->linger_at);
	return at;
}

static void on_timer(uv_timer_t *t)
{
	h2_poke(t->data);
}

static void arm(struct h2 *h)
{
	const uint64_t at = deadline(h), now = loop_now(h->loop);

	if (at == h->armed_at)
		return;
	h->armed_at = at;
	if (at == UINT64_MAX)
		(void)uv_timer_stop(&h->timer);
	else
		(void)uv_timer_start(&h->timer, on_timer, at > now ? at - now : 0, 0);
}

/* What the clock says. */
static void timely(struct h2 *h)
{
	const uint64_t now = loop_now(h->loop);

	if (h->over || deadline(h) > now)
		return;
	h->armed_at = 0;
	if (h->leave_at && h->leave_at <= now) {
		h->over = true;
		return;
	}
	if (h->linger_at && h->linger_at <= now) {
		end_lingering(h);
		return;
	}
	if (h->drain_at && h->drain_at <= now) {
		h->drain_at = 0;
		h->drained = true;
		(void)nghttp2_submit_goaway(h->ses, NGHTTP2_FLAG_NONE,
					    nghttp2_session_get_last_proc_stream_id(h->ses),
					    NGHTTP2_NO_ERROR, NULL, 0);
		return;
	}
	h->detail = "the peer was silent for too long";
	(void)nghttp2_session_terminate_session(
		h->ses, h->started && !h->block_at ? NGHTTP2_NO_ERROR : NGHTTP2_ENHANCE_YOUR_CALM);
	h->block_at = 0;
	h->started = true; /* said once */
	h->active_at = now;
}

/* A request that is on its way when we say that no more are taken must not be lost: first all may still come, and when the client
 * has answered a PING it knows (RFC 9113 6.8). */
void h2_stop(struct h2 *h, bool now)
{
	if (h->over)
		return;
	if (now) {
		(void)nghttp2_session_terminate_session(h->ses, NGHTTP2_NO_ERROR);
		cut_all(h);
	} else if (!h->draining) {
		(void)nghttp2_submit_shutdown_notice(h->ses);
		(void)nghttp2_submit_ping(h->ses, NGHTTP2_FLAG_NONE, drain_ping);
		h->drain_at = loop_now(h->loop) + H2_DRAIN_MS;
	}
	h->draining = true;
	h2_poke(h);
}

/* ---- life ---- */

static void freed(uv_handle_t *t)
{
	free(t->data);
}

static void destroy(struct h2 *h)
{
	h->over = true;
	nghttp2_session_del(h->ses);
	h->ses = NULL;
	while (h->streams)
		(void)h2_stream_free(h->streams);
	h->chan = chan_free(h->chan, false);
	uv_close((uv_handle_t *)&h->timer, freed);
}

static void turn(struct h2 *h)
{
	int turns = 0;

	do {
		h->poke = false;
		push(h);
	} while (!h->over && wake(h) && ++turns < TURNS_MAX);
	if (h->poke && !h->over) {
		h->poke = false;
		push(h);
	}
	if (turns == TURNS_MAX)
		chan_again(h->chan);
}

/* Nothing more is to be read or said; what we said last may wait for its reader, for a while. */
static void leave(struct h2 *h)
{
	if (h->over || nghttp2_session_want_read(h->ses))
		return;
	if (!h->rest_n && !nghttp2_session_want_write(h->ses))
		h->over = true;
	else if (!h->leave_at)
		h->leave_at = loop_now(h->loop) + H2_DRAIN_MS;
}

static void edge(void *arg)
{
	struct h2 *h = arg;
	bool over;

	h->busy = true;
	timely(h);
	pull(h);
	turn(h);
	leave(h);
	over = h->over && !h->told;
	if (over) {
		h->told = true;
		cut_all(h);
	}
	h->busy = false;
	if (h->freed) {
		destroy(h);
		return;
	}
	sweep(h);
	if (!h->over)
		arm(h);
	else
		(void)uv_timer_stop(&h->timer);
	if (h->poke && !h->over)
		chan_again(h->chan);
	h->side->settle(h, over);
}

void h2_done(struct h2 *h)
{
	if (h->freed)
		return;
	h->freed = true;
	if (!h->told) {
		h->told = true;
		cut_all(h);
	}
	h->over = true;
	if (!h->busy)
		destroy(h);
}

static int callbacks(nghttp2_session_callbacks **ret)
{
	nghttp2_session_callbacks *cb;

	if (nghttp2_session_callbacks_new(&cb) != 0)
		return -ENOMEM;
	nghttp2_session_callbacks_set_on_begin_frame_callback(cb, on_begin_frame);
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_invalid_header_callback(cb, on_invalid_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cb, on_invalid_frame);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_sent);
	nghttp2_session_callbacks_set_on_frame_not_send_callback(cb, on_not_sent);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_closed);
	*ret = cb;
	return 0;
}

static int session(struct h2 *h, nghttp2_mem *mem)
{
	nghttp2_session_callbacks *cb = NULL;
	nghttp2_option *o = NULL;
	int r;

	if (callbacks(&cb) < 0 || nghttp2_option_new(&o) != 0) {
		nghttp2_session_callbacks_del(cb);
		return -ENOMEM;
	}
	nghttp2_option_set_no_auto_window_update(o, 1);
	nghttp2_option_set_max_reserved_remote_streams(o, 0);
	nghttp2_option_set_max_outbound_ack(o, H2_QUEUE_MAX);
	nghttp2_option_set_max_send_header_block_length(o, BLOCK_MAX);
	/* ours counts better: those that were not answered */
	nghttp2_option_set_stream_reset_rate_limit(o, H2_RESETS_MAX * 50UL, H2_RESETS_MAX * 5UL);
	r = h->side->begin ? nghttp2_session_server_new3(&h->ses, cb, h, o, mem)
			   : nghttp2_session_client_new3(&h->ses, cb, h, o, mem);
	nghttp2_session_callbacks_del(cb);
	nghttp2_option_del(o);
	return r == 0 ? 0 : -ENOMEM;
}

int h2_open(struct h2 *h, const struct h2_side *side, struct loop *l, struct chan *c,
	    const nghttp2_settings_entry *set, size_t n_set, nghttp2_mem *mem)
{
	static const struct chan_ops ops = { .edge = edge };

	h->side = side;
	h->loop = l;
	h->chan = c;
	h->opened_at = h->active_at = h->flood_at = loop_now(l);
	(void)uv_timer_init(&l->uv, &h->timer);
	h->timer.data = h;
	if (session(h, mem) < 0 ||
	    nghttp2_submit_settings(h->ses, NGHTTP2_FLAG_NONE, set, n_set) != 0 ||
	    nghttp2_session_set_local_window_size(h->ses, NGHTTP2_FLAG_NONE, 0,
						  (int32_t)side->conn_window) != 0)
		return -ENOMEM;
	chan_owner(c, &ops, h);
	arm(h);
	chan_again(c);
	return 0;
}
