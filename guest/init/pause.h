#pragma once
/* All programs of the sandbox stand still, for as long as we want or live.
 *
 * Process 1 goes on. What stood still already is left so. A guard of its own session lets them go on again when we say so, and
 * also when we are killed. */
#include <sys/types.h>

#include "base/base.h"

enum { PAUSE_MAX = 32768 };

struct pause {
	struct paused *list; /* shared with the guard */
	int rope;            /* the guard waits for its end */
	pid_t guard;
};

/* 0, or -errno with nothing stopped. */
int pause_begin(struct pause *p) _must_check_;
/* On return everything goes on. */
void pause_end(struct pause *p);
