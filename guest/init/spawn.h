#pragma once
/* Starting commands: from the EXEC message to execve. */
#include <sys/types.h>

#include "guest/init/env.h"
#include "wire/msg.h"

/* What a child that cannot go on writes into its report pipe: the code of EXIT, then the text. */
enum { SPAWN_REPORT_MAX = 1 + WIRE_TEXT_MAX };

/* One start. Life: made from a message, given to spawn_start(), freed when its report pipe has ended or its
 * child was reaped, not before: the child works in it. */
struct spawn_job;

/* Read an EXEC message and copy what it needs; hold the defaults of its environment (NULL: none). WIRE_OK, WIRE_E_* or -ENOMEM. */
int spawn_job_new(struct spawn_job **ret, const void *msg, size_t n, struct env *env) _must_check_;
struct spawn_job *spawn_job_free(struct spawn_job *j);
const struct wire_exec *spawn_job_exec(const struct spawn_job *j);

struct spawn {
	int in, out, err;    /* the child's ends; not used with a terminal */
	int terminal;        /* master side, or -1 */
	const char *workdir; /* the default directory; stays valid */
};

/* Start the command as its user, in a session and process group of its own. *ret_report is readable
 * (non-blocking): at its end, the command runs; before that, a report came why it does not. Everything
 * that may wait for the guest's files is done by the child. The pid, or -errno. */
pid_t spawn_start(struct spawn_job *j, const struct spawn *s, int *ret_report) _must_check_;

/* A child that stays this program: runs fn(ctx, data, report) as root with only these two descriptors (data
 * may be -1) besides stdio, and exits with its answer. The pid, or -errno. */
pid_t spawn_fn(int data, int (*fn)(void *ctx, int data, int report), void *ctx, int *ret_report)
	_must_check_;

/* Write a report of code and text. */
void spawn_report(int fd, uint8_t code, const char *text);
