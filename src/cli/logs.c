/* bac logs: what the kernel, QEMU and the supervisor of a sandbox said. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cmds.h"
#include "cli/ctx.h"
#include "io/fd.h"
#include "wire/limits.h"

struct logs_args {
	bool follow;
};

static const struct opt opts[] = {
	{ "follow", 'f', OPT_FLAG, offsetof(struct logs_args, follow), NULL,
	  "go on showing what is added" },
};

/* The log's two files, of which the one with the larger number in its first line is being written. */
struct pair {
	int dir;
	uint64_t seq; /* of the file that we read */
	off_t at;
};

static uint64_t open_file(int dir, int i, int *ret_fd)
{
	char name[8], head[64] = "";
	unsigned long long seq = 0;

	(void)snprintf(name, sizeof(name), "log.%d", i);
	*ret_fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (*ret_fd >= 0 && pread(*ret_fd, head, sizeof(head) - 1, 0) > 0 &&
	    sscanf(head, "#bac-log %llu", &seq) != 1)
		seq = 0;
	return seq;
}

/* Write what a file holds from *at on, without the line that numbers it. */
static int show_from(int fd, off_t *at)
{
	char bytes[32768];
	ssize_t n;
	int r;

	if (*at == 0) {
		n = pread(fd, bytes, 64, 0);
		while (n > 0 && *at < n && bytes[*at] != '\n')
			(*at)++;
		(*at)++;
	}
	while ((n = pread(fd, bytes, sizeof(bytes), *at)) > 0) {
		r = fd_write_all(STDOUT_FILENO, bytes, (size_t)n);
		if (r < 0)
			return r;
		*at += n;
	}
	return 0;
}

/* Everything that is new since last time, older file first. 0 or -errno. */
static int show(struct pair *p)
{
	_close_ int a = -1, b = -1;
	uint64_t seq[2];
	int fd[2], older, r = 0, k;

	seq[0] = open_file(p->dir, 0, &a);
	seq[1] = open_file(p->dir, 1, &b);
	fd[0] = a;
	fd[1] = b;
	older = seq[0] > seq[1];
	for (k = 0; k < 2 && r == 0; k++) {
		int i = k ? !older : older;

		if (fd[i] < 0 || !seq[i] || seq[i] < p->seq)
			continue;
		if (seq[i] > p->seq)
			p->at = 0;
		p->seq = seq[i];
		r = show_from(fd[i], &p->at);
	}
	return r;
}

static int follow(struct pair *p, const char *dir)
{
	_close_ int in = inotify_init1(IN_CLOEXEC);
	char events[4096];
	int r = 0;

	if (in < 0 || inotify_add_watch(in, dir, IN_MODIFY | IN_DELETE_SELF | IN_MOVE_SELF) < 0)
		return -errno;
	while (r == 0) {
		struct pollfd f[2] = { { in, POLLIN, 0 }, { STDOUT_FILENO, 0, 0 } };

		r = show(p);
		if (r < 0 || (poll(f, 2, -1) < 0 && errno != EINTR))
			break;
		if (f[1].revents & (POLLERR | POLLHUP))
			break;
		if (read(in, events, sizeof(events)) < 0 && errno != EINTR)
			break;
		if (access(dir, F_OK) < 0)
			break;
	}
	return r;
}

static int logs(struct ctx *c, const struct sandbox *b, const struct logs_args *o, struct err *e)
{
	_free_ char *dir = state_dir(c->state, b->id);
	_close_ int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	struct pair p = { .dir = fd };
	int r;

	if (fd < 0)
		return err_errno(e, -errno, "cannot read the log of '%s'", b->name);
	r = o->follow ? follow(&p, dir) : show(&p);
	if (r == -EPIPE)
		return 0;
	return r < 0 ? err_errno(e, r, "cannot show the log of '%s'", b->name) : 0;
}

static int run(void *opt, struct args *args, struct err *e)
{
	struct sandbox b = { 0 };
	struct ctx c;
	int r = ctx_open(&c, e);

	if (r == 0)
		r = state_get(c.state, args->v[0], &b, e);
	if (r == 0)
		r = logs(&c, &b, opt, e);
	sandbox_done(&b);
	ctx_done(&c);
	return r;
}

const struct cmd logs_cmd = {
	.name = "logs",
	.usage = "[OPTIONS] SANDBOX",
	.brief = "show what a sandbox's kernel, machine and supervisor said",
	.text = "Two files of 1 MiB are kept; older lines are dropped.",
	.opts = opts,
	.n_opts = ARRAY_SIZE(opts),
	.min_args = 1,
	.max_args = 1,
	.size = sizeof(struct logs_args),
	.run = run,
};
