#pragma once
/* The packet filter of a sandbox's network namespace: two roads to the proxy, and nothing besides. */
#include "base/err.h"

enum {
	TABLE_MARK = 1, /* of packets that go to the proxy */
	TABLE_TCP_PORT =
		1, /* where its listener is, on the gateway; no packet that names it gets another treatment */
	TABLE_DNS_PORT = 53,
};

/* 0, or -Exxx with a message. */
int table_load(struct err *e) _must_check_;
