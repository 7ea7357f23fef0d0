#pragma once
/* One connection of the guest's, from its accept to its end.
 *
 *   FIRST    decided, and the client's first bytes are waited for: they say how a refusal is told, what the receipt calls it, and
 *            whether TLS and HTTP name the host that was decided on
 *   RECEIPT  allowed; the receipt is being written
 *   DIAL     it is; the connection to the server is made
 *   LATE     there is one, and the client has not spoken: what the server says goes through (SSH, SMTP, MySQL), and the client's
 *            first bytes will still be looked at
 *   RELAY    bytes, both ways
 *   HTTP     requests, one at a time (http-flow.h)
 *   OPEN     TLS that we open (open.h)
 *   TELL     the last bytes to the client, then the end */
#include "proxy/dial.h"
#include "proxy/proxy.h"
#include "proxy/relay.h"

enum flow_state {
	FLOW_FIRST,
	FLOW_RECEIPT,
	FLOW_DIAL,
	FLOW_LATE,
	FLOW_RELAY,
	FLOW_HTTP,
	FLOW_OPEN,
	FLOW_TELL,
	FLOW_STATES
};

enum { FLOW_SAID_MAX = 32 };

struct http;
struct open;

struct flow {
	struct again again; /* first */
	struct flow *next, **link;
	struct proxy *p;
	uint8_t state, via;
	uint8_t n_said,
		said[FLOW_SAID_MAX]; /* what went through and could still become a request */
	bool dead, holds_name, server_spoke, up_ended, down_ended, judged, tls_begun;
	bool absolute; /* the server is the host's HTTP proxy, asked in the absolute form */
	struct host host;
	uint16_t port;
	uint8_t dst[4];
	struct net_answer answer; /* the connection's; refreshed when the policy changes */
	struct side client, server;
	struct pump up, down;
	uv_timer_t timer;
	struct receipt_wait wait;
	void (*written)(struct flow *f);
	struct dial *dial;
	void (*dialled)(struct flow *f, struct dial_result *r);
	struct http *http;
	struct open *open;
	uint64_t id;               /* of the receipt that allowed it; 0: none */
	uint64_t started;          /* milliseconds */
	uint64_t was_up, was_down; /* bytes of pumps that were set up anew since */
	uint8_t addr[16], addr_len;
	uint16_t addr_port;
	char address[64];
};

/* A connection that was accepted: fd is taken over, dst is where it went. */
void flow_new(struct proxy *p, int fd, const uint8_t dst[4], uint16_t port);
void flow_policy_changed(struct proxy *p);
/* Credentials become these; those of before are still there. */
void flow_credentials(struct proxy *p, const struct cred_set *now);

/* ---- for http-flow.c ---- */
struct flow_note {
	uint8_t kind;
	bool allowed;
	uint64_t id;
	const char *method, *path, *rule, *reason, *note;
};
/* A receipt about f: host, port and address are its own. */
void flow_receipt(struct flow *f, const struct flow_note *n);
/* The END of an allowed one. */
void flow_receipt_end(struct flow *f, uint8_t kind, uint64_t id, uint64_t up, uint64_t down,
		      uint64_t since_ms);
/* then() when all receipts until now are written. */
void flow_await(struct flow *f, void (*then)(struct flow *f));
void flow_dial(struct flow *f, bool plain_http,
	       void (*then)(struct flow *f, struct dial_result *r));
/* Take over what was dialled. False: it could not be, and the flow is over. */
bool flow_connected(struct flow *f, const struct dial_result *r);
void flow_timer(struct flow *f, uint64_t ms); /* 0: none */
void flow_end(struct flow *f);                /* both ends closed, in order */
void flow_reset(struct flow *f);              /* both see an error */
/* What is in f->down.pend is the last: it is sent, and the client's remaining bytes are taken for a while so that it can read it. */
void flow_tell(struct flow *f);
/* The client may speak now, through the connection that there is (CONNECT); or: the first bytes decide (no connection yet). */
void flow_late(struct flow *f);
void flow_first(struct flow *f);
/* Bytes both ways, with pumps that go on from where they are. */
void flow_relay(struct flow *f);
