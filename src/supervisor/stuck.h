#pragma once
/* A process that owes an answer: is it stuck, or does it wait for a processor or a disk? On a loaded or swapping host that may take seconds, and killing it
 * would only cost the connections that it has. Sources: proc(5), /proc/PID/stat and /proc/PID/schedstat. */
#include <sys/types.h>

#include "base/base.h"

/* What was seen last. Zeroed: nothing. */
struct stuck {
	pid_t pid;
	uint64_t at_ns, ran_ns;
};

enum {
	STUCK_SPAN_MS = 500,   /* two looks have to be so far apart */
	STUCK_STALE_MS = 2500, /* and no farther: then the first one tells nothing */
};

/* pid does not answer: somebody says so, about once a second for as long as that lasts. True: it is stuck, since between the last look and
 * this one it slept, or was traced, or had its share of the processor and worked. False: this is the first look, or it waits. A pid that is
 * gone, or of which nothing can be read, is stuck. */
bool stuck(struct stuck *s, pid_t pid);

/* The decision alone: state as proc(5) has it, ran_ns what it had of the processor in its life, now_ns by CLOCK_MONOTONIC. */
bool stuck_judge(struct stuck *s, pid_t pid, char state, uint64_t ran_ns, uint64_t now_ns);
