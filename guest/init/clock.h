#pragma once
/* The wall clock, which follows the host's. */
#include "guest/init/loop.h"
#include "guest/init/port.h"

struct clock {
	struct watch w; /* tells when somebody sets the clock */
	struct timer regular;
	struct loop *loop;
	struct port *port;
	uint64_t asked; /* when TIME_ASK was sent last */
};

/* Begin to ask the host: every ten minutes, and when somebody in the guest sets the clock. */
void clock_start(struct clock *c, struct loop *l, struct port *p);

/* The host says it is this late. */
void clock_set(struct clock *c, uint64_t realtime_ns);
