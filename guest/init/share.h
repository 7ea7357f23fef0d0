#pragma once
/* The host's folders: mounted, bound to their paths, and taken away again. */
#include "guest/init/loop.h"
#include "guest/init/port.h"
#include "wire/msg.h"

/* Where the file server's root is mounted: a folder for each share, by number. */
#define SHARES_ROOT "/run/bac/shares"

struct share_job;

struct shares {
	struct loop *loop;
	struct port *port;
	struct share_job *first, *last; /* in the order of the host's words; the first is at work */
};

void shares_init(struct shares *s, struct loop *l, struct port *p);

/* Before READY: done at once, in this process; nothing else happens yet. Answers MOUNTED. */
void shares_boot(struct shares *s, const struct wire_mount *m);

/* Afterwards: by a child, so that a file server which does not answer cannot hold PID 1. Answers MOUNTED
 * when it is done. type is WIRE_MOUNT or WIRE_UMOUNT. */
void shares_change(struct shares *s, uint8_t type, const struct wire_mount *m);
