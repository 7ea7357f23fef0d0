#pragma once
/* Threads for what may wait for long: they get plain descriptors and numbers, never a table.
 *
 * Life of a job: job_new() (main thread), filled, worker_start(): queued -> running -> ended, its run()
 * called in another thread; worker_ended() hands it back to the main thread, which frees it. A job that
 * waits for a lock can be cancelled: it then ends soon, with EINTR unless it got the lock just before.
 * Nothing waits by looking again. */
#include <sys/types.h>

#include "base/base.h"

#define WORKER_JOBS    256U /* at a time, waiting ones included */
#define WORKER_SHORT   8U   /* threads for work that ends by itself */
#define WORKER_WAITERS 64U  /* threads that wait for a lock */

struct fs;
struct handle;
struct lock_owner;
struct worker;

#define JOB_FDS 8U

struct job {
	/* the thread's part */
	int (*run)(struct job *j); /* 0, an amount, or -errno: becomes result */
	int fd[JOB_FDS];           /* borrowed from the handles below, or own (n_own first ones) */
	uint64_t off[2], len;
	uint32_t flags;
	short lock_type;
	ssize_t result;
	/* the main thread's part */
	ssize_t (*answer)(struct fs *f, struct job *j, void *body); /* NULL: no body */
	struct handle *handles[2];
	struct lock_owner *owner;
	void *token;
	const struct iovec *out;
	size_t n_out;
	uint64_t unique;
	unsigned n_fds;
	bool own_fds;
	/* the worker's part */
	struct job *next;
	struct thread *by;
	bool used, waits, cancelled;
	enum { JOB_NEW = 0, JOB_QUEUED, JOB_RUNNING, JOB_ENDED } state;
};

int worker_new(struct worker **ret); /* 0, -ENOMEM, -errno */
/* End all waits and join the threads: jobs that had not begun never do. */
void worker_stop(struct worker *w);
struct worker *worker_free(struct worker *w);

/* NULL: there are too many, or (waits) too many that wait. */
struct job *job_new(struct worker *w, bool waits);
void job_free(struct worker *w, struct job *j);
/* 0, or -EAGAIN: no thread could be made; the job is still the caller's. */
int worker_start(struct worker *w, struct job *j);
struct job *worker_ended(struct worker *w); /* NULL: none */
void worker_cancel(struct worker *w, struct job *j);
int worker_fd(const struct worker *w);
/* Jobs not yet freed, in turn from *at (0 at first); NULL at the end. */
struct job *worker_each(struct worker *w, size_t *at);

/* For run(): a system call that waits, which worker_cancel() ends: 0 or -errno. again: the same call so
 * that it does not wait; it decides when both happen at once. */
int worker_wait(struct job *j, int (*wait)(struct job *), int (*again)(struct job *));
