#include "proxy/h2.h"

struct h2_stream *h2_stream_new(struct h2 *h, int32_t id)
{
	struct h2_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->h2 = h;
	s->id = id;
	s->born = h->bytes;
	buf_init(&s->in, MAX(h->side->window, (uint32_t)XCHG_HOLD_MAX));
	buf_init(&s->out, H2_OUT_MAX);
	s->next = h->streams;
	s->prev = &h->streams;
	if (s->next)
		s->next->prev = &s->next;
	h->streams = s;
	h->n_open++;
	return s;
}

/* A body may have got a credential. */
static void wipe(struct buf *b)
{
	if (b->p)
		explicit_bzero(b->p, b->cap);
	buf_done(b);
}

struct h2_stream *h2_stream_free(struct h2_stream *s)
{
	if (!s)
		return NULL;
	*s->prev = s->next;
	if (s->next)
		s->next->prev = s->prev;
	if (!s->closed)
		s->h2->n_open--;
	s->h2->out_held -= s->out.n;
	xhead_done(&s->head);
	hfields_done(&s->trailers);
	hfields_done(&s->out_trailers);
	wipe(&s->in);
	wipe(&s->out);
	free(s);
	return NULL;
}

void h2_stream_over(struct h2_stream *s)
{
	s->x = NULL;
	s->over = true;
	s->h2->sweep = true;
	if (s->in.n) { /* nobody will take it */
		const size_t n = s->in.n;

		buf_consume(&s->in, n);
		(void)nghttp2_session_consume(s->h2->ses, s->id, n);
	}
	h2_poke(s->h2);
}

void h2_stream_reset(struct h2_stream *s, uint32_t code)
{
	h2_stream_over(s);
	if (!s->closed)
		(void)nghttp2_submit_rst_stream(s->h2->ses, NGHTTP2_FLAG_NONE, s->id, code);
}

/* ---- from the peer ---- */

/* What was taken is window again: the connection's alone if nghttp2 has closed the stream. */
static void taken(struct h2_stream *s, size_t n)
{
	if (n)
		(void)nghttp2_session_consume(s->h2->ses, s->id, n);
}

int h2_stream_take(struct h2_stream *s, const uint8_t *p, size_t n)
{
	size_t k = 0;

	if (!s->x || s->deaf) {
		taken(s, n);
		return 0;
	}
	if (!s->in.n && !s->delivering) {
		s->delivering = true;
		k = s->h2->side->take(s->x, p, n);
		s->delivering = false;
	}
	if (!s->x)
		k = n;
	taken(s, k);
	return k < n ? buf_add(&s->in, p + k, n - k) : 0;
}

static void deliver_end(struct h2_stream *s)
{
	if (!s->x || s->deaf || s->in.n || !s->in_end || s->in_told)
		return;
	s->in_told = true;
	s->h2->side->take_end(s, s->trailers.n ? &s->trailers : NULL);
}

void h2_stream_deliver(struct h2_stream *s)
{
	if (s->delivering)
		return;
	s->delivering = true;
	while (s->x && s->in.n) {
		size_t k = s->h2->side->take(s->x, buf_data(&s->in), s->in.n);

		if (!s->x || !k)
			break;
		buf_consume(&s->in, k);
		taken(s, k);
	}
	if (!s->in.n)
		buf_done(&s->in);
	deliver_end(s);
	s->delivering = false;
}

void h2_stream_resume(void *arg)
{
	struct h2_stream *s = arg;

	s->resumed = true;
	h2_poke(s->h2);
}

/* ---- to the peer ---- */

static size_t room(const struct h2_stream *s)
{
	const struct h2 *h = s->h2;
	const size_t all = H2_OUT_ALL_MAX - MIN(h->out_held, (size_t)H2_OUT_ALL_MAX);

	return MIN(buf_space(&s->out), all);
}

static void awake(struct h2_stream *s)
{
	(void)nghttp2_session_resume_data(s->h2->ses, s->id); /* it may not sleep */
	h2_poke(s->h2);
}

size_t h2_stream_data(void *arg, const uint8_t *p, size_t n)
{
	struct h2_stream *s = arg;
	size_t k = MIN(n, room(s));

	if (s->closed || s->out_end)
		return n;
	if (k && buf_add(&s->out, p, k) < 0)
		k = 0;
	s->h2->out_held += k;
	s->out_wanted |= k < n;
	if (k)
		awake(s);
	return k;
}

static int copy_trailers(struct h2_stream *s, const struct hfields *f)
{
	int r = 0;

	for (size_t i = 0; i < f->n && r == 0; i++) {
		r = hfields_add(&s->out_trailers, f->v[i].name, f->v[i].name_len, f->v[i].value,
				f->v[i].value_len);
		if (r == 0)
			s->out_trailers.v[i].secret = f->v[i].secret;
	}
	return r;
}

void h2_stream_end(struct h2_stream *s, const struct hfields *trailers)
{
	if (s->closed || s->out_end)
		return;
	s->out_end = true;
	if (trailers && copy_trailers(s, trailers) < 0)
		(void)nghttp2_submit_rst_stream(s->h2->ses, NGHTTP2_FLAG_NONE, s->id,
						NGHTTP2_INTERNAL_ERROR);
	awake(s);
}

bool h2_stream_roomy(const struct h2_stream *s)
{
	return s->out_wanted && s->x && !s->closed && s->out.n <= H2_OUT_MAX / 2 &&
	       s->h2->out_held <= H2_OUT_ALL_MAX / 2;
}

ssize_t h2_stream_read(nghttp2_session *ses, int32_t id, uint8_t *p, size_t max, uint32_t *flags,
		       nghttp2_data_source *source, void *user)
{
	struct h2_stream *s = source->ptr;
	const size_t n = MIN(max, s->out.n);

	(void)user;
	if (n) {
		memcpy(p, buf_data(&s->out), n);
		buf_consume(&s->out, n);
		s->h2->out_held -= n;
	}
	if (s->spoilt && !n)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* RST_STREAM(INTERNAL_ERROR) */
	if (s->out.n || !s->out_end || s->spoilt)
		return n ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (s->out_trailers.n) {
		struct h2_nva a = { .n = 0 };

		h2_nva_fields(&a, &s->out_trailers);
		if (nghttp2_submit_trailer(ses, id, a.v, a.n) == 0)
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
	}
	return (ssize_t)n;
}
