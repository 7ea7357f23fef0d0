#pragma once
/* HTTP/2 (RFC 9113) on one connection, by nghttp2: what the front and the back of h2 have in common.
 *
 * All of nghttp2 runs in edge(), which the chan calls. What xchg calls (answer, data, end, fail, resume) only puts things down and
 * asks for an edge, so that no call into nghttp2 happens within another, and a stream is freed only at the end of an edge.
 *
 * Bodies. From the peer: what the other half does not take at once is held in `in`; only what was taken is given back to the
 * peer as window, so the windows bound what is held. To the peer: `out`, at most H2_OUT_MAX a stream and H2_OUT_ALL_MAX together;
 * it is emptied as the peer's windows and the chan allow. */
#include <nghttp2/nghttp2.h>

#include "base/buf.h"
#include "proxy/chan.h"
#include "proxy/xchg.h"

enum {
	H2_STREAMS_MAX = 128,
	H2_FRONT_WINDOW = 64 * 1024,
	H2_FRONT_CONN_WINDOW = 1024 * 1024,
	/* A server is far away: a window is what arrives in a round trip. */
	H2_BACK_WINDOW = 1024 * 1024,
	H2_BACK_CONN_WINDOW = 4 * 1024 * 1024,
	H2_OUT_MAX = XCHG_HOLD_MAX,
	H2_OUT_ALL_MAX = 1024 * 1024,
	H2_INFORMED_MAX = 32, /* 1xx of one answer */
	/* Floods, within H2_FLOOD_MS: streams that the client opened and reset before an answer, and frames that carry nothing, as far
	 * as nothing that we sent called for them. */
	H2_FLOOD_MS = 10 * 1000,
	H2_RESETS_MAX = 200,
	H2_IDLE_FRAMES_MAX = 2000,
	H2_CRUMBS_MAX = 256, /* a byte of HPACK may be one, and each is a copy of those before */
	H2_QUEUE_MAX = 1000, /* frames that wait for a peer that does not read */
	/* until the peer's SETTINGS; a guest may be an emulated one that is busy */
	H2_FRONT_START_MS = 60 * 1000,
	H2_BACK_START_MS = 10 * 1000,
	H2_HEAD_MS = 60 * 1000, /* for one block of headers */
	H2_IDLE_MS = 10 * 60 * 1000,
	H2_DRAIN_MS = 5 * 1000,
	H2_LINGER_MS = 1000, /* a client that has its answer ends its request itself, as a rule */
};

struct h2;

struct h2_stream {
	struct h2_stream *next, **prev;
	struct h2 *h2;
	int32_t id;
	struct xchg *x; /* NULL: over, or not begun */
	bool over;
	bool closed; /* nghttp2 knows it no more */

	/* from the peer */
	struct xhead head;
	bool has_host, has_scheme, head_done;
	uint16_t fault; /* why the head cannot be taken, as a status; 0: it can */
	const char *why;
	uint16_t n_crumbs; /* of its Cookie field */
	struct hfields trailers;
	struct buf in;
	bool in_end, in_told, delivering, resumed;
	bool malformed; /* found by us */
	bool reset;     /* by the peer */
	uint32_t code;

	/* to the peer */
	struct buf out;
	struct hfields out_trailers;
	bool out_end, out_wanted; /* the giver was refused some */
	bool spoilt;              /* what is there goes out, and then RST_STREAM */

	/* of the front */
	bool answered, deaf; /* deaf: no body is expected; what comes is dropped */
	bool sent_head, sent_end;
	/* of the back */
	bool head_only, tunnel, body; /* body: one was announced */
	unsigned informed;
	uint64_t born; /* h2->bytes at its beginning */
};

/* What differs between the client's and the server's end. */
struct h2_side {
	uint32_t window, conn_window, start_ms;
	/* A request's block of headers begins (front). NULL: no memory. */
	struct h2_stream *(*begin)(struct h2 *h, int32_t id);
	/* s->head is whole, good or not (s->fault). end: nothing follows. */
	void (*head)(struct h2_stream *s, bool end);
	size_t (*take)(struct xchg *x, const uint8_t *p, size_t n);
	void (*take_end)(struct h2_stream *s, struct hfields *trailers);
	void (*room)(struct xchg *x);
	/* nghttp2 has closed the stream: s->closed, s->code. */
	void (*closed)(struct h2_stream *s);
	/* The connection is over, or is cut. */
	void (*cut)(struct h2_stream *s);
	void (*received)(struct h2 *h, const nghttp2_frame *f);
	/* At the end of an edge; over: nothing more happens here. It may free. */
	void (*settle)(struct h2 *h, bool over);
};

struct h2 {
	const struct h2_side *side;
	struct loop *loop;
	struct chan *chan;
	nghttp2_session *ses;
	uv_timer_t timer;
	struct h2_stream *streams;
	unsigned n_open; /* not closed */
	size_t out_held;
	const uint8_t *rest; /* what the chan did not take of a frame */
	size_t rest_n;
	uint64_t bytes;     /* received */
	const char *detail; /* how it ended, for people */
	bool busy, freed, over, told, started, draining, drained, sweep, poke;

	/* ms; block_at, drain_at, leave_at, linger_at: 0 is none */
	uint64_t opened_at, active_at, block_at, drain_at, leave_at, linger_at, armed_at;
	uint64_t flood_at;
	unsigned resets, idle_frames, sent_frames;
};

/* ---- h2-conn.c ---- */
/* h is zeroed. c is taken over. mem: NULL for malloc(3). 0 or -ENOMEM: then c is freed, and h is to be given up by h2_done(). */
int h2_open(struct h2 *h, const struct h2_side *side, struct loop *l, struct chan *c,
	    const nghttp2_settings_entry *set, size_t n_set, nghttp2_mem *mem) _must_check_;
/* h is free()d by and by: it must be the first member of what was allocated. Exchanges are cut. */
void h2_done(struct h2 *h);
/* Ask for an edge. */
void h2_poke(struct h2 *h);
/* The exchange is over, and our last byte was sent. */
void h2_linger(struct h2_stream *s);
/* Begin no more; *now: cut what is under way. */
void h2_stop(struct h2 *h, bool now);
/* Bad behaviour: GOAWAY(ENHANCE_YOUR_CALM), and the end. */
void h2_calm(struct h2 *h);

/* ---- h2-stream.c ---- */
struct h2_stream *h2_stream_new(struct h2 *h, int32_t id);
struct h2_stream *h2_stream_free(struct h2_stream *s);
/* x is not spoken with any more. */
void h2_stream_over(struct h2_stream *s);
/* Over, and RST_STREAM. */
void h2_stream_reset(struct h2_stream *s, uint32_t code);
/* Bytes of the body from the peer, held if they must be. 0 or -ENOMEM. */
int h2_stream_take(struct h2_stream *s, const uint8_t *p, size_t n) _must_check_;
/* Give on what is held, and the end. */
void h2_stream_deliver(struct h2_stream *s);
/* What xchg calls. */
size_t h2_stream_data(void *arg, const uint8_t *p, size_t n);
void h2_stream_resume(void *arg);
/* The body is complete. A lack of memory resets the stream. */
void h2_stream_end(struct h2_stream *s, const struct hfields *trailers);
/* There is room for somebody who was refused. */
bool h2_stream_roomy(const struct h2_stream *s);
/* The data provider. */
ssize_t h2_stream_read(nghttp2_session *ses, int32_t id, uint8_t *p, size_t max, uint32_t *flags,
		       nghttp2_data_source *source, void *user);

/* ---- h2-head.c ---- */
struct h2_nva {
	nghttp2_nv v[HTTP_FIELDS_MAX + 16];
	size_t n;
	char number[24], status[4], authority[HOST_NAME_MAX_LEN + 16];
};
/* A field of a head or of trailers, as it came. What is wrong goes into s->fault. */
void h2_head_field(struct h2_stream *s, const char *name, size_t name_n, const char *value,
		   size_t value_n);
/* A request's head is whole: judge it, fill in path. */
void h2_head_request(struct h2_stream *s);
/* Borrowed from what they are made of. */
void h2_nva_request(struct h2_nva *a, const struct xhead *h);
void h2_nva_answer(struct h2_nva *a, const struct xhead *h);
void h2_nva_fields(struct h2_nva *a, const struct hfields *f);
