#pragma once
/* CONFIG taken apart: the sandbox's name, detours (net.connectTo), the host's own proxy. */
#include "proxy/proxy.h"

/* 0 or -EPROTO. What cannot be used in it is said in the sandbox's log and left out; an upstream proxy that cannot be used leaves no
 * way out at all, since the host's own rule is to go by it. */
int route_config(struct proxy *p, const struct proxy_config *c) _must_check_;
/* Where this host and port is sent by net.connectTo, or NULL. */
const struct detour *route_detour(const struct proxy *p, const struct host *h, uint16_t port);
/* True if this host is reached by the upstream proxy. */
bool route_by_upstream(const struct proxy *p, const struct host *h);
