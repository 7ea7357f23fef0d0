#pragma once
/* Other programs: started with exactly what they are given, and waited for.
 *
 * A child gets its arguments, an environment, and the descriptors of its map; every other descriptor
 * is closed, no signal is blocked or ignored, and it is killed when we die. */
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

struct sys_fd {
	int from; /* ours */
	int to;   /* the child's */
};

enum { SYS_FDS_MAX = 144, SYS_OUT_MAX = 1024 * 1024 };

struct sys_cmd {
	const char *const *argv;  /* NULL-terminated; argv[0] is looked up unless it has a '/' */
	const char *const *env;   /* NULL-terminated; NULL: ours */
	const char *dir;          /* working directory; NULL: ours */
	const struct sys_fd *fds; /* 0, 1 and 2 are /dev/null unless they stand here */
	size_t n_fds;
	bool group;    /* in a process group of its own: the deadline then ends all of it */
	bool outlives; /* it is not killed when we die: a supervisor */

	/* for sys_run() only */
	const void *in; /* bytes for stdin */
	size_t n_in;
	struct buf *out;      /* takes stdout; what does not fit is dropped */
	struct buf *errs;     /* takes stderr; NULL: kept for the message only */
	uint64_t deadline_ms; /* 0: none */
};

/* Start a program. On success the caller owns the process and *ret_pidfd (close-on-exec); either
 * may be NULL. 0, or -Exxx with a message; -ENOENT names the Debian package that is missing. Returns
 * when the program has been executed, so that "cannot execute" is an error of this call. */
int sys_spawn(const struct sys_cmd *c, pid_t *ret_pid, int *ret_pidfd, struct err *e) _must_check_;

/* Run a short program and wait. 0: it ended with status 0. Positive: its status, or 128 + signal;
 * -Exxx: it could not be run, or -ETIMEDOUT. Unless 0, *e has a message, with the last line that the
 * program wrote to stderr. */
int sys_run(const struct sys_cmd *c, struct err *e) _must_check_;

/* Wait for a child until fd_now_ns() is end_ns (UINT64_MAX: as long as it takes). 0 and *ret_status
 * as sys_run() counts it, -ETIMEDOUT (it still runs), or -errno. */
int sys_wait(pid_t pid, int pidfd, uint64_t end_ns, int *ret_status) _must_check_;

/* Kill (SIGKILL) and reap. For a child of ours that has not been reaped. */
void sys_kill(pid_t pid);

/* Where a program is: name itself if it has a '/', else from PATH and the system's directories of
 * administration. 0 and a heap path, or -ENOENT with a message that names the package. */
int sys_find(const char *name, char **ret, struct err *e) _must_check_;

/* The Debian package that has a program; the program's name if it is not one that we know. */
const char *sys_package(const char *program);

/* For the child between fork and exec; they make system calls only. */

/* Put the map's descriptors in their places; all others are marked close-on-exec. /dev/null on 0 to
 * 2 is up to the map. 0 or -errno. */
int sys_child_fds(const struct sys_fd *fds, size_t n) _must_check_;

/* No signal blocked, ignored or handled. */
void sys_child_signals(void);
