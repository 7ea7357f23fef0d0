#pragma once
/* News of changes that the host made in a share, for the guest's own kernel to tell whoever watches. */
#include "guest/init/loop.h"
#include "wire/msg.h"

struct poke {
	int pipe; /* to the process that pokes; -1: not started */
};

/* Pass one on. Started with the first; what does not fit into the pipe is lost, as with inotify(7). */
void poke_send(struct poke *p, const struct wire_changed *m);
