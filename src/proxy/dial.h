#pragma once
/* A connection to where a decision said: found, judged, dialled.
 *
 * In this order: net.connectTo's address; the host's own proxy (which looks the name up itself); an address as it is; the name's addresses,
 * each of which the policy must allow. Happy eyeballs (RFC 8305): IPv6 and IPv4 by turns, the next after 250 ms or when one fails, 10
 * seconds in all. */
#include "proxy/proxy.h"

enum { DIAL_TEXT_MAX = 200 };

struct dial_result {
	int fd;        /* connected and non-blocking, the receiver's; -1 */
	bool refused;  /* the policy refused every address */
	bool absolute; /* it is an HTTP proxy of the host, to be asked in the absolute form */
	bool judged;   /* addr was the policy's to allow, and still is when the policy changes */
	uint8_t addr[16], addr_len;
	uint16_t port;
	char address[64];          /* as text, with the port; "" */
	char rule[NET_ID_MAX + 1]; /* refused: by which; "" */
	const char *reason;        /* refused: the policy's word */
	char note[DIAL_TEXT_MAX];  /* what happened, for people */
};

struct dial;
/* done is called later, once, unless dial_cancel() comes first. plain_http: the conversation is HTTP/1 without TLS. NULL: no memory. */
struct dial *dial_start(struct proxy *p, const struct host *host, uint16_t port, bool plain_http,
			void (*done)(void *arg, struct dial_result *r), void *arg) _must_check_;
void dial_cancel(struct dial *d);
