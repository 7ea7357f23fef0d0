#pragma once
/* A program in a cage: it sees the files and the descriptors it was given, itself, and nothing else.
 *
 * The cage is made of new user, mount, pid, network (unless host_net), ipc, uts and cgroup namespaces, an own root of
 * read-only bind mounts, no capability and no way to get one, and resource limits. Nothing of it is on
 * the host: it is gone when the program ends. Works for an ordinary user and for root. Linux 5.12. */
#include <sys/types.h>

#include "sys/spawn.h"

enum {
	CAGE_EXEC = 1,   /* may be executed or mapped executable */
	CAGE_DEVICE = 2, /* a device node: may be opened for writing */
};

struct cage_bind {
	const char *from; /* absolute path of a file of the host; links are followed */
	const char *to;   /* absolute path in the cage, without "." or ".." */
	unsigned flags;
};

struct cage_limit {
	int resource; /* RLIMIT_... */
	uint64_t value;
};

enum { CAGE_BINDS_MAX = 1024 };

struct cage_spec {
	const struct cage_bind *binds;
	size_t n_binds;
	const char *const *argv; /* argv[0] is a path in the cage */
	const char *const *env;
	const struct sys_fd *fds; /* all descriptors of the program, 0 to 2 included */
	size_t n_fds;
	const struct cage_limit *limits;
	size_t n_limits;

	/* The program does the user's own work on descriptors that it is given. It keeps the user's id
	 * on the host, where without this root's program becomes somebody who owns nothing: started by
	 * root it is root, of all ids there are, with the power to override modes and act as owner
	 * (CAP_DAC_OVERRIDE, CAP_FOWNER) and no other. */
	bool as_user;
	/* It stays in the network namespace of its parent: it may connect to wherever the user may. Unix sockets
	 * with an abstract name are in reach too, unless its own filter forbids that. */
	bool host_net;
	int self_fd; /* if not 0: the program's number for its own /proc/self/fd */
};

/* Start the program. It is a direct child, process 1 of its own pid namespace, and dies when the
 * calling thread does. The caller owns the process and *ret_pidfd (close-on-exec). 0, or -Exxx with a
 * message; returns when the program has been executed. */
int cage_spawn(const struct cage_spec *s, pid_t *ret_pid, int *ret_pidfd, struct err *e)
	_must_check_;

/* The user id on the host that root's cages run as: one that nobody else has, made from our pid;
 * "nobody" where that one does not exist (in a container with few ids); (uid_t)-1 if there is no
 * other than our own. map is the text of /proc/self/uid_map. */
uid_t cage_pick_uid(const char *map, pid_t pid);

/* Say why a cage could not be made, and what to do about it, from an errno and the switches below
 * proc_sys ("/proc/sys"). what is the step that failed. Returns code. */
int cage_explain(struct err *e, int code, const char *what, const char *proc_sys);
