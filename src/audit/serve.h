#pragma once
/* The loop: receipts in, records out, and only then the answers. */
#include "state/audit.h"

/* Serve until the supervisor hangs up: 0, or -errno (what it said was not understood, or poll() failed). The chain and the descriptors are the
 * caller's but for the proxy's: proxy_fd is closed here. Nothing wakes up while nothing comes and all is well. */
int serve_run(struct audit_chain *chain, int proxy_fd, int supervisor_fd) _must_check_;
