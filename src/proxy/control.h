#pragma once
/* The proxy's side of its conversations with the supervisor and the minder. */
#include "base/err.h"
#include "proxy/proxy.h"

/* Wait for CONFIG and POLICY. 0, or -errno. */
int control_orders(struct proxy *p, struct err *e) _must_check_;
/* From now on messages are read as they come. */
int control_open(struct proxy *p) _must_check_;
int control_ready(struct proxy *p) _must_check_;
/* A line for the sandbox's log. */
void control_say(struct proxy *p, const char *fmt, ...) _printf_(2, 3);
