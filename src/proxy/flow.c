#include "proxy/flow.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/text.h"
#include "proxy/accept.h"
#include "proxy/http-flow.h"
#include "proxy/open.h"
#include "proxy/peek.h"

enum {
	DENIED_MS = 1000, /* how long a denied client has to say how it wants to be told */
	GRACE_MS = 30,    /* who speaks first does so at once; after that it is the server's turn */
	AMBIGUOUS_MS = 500,
	HEAD_MS = 60 * 1000,
	TELL_MS = 2000,
	NOTE_MAX = 320,
};

static void freed(uv_handle_t *h)
{
	free(h->data);
}

/* ---- receipts ---- */

void flow_receipt(struct flow *f, const struct flow_note *n)
{
	const struct receipt r = { .event = RECEIPT_DECISION,
				   .kind = n->kind,
				   .via = f->via,
				   .allowed = n->allowed,
				   .flow = n->id,
				   .port = f->port,
				   .count = 1,
				   .host = f->host.text,
				   .address = f->address,
				   .method = n->method ? n->method : "",
				   .path = n->path ? n->path : "",
				   .rule = n->rule ? n->rule : "",
				   .reason = n->reason ? n->reason : "",
				   .note = n->note ? n->note : "" };

	receipts_add(f->p->receipts, &r);
}

void flow_receipt_end(struct flow *f, uint8_t kind, uint64_t id, uint64_t up, uint64_t down,
		      uint64_t since_ms)
{
	const struct receipt r = { .event = RECEIPT_END,
				   .kind = kind,
				   .via = f->via,
				   .allowed = true,
				   .flow = id,
				   .port = f->port,
				   .count = 1,
				   .sent = up,
				   .received = down,
				   .duration_us = (loop_now(&f->p->loop) - since_ms) * 1000,
				   .host = f->host.text,
				   .address = f->address,
				   .method = "",
				   .path = "",
				   .rule = "",
				   .reason = "",
				   .note = "" };

	receipts_add(f->p->receipts, &r);
}

static void deny(struct flow *f, uint8_t kind, const char *reason, const char *note)
{
	flow_receipt(f, &(struct flow_note) { .kind = kind,
					      .id = f->id,
					      .rule = reason == f->answer.reason ? f->answer.rule
										 : NULL,
					      .reason = reason,
					      .note = note });
}

static void on_written(struct receipt_wait *w)
{
	struct flow *f = (struct flow *)((char *)w - offsetof(struct flow, wait));

	f->written(f);
}

void flow_await(struct flow *f, void (*then)(struct flow *f))
{
	f->written = then;
	f->wait.run = on_written;
	receipts_wait(f->p->receipts, &f->wait);
}

/* ---- the end ---- */

static void finish(struct flow *f)
{
	struct loop *l = &f->p->loop;

	if (f->dead)
		return;
	f->dead = true;
	http_done(f);
	open_done(f);
	if (f->id)
		flow_receipt_end(f, RK_TCP, f->id, f->was_up + f->up.moved,
				 f->was_down + f->down.moved, f->started);
	receipts_cancel(f->p->receipts, &f->wait);
	dial_cancel(take_ptr(f->dial));
	pump_done(&f->up);
	pump_done(&f->down);
	loop_close(l, &f->client.watch);
	loop_close(l, &f->server.watch);
	loop_forget(l, &f->again);
	if (f->holds_name)
		names_release(f->p->names, f->dst, proxy_now_s(f->p));
	*f->link = f->next;
	if (f->next)
		f->next->link = f->link;
	f->p->n_flows--;
	uv_close((uv_handle_t *)&f->timer, freed);
	accept_room(f->p);
}

void flow_end(struct flow *f)
{
	finish(f);
}

void flow_reset(struct flow *f)
{
	side_reset(&f->p->loop, &f->client);
	side_reset(&f->p->loop, &f->server);
	finish(f);
}

static void alert(struct flow *f)
{
	uint8_t bytes[7];
	size_t n = hello_alert(bytes);

	pump_done(&f->down);
	pump_init(&f->down, &f->p->relay, &f->server, &f->client);
	if (buf_add(&f->down.pend, bytes, n) < 0) {
		flow_reset(f);
		return;
	}
	flow_tell(f);
}

static void on_timer(uv_timer_t *t);

void flow_timer(struct flow *f, uint64_t ms)
{
	if (ms)
		(void)uv_timer_start(&f->timer, on_timer, ms, 0);
	else
		(void)uv_timer_stop(&f->timer);
}

/* ---- TELL ---- */

static void tell(struct flow *f)
{
	enum pump_result y;
	ssize_t n;

	y = pump_run(&f->down);
	if (y == PUMP_WAITS)
		return;
	if (y != PUMP_END) {
		flow_end(f);
		return;
	}
	if (!f->down_ended)
		side_shut(&f->client);
	f->down_ended = true;
	while ((n = recv(f->client.watch.fd, f->p->relay.scratch, SCRATCH_MAX, MSG_DONTWAIT)) > 0)
		;
	if (n == 0 || errno != EAGAIN)
		flow_end(f);
}

void flow_tell(struct flow *f)
{
	loop_close(&f->p->loop, &f->server.watch);
	f->down.from = &f->server;
	f->down.left = 0;
	f->down.scan = NULL;
	f->down_ended = false;
	f->state = FLOW_TELL;
	f->client.writable = true;
	flow_timer(f, TELL_MS);
	tell(f);
}

/* ---- RELAY ---- */

static bool pump_ended(struct flow *f, struct pump *p, bool *ended)
{
	enum pump_result y;

	if (*ended)
		return true;
	y = pump_run(p);
	switch (y) {
	case PUMP_WAITS:
		return true;
	case PUMP_AGAIN:
		loop_again(&f->p->loop, &f->again);
		return true;
	case PUMP_EOF:
	case PUMP_END:
		*ended = true;
		side_shut(p->to);
		return true;
	default:
		flow_reset(f);
		return false;
	}
}

static void relay(struct flow *f)
{
	if (!pump_ended(f, &f->up, &f->up_ended) || !pump_ended(f, &f->down, &f->down_ended))
		return;
	if (f->up_ended && f->down_ended)
		flow_end(f);
}

void flow_relay(struct flow *f)
{
	f->state = FLOW_RELAY;
	f->up.left = f->down.left = UINT64_MAX;
	f->up.scan = f->down.scan = NULL;
	f->up_ended = f->down_ended = false;
	flow_timer(f, 0);
	relay(f);
}

/* ---- LATE ---- */

static void late(struct flow *f);
static void begin_http(struct flow *f);

void flow_late(struct flow *f)
{
	f->state = FLOW_LATE;
	f->down.left = f->up.left = UINT64_MAX;
	f->up_ended = f->down_ended = false;
	f->client.readable = true; /* what was looked at before is looked at again */
	flow_timer(f, 0);
	late(f);
}

static void refuse_tls(struct flow *f, const char *reason, const char *note)
{
	deny(f, RK_TLS, reason, note);
	alert(f);
}

/* The client's bytes so far, in scratch: what went through already, and what is there and stays there. How many; -1:
 * nothing new, or it is over. *ret_new is 0 at the client's end. */
static ssize_t look(struct flow *f, size_t *ret_new)
{
	ssize_t n;

	if (!f->client.readable)
		return -1;
	memcpy(f->p->relay.scratch, f->said, f->n_said);
	n = recv(f->client.watch.fd, f->p->relay.scratch + f->n_said, HELLO_MAX,
		 MSG_PEEK | MSG_DONTWAIT);
	if (n >= 0) {
		*ret_new = (size_t)n;
		return n + f->n_said;
	}
	f->client.readable = false;
	if (errno != EAGAIN)
		flow_reset(f);
	return -1;
}

static enum first classify(struct flow *f, size_t n, size_t new, struct hello *h)
{
	return new ? peek_first(f->p->relay.scratch, n, h) : FIRST_RAW;
}

static void open_tls(struct flow *f, const char *note)
{
	const char *why;

	if (f->via == RV_NETWORK)
		f->via = RV_TRANSPARENT;
	if (!open_begin(f, &why))
		refuse_tls(f, why, note);
}

/* Before there are credentials it was dialled; their connection is another. */
static void late_open(struct flow *f, const char *note)
{
	loop_close(&f->p->loop, &f->server.watch);
	side_init(&f->server, f);
	open_tls(f, note);
}

/* TLS, late. False: it is not for the relay. */
static bool late_tls(struct flow *f, const struct hello *h)
{
	char note[NOTE_MAX];
	const char *fault = peek_tls_fault(h, &f->host, note, sizeof(note));

	if (fault)
		refuse_tls(f, fault, note);
	else if (!f->server_spoke && open_wanted(f, &f->answer))
		late_open(f, note);
	else
		return true;
	return false;
}

/* A server of HTTP never speaks first, so if it has, this is something else. False: the relay is not for it. */
static bool late_http(struct flow *f)
{
	if (f->server_spoke)
		return true;
	if (!f->n_said) {
		begin_http(f);
		return false;
	}
	deny(f, RK_HTTP, "split-request",
	     "the first letters of a request came long before the rest");
	flow_reset(f);
	return false;
}

static void wait_for_more(struct flow *f, uint64_t ms)
{
	f->client.readable = false; /* more makes an edge */
	flow_timer(f, f->client.hung_up ? 1 : ms);
}

static void late(struct flow *f)
{
	struct hello h = { 0 };
	size_t new = 0;
	ssize_t n;

	if (!pump_ended(f, &f->down, &f->down_ended))
		return;
	f->server_spoke = f->server_spoke || f->down.moved;
	n = look(f, &new);
	if (n < 0)
		return;
	switch (classify(f, (size_t)n, new, &h)) {
	case FIRST_MORE_HTTP:
		if (f->server_spoke) /* a server of HTTP never speaks first: it will not become any */
			break;
		wait_for_more(f, AMBIGUOUS_MS);
		return;
	case FIRST_MORE_TLS:
		wait_for_more(f, HEAD_MS);
		return;
	case FIRST_TLS_BAD:
		refuse_tls(f, "bad-hello", "");
		return;
	case FIRST_TLS:
		if (!late_tls(f, &h))
			return;
		break;
	case FIRST_HTTP:
		if (!late_http(f))
			return;
		break;
	case FIRST_RAW:
		break;
	}
	f->state = FLOW_RELAY;
	flow_timer(f, 0);
	relay(f);
}

/* Letters that could be the start of a request, and for a while nothing else: some protocol of single letters. They go
 * through, and are kept: a request that is cut in two is not let through in two. */
static void late_more(struct flow *f)
{
	struct hello h = { 0 };
	size_t new = 0;
	ssize_t n;

	f->client.readable = true;
	n = look(f, &new);
	if (n < 0)
		return;
	if (classify(f, (size_t)n, new, &h) != FIRST_MORE_HTTP || n > FLOW_SAID_MAX ||
	    recv(f->client.watch.fd, f->said + f->n_said, new, MSG_DONTWAIT) != (ssize_t) new ||
	    buf_add(&f->up.pend, f->said + f->n_said, new) < 0) {
		deny(f, RK_TCP, "incomplete", "the client began to speak and did not go on");
		flow_reset(f);
		return;
	}
	f->n_said = (uint8_t)n;
	f->up.moved += new;
	f->up.left = 0; /* these and no more */
	if (pump_run(&f->up) != PUMP_END) {
		flow_reset(f);
		return;
	}
	f->up.left = UINT64_MAX;
	late(f);
}

/* ---- DIAL ---- */

static void on_dialled(void *arg, struct dial_result *r)
{
	struct flow *f = arg;

	f->dial = NULL;
	(void)!text_copy(f->address, sizeof(f->address), r->address);
	f->dialled(f, r);
}

void flow_dial(struct flow *f, bool plain_http, void (*then)(struct flow *f, struct dial_result *r))
{
	f->dialled = then;
	f->dial = dial_start(f->p, &f->host, f->port, plain_http, on_dialled, f);
	if (!f->dial)
		flow_reset(f);
}

static void on_side(struct watch *w, uint32_t events);

bool flow_connected(struct flow *f, const struct dial_result *r)
{
	memcpy(f->addr, r->addr, sizeof(f->addr));
	f->addr_len = r->addr_len;
	f->addr_port = r->port;
	f->judged = r->judged;
	f->absolute = r->absolute;
	side_init(&f->server, f);
	if (side_open(&f->p->loop, &f->server, r->fd, on_side) < 0) {
		struct watch w = { .fd = r->fd };

		loop_close(&f->p->loop, &w);
		flow_reset(f);
		return false;
	}
	f->server.writable = true;
	return true;
}

static void raw_dialled(struct flow *f, struct dial_result *r)
{
	if (r->fd < 0) {
		flow_receipt(f,
			     &(struct flow_note) { .kind = RK_TCP,
						   .id = f->id,
						   .rule = r->refused ? r->rule : "<dial failed>",
						   .reason = r->refused ? r->reason : "dial-failed",
						   .note = r->note });
		f->id = 0;
		flow_reset(f);
		return;
	}
	if (flow_connected(f, r))
		flow_late(f);
}

static void raw_written(struct flow *f)
{
	f->state = FLOW_DIAL;
	flow_dial(f, false, raw_dialled);
}

static void allow(struct flow *f, uint8_t kind, const char *note)
{
	if (kind == RK_TCP && f->via == RV_TRANSPARENT)
		f->via = RV_NETWORK;
	f->id = receipts_flow(f->p->receipts);
	flow_receipt(f, &(struct flow_note) { .kind = kind,
					      .allowed = true,
					      .id = f->id,
					      .rule = f->answer.rule,
					      .reason = f->answer.reason,
					      .note = note });
	f->state = FLOW_RECEIPT;
	flow_timer(f, 0);
	flow_await(f, raw_written);
}

/* ---- FIRST ---- */

static void decide(struct flow *f)
{
	const struct net_request q = { .host = &f->host, .port = f->port };
	static const uint32_t patience[] = {
		[NET_DENY] = DENIED_MS, [NET_ALLOW] = GRACE_MS, [NET_NEEDS_HTTP] = HEAD_MS
	};

	f->answer = net_decide(f->p->policy, &q);
	flow_timer(f, open_wanted(f, &f->answer) ? (uint32_t)HEAD_MS : patience[f->answer.verdict]);
}

/* Of a host that no rule is about, and where a kit wants to use a secret: its approval opens it (cli/kit-create.c), so that is what is missing. */
static const char *why_denied(const struct flow *f)
{
	const struct cred_use *u;
	size_t at = 0;

	while (streq(f->answer.reason, "default-deny") &&
	       (u = cred_next(f->p->creds, &f->host, f->port, &at)))
		if (u->state == CRED_UNAPPROVED)
			return "credential-unapproved";
	return f->answer.reason;
}

static void begin_http(struct flow *f)
{
	if (f->via == RV_NETWORK)
		f->via = RV_TRANSPARENT;
	f->state = FLOW_HTTP;
	if (!http_begin(f, false))
		flow_reset(f);
}

static void first_raw(struct flow *f)
{
	if (f->answer.verdict == NET_ALLOW) {
		allow(f, RK_TCP, "");
		return;
	}
	if (f->via == RV_TRANSPARENT)
		f->via = RV_NETWORK;
	deny(f, RK_TCP, f->answer.verdict == NET_DENY ? f->answer.reason : "cannot-inspect", "");
	flow_reset(f);
}

static void first_tls(struct flow *f, const struct hello *h)
{
	char note[NOTE_MAX];
	const char *fault = peek_tls_fault(h, &f->host, note, sizeof(note));

	if (f->answer.verdict == NET_DENY)
		refuse_tls(f, why_denied(f), note);
	else if (fault)
		refuse_tls(f, fault, note);
	else if (open_wanted(f, &f->answer))
		open_tls(f, note);
	else
		allow(f, RK_TLS, note);
}

static void first_more(struct flow *f, bool tls)
{
	f->tls_begun = tls;
	f->client.readable = false;
	if (f->answer.verdict == NET_ALLOW)
		flow_timer(f, tls ? HEAD_MS : AMBIGUOUS_MS);
	if (f->client.hung_up)
		first_raw(f);
}

static void first(struct flow *f)
{
	struct hello h = { 0 };
	size_t new = 0;
	ssize_t n = look(f, &new);

	if (n < 0)
		return;
	switch (classify(f, (size_t)n, new, &h)) {
	case FIRST_MORE_TLS:
		first_more(f, true);
		return;
	case FIRST_MORE_HTTP:
		first_more(f, false);
		return;
	case FIRST_TLS:
		first_tls(f, &h);
		return;
	case FIRST_TLS_BAD:
		refuse_tls(f, f->answer.verdict == NET_DENY ? f->answer.reason : "bad-hello", "");
		return;
	case FIRST_HTTP:
		begin_http(f);
		return;
	case FIRST_RAW:
		first_raw(f);
		return;
	}
}

void flow_first(struct flow *f)
{
	f->state = FLOW_FIRST;
	decide(f);
	first(f);
}

/* It has not said enough in time. */
static void first_late(struct flow *f)
{
	if (f->answer.verdict != NET_ALLOW || !f->tls_begun) {
		first_raw(f);
		return;
	}
	deny(f, RK_TCP, "incomplete", "the client began to speak and did not go on");
	flow_reset(f);
}

/* ---- events ---- */

static void nothing(struct flow *f)
{
	(void)f;
}

static const struct {
	void (*edge)(struct flow *f);
	void (*timer)(struct flow *f);
} acts[FLOW_STATES] = {
	[FLOW_FIRST] = { first, first_late }, [FLOW_RECEIPT] = { nothing, nothing },
	[FLOW_DIAL] = { nothing, nothing },   [FLOW_LATE] = { late, late_more },
	[FLOW_RELAY] = { relay, nothing },    [FLOW_HTTP] = { http_run, http_late },
	[FLOW_OPEN] = { nothing, open_late }, [FLOW_TELL] = { tell, flow_end },
};

static void on_timer(uv_timer_t *t)
{
	struct flow *f = t->data;

	if (!f->dead)
		acts[f->state].timer(f);
}

static void on_again(struct again *a)
{
	struct flow *f = (struct flow *)a;

	if (!f->dead)
		acts[f->state].edge(f);
}

/* A connection that is broken is not waited for, whatever is under way: the other end is told the same. */
static void on_side(struct watch *w, uint32_t events)
{
	struct side *s = (struct side *)w;
	struct flow *f = s->flow;

	side_note(s, events);
	if ((events & EPOLLERR) && f->state != FLOW_HTTP && f->state != FLOW_FIRST) {
		flow_reset(f);
		return;
	}
	acts[f->state].edge(f);
}

/* ---- a new one ---- */

static const uint8_t gateway[4] = { 198, 18, 0, 1 }, host_inside[4] = { 198, 18, 0, 5 };

static void unknown(struct flow *f, const char *reason, const char *note)
{
	f->via = RV_NETWORK;
	flow_receipt(f, &(struct flow_note) { .kind = RK_TCP, .reason = reason, .note = note });
	flow_reset(f);
}

/* Whom dst stands for. False: nobody, and the flow is over. */
static bool find_host(struct flow *f)
{
	const uint8_t loopback[4] = { 127, 0, 0, 1 };
	const struct host *name;

	host_from_addr(&f->host, f->dst, 4);
	if (memcmp(f->dst, host_inside, 4) == 0) {
		host_from_addr(&f->host, loopback, 4);
		return true;
	}
	if (memcmp(f->dst, gateway, 4) == 0) {
		unknown(f, "no-service", "the gateway has a resolver on 53 and a proxy on 3128");
		return false;
	}
	if (!names_ours(f->dst))
		return true;
	name = names_find(f->p->names, f->dst, proxy_now_s(f->p));
	if (!name) {
		unknown(f, "unknown-address", "the address stands for no name, or not any more");
		return false;
	}
	f->host = *name;
	names_hold(f->p->names, f->dst);
	f->holds_name = true;
	return true;
}

static struct flow *make(struct proxy *p, int fd)
{
	struct flow *f = calloc(1, sizeof(*f));
	const int one = 1;

	if (!f)
		return NULL;
	f->p = p;
	f->again.run = on_again;
	side_init(&f->client, f);
	side_init(&f->server, f);
	pump_init(&f->up, &f->p->relay, &f->client, &f->server);
	pump_init(&f->down, &f->p->relay, &f->server, &f->client);
	if (side_open(&p->loop, &f->client, fd, on_side) < 0) {
		free(f);
		return NULL;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	f->client.readable = f->client.writable = true;
	f->started = loop_now(&p->loop);
	(void)uv_timer_init(&p->loop.uv, &f->timer);
	f->timer.data = f;
	f->next = p->flows;
	f->link = &p->flows;
	if (f->next)
		f->next->link = &f->next;
	p->flows = f;
	p->n_flows++;
	return f;
}

void flow_new(struct proxy *p, int fd, const uint8_t dst[4], uint16_t port)
{
	struct flow *f = make(p, fd);

	if (!f) {
		struct watch w = { .fd = fd };

		loop_close(&p->loop, &w);
		return;
	}
	memcpy(f->dst, dst, 4);
	f->port = port;
	f->via = RV_TRANSPARENT;
	if (memcmp(dst, gateway, 4) == 0 && port == NET_FORWARD_PORT) {
		f->via = RV_FORWARD;
		f->state = FLOW_HTTP;
		if (!http_begin(f, true))
			flow_reset(f);
		return;
	}
	if (find_host(f))
		flow_first(f);
}

/* ---- another policy ---- */

/* What the policy in force says of what this flow is doing now. */
static struct net_answer judge(struct flow *f)
{
	const struct net_request q = { .host = &f->host, .port = f->port };
	struct net_answer y = f->http ? http_judge(f) : net_decide(f->p->policy, &q);

	if (y.verdict != NET_DENY && f->judged && f->server.watch.fd >= 0) {
		struct net_answer a = net_decide_addr(f->p->policy, f->addr, f->addr_len, f->port);

		if (a.verdict == NET_DENY)
			y = a;
	}
	if (y.verdict == NET_NEEDS_HTTP && !f->http && !f->open) {
		y.verdict = NET_DENY;
		y.reason = "cannot-inspect";
	}
	return y;
}

static void reconsider(struct flow *f)
{
	struct net_answer y;

	if (f->state == FLOW_TELL)
		return;
	if (f->state == FLOW_FIRST) {
		decide(f);
		return;
	}
	if (f->host.kind ==
	    HOST_NONE) /* a client of the forward proxy that has not asked for anything */
		return;
	y = judge(f);
	f->answer = y;
	if (y.verdict != NET_DENY) {
		open_recheck(f);
		return;
	}
	flow_receipt(f, &(struct flow_note) {
				.kind = f->http ? RK_HTTP : RK_TCP,
				.id = f->id,
				.rule = y.rule,
				.reason = y.reason,
				.note = "the policy has changed: the connection is closed" });
	flow_reset(f);
}

void flow_policy_changed(struct proxy *p)
{
	struct flow *f, *next;

	for (f = p->flows; f; f = next) {
		next = f->next;
		reconsider(f);
	}
}

void flow_credentials(struct proxy *p, const struct cred_set *now)
{
	struct flow *f, *next;

	for (f = p->flows; f; f = next) {
		next = f->next;
		open_credentials(f, now);
	}
}
