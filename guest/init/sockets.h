#pragma once
/* Sockets whose programs are started by the first who connects. */
#include "guest/init/boot.h"
#include "guest/init/loop.h"

enum { SOCKETS_N = 1, SOCKET_WHY_MAX = 240 };

struct socket_kind;

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

/* Listen for all programs that the root has. Borrows both. What fails is noted. */
void sockets_listen(struct sockets *ss, struct loop *l, const struct boot *b);

/* A child was reaped: true if it was one of these. */
bool sockets_reaped(struct sockets *ss, pid_t pid, int status);

/* Start none any more, and ask those that run to end (SIGTERM). */
void sockets_stop(struct sockets *ss);

/* None runs. */
bool sockets_idle(const struct sockets *ss);
