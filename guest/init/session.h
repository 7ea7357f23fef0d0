#pragma once
/* The streams: commands and copies that the host started.
 *
 * Life of one: its EXEC is gathered; the child is starting (between fork and execve); it runs; it has
 * ended and its output drains; EXIT is queued, and it is gone. */
#include <sys/types.h>

#include "guest/init/authority.h"
#include "guest/init/chan.h"

struct session;

struct sessions {
	struct chans chans;
	struct loop *loop;
	struct port *port;
	int null_fd; /* /dev/null */
	int pts_fd;  /* directory of terminals */
	int proc_fd; /* /proc */
	const char *workdir;
	struct authority *authority; /* what commands get by it */
	struct session *list;
	unsigned n;
	unsigned most; /* at once, since memory was given back */
	bool closed;   /* no new ones */
	struct killer *killers;
};

/* workdir borrows, the descriptors and the authority as well. */
void sessions_init(struct sessions *ss, struct loop *l, struct port *p, struct authority *a);

/* A frame on a stream. NULL, or what the host did wrong, which ends the conversation. */
const char *sessions_frame(struct sessions *ss, const struct wire_frame *f) _must_check_;

/* A child was reaped. */
void sessions_reaped(struct sessions *ss, pid_t pid, int status);

/* Refuse new ones from now on and hang up the terminals, whose shells do not mind SIGTERM. */
void sessions_close(struct sessions *ss);
