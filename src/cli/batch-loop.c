/* How many runs go at once: as many as were asked for, and never more than the machine has memory for, looked at anew before each start. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/batch.h"
#include "cli/say.h"
#include "io/fd.h"

enum {
	JOBS_MAX = 64,
	RESERVE = 512 * 1024 * 1024, /* bytes that stay free for everything else */
	LOOK_MS = 5000,              /* how often memory is looked at while a start waits for it */
	STUCK_MS = 600 * 1000,       /* how long the first may wait */
};

struct loop {
	const struct batch *b;
	struct batch_run v[JOBS_MAX];
	size_t n, jobs;
	uint32_t next; /* number of the next run */
	uint32_t done;
	uint64_t waiting; /* since when a start waits for memory; 0: it does not */
	int signals;
};

/* MemAvailable of /proc/meminfo (proc(5)), bytes; UINT64_MAX if it is not said. */
static uint64_t memory_available(void)
{
	_free_ char *text = NULL;
	unsigned long long kb;
	const char *p;

	if (fd_read_file(AT_FDCWD, "/proc/meminfo", 64UL * 1024, &text, NULL) < 0)
		return UINT64_MAX;
	p = strstr(text, "MemAvailable:");
	return p && sscanf(p, "MemAvailable: %llu kB", &kb) == 1 ? kb * 1024 : UINT64_MAX;
}

/* The next number without a result; 0: none. */
static uint32_t pending(const struct loop *l)
{
	for (uint32_t i = l->next; i <= l->b->o->n; i++) {
		json_t *j = batch_result(l->b->out, i);
		const bool there = j;

		json_decref(j);
		if (!there)
			return i;
	}
	return 0;
}

static void progress(const struct loop *l, const struct batch_run *r)
{
	json_t *j = batch_result(l->b->out, r->number);
	const char *status = json_string_value(json_object_get(j, "status"));
	const char *error = json_string_value(json_object_get(j, "error"));
	const double s = json_number_value(json_object_get(json_object_get(j, "seconds"), "total"));

	say("run %03u: %s after %.0f s%s%s (%u of %u)", r->number, status ? status : "?", s,
	    error ? ": " : "", error ? error : "", l->done, l->b->o->n);
	json_decref(j);
}

/* Is there memory for one more? The first may start in any case, when it has waited: what it needs the machine may have all the same. */
static bool admitted(struct loop *l)
{
	const uint64_t want = l->b->o->memory + RESERVE, now = fd_now_ns();

	if (memory_available() >= want) {
		l->waiting = 0;
		return true;
	}
	if (!l->waiting) {
		char size[32];

		l->waiting = now;
		say("waiting: a run needs %s of memory, and %s is free",
		    text_from_size(size, sizeof(size), want),
		    l->n ? "less" : "less, though no run goes");
	}
	return false;
}

static int fill(struct loop *l, struct err *e)
{
	while (l->n < l->jobs) {
		const uint32_t number = pending(l);
		int r;

		if (!number)
			return 0;
		if (!admitted(l)) {
			if (!l->n && fd_now_ns() - l->waiting > (uint64_t)STUCK_MS * 1000000)
				return err_set(e, -ENOMEM,
					       "there is too little memory for a run; give it less "
					       "with --memory, and call again: what is done stays");
			return 0;
		}
		r = batch_run_begin(l->b, &l->v[l->n++], number, e);
		if (r < 0)
			return r;
		l->next = number + 1;
	}
	return 0;
}

/* Milliseconds until the next thing that no descriptor tells. */
static int timeout(const struct loop *l)
{
	const uint64_t now = fd_now_ns();
	uint64_t first = l->waiting ? now + (uint64_t)LOOK_MS * 1000000 : UINT64_MAX;

	for (size_t i = 0; i < l->n; i++)
		first = MIN(first, l->v[i].deadline);
	if (first == UINT64_MAX)
		return -1;
	return first <= now ? 0 : (int)MIN((first - now) / 1000000 + 1, (uint64_t)INT32_MAX);
}

/* 0; a signal's number; -Exxx. */
static int turn(struct loop *l, struct err *e)
{
	struct pollfd p[JOBS_MAX + 1] = { { .fd = l->signals, .events = POLLIN } };
	const size_t n = l->n;

	for (size_t i = 0; i < n; i++)
		p[i + 1] = (struct pollfd) { .fd = l->v[i].pidfd, .events = POLLIN };
	if (poll(p, n + 1, timeout(l)) < 0 && errno != EINTR)
		return err_errno(e, -errno, "cannot wait for the runs");
	if (p[0].revents) {
		struct signalfd_siginfo s;

		return read(l->signals, &s, sizeof(s)) == sizeof(s) ? (int)s.ssi_signo : SIGTERM;
	}
	for (size_t i = n; i-- > 0;) {
		int r;

		if (!p[i + 1].revents && fd_now_ns() < l->v[i].deadline)
			continue;
		r = batch_run_next(l->b, &l->v[i], e);
		if (r < 0)
			return r;
		if (r == 1)
			continue;
		l->done++;
		progress(l, &l->v[i]);
		l->v[i] = l->v[--l->n];
	}
	return 0;
}

static int loop(struct loop *l, struct err *e)
{
	int r = fill(l, e);

	while (r == 0 && (l->n || l->waiting)) {
		r = turn(l, e);
		if (r == 0)
			r = fill(l, e);
	}
	return r;
}

static uint32_t count_done(const struct batch *b)
{
	uint32_t done = 0;

	for (uint32_t i = 1; i <= b->o->n; i++) {
		json_t *j = batch_result(b->out, i);

		done += j != NULL;
		json_decref(j);
	}
	return done;
}

int batch_loop(const struct batch *b, struct err *e)
{
	struct loop *l = calloc(1, sizeof(*l));
	sigset_t mask, old;
	int r;

	if (!l)
		return err_errno(e, -ENOMEM, "cannot begin");
	*l = (struct loop) { .b = b, .next = 1, .done = count_done(b), .signals = -1 };
	l->jobs = MIN(b->o->jobs, (uint32_t)JOBS_MAX);
	if (l->done)
		say("%u of %u runs are done already", l->done, b->o->n);
	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGINT);
	(void)sigaddset(&mask, SIGTERM);
	(void)sigaddset(&mask, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &mask, &old);
	l->signals = signalfd(-1, &mask, SFD_CLOEXEC);
	r = l->signals < 0 ? err_errno(e, -errno, "cannot wait for signals") : loop(l, e);
	if (l->n)
		say("ending %zu %s; call again with the same words to go on", l->n,
		    l->n == 1 ? "run" : "runs");
	for (size_t i = 0; i < l->n; i++)
		batch_run_cut(b, &l->v[i]);
	l->signals = fd_close(l->signals);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	free(l);
	return r;
}
