#include "proxy/http-flow.h"

#include <stdio.h>
#include <sys/socket.h>

#include "base/text.h"
#include "proxy/route.h"
#include "proxy/forward.h"
#include "proxy/http-write.h"
#include "proxy/inject.h"

enum {
	HEAD_MS = 60 * 1000,      /* for a head that has begun, and for the first */
	IDLE_MS = 10 * 60 * 1000, /* between two requests */
	OUT_MAX = 128 * 1024,
	LOOK_MAX = HTTP_HEAD_MAX + 1024,
};

bool http_begin(struct flow *f, bool forward)
{
	struct http *h = calloc(1, sizeof(*h));

	if (!h)
		return false;
	buf_init(&h->out, OUT_MAX);
	h->forward = forward;
	f->http = h;
	flow_timer(f, HEAD_MS);
	http_run(f);
	return true;
}

/* The END of the request under way, if there is one. */
static void end_request(struct flow *f)
{
	struct http *h = f->http;

	if (h->id)
		flow_receipt_end(f, RK_HTTP, h->id, f->up.moved, f->down.moved, h->since);
	h->id = 0;
	free(take_ptr(h->path));
	free(take_ptr(h->plan));
}

void http_done(struct flow *f)
{
	if (!f->http)
		return;
	end_request(f);
	buf_done(&f->http->out);
	free(take_ptr(f->http));
}

struct net_answer http_judge(struct flow *f)
{
	const bool request = f->http->path;
	const struct net_request q = { .host = &f->host,
				       .port = f->port,
				       .method = request ? f->http->method : NULL,
				       .path = request ? f->http->path : NULL };

	return net_decide(f->p->policy, &q);
}

/* ---- refusals ---- */

/* The head that was looked at goes off the socket. */
static void swallow(struct flow *f, size_t n)
{
	while (n) {
		ssize_t k = recv(f->client.watch.fd, f->p->relay.scratch,
				 MIN(n, (size_t)SCRATCH_MAX), MSG_DONTWAIT);

		if (k <= 0)
			return;
		n -= (size_t)k;
	}
}

static void next_request(struct flow *f)
{
	struct http *h = f->http;

	f->was_up += f->up.moved;
	f->was_down += f->down.moved;
	end_request(f);
	pump_done(&f->up);
	pump_done(&f->down);
	pump_init(&f->up, &f->p->relay, &f->client, &f->server);
	pump_init(&f->down, &f->p->relay, &f->server, &f->client);
	buf_done(&h->out);
	h->phase = HTTP_HEAD;
	h->begun = false;
	flow_timer(f, IDLE_MS);
	loop_again(&f->p->loop,
		   &f->again); /* the next may be there; others have their turn first */
}

void http_refuse(struct flow *f, const struct http_refuse *r)
{
	char *text = (char *)f->p->relay.scratch, remedy[512];
	struct http *h = f->http;
	const bool keep = h->keep && !r->close && h->up_body == BODY_NONE;
	const bool v6 = f->host.kind == HOST_V6;
	struct http_refusal x = { .status = r->status,
				  .first = r->first,
				  .host = f->host.text,
				  .port = f->port,
				  .method = h->method,
				  .path = h->path ? h->path : "",
				  .rule = r->rule,
				  .reason = r->reason,
				  .sandbox = f->p->sandbox,
				  .detail = r->detail,
				  .json = h->json,
				  .head_only = h->head_only,
				  .keep_alive = keep };
	size_t n;

	(void)snprintf(remedy, sizeof(remedy), "bac policy allow network --sandbox %s %s%s%s:%u",
		       f->p->sandbox, v6 ? "[" : "", f->host.text, v6 ? "]" : "", f->port);
	x.remedy = r->remedy ? remedy : NULL;
	n = http_refusal(&x, text, SCRATCH_MAX);
	pump_done(&f->down);
	pump_init(&f->down, &f->p->relay, &f->server, &f->client);
	if (!n || buf_add(&f->down.pend, text, n) < 0) {
		flow_reset(f);
		return;
	}
	if (!keep) {
		flow_tell(f);
		return;
	}
	h->phase = HTTP_EXCHANGE; /* of which the answer is ours */
	h->up_over = h->answered = h->answer_keep = true;
	f->down.left = 0;
	http_run(f);
}

/* One receipt for a request that goes nowhere. */
static void refused(struct flow *f, const char *rule, const char *reason, const char *note)
{
	flow_receipt(f, &(struct flow_note) { .kind = RK_HTTP,
					      .id = f->http->id,
					      .method = f->http->method,
					      .path = f->http->path,
					      .rule = rule,
					      .reason = reason,
					      .note = note });
	f->http->id = 0;
}

void http_deny(struct flow *f, const struct net_answer *y)
{
	refused(f, y->rule, y->reason, "");
	http_refuse(f, &(struct http_refuse) { .status = 403,
					       .rule = y->text ? y->text : y->rule,
					       .reason = y->reason,
					       .remedy = !y->rule });
}

static void malformed(struct flow *f, enum http_result y, const char *why)
{
	struct http *h = f->http;

	h->up_body = BODY_UNTIL_CLOSE;
	if (h->forward)
		f->host = (struct host) { 0 };
	(void)!text_copy(h->method, sizeof(h->method), "");
	refused(f, NULL, "malformed-http", why);
	http_refuse(f, &(struct http_refuse) { .status = y == HTTP_TOO_LARGE ? 431 : 400,
					       .reason = "malformed-http",
					       .detail = why ? why : "this is not HTTP",
					       .close = true });
}

/* ---- a request ---- */

/* The head is written before there is a connection: this is what dial_start() will come to. A connection that is there may be
 * a tunnel through that proxy: whoever is at its end must not see the password. */
static bool will_be_absolute(const struct flow *f)
{
	return route_by_upstream(f->p, &f->host) && f->p->upstream.kind == UPSTREAM_HTTP &&
	       !route_detour(f->p, &f->host, f->port);
}

static int take_request(struct flow *f, const struct http_head *head, const uint8_t *bytes)
{
	struct http *h = f->http;
	struct http_rewrite w = { .head = head,
				  .bytes = bytes,
				  .basic = f->p->upstream.basic,
				  .port = f->port,
				  .forward = h->forward,
				  .http10 = head->minor == 0 };

	h->absolute = f->server.watch.fd >= 0 ? f->absolute : will_be_absolute(f);
	w.absolute = h->absolute;
	w.upgrade = h->upgrade;
	w.keep = h->keep;
	http_body_begin(&h->up_scan, head);
	return http_write_request(&h->out, &w);
}

static void note_request(struct http *h, const struct http_head *head, const uint8_t *bytes)
{
	(void)!text_copy(h->method, sizeof(h->method), head->method);
	h->keep = head->keep_alive;
	h->upgrade = head->upgrade && !head->h2c;
	h->http10 = head->minor == 0;
	h->json = http_wants_json(head, bytes);
	h->head_only = streq(head->method, "HEAD");
	h->up_body = head->body;
	h->up_length = head->length;
	free(h->path);
	h->path = strdup(head->path);
}

/* The host that was decided on when the connection was made is the only one that may be asked for. */
static bool host_agrees(const struct flow *f, const struct http_head *head)
{
	if (!head->has_host)
		return head->form != TARGET_AUTHORITY;
	return head->form != TARGET_AUTHORITY && host_same(&head->host, &f->host) &&
	       (head->port ? head->port : 80) == f->port && !head->https;
}

static void mismatch(struct flow *f, const struct http_head *head)
{
	char note[RECEIPT_HOST_MAX + 64];

	(void)snprintf(note, sizeof(note), "Host %s:%u", head->host.text,
		       head->port ? (unsigned)head->port : 80U);
	refused(f, NULL, "host-mismatch", note);
	http_refuse(f, &(struct http_refuse) { .status = 421,
					       .reason = "host-mismatch",
					       .detail = "the request names another host or port "
							 "than the connection was made to" });
}

static void go_on(struct flow *f);

/* Nothing is put on a request without TLS; what stands for a secret, or is one, does not leave on it. Bodies are not looked at. */
static struct inject_plan *look_credentials(struct flow *f, const struct http_head *head,
					    const uint8_t *bytes)
{
	const struct proxy *p = f->p;
	struct inject_plan *plan = p->creds || p->marks ? calloc(1, sizeof(*plan)) : NULL;
	struct xhead h = { 0 };
	const char *name = NULL;

	if (!plan || xhead_from_http1(&h, head, bytes) < 0) {
		free(plan);
		return NULL;
	}
	inject_plan(plan, p->creds, &h, &f->host, f->port, false, p->sandbox);
	if (!plan->status && p->marks && guard_request_head(p->marks, &h, NULL, NULL, &name)) {
		plan->status = 403;
		plan->reason = "secret-in-request";
		(void)snprintf(plan->text, sizeof(plan->text),
			       "The request holds the value of the secret '%s'.", name);
	}
	xhead_done(&h);
	if (!plan->status)
		free(take_ptr(plan));
	return plan;
}

static void refuse_credentials(struct flow *f)
{
	const struct inject_plan *plan = f->http->plan;

	refused(f, NULL, plan->reason, plan->text);
	http_refuse(f, &(struct http_refuse) {
			       .status = plan->status,
			       .first = "refused, since a credential of this sandbox is concerned",
			       .reason = plan->reason,
			       .detail = plan->text });
}

static void decide(struct flow *f)
{
	struct http *h = f->http;

	h->answer = http_judge(f);
	if (h->answer.verdict != NET_ALLOW) {
		http_deny(f, &h->answer);
		return;
	}
	if (h->plan) {
		refuse_credentials(f);
		return;
	}
	h->id = receipts_flow(f->p->receipts);
	h->since = loop_now(&f->p->loop);
	flow_receipt(f, &(struct flow_note) { .kind = RK_HTTP,
					      .allowed = true,
					      .id = h->id,
					      .method = h->method,
					      .path = h->path,
					      .rule = h->answer.rule,
					      .reason = h->answer.reason });
	h->phase = HTTP_WAIT;
	flow_timer(f, 0);
	flow_await(f, go_on);
}

static void on_request(struct flow *f, const struct http_head *head, uint8_t *bytes)
{
	struct http *h = f->http;
	int r;

	note_request(h, head, bytes);
	if (!h->path) {
		flow_reset(f);
		return;
	}
	if (h->forward && !forward_target(f, head)) {
		return; /* it has been answered */
	}
	free(h->plan);
	h->plan = look_credentials(f, head, bytes);
	r = take_request(f, head, bytes);
	swallow(f, head->size); /* bytes is of no use any more */
	if (r < 0)
		malformed(f, HTTP_TOO_LARGE, "the head is too large");
	else if (!h->forward && !host_agrees(f, head) && http_judge(f).verdict == NET_ALLOW)
		mismatch(f, head);
	else
		decide(f);
}

/* The server between two requests: it may leave; it has nothing to say. */
static bool server_quiet(struct flow *f)
{
	ssize_t n;

	if (f->server.watch.fd < 0 || !f->server.readable)
		return true;
	n = recv(f->server.watch.fd, f->p->relay.scratch, 1, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN) {
		f->server.readable = false;
		return true;
	}
	if (n > 0)
		flow_reset(f); /* an answer that nobody asked for */
	else
		flow_end(f);
	return false;
}

static void head(struct flow *f)
{
	struct http *h = f->http;
	struct http_head x = { 0 };
	enum http_result y;
	ssize_t n;

	if (!server_quiet(f) || !f->client.readable)
		return;
	n = recv(f->client.watch.fd, f->p->relay.scratch, LOOK_MAX, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN) {
		f->client.readable = false;
		return;
	}
	if (n <= 0) {
		flow_end(f);
		return;
	}
	y = http_request(&x, f->p->relay.scratch, (size_t)n);
	if (y == HTTP_OK) {
		if (n == (ssize_t)x.size && !f->client.hung_up)
			f->client.readable = false; /* it is all, and will be taken */
		on_request(f, &x, f->p->relay.scratch);
		return;
	}
	if (y != HTTP_MORE) {
		malformed(f, y, y == HTTP_NOT ? NULL : x.why);
		return;
	}
	f->client.readable = false; /* more makes an edge */
	if (!h->begun)
		flow_timer(f, HEAD_MS);
	h->begun = true;
	if (f->client.hung_up)
		flow_end(f);
}

void http_late(struct flow *f)
{
	if (f->http->phase == HTTP_HEAD)
		flow_end(f);
}

/* ---- the exchange ---- */

static void begin_exchange(struct flow *f)
{
	struct http *h = f->http;

	pump_done(&f->up);
	pump_done(&f->down);
	pump_init(&f->up, &f->p->relay, &f->client, &f->server);
	pump_init(&f->down, &f->p->relay, &f->server, &f->client);
	f->up.pend = h->out; /* moved */
	f->up.moved = f->up.pend.n;
	h->out = (struct buf)BUF_INIT(OUT_MAX);
	f->up.left = h->up_body == BODY_LENGTH ? h->up_length : 0;
	f->up.scan = h->up_body == BODY_CHUNKED ? &h->up_scan : NULL;
	h->up_over = h->answered = h->answer_keep = false;
	h->phase = HTTP_EXCHANGE;
	http_run(f);
}

static void bad_gateway(struct flow *f, const char *reason, const char *detail)
{
	http_refuse(f, &(struct http_refuse) {
			       .status = 502, .reason = reason, .detail = detail, .close = true });
}

static void dialled(struct flow *f, struct dial_result *r)
{
	if (r->fd >= 0) {
		if (flow_connected(f, r))
			begin_exchange(f);
		return;
	}
	refused(f, r->refused ? r->rule : "<dial failed>", r->refused ? r->reason : "dial-failed",
		r->note);
	f->http->up_body = BODY_UNTIL_CLOSE; /* whatever is under way, this is the last answer */
	if (r->refused)
		http_refuse(f, &(struct http_refuse) { .status = 403,
						       .rule = r->rule[0] ? r->rule : NULL,
						       .reason = r->reason,
						       .detail = r->note });
	else
		bad_gateway(f, "dial-failed", r->note);
}

/* The receipt is written. */
static void go_on(struct flow *f)
{
	if (f->server.watch.fd >= 0)
		begin_exchange(f);
	else
		flow_dial(f, true, dialled);
}

/* The client's half. False: the flow is over. */
static bool pump_up(struct flow *f)
{
	struct http *h = f->http;

	if (h->up_over)
		return true;
	switch (pump_run(&f->up)) {
	case PUMP_WAITS:
		return true;
	case PUMP_AGAIN:
		loop_again(&f->p->loop, &f->again);
		return true;
	case PUMP_END:
		h->up_over = true;
		return true;
	case PUMP_REFUSED: /* it does not want the rest; its answer says why, if there is one */
		h->up_over = true;
		h->keep = false;
		return true;
	case PUMP_BAD:
		refused(f, NULL, "malformed-http", "a chunked body is malformed");
		flow_reset(f);
		return false;
	default:
		flow_reset(f);
		return false;
	}
}

/* Another protocol from here on: this request's record ends with the connection. */
static void switch_protocols(struct flow *f)
{
	f->up.left = UINT64_MAX;
	flow_relay(f);
}

static int take_answer(struct flow *f, const struct http_head *x)
{
	struct http *h = f->http;
	struct http_rewrite w = {
		.head = x, .bytes = f->p->relay.scratch, .forward = h->forward, .http10 = h->http10
	};
	const bool interim = x->status / 100 == 1;
	const size_t before = f->down.pend.n;
	int r;

	h->answer_keep = h->keep && x->keep_alive && x->body != BODY_UNTIL_CLOSE;
	w.upgrade = x->status == 101;
	w.keep = interim || h->answer_keep;
	if (interim)
		w.http10 = false;
	f->down.left = x->body == BODY_LENGTH        ? x->length
		       : x->body == BODY_UNTIL_CLOSE ? UINT64_MAX
						     : 0;
	f->down.scan = x->body == BODY_CHUNKED ? &h->down_scan : NULL;
	http_body_begin(&h->down_scan, x);
	r = http_write_response(&f->down.pend, &w);
	f->down.moved += f->down.pend.n - before;
	return r;
}

/* Off the socket: the head, and with it what is there of a body whose length is known, so that a small answer is one packet. n
 * bytes were looked at. */
static bool take_bytes(struct flow *f, const struct http_head *x, size_t n)
{
	const size_t body = x->body == BODY_LENGTH ? MIN((uint64_t)(n - x->size), x->length) : 0;
	ssize_t k = recv(f->server.watch.fd, f->p->relay.scratch, x->size + body, MSG_DONTWAIT);

	if (k != (ssize_t)(x->size + body) ||
	    buf_add(&f->down.pend, f->p->relay.scratch + x->size, body) < 0)
		return false;
	f->down.left -= body;
	f->down.moved += body;
	if ((size_t)k == n && n < LOOK_MAX && !f->server.hung_up)
		f->server.readable = false; /* it was all: the next byte makes an edge */
	return true;
}

static void on_answer(struct flow *f, const struct http_head *x, size_t n)
{
	struct http *h = f->http;

	if (x->status == 101 && (!h->upgrade || x->h2c || !h->up_over)) {
		bad_gateway(f, "malformed-answer",
			    "the server switches to a protocol that was not asked for");
		return;
	}
	if (take_answer(f, x) < 0) {
		bad_gateway(f, "malformed-answer", "the head of the server's answer is too large");
		return;
	}
	if (!take_bytes(f, x, n)) {
		flow_reset(f);
		return;
	}
	if (x->status == 101)
		switch_protocols(f);
	else if (x->status / 100 != 1)
		h->answered = true;
}

/* The head of the answer, if it is there. False: the flow is over, or is no HTTP any more. */
static bool answer_head(struct flow *f)
{
	struct http *h = f->http;
	struct http_head x = { 0 };
	enum http_result y;
	ssize_t n;

	while (!h->answered && f->server.readable) {
		n = recv(f->server.watch.fd, f->p->relay.scratch, LOOK_MAX,
			 MSG_PEEK | MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN) {
			f->server.readable = false;
			return true;
		}
		y = n > 0 ? http_response(&x, f->p->relay.scratch, (size_t)n, h->method) : HTTP_NOT;
		if (y == HTTP_MORE && !f->server.hung_up) {
			f->server.readable = false;
			return true;
		}
		if (y != HTTP_OK) {
			bad_gateway(f, n > 0 ? "malformed-answer" : "no-answer",
				    n > 0 ? (x.why ? x.why : "the server's answer is not HTTP/1")
					  : "the server hung up without an answer");
			return false;
		}
		on_answer(f, &x, (size_t)n);
		if (f->dead || f->state != FLOW_HTTP)
			return false;
	}
	return true;
}

static void over(struct flow *f)
{
	struct http *h = f->http;

	if (h->up_over && h->answer_keep && h->keep) {
		next_request(f);
		return;
	}
	flow_tell(f);
}

/* The server's half. */
static void pump_down(struct flow *f)
{
	struct http *h = f->http;

	switch (pump_run(&f->down)) {
	case PUMP_WAITS:
		return;
	case PUMP_AGAIN:
		loop_again(&f->p->loop, &f->again);
		return;
	case PUMP_END:
		if (h->answered)
			over(f);
		return;
	case PUMP_EOF:
		if (h->answered && f->down.left == UINT64_MAX && !f->down.scan)
			over(f);
		else
			flow_reset(f); /* so that it is seen that something is missing */
		return;
	default:
		flow_reset(f);
		return;
	}
}

static void exchange(struct flow *f)
{
	if (!pump_up(f) || (f->server.watch.fd >= 0 && !answer_head(f)))
		return;
	if (f->http->answered || f->down.pend.n)
		pump_down(f);
}

static void nothing(struct flow *f)
{
	(void)f;
}

static void (*const phases[HTTP_PHASES])(struct flow *f) = {
	[HTTP_HEAD] = head,
	[HTTP_WAIT] = nothing,
	[HTTP_EXCHANGE] = exchange,
};

void http_run(struct flow *f)
{
	phases[f->http->phase](f);
}
