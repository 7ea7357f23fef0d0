#pragma once
/* One question of a guest, and what it is told. */
#include "proxy/dns-msg.h"
#include "proxy/proxy.h"

struct dns_reply {
	size_t n;  /* 0: no answer at all */
	bool wait; /* a receipt was made that must be written first */
	uint8_t bytes[DNS_ANSWER_MAX];
};

/* bytes: a whole message of n. */
void dns_reply(struct proxy *p, const uint8_t *bytes, size_t n, bool tcp, struct dns_reply *ret);
