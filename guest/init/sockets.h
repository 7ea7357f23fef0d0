#pragma once
/* Sockets whose programs are started by the first who connects. */
#include "guest/init/boot.h"
#include "guest/init/loop.h"

enum { SOCKETS_N = 1, SOCKET_WHY_MAX = 240 };

/* One program. The functions but there() run in a child. */
struct socket_kind {
	const char *name, *path;
	const char *group;  /* that may use it; where there is none, the agent's own */
	unsigned start_ms;  /* how long it may take to say that it is ready (sd_notify(3)) */
	unsigned steady_ms; /* who ran as long is started again at once */
	unsigned
		refuse_ms; /* who asks so soon after it could not start is told so: after each further failure twice as long, four times at most */
	bool (*there)(void);
	/* become it, with the socket on descriptor 3; returns only on failure */
	int (*run)(const struct boot *b, const char *notify, struct err *e);
	void (*last_words)(char *dst, size_t max); /* "" if there are none */
};

extern const struct socket_kind sockets_kinds[SOCKETS_N];

struct service {
	const struct socket_kind *kind;
	struct sockets *of;
	struct watch listener, notify; /* fd -1: none */
	struct timer t;                /* it is too slow; or: look at the socket again */
	pid_t pid;                     /* 0: nothing runs */
	int report;                    /* of the child; -1: none */
	int state;
	unsigned failures;        /* in a row */
	uint64_t since;           /* when it was started, loop_now() */
	char why[SOCKET_WHY_MAX]; /* it cannot be started; "": its log says */
};

struct sockets {
	struct loop *loop;
	const struct boot *boot;
	struct service s[SOCKETS_N];
	bool stopping;
};

/* Listen for all of them (SOCKETS_N) that the root has. Borrows all three. What fails is noted. */
void sockets_listen(struct sockets *ss, const struct socket_kind *kinds, struct loop *l,
		    const struct boot *b);

/* A child was reaped: true if it was one of these. */
bool sockets_reaped(struct sockets *ss, pid_t pid, int status);

/* Start none any more, and ask those that run to end (SIGTERM). */
void sockets_stop(struct sockets *ss);

/* None runs. */
bool sockets_idle(const struct sockets *ss);
