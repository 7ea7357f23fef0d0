#pragma once
/* What is said to the host's own proxy before it is a connection to somewhere else: CONNECT (RFC 9110 9.3.6) or SOCKS 5 (RFC 1928,
 * 1929). One step at a time; it reads not a byte more than its own. */
#include "proxy/proxy.h"

enum { UPSTREAM_TEXT_MAX = 120 };

struct upstream_talk {
	uint8_t step;
	const struct upstream *by;
	const char *host;
	uint16_t port;
	char why[UPSTREAM_TEXT_MAX]; /* what went wrong */
};

/* The connection fd is there, or has more to read. 1: done; 0: call again when more has come; -errno: it failed, and why says what. */
int upstream_step(struct upstream_talk *t, int fd) _must_check_;
