/* Front and back of HTTP/2 joined by the plainest exchange there can be, between two peers that speak by nghttp2 themselves. */
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "proxy/chan.h"
#include "proxy/xchg.h"

enum { ROUNDS = 20000, TEXT_MAX = 4096, STREAMS = 256 };

static struct loop loop;

/* ---- the exchange ---- */

struct xchg {
	struct front *f;
	const struct front_ops *front;
	const struct back_ops *back;
	void *fs, *bs;
	bool body, up_ended, connect, tunnel;
};

static struct back *upstream;
static unsigned alive, untouched, gone_fronts, changes;
static char last_detail[200];
static struct xhead last_request;

static void done(struct xchg *x)
{
	alive--;
	free(x);
}

static void refuse(const struct front_ops *ops, void *s, uint16_t status)
{
	struct xhead h = { .status = status, .no_body = true };

	ops->answer(s, &h);
	ops->end(s, NULL);
}

struct xchg *xchg_request(struct front *f, const struct front_ops *ops, void *s, struct xhead *h,
			  bool body)
{
	struct xchg *x = calloc(1, sizeof(*x));

	check(x);
	*x = (struct xchg) {
		.f = f, .front = ops, .fs = s, .body = body, .connect = streq(h->method, "CONNECT")
	};
	alive++;
	if (h->status || !upstream || upstream->begin(upstream, x, h, body, &x->bs, &x->back) < 0) {
		refuse(ops, s, h->status ? h->status : 503);
		done(x);
	}
	xhead_done(&last_request);
	last_request = *h;
	return x;
}

size_t xchg_up(struct xchg *x, const uint8_t *p, size_t n)
{
	return x->back->data(x->bs, p, n);
}

void xchg_up_end(struct xchg *x, struct hfields *trailers)
{
	x->up_ended = true;
	x->back->end(x->bs, trailers);
}

void xchg_front_gone(struct xchg *x, enum xchg_fault why)
{
	(void)why;
	gone_fronts++;
	x->back->cancel(x->bs);
	done(x);
}

void xchg_down_room(struct xchg *x)
{
	x->back->resume(x->bs);
}

void xchg_answer(struct xchg *x, struct xhead *h)
{
	x->tunnel = x->connect && h->status / 100 == 2;
	x->front->answer(x->fs, h);
	xhead_done(h);
}

size_t xchg_down(struct xchg *x, const uint8_t *p, size_t n)
{
	return x->front->data(x->fs, p, n);
}

void xchg_down_end(struct xchg *x, struct hfields *trailers)
{
	x->front->end(x->fs, trailers);
	if (x->tunnel || (x->body && !x->up_ended))
		x->back->cancel(x->bs);
	done(x);
}

void xchg_back_gone(struct xchg *x, enum xchg_fault why, const char *detail)
{
	untouched += why == XCHG_UNTOUCHED;
	(void)snprintf(last_detail, sizeof(last_detail), "%d %s", why, detail);
	x->front->fail(x->fs, why);
	done(x);
}

void xchg_up_room(struct xchg *x)
{
	x->front->resume(x->fs);
}

/* ---- peers ---- */

struct peer;
struct peer_stream {
	struct peer *p;
	int32_t id;
	char text[TEXT_MAX]; /* "name: value\n" as they came; trailers are behind "--\n" */
	bool blocks, end, closed;
	uint32_t code;
	size_t got;
	uint64_t sum;
	/* what it sends */
	uint8_t echo[1 << 20];
	size_t have, sent, make; /* of echo; or made up */
	bool send_end, echoes, trailers;
};

struct peer {
	nghttp2_session *ses;
	int fd;
	bool server, stalled, no_window, gone;
	struct peer_stream *s[STREAMS];
	size_t n;
	uint32_t goaway;
	int32_t last, early;
	uint32_t early_code;
	unsigned goaways, pings, settings;
	uint8_t out[1 << 16];
	size_t out_n, out_at;
};

static struct peer client, server;
static struct front *front;
static bool front_closed;

static struct peer_stream *stream(struct peer *p, int32_t id)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->s[i]->id == id)
			return p->s[i];
	check(p->n < STREAMS);
	p->s[p->n] = calloc(1, sizeof(**p->s));
	check(p->s[p->n]);
	p->s[p->n]->id = id;
	p->s[p->n]->p = p;
	return p->s[p->n++];
}

static bool has(const struct peer_stream *s, const char *line)
{
	return strstr(s->text, line) != NULL;
}

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 31 + i / 4093);
}

static ssize_t make_body(nghttp2_session *ses, int32_t id, uint8_t *p, size_t max, uint32_t *flags,
			 nghttp2_data_source *source, void *user)
{
	struct peer_stream *s = source->ptr;
	size_t n = MIN(max, (s->echoes ? s->have : s->make) - s->sent);

	(void)user;
	for (size_t i = 0; i < n; i++)
		p[i] = s->echoes ? s->echo[(s->sent + i) % sizeof(s->echo)] : byte_at(s->sent + i);
	s->sent += n;
	if (s->sent < (s->echoes ? s->have : s->make) || !s->send_end)
		return n ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (s->trailers) {
		nghttp2_nv t = { (uint8_t *)"grpc-status", (uint8_t *)"0", 11, 1, 0 };

		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		check(nghttp2_submit_trailer(ses, id, &t, 1) == 0);
	}
	return (ssize_t)n;
}

static nghttp2_nv nv(const char *name, const char *value)
{
	return (nghttp2_nv) { (uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), 0 };
}

/* What the server does is said by the path. */
static void respond(struct peer_stream *s, const char *status)
{
	nghttp2_data_provider body = { .source.ptr = s, .read_callback = make_body };
	nghttp2_nv a[] = { nv(":status", status), nv("x-is", "Mixed Value"),
			   nv("set-cookie", "a=1") };

	check(nghttp2_submit_response(s->p->ses, s->id, a, 3, &body) == 0);
}

static void respond_empty(struct peer_stream *s, const char *status)
{
	nghttp2_nv a[] = { nv(":status", status) };

	check(nghttp2_submit_response(s->p->ses, s->id, a, 1, NULL) == 0);
}

static void inform(struct peer_stream *s, const char *status)
{
	nghttp2_nv a[] = { nv(":status", status), nv("link", "</a.css>; rel=preload") };

	check(nghttp2_submit_headers(s->p->ses, 0, s->id, NULL, a, 2, NULL) == 0);
}

static void rst(struct peer_stream *s, uint32_t code)
{
	check(nghttp2_submit_rst_stream(s->p->ses, 0, s->id, code) == 0);
}

static void do_echo(struct peer_stream *s)
{
	s->echoes = true;
	s->send_end = s->end;
	respond(s, "200");
}

static void do_trailers(struct peer_stream *s)
{
	s->trailers = true;
	s->echoes = true;
	s->send_end = s->end;
	respond(s, "200");
}

static void do_big(struct peer_stream *s)
{
	s->make = 8 * 1024 * 1024;
	s->send_end = true;
	respond(s, "200");
}

static void do_hints(struct peer_stream *s)
{
	inform(s, "100");
	inform(s, "103");
	s->make = 5;
	s->send_end = true;
	respond(s, "200");
}

static void do_many_hints(struct peer_stream *s)
{
	for (int i = 0; i < 40; i++)
		inform(s, "103");
	respond_empty(s, "204");
}

static void do_204(struct peer_stream *s)
{
	respond_empty(s, "204");
}

static void do_304(struct peer_stream *s)
{
	nghttp2_nv a[] = { nv(":status", "304"), nv("content-length", "77") };

	check(nghttp2_submit_response(s->p->ses, s->id, a, 2, NULL) == 0);
}

static void do_refuse(struct peer_stream *s)
{
	rst(s, NGHTTP2_REFUSED_STREAM);
}

static void do_rst(struct peer_stream *s)
{
	s->make = 10;
	respond(s, "200");
	rst(s, NGHTTP2_INTERNAL_ERROR);
}

static void do_early(struct peer_stream *s)
{
	respond_empty(s, "403");
	s->p->early = s->id; /* RST_STREAM behind it */
	s->p->early_code = NGHTTP2_NO_ERROR;
}

static void do_cut(struct peer_stream *s)
{
	s->make = 10;
	respond(s, "200");
	s->p->early = s->id;
	s->p->early_code = NGHTTP2_CANCEL;
}

static void do_short(struct peer_stream *s)
{
	nghttp2_data_provider body = { .source.ptr = s, .read_callback = make_body };
	nghttp2_nv a[] = { nv(":status", "200"), nv("content-length", "10") };

	s->make = 4;
	s->send_end = true;
	check(nghttp2_submit_response(s->p->ses, s->id, a, 2, &body) == 0);
}

static void do_goaway(struct peer_stream *s)
{
	check(nghttp2_submit_goaway(s->p->ses, 0, 0, NGHTTP2_NO_ERROR, NULL, 0) == 0);
}

static void do_nothing(struct peer_stream *s)
{
	(void)s;
}

static void do_fields(struct peer_stream *s)
{
	nghttp2_nv a[130];

	a[0] = nv(":status", "200");
	for (size_t i = 1; i < 130; i++)
		a[i] = nv("x-field", "value");
	check(nghttp2_submit_response(s->p->ses, s->id, a, 130, NULL) == 0);
}

static const struct {
	const char *path;
	void (*run)(struct peer_stream *s);
	bool at_end;
} paths[] = {
	{ "/echo", do_echo },
	{ "/trailers", do_trailers },
	{ "/big", do_big, true },
	{ "/hints", do_hints, true },
	{ "/many-hints", do_many_hints, true },
	{ "/204", do_204, true },
	{ "/304", do_304, true },
	{ "/refuse", do_refuse },
	{ "/rst", do_rst },
	{ "/early", do_early },
	{ "/short", do_short },
	{ "/cut", do_cut },
	{ "/goaway", do_goaway },
	{ "/nothing", do_nothing },
	{ "/fields", do_fields },
};

static void serve(struct peer_stream *s, bool at_end)
{
	const char *line = strstr(s->text, ":path: ");
	size_t n = line ? strcspn(line + 7, " \n?") : 0;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (n == strlen(paths[i].path) && !memcmp(line + 7, paths[i].path, n) &&
		    paths[i].at_end == at_end)
			paths[i].run(s);
}

static int on_header(nghttp2_session *ses, const nghttp2_frame *f, const uint8_t *name, size_t n,
		     const uint8_t *value, size_t value_n, uint8_t flags, void *user)
{
	struct peer_stream *s = stream(user, f->hd.stream_id);
	const size_t at = strlen(s->text);

	(void)ses;
	(void)snprintf(s->text + at, TEXT_MAX - at, "%.*s: %.*s%s\n", (int)n, (const char *)name,
		       (int)value_n, (const char *)value,
		       flags & NGHTTP2_NV_FLAG_NO_INDEX ? " (secret)" : "");
	return 0;
}

static int on_begin_headers(nghttp2_session *ses, const nghttp2_frame *f, void *user)
{
	struct peer_stream *s = stream(user, f->hd.stream_id);
	const size_t at = strlen(s->text);

	(void)ses;
	if (s->blocks)
		(void)snprintf(s->text + at, TEXT_MAX - at, "--\n");
	s->blocks = true;
	return 0;
}

static int on_data(nghttp2_session *ses, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
		   void *user)
{
	struct peer_stream *s = stream(user, id);

	(void)flags;
	for (size_t i = 0; i < n; i++)
		s->sum = s->sum * 31 + p[i];
	if (s->echoes)
		for (size_t i = 0; i < n; i++)
			s->echo[s->have++ % sizeof(s->echo)] = p[i];
	s->got += n;
	(void)nghttp2_session_resume_data(ses, id);
	if (!s->p->no_window)
		check(nghttp2_session_consume(ses, id, n) == 0);
	return 0;
}

static int on_frame(nghttp2_session *ses, const nghttp2_frame *f, void *user)
{
	struct peer *p = user;
	struct peer_stream *s = f->hd.stream_id ? stream(p, f->hd.stream_id) : NULL;
	const bool message = f->hd.type == NGHTTP2_HEADERS || f->hd.type == NGHTTP2_DATA;

	if (f->hd.type == NGHTTP2_GOAWAY) {
		p->goaways++;
		p->goaway = f->goaway.error_code;
		p->last = f->goaway.last_stream_id;
	}
	p->settings += f->hd.type == NGHTTP2_SETTINGS && !(f->hd.flags & NGHTTP2_FLAG_ACK);
	p->pings += f->hd.type == NGHTTP2_PING;
	if (s && message && (f->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
		s->end = true;
		s->send_end |= s->echoes;
		(void)nghttp2_session_resume_data(ses, s->id);
	}
	if (p->server && f->hd.type == NGHTTP2_HEADERS && f->headers.cat == NGHTTP2_HCAT_REQUEST)
		serve(s, false);
	if (p->server && s && message && s->end)
		serve(s, true);
	return 0;
}

static int on_close(nghttp2_session *ses, int32_t id, uint32_t code, void *user)
{
	struct peer_stream *s = stream(user, id);

	(void)ses;
	s->closed = true;
	s->code = code;
	return 0;
}

static void peer_open(struct peer *p, int fd, bool is_server, uint32_t max)
{
	const nghttp2_settings_entry set[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, max },
		{ NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1 },
	};
	nghttp2_session_callbacks *cb;
	nghttp2_option *o;

	*p = (struct peer) { .fd = fd, .server = is_server };
	check(nghttp2_session_callbacks_new(&cb) == 0 && nghttp2_option_new(&o) == 0);
	nghttp2_option_set_no_auto_window_update(o, 1);
	nghttp2_option_set_max_send_header_block_length(o, 1 << 20);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
	check((is_server ? nghttp2_session_server_new2(&p->ses, cb, p, o)
			 : nghttp2_session_client_new2(&p->ses, cb, p, o)) == 0);
	nghttp2_session_callbacks_del(cb);
	nghttp2_option_del(o);
	check(nghttp2_submit_settings(p->ses, 0, set, is_server ? 2 : 0) == 0);
}

static void peer_close(struct peer *p)
{
	nghttp2_session_del(p->ses);
	for (size_t i = 0; i < p->n; i++)
		free(p->s[i]);
	if (p->fd >= 0)
		check(close(p->fd) == 0);
	*p = (struct peer) { .fd = -1 };
}

static bool peer_send(struct peer *p)
{
	bool any = false;

	while (p->fd >= 0) {
		const uint8_t *q;
		ssize_t n;

		if (p->out_at == p->out_n) {
			n = nghttp2_session_mem_send(p->ses, &q);
			check(n >= 0 && (size_t)n <= sizeof(p->out));
			if (!n)
				return any;
			memcpy(p->out, q, (size_t)n);
			p->out_n = (size_t)n;
			p->out_at = 0;
		}
		n = send(p->fd, p->out + p->out_at, p->out_n - p->out_at,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return any;
		p->out_at += (size_t)n;
		any = true;
	}
	return any;
}

static bool peer_run(struct peer *p)
{
	uint8_t b[16384];
	bool any = peer_send(p);

	while (p->fd >= 0 && !p->stalled && !p->gone) {
		ssize_t n = recv(p->fd, b, sizeof(b), MSG_DONTWAIT);

		p->gone = n == 0;
		if (n <= 0)
			break;
		any = true;
		check(nghttp2_session_mem_recv(p->ses, b, (size_t)n) == n);
	}
	any |= peer_send(p);
	if (p->early)
		check(nghttp2_submit_rst_stream(p->ses, 0, p->early, p->early_code) == 0);
	p->early = 0;
	return peer_send(p) || any;
}

/* Until nothing moves any more. */
static void settle(void)
{
	unsigned quiet = 0;

	for (unsigned i = 0; i < ROUNDS && quiet < 20; i++) {
		bool any = peer_run(&client);

		any |= peer_run(&server);
		(void)uv_run(&loop.uv, UV_RUN_NOWAIT);
		quiet = any ? 0 : quiet + 1;
	}
	check(quiet == 20);
}

/* ---- the rig ---- */

static void on_front_closed(void *conn)
{
	check(conn == &client);
	front_closed = true;
	front = front->free(front);
}

static void on_changed(void *owner)
{
	check(owner == &server);
	changes++;
}

static struct chan *join(int *ret_fd)
{
	struct chan *c;
	int fd[2];

	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) == 0);
	c = chan_plain(&loop, fd[0], "h2");
	check(c);
	*ret_fd = fd[1];
	return c;
}

static void up(uint32_t max)
{
	struct chan *c;
	int fd;

	alive = untouched = gone_fronts = changes = 0;
	front_closed = false;
	c = join(&fd);
	peer_open(&server, fd, true, max);
	upstream = back_h2(&loop, c, &server, on_changed);
	c = join(&fd);
	peer_open(&client, fd, false, 100);
	front = front_h2(&loop, c, &client, on_front_closed, true);
	check(upstream && front && streq(front->proto, "h2"));
	settle();
	check(upstream->alive && upstream->room == MIN(max, 128U) && upstream->connect_protocol);
}

static void down(void)
{
	if (front)
		front = front->free(front);
	if (upstream)
		upstream = upstream->free(upstream);
	check(alive == 0);
	settle();
	peer_close(&client);
	peer_close(&server);
	xhead_done(&last_request);
	last_request = (struct xhead) { 0 };
}

static struct peer_stream *ask_with(const char *method, const char *path, size_t body, bool end,
				    const nghttp2_nv *more, size_t n)
{
	nghttp2_nv a[140] = { nv(":method", method), nv(":scheme", "https"),
			      nv(":authority", "a.example"), nv(":path", path) };
	nghttp2_data_provider source = { .read_callback = make_body };
	struct peer_stream *s;
	int32_t id = nghttp2_session_get_next_stream_id(client.ses);

	for (size_t i = 0; i < n; i++)
		a[4 + i] = more[i];
	s = stream(&client, id);
	s->make = body;
	s->send_end = end;
	source.source.ptr = s;
	check(nghttp2_submit_request(client.ses, NULL, a, 4 + n, body || !end ? &source : NULL,
				     s) == id);
	return s;
}

static struct peer_stream *ask(const char *method, const char *path, size_t body)
{
	return ask_with(method, path, body, true, NULL, 0);
}

/* ---- tests ---- */

static void messages(void)
{
	const nghttp2_nv cookies[] = { nv("cookie", "a=1"), nv("te", "trailers"),
				       nv("cookie", "b=2"), nv("host", "A.example:443"),
				       nv("proxy-authorization", "x") };
	struct peer_stream *s, *t;

	up(100);
	s = ask("GET", "/hints?x=%20y", 0);
	settle();
	check(has(s, ":status: 100\n") && has(s, ":status: 103\nlink: </a.css>; rel=preload\n"));
	check(has(s, "--\n:status: 200\nx-is: Mixed Value\nset-cookie: a=1\n"));
	check(s->got == 5 && s->end && s->closed && s->code == 0);
	check(has(server.s[0], ":path: /hints?x=%20y (secret)\n") &&
	      has(server.s[0], ":scheme: https\n"));
	check(streq(last_request.path, "/hints") && streq(last_request.host.text, "a.example"));

	s = ask_with("POST", "/trailers", 300000, true, cookies, 5);
	s->trailers = true;
	settle();
	t = server.s[1];
	check(has(t, "cookie: a=1; b=2 (secret)\n") && has(t, "te: trailers\n") &&
	      !has(t, "proxy") && !has(t, "host:"));
	check(has(t, "--\ngrpc-status: 0\n") && has(s, "--\ngrpc-status: 0\n"));
	check(s->got == 300000 && t->got == 300000 && s->sum == t->sum && s->code == 0);

	s = ask("GET", "/204", 0);
	settle();
	check(has(s, ":status: 204\n") && s->end && s->got == 0 && s->code == 0);
	s = ask("GET", "/304", 0);
	settle();
	check(has(s, "content-length: 77\n") && s->end && s->code == 0);
	s = ask("HEAD", "/204", 0);
	settle();
	check(s->end && s->code == 0);
	check(alive == 0 && upstream->used && upstream->room == 100);
	down();
}

static void bodies(void)
{
	struct peer_stream *s[40];
	size_t held, given;

	up(100);
	for (int i = 0; i < 40; i++)
		s[i] = ask("POST", "/echo", 200000);
	settle();
	for (int i = 0; i < 40; i++)
		check(s[i]->got == 200000 && s[i]->sum == server.s[i]->sum && s[i]->code == 0 &&
		      s[i]->end);
	s[0] = ask("GET", "/big", 0);
	settle();
	check(s[0]->got == 8 * 1024 * 1024 && s[0]->end);

	/* one that does not read stalls itself alone, and not more is held than its windows */
	client.no_window = true;
	s[0] = ask("GET", "/big", 0);
	settle();
	held = s[0]->got;
	check(held > 30000 && held <= 65535 && !s[0]->end);
	/* what the connection's window had left decides how far it got: it may go on to the end of its own */
	s[1] = ask("POST", "/echo", 50000);
	for (given = 0; !s[1]->end && given < s[0]->got + s[1]->got;) {
		const size_t all = s[0]->got + s[1]->got;

		check(nghttp2_session_consume_connection(client.ses, all - given) == 0);
		given = all;
		settle();
	}
	check(s[1]->end && s[1]->got == 50000 && s[0]->got <= 65535 && !s[0]->end);
	client.no_window = false;
	check(nghttp2_session_consume_connection(client.ses, s[0]->got + s[1]->got - given) == 0);
	check(nghttp2_session_consume_stream(client.ses, s[0]->id, s[0]->got) == 0);
	settle();
	check(s[0]->end && s[0]->got == 8 * 1024 * 1024);

	/* the same for an upload that the server does not take */
	server.no_window = true;
	s[0] = ask("POST", "/nothing", 8 * 1024 * 1024);
	settle();
	check(s[0]->sent < 65535 + 2 * 64 * 1024 + 65536 && !s[0]->closed);
	check(nghttp2_submit_rst_stream(client.ses, 0, s[0]->id, NGHTTP2_CANCEL) == 0);
	settle();
	check(gone_fronts == 1 && server.s[server.n - 1]->code == NGHTTP2_CANCEL);
	down();
}

static void faults(void)
{
	struct peer_stream *s;

	up(100);
	s = ask("POST", "/refuse", 10);
	settle();
	check(s->code == NGHTTP2_REFUSED_STREAM && untouched == 1);
	s = ask("GET", "/rst", 0);
	settle();
	check(s->code == NGHTTP2_INTERNAL_ERROR && strstr(last_detail, "INTERNAL_ERROR"));
	s = ask("GET", "/short", 0);
	settle();
	check(s->code == NGHTTP2_INTERNAL_ERROR && !s->end && starts_with(last_detail, "3 "));
	s = ask("GET", "/cut", 0);
	settle();
	check(s->got == 10 && !s->end && s->code == NGHTTP2_INTERNAL_ERROR);
	s = ask("GET", "/many-hints", 0);
	settle();
	check(s->code == NGHTTP2_ENHANCE_YOUR_CALM);
	s = ask("GET", "/fields", 0);
	settle();
	check(s->code == NGHTTP2_ENHANCE_YOUR_CALM && starts_with(last_detail, "4 "));
	/* an answer before the request is whole */
	s = ask_with("POST", "/early", 10, false, NULL, 0);
	settle();
	check(has(s, ":status: 403\n") && s->end && !s->closed && alive == 0);
	s->send_end = true;
	(void)nghttp2_session_resume_data(client.ses, s->id);
	settle();
	check(s->code == NGHTTP2_NO_ERROR && s->closed);
	s = ask("GET", "/204", 0);
	settle();
	check(s->end && upstream->alive && alive == 0);
	down();
}

static void limits(void)
{
	static char large[10][7000];
	nghttp2_nv many[136];
	struct peer_stream *s;

	for (int i = 0; i < 10; i++)
		memset(large[i], 'a' + i, 6999);
	up(2);
	for (size_t i = 0; i < 129; i++)
		many[i] = nv("x", "y");
	s = ask_with("GET", "/204", 0, true, many, 129);
	settle();
	check(has(s, ":status: 431\n") && s->end);
	s = ask_with("GET", "/204", 0, true, many, 128);
	settle();
	check(has(s, ":status: 204\n"));
	for (size_t i = 0; i < 10; i++)
		many[i] = nv("x", large[i]);
	s = ask_with("GET", "/204", 0, true, many, 10);
	settle();
	check(has(s, ":status: 431\n"));
	s = ask_with("GET", "/204", 0, true, many, 9);
	settle();
	check(has(s, ":status: 204\n"));
	many[0] = nv("host", "b.example");
	s = ask_with("GET", "/204", 0, true, many, 1);
	settle();
	check(has(s, ":status: 400\n"));
	/* the server takes two at once */
	check(upstream->room == 2);
	(void)ask("GET", "/nothing", 0);
	(void)ask("GET", "/nothing", 0);
	settle();
	check(upstream->room == 0 && upstream->alive && alive == 2);
	s = ask("GET", "/204", 0);
	settle();
	check(has(s, ":status: 503\n"));
	down();
}

static void tunnel(void)
{
	const nghttp2_nv ws = nv(":protocol", "websocket");
	nghttp2_nv a[] = { nv(":method", "CONNECT"), nv(":protocol", "websocket"),
			   nv(":scheme", "https"),   nv(":authority", "a.example"),
			   nv(":path", "/echo"),     nv("sec-websocket-version", "13") };
	nghttp2_data_provider source = { .read_callback = make_body };
	struct peer_stream *s;

	(void)ws;
	up(100);
	s = stream(&client, nghttp2_session_get_next_stream_id(client.ses));
	s->make = 1000;
	source.source.ptr = s;
	check(nghttp2_submit_request(client.ses, NULL, a, 6, &source, s) == s->id);
	settle();
	check(has(s, ":status: 200\n") && s->got == 1000 && !s->end);
	check(has(server.s[0], ":protocol: websocket\n") &&
	      streq(last_request.protocol, "websocket"));
	s->make = 2000;
	(void)nghttp2_session_resume_data(client.ses, s->id);
	settle();
	check(s->got == 2000);
	s->send_end = true;
	(void)nghttp2_session_resume_data(client.ses, s->id);
	settle();
	check(s->end && s->closed && s->code == 0 && alive == 0);
	down();
}

static void endings(void)
{
	struct peer_stream *s, *t;

	/* the server's GOAWAY: what it has not begun with is said to be untouched */
	up(100);
	s = ask("GET", "/goaway", 0);
	settle();
	check(s->code == NGHTTP2_REFUSED_STREAM && untouched == 1 && !upstream->alive &&
	      changes > 0);
	down();

	/* the client's connection breaks: the server hears of it */
	up(100);
	(void)ask("POST", "/nothing", 10);
	settle();
	check(close(client.fd) == 0);
	client.fd = -1;
	settle();
	check(front_closed && gone_fronts == 1 && server.s[0]->code == NGHTTP2_CANCEL);
	down();

	/* the server's breaks */
	up(100);
	s = ask("GET", "/nothing", 0);
	settle();
	check(close(server.fd) == 0);
	server.fd = -1;
	settle();
	check(s->code == NGHTTP2_INTERNAL_ERROR && !upstream->alive && !front_closed);
	down();

	/* graceful: what is under way is finished, and a request that crosses the first GOAWAY too */
	up(100);
	s = ask_with("POST", "/echo", 100, false, NULL, 0);
	settle();
	front->stop(front, false);
	t = ask("GET", "/204", 0);
	settle();
	check(t->end && t->code == 0 && client.goaways == 2 && client.goaway == 0 && !front_closed);
	check(client.last == t->id);
	s->send_end = true;
	(void)nghttp2_session_resume_data(client.ses, s->id);
	settle();
	check(s->end && s->got == 100 && front_closed && client.gone);
	down();

	up(100);
	s = ask_with("POST", "/echo", 100, false, NULL, 0);
	settle();
	front->stop(front, true);
	settle();
	check(front_closed && client.gone && client.goaways == 1 && gone_fronts == 1 && !s->end);
	down();
}

static void floods(void)
{
	static const uint8_t ping[8];
	unsigned i;

	/* requests that are taken back */
	up(128);
	for (i = 0; i < 250 && !client.goaways; i++) {
		struct peer_stream *s = ask("GET", "/nothing", 0);

		(void)peer_run(&client);
		check(nghttp2_submit_rst_stream(client.ses, 0, s->id, NGHTTP2_CANCEL) == 0);
		settle();
		if (client.n > STREAMS - 10)
			break;
	}
	check(client.goaways == 1 && client.goaway == NGHTTP2_ENHANCE_YOUR_CALM && i == 201);
	check(front_closed);
	down();

	/* frames without a purpose */
	up(100);
	for (i = 0; i < 30 && !client.goaways; i++) {
		for (int k = 0; k < 100; k++)
			check(nghttp2_submit_ping(client.ses, 0, ping) == 0);
		settle();
	}
	check(client.goaway == NGHTTP2_ENHANCE_YOUR_CALM && client.pings >= 1900 && front_closed);
	down();
}

int main(void)
{
	check(loop_open(&loop) == 0);
	messages();
	bodies();
	faults();
	limits();
	tunnel();
	endings();
	floods();
	return 0;
}
