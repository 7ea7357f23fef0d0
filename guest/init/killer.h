#pragma once
/* Ends what is left of a session of processes, some time after it was asked to go. */
#include "guest/init/session.h"

/* After ms, SIGKILL every process of session sid. */
void killer_start(struct sessions *ss, pid_t sid, uint64_t ms);
