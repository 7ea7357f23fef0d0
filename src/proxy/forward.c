#include "proxy/forward.h"

#include <stdio.h>
#include <sys/socket.h>

#include "base/text.h"
#include "proxy/open.h"

static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";

static void take_head(struct flow *f, size_t n)
{
	(void)!recv(f->client.watch.fd, f->p->relay.scratch, MIN(n, (size_t)SCRATCH_MAX),
		    MSG_DONTWAIT);
}

static bool refuse(struct flow *f, const struct http_head *head, uint16_t status,
		   const char *reason, const char *detail)
{
	struct http *h = f->http;

	flow_receipt(f, &(struct flow_note) { .kind = RK_HTTP,
					      .method = h->method,
					      .reason = reason,
					      .note = detail });
	take_head(f, head->size);
	http_refuse(f,
		    &(struct http_refuse) {
			    .status = status, .reason = reason, .detail = detail, .close = true });
	return false;
}

static void tunnel_dialled(struct flow *f, struct dial_result *r)
{
	if (r->fd < 0) {
		flow_receipt(f,
			     &(struct flow_note) { .kind = RK_HTTP,
						   .id = f->id,
						   .method = "CONNECT",
						   .rule = r->refused ? r->rule : "<dial failed>",
						   .reason = r->refused ? r->reason : "dial-failed",
						   .note = r->note });
		f->id = 0;
		http_refuse(f, &(struct http_refuse) { .status = r->refused ? 403 : 502,
						       .rule = r->rule[0] ? r->rule : NULL,
						       .reason = r->refused ? r->reason
									    : "dial-failed",
						       .detail = r->note,
						       .close = true });
		return;
	}
	if (!flow_connected(f, r))
		return;
	http_done(f);
	if (buf_add(&f->down.pend, established, sizeof(established) - 1) < 0)
		flow_reset(f);
	else
		flow_late(f);
}

static void tunnel_written(struct flow *f)
{
	flow_dial(f, false, tunnel_dialled);
}

/* A tunnel of which each request is decided on: nothing is dialled before the first. */
static void inspected_tunnel(struct flow *f)
{
	ssize_t n = send(f->client.watch.fd, established, sizeof(established) - 1,
			 MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n != (ssize_t)sizeof(established) - 1) {
		flow_reset(f);
		return;
	}
	http_done(f);
	flow_first(f);
}

static bool tunnel(struct flow *f, const struct http_head *head)
{
	const struct net_request q = { .host = &f->host, .port = f->port };
	struct http *h = f->http;

	f->via = RV_FORWARD_BYPASS;
	f->answer = net_decide(f->p->policy, &q);
	take_head(f, head->size);
	if (f->answer.verdict == NET_DENY) {
		http_deny(f, &f->answer);
		return false;
	}
	if (open_wanted(f, &f->answer)) {
		inspected_tunnel(f);
		return false;
	}
	f->id = receipts_flow(f->p->receipts);
	flow_receipt(f, &(struct flow_note) { .kind = RK_HTTP,
					      .allowed = true,
					      .id = f->id,
					      .method = "CONNECT",
					      .rule = f->answer.rule,
					      .reason = f->answer.reason });
	h->phase = HTTP_WAIT;
	flow_timer(f, 0);
	flow_await(f, tunnel_written);
	return false;
}

bool forward_target(struct flow *f, const struct http_head *head)
{
	const uint16_t port = head->port ? head->port : head->https ? 443 : 80;
	const bool connect = streq(head->method, "CONNECT");

	if (head->form == TARGET_ORIGIN || head->form == TARGET_ASTERISK) {
		f->host = (struct host) { .kind = HOST_NONE };
		return refuse(f, head, 400, "not-a-proxy-request",
			      "this is a forward proxy: it takes CONNECT host:port, and GET "
			      "http://host/path");
	}
	if (f->server.watch.fd >= 0 &&
	    (connect || !host_same(&f->host, &head->host) || f->port != port)) {
		loop_close(&f->p->loop, &f->server.watch);
		side_init(&f->server, f);
	}
	f->host = head->host;
	f->port = port;
	f->address[0] = 0;
	f->via = RV_FORWARD;
	if (connect && !head->port)
		return refuse(f, head, 400, "not-a-proxy-request", "CONNECT needs host:port");
	if (connect)
		return tunnel(f, head);
	if (head->https)
		return refuse(f, head, 400, "not-a-proxy-request",
			      "for https use CONNECT: this proxy does not open TLS");
	return true;
}
