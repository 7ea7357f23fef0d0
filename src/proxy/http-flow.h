#pragma once
/* HTTP/1 on a flow: requests one at a time, each decided, each with its receipt.
 *
 * A head is peeked until it is whole, taken apart, taken off the socket and written anew from its parts, so that the server reads what was decided
 * on and nothing else. Bodies go through a pump. What a client has sent ahead (pipelining) stays in the kernel until its turn. */
#include "proxy/flow.h"

/* The client's next bytes are a request. forward: it takes us for its proxy. False: no memory. */
bool http_begin(struct flow *f, bool forward) _must_check_;
void http_done(struct flow *f); /* NULL is fine */
void http_run(struct flow *f);  /* after an edge */
void http_late(struct flow *f); /* after the timer */
/* What the policy says of the request that is under way, or of the connection between two. */
struct net_answer http_judge(struct flow *f);

/* ---- for forward.c ---- */
struct inject_plan;
enum http_phase { HTTP_HEAD, HTTP_WAIT, HTTP_EXCHANGE, HTTP_PHASES };

struct http {
	uint8_t phase;
	bool forward, begun; /* part of a head is there */
	bool keep, upgrade, http10, absolute, json, head_only;
	bool up_over, answered, answer_keep; /* of the exchange under way */
	char method[24];
	char *path;     /* as decided on, NULL between requests */
	struct buf out; /* the head as it will be sent */
	struct http_bodyscan up_scan, down_scan;
	uint8_t up_body;
	uint64_t up_length;
	uint64_t id, since, up_before, down_before;
	struct net_answer answer;
	struct inject_plan *plan; /* refused: a placeholder is where it does not belong; NULL */
};

struct http_refuse {
	uint16_t status;
	const char *first; /* as http_refusal.first */
	const char *rule, *reason, *detail;
	bool remedy; /* an allow would help */
	bool close;
};
/* Tell the client, in a body that says what and why, and go on with the next request if that can be. */
void http_refuse(struct flow *f, const struct http_refuse *r);
/* The request that is being looked at is denied: a receipt, and 403. */
void http_deny(struct flow *f, const struct net_answer *y);
