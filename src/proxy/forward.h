#pragma once
/* A client that takes us for its proxy (port 3128): absolute form and CONNECT. */
#include "proxy/http-flow.h"

/* Where this request wants to go becomes f's host and port, and a connection to somewhere else is dropped. False: it has been answered, or is a
 * tunnel from here on. */
bool forward_target(struct flow *f, const struct http_head *head) _must_check_;
