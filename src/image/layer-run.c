/* What bac-layer says is not trusted: it has read foreign bytes. */
#include "image/layer-run.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "image/run.h"
#include "io/fd.h"
#include "sys/dirs.h"

enum { ARGS_MAX = 8 };

struct listen {
	const struct image_layer_run *run;
	int out, errs;
	char line[LAYER_LINE_MAX + 1];
	size_t n; /* in line */
	char why[ERR_MSG_MAX];
	size_t n_why;
	bool bad; /* it said what it should not */
	bool done;
	struct layer_line result;
};

static void tell(const struct listen *l, uint64_t at)
{
	const struct image_progress *p = l->run->b->progress;
	uint64_t total = l->run->total;

	if (p)
		p->say(p->user, l->run->step,
		       total ? (int)MIN(at / (total / 100 + 1), (uint64_t)100) : -1);
}

static void end_line(struct listen *l)
{
	struct layer_line x;

	l->line[l->n] = '\0';
	l->n = 0;
	if (l->done || layer_line_parse(l->line, &x) < 0) {
		l->bad = true;
		return;
	}
	if (x.done) {
		l->result = x;
		l->done = true;
	} else if (x.n) {
		tell(l, x.v[0]);
	}
}

/* False at the end. */
static bool read_lines(struct listen *l)
{
	char part[4096];
	ssize_t n = read(l->out, part, sizeof(part));

	if (n <= 0)
		return n < 0 && errno == EINTR;
	for (ssize_t i = 0; i < n; i++) {
		if (part[i] == '\n')
			end_line(l);
		else if (l->n < LAYER_LINE_MAX)
			l->line[l->n++] = part[i];
		else
			l->bad = true;
	}
	return true;
}

static bool read_why(struct listen *l)
{
	char part[1024];
	ssize_t n = read(l->errs, part, sizeof(part));
	size_t k;

	if (n <= 0)
		return n < 0 && errno == EINTR;
	k = MIN((size_t)n, sizeof(l->why) - 1 - l->n_why);
	memcpy(l->why + l->n_why, part, k);
	l->n_why += k;
	return true;
}

static int listen_to(struct listen *l, int signals)
{
	bool out = true, errs = true;

	while (out || errs) {
		struct pollfd p[] = {
			{ .fd = out ? l->out : -1, .events = POLLIN },
			{ .fd = errs ? l->errs : -1, .events = POLLIN },
			{ .fd = signals, .events = POLLIN },
		};

		if (poll(p, ARRAY_SIZE(p), -1) < 0 && errno != EINTR)
			return -errno;
		if (p[2].revents)
			return -EINTR;
		if (p[0].revents)
			out = read_lines(l);
		if (p[1].revents)
			errs = read_why(l);
	}
	return 0;
}

static int finish(struct listen *l, pid_t pid, int pidfd, int r, size_t n, struct err *e)
{
	int status = 0;

	if (r < 0) {
		sys_kill(pid);
		return r == -EINTR ? err_set(e, r, "interrupted; nothing was kept")
				   : err_errno(e, r, "cannot run bac-layer");
	}
	r = sys_wait(pid, pidfd, UINT64_MAX, &status);
	if (r < 0)
		return err_errno(e, r, "cannot wait for bac-layer");
	l->why[l->n_why] = '\0';
	l->why[strcspn(l->why, "\n")] = '\0';
	if (status == 1 && l->why[0])
		return err_set(e, -EINVAL, "%s", l->why);
	if (status || l->bad || !l->done || l->result.n != n)
		return err_set(e, -EPROTO, "bac-layer failed (status %d)", status);
	return 0;
}

static int start(const struct image_layer_run *run, struct listen *l, pid_t *ret_pid,
		 int *ret_pidfd, struct err *e)
{
	_free_ char *found = run->b->layer ? NULL : dirs_program("bac-layer");
	const char *prog = run->b->layer ? run->b->layer : found;
	const char *argv[ARGS_MAX] = { prog };
	struct sys_fd fds[SYS_FDS_MAX];
	struct sys_cmd c = { .argv = argv, .fds = fds, .n_fds = run->n_fds + 2 };
	_close_ int out = -1, errs = -1;
	int p[2];

	if (!prog || c.n_fds > SYS_FDS_MAX)
		return err_errno(e, -ENOMEM, "cannot run bac-layer");
	for (size_t i = 0; run->args[i] && i + 2 < ARGS_MAX; i++)
		argv[i + 1] = run->args[i];
	for (size_t i = 0; i < run->n_fds; i++)
		fds[i] = run->fds[i];
	if (pipe2(p, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "cannot run bac-layer");
	l->out = p[0];
	out = p[1];
	if (pipe2(p, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "cannot run bac-layer");
	l->errs = p[0];
	errs = p[1];
	fds[run->n_fds] = (struct sys_fd) { .from = out, .to = STDOUT_FILENO };
	fds[run->n_fds + 1] = (struct sys_fd) { .from = errs, .to = STDERR_FILENO };
	return sys_spawn(&c, ret_pid, ret_pidfd, e);
}

int image_layer_run(const struct image_layer_run *run, size_t n, struct layer_line *ret,
		    struct err *e)
{
	struct listen l = { .run = run, .out = -1, .errs = -1 };
	struct image_signals signals;
	_close_ int pidfd = -1;
	pid_t pid;
	int r = image_signals_hold(&signals);

	if (r < 0)
		return err_errno(e, r, "cannot run bac-layer");
	r = start(run, &l, &pid, &pidfd, e);
	if (r == 0) {
		tell(&l, 0);
		r = finish(&l, pid, pidfd, listen_to(&l, signals.fd), n, e);
	}
	(void)fd_close(l.out);
	(void)fd_close(l.errs);
	image_signals_release(&signals);
	if (r == 0)
		*ret = l.result;
	return r;
}

const char *image_layer_limits(char dst[LAYER_LIMITS_TEXT], const struct image_build *b)
{
	static const struct layer_limits usual = LAYER_LIMITS_DEFAULT;

	return layer_limits_text(dst, b->limits ? b->limits : &usual);
}
