#pragma once
/* Programs of a build, run as root of namespaces of their own.
 *
 * Root of the machine gets a mount and a process namespace; an ordinary user in addition a user
 * namespace in which its own id is 0 and its subordinate ids (/etc/subuid) are 1 and up. So files
 * of the "root" of a template belong to the user, a home directory closed to others stays reachable, all
 * mounts vanish with the last process, and no process outlives ours. */
#include <signal.h>

#include "base/err.h"

struct image_run {
	const char *const *argv; /* NULL-terminated */
	const char *const *env;  /* NAME=value over our environment, NULL-terminated; may be NULL */
	int log;                 /* takes all output; -1: none */
	int signals;             /* image_run_signals(); -1: none */
	/* Each line of output, if not NULL; it may be changed. */
	void (*line)(void *user, char *line);
	void *user;
};

/* 0: it ended with status 0. Positive: its status, or 128 + signal, with a message that has its last
 * line. -EINTR when one of our signals came: it and all its children are dead then. -Exxx: it could
 * not be run. */
int image_run(const struct image_run *run, struct err *e) _must_check_;

/* Can namespaces be made here? -Exxx with what to do about it. */
int image_run_check(struct err *e) _must_check_;

/* Remove a tree whose files other ids of the namespace own. 0 or -EIO. */
int image_run_remove(const char *path);

/* Block SIGINT, SIGTERM and SIGHUP: a descriptor that is readable once one is pending. The old mask is in
 * *old, to be set again by the caller; the signal is delivered then. -errno. */
struct image_signals {
	sigset_t old;
	int fd;
};
int image_signals_hold(struct image_signals *s) _must_check_;
void image_signals_release(struct image_signals *s);
bool image_signals_pending(const struct image_signals *s);
