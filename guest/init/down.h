#pragma once
/* The orderly end: everybody out, disks written and unmounted, power off. */
#include "guest/init/boot.h"
#include "guest/init/loop.h"
#include "guest/init/session.h"
#include "guest/init/sockets.h"

struct down {
	struct timer t;
	struct loop *loop;
	struct port *port;
	struct boot *boot;
	struct sessions *sessions;
	struct sockets *sockets;
	uint64_t deadline; /* loop_now() at which the power goes off in any case */
	int step;          /* 0: not begun */
};

/* Ask the services to end, after half the time at most every process (SIGTERM), and insist after half of what is left (SIGKILL). Returns; the rest happens
 * when the last process is reaped or the time is over. A second call is ignored. */
void down_begin(struct down *d, uint32_t deadline_ms);

/* None of the services runs any more. */
void down_services_gone(struct down *d);

/* No process is left but us. */
void down_all_gone(struct down *d);
