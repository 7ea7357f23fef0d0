/* Other programs.
 *
 * The child's side of fork() makes system calls only (the parent may have threads), and reports what
 * went wrong over a pipe that exec closes: the parent reads either an errno or the end of the file,
 * and so knows that the program runs. Descriptors of the map are first copied above every number that
 * the map fills, so that the order of its entries does not matter. */
#include "sys/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/fd.h"

/* linux/close_range.h; 5.11 */
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4
#endif

enum { TAIL_MAX = 8192 };

static const struct {
	const char *program, *package;
} packages[] = {
	{ "apt-get", "apt" },
	{ "debugfs", "e2fsprogs" },
	{ "dpkg-deb", "dpkg" },
	{ "dump.erofs", "erofs-utils" },
	{ "fsck.erofs", "erofs-utils" },
	{ "ld", "binutils" },
	{ "mkfs.erofs", "erofs-utils" },
	{ "mkfs.ext4", "e2fsprogs" },
	{ "newuidmap", "uidmap" },
	{ "objcopy", "binutils" },
	{ "qemu-img", "qemu-utils" },
	{ "qemu-system-x86_64", "qemu-system-x86" },
	{ "resize2fs", "e2fsprogs" },
	{ "skopeo", "skopeo" },
	{ "strip", "binutils" },
	{ "unlz4", "lz4" },
	{ "unshare", "util-linux" },
	{ "unzstd", "zstd" },
	{ "xz", "xz-utils" },
	{ "zstdcat", "zstd" },
};

const char *sys_package(const char *program)
{
	const char *slash = strrchr(program, '/');
	const char *name = slash ? slash + 1 : program;

	for (size_t i = 0; i < ARRAY_SIZE(packages); i++)
		if (streq(packages[i].program, name))
			return packages[i].package;
	return name;
}

/* The first directory of a PATH that has an executable of this name: a heap path, or NULL. */
static char *find_in(const char *path, const char *name)
{
	while (path && *path) {
		size_t n = strcspn(path, ":");
		char *full = NULL;

		if (asprintf(&full, "%.*s/%s", (int)n, path, name) < 0)
			return NULL;
		/* An empty or relative entry would depend on where we stand: passed over. */
		if (full[0] == '/' && n > 0 && access(full, X_OK) == 0)
			return full;
		free(full);
		path += n + (path[n] == ':');
	}
	return NULL;
}

int sys_find(const char *name, char **ret, struct err *e)
{
	char *found;

	if (strchr(name, '/')) {
		found = access(name, X_OK) == 0 ? strdup(name) : NULL;
	} else {
		found = find_in(getenv("PATH"), name);
		if (!found) /* mkfs.ext4 and others are not in everybody's PATH */
			found = find_in("/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin", name);
	}
	if (!found)
		return err_set(e, -ENOENT, "%s is not installed: sudo apt install %s", name,
			       sys_package(name));
	*ret = found;
	return 0;
}

int sys_child_fds(const struct sys_fd *fds, size_t n)
{
	int high[SYS_FDS_MAX], above = 3;

	if (n > SYS_FDS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < n; i++)
		above = MAX(above, fds[i].to + 1);
	for (size_t i = 0; i < n; i++) {
		high[i] = fcntl(fds[i].from, F_DUPFD_CLOEXEC, above);
		if (high[i] < 0)
			return -errno;
	}
	if (close_range(0, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		return -errno;
	for (size_t i = 0; i < n; i++)
		if (dup2(high[i], fds[i].to) < 0)
			return -errno;
	return 0;
}

void sys_child_signals(void)
{
	sigset_t none;

	for (int s = 1; s < NSIG; s++)
		(void)signal(s, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

struct child {
	const struct sys_cmd *c;
	const char *path;
	const struct sys_fd *fds;
	size_t n_fds;
	pid_t parent;
	int status; /* pipe: an errno, or its end at exec */
};

static int child_setup(const struct child *ch)
{
	int r;

	if (!ch->c->outlives && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	if (!ch->c->outlives && getppid() != ch->parent)
		_exit(127); /* it died before prctl() */
	if (ch->c->group && setpgid(0, 0) < 0)
		return -errno;
	r = sys_child_fds(ch->fds, ch->n_fds);
	if (r < 0)
		return r;
	if (ch->c->dir && chdir(ch->c->dir) < 0)
		return -errno;
	sys_child_signals();
	(void)execve(ch->path, (char *const *)ch->c->argv,
		     ch->c->env ? (char *const *)ch->c->env : environ);
	return -errno;
}

static _noreturn_ void child_main(const struct child *ch)
{
	int code = child_setup(ch);

	(void)!write(ch->status, &code, sizeof(code));
	_exit(127);
}

/* The caller's map with /dev/null where it leaves out 0, 1 or 2. */
static size_t fill_map(struct sys_fd *map, const struct sys_cmd *c, int null)
{
	size_t n = c->n_fds;

	for (size_t i = 0; i < n; i++)
		map[i] = c->fds[i];
	for (int to = 0; to < 3; to++) {
		bool there = false;

		for (size_t i = 0; i < c->n_fds; i++)
			there |= c->fds[i].to == to;
		if (!there)
			map[n++] = (struct sys_fd) { .from = null, .to = to };
	}
	return n;
}

/* A pipe whose write end no map can hit. */
static int status_pipe(const struct sys_fd *map, size_t n, int *ret_r, int *ret_w)
{
	_close_ int r = -1, w = -1;
	int p[2], above = 3;

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	r = p[0];
	w = p[1];
	for (size_t i = 0; i < n; i++)
		above = MAX(above, map[i].to + 1);
	*ret_w = fcntl(w, F_DUPFD_CLOEXEC, above);
	if (*ret_w < 0)
		return -errno;
	*ret_r = take_fd(&r);
	return 0;
}

/* Fork and wait for exec. 0 and *ret, or -errno with nothing left behind. */
static int start(const struct sys_cmd *c, const char *path, pid_t *ret)
{
	struct sys_fd map[SYS_FDS_MAX];
	_close_ int null = -1, r_end = -1, w_end = -1;
	struct child ch = { .c = c, .path = path, .fds = map, .parent = getpid() };
	int code = 0, r;
	pid_t pid;

	if (c->n_fds > SYS_FDS_MAX - 3)
		return -E2BIG;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return -errno;
	ch.n_fds = fill_map(map, c, null);
	r = status_pipe(map, ch.n_fds, &r_end, &w_end);
	if (r < 0)
		return r;
	ch.status = w_end;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		child_main(&ch);
	w_end = fd_close(w_end);
	if (fd_read_all(r_end, &code, sizeof(code)) == (ssize_t)sizeof(code)) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		return code;
	}
	*ret = pid;
	return 0;
}

int sys_spawn(const struct sys_cmd *c, pid_t *ret_pid, int *ret_pidfd, struct err *e)
{
	_free_ char *path = NULL;
	pid_t pid = -1;
	int r, fd = -1;

	r = sys_find(c->argv[0], &path, e);
	if (r < 0)
		return r;
	r = start(c, path, &pid);
	if (r < 0)
		return err_errno(e, r, "cannot run %s", path);
	if (ret_pidfd) {
		fd = pidfd_open(pid, 0); /* close-on-exec by itself */
		if (fd < 0) {
			r = -errno;
			sys_kill(pid);
			return err_errno(e, r, "cannot watch %s", path);
		}
		*ret_pidfd = fd;
	}
	if (ret_pid)
		*ret_pid = pid;
	return 0;
}

void sys_kill(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Milliseconds until end, for poll(), rounded up. */
static int left_ms(uint64_t end_ns)
{
	uint64_t now = fd_now_ns();

	if (end_ns == UINT64_MAX)
		return -1;
	if (now >= end_ns)
		return 0;
	return (int)MIN((end_ns - now + 999999) / 1000000, (uint64_t)INT32_MAX);
}

int sys_wait(pid_t pid, int pidfd, uint64_t end_ns, int *ret_status)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int st, n;

	do {
		n = poll(&p, 1, left_ms(end_ns));
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n == 0)
		return -ETIMEDOUT;
	while (waitpid(pid, &st, 0) < 0)
		if (errno != EINTR)
			return -errno;
	*ret_status = WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
	return 0;
}

/* What a run holds between its start and its end. */
struct run {
	const struct sys_cmd *c;
	pid_t pid;
	int pidfd, out, errs; /* our ends; -1 when at their end */
	struct buf tail;      /* the end of stderr */
	uint64_t end_ns;
};

static bool is_mapped(const struct sys_cmd *c, int to)
{
	for (size_t i = 0; i < c->n_fds; i++)
		if (c->fds[i].to == to)
			return true;
	return false;
}

/* stdin is a file in memory rather than a pipe: nobody has to feed it. */
static int make_input(const struct sys_cmd *c, int *ret)
{
	_close_ int fd = memfd_create("stdin", MFD_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, c->in, c->n_in);
	if (r < 0)
		return r;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	*ret = take_fd(&fd);
	return 0;
}

/* A pipe to read one of the child's outputs; our end does not block. */
static int make_output(int *ret_ours, int *ret_theirs)
{
	int p[2], r;

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	*ret_ours = p[0];
	*ret_theirs = p[1];
	r = fd_nonblock(p[0], true);
	return r;
}

static int run_start(struct run *run, struct err *e)
{
	const struct sys_cmd *c = run->c;
	_close_ int in = -1, out = -1, errs = -1;
	struct sys_fd map[SYS_FDS_MAX];
	struct sys_cmd with = *c;
	int r = 0;

	if (c->n_fds > SYS_FDS_MAX - 6)
		return err_errno(e, -E2BIG, "cannot run %s", c->argv[0]);
	for (size_t i = 0; i < c->n_fds; i++)
		map[i] = c->fds[i];
	with.fds = map;
	if (c->in && !is_mapped(c, 0)) {
		r = make_input(c, &in);
		map[with.n_fds++] = (struct sys_fd) { .from = in, .to = 0 };
	}
	if (r == 0 && c->out && !is_mapped(c, 1)) {
		r = make_output(&run->out, &out);
		map[with.n_fds++] = (struct sys_fd) { .from = out, .to = 1 };
	}
	if (r == 0 && !is_mapped(c, 2)) {
		r = make_output(&run->errs, &errs);
		map[with.n_fds++] = (struct sys_fd) { .from = errs, .to = 2 };
	}
	if (r < 0)
		return err_errno(e, r, "cannot run %s", c->argv[0]);
	return sys_spawn(&with, &run->pid, &run->pidfd, e);
}

/* Keep the last bytes. */
static void tail_add(struct buf *tail, const char *p, size_t n)
{
	if (n > buf_space(tail))
		buf_consume(tail, MIN(tail->n, n - buf_space(tail)));
	(void)!buf_add(tail, p, n);
}

/* Read what is there. False at the end of the stream. */
static bool drain(int fd, struct buf *keep, struct buf *tail)
{
	char b[4096];
	bool more;

	for (;;) {
		ssize_t n = read(fd, b, sizeof(b));

		if (n < 0 && errno == EINTR)
			continue;
		more = n < 0 && errno == EAGAIN;
		if (n <= 0)
			break;
		if (keep)
			(void)!buf_add(keep, b, MIN((size_t)n, buf_space(keep)));
		if (tail)
			tail_add(tail, b, (size_t)n);
	}
	explicit_bzero(b, sizeof(b)); /* some programs print secrets */
	return more;
}

/* Until the program ends; a grandchild that keeps a pipe open does not hold us. */
static int run_loop(struct run *run)
{
	for (;;) {
		struct pollfd p[] = {
			{ .fd = run->pidfd, .events = POLLIN },
			{ .fd = run->out, .events = POLLIN },
			{ .fd = run->errs, .events = POLLIN },
		};
		int n = poll(p, ARRAY_SIZE(p), left_ms(run->end_ns));

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return -ETIMEDOUT;
		if (n < 0)
			continue;
		if (run->out >= 0 && !drain(run->out, run->c->out, NULL))
			run->out = fd_close(run->out);
		if (run->errs >= 0 && !drain(run->errs, run->c->errs, &run->tail))
			run->errs = fd_close(run->errs);
		if (p[0].revents)
			return 0;
	}
}

/* The last line of what a program said: a text inside tail. */
static const char *last_line(struct buf *tail)
{
	char *s = (char *)buf_str(tail), *nl;
	size_t n = s ? strlen(s) : 0;

	while (n > 0 && strchr("\r\n\t ", s[n - 1]))
		s[--n] = '\0';
	if (n == 0)
		return "it said nothing about why";
	nl = strrchr(s, '\n');
	return nl ? nl + 1 : s;
}

static int run_end(struct run *run, int r, struct err *e)
{
	const char *name = run->c->argv[0];
	int status = 0;

	if (r < 0) {
		if (run->c->group)
			(void)kill(-run->pid, SIGKILL);
		sys_kill(run->pid);
	}
	if (r == -ETIMEDOUT)
		return err_set(e, r, "%s did not end within %llu ms", name,
			       (unsigned long long)run->c->deadline_ms);
	if (r == 0)
		r = sys_wait(run->pid, run->pidfd, UINT64_MAX, &status);
	if (r < 0)
		return err_errno(e, r, "cannot wait for %s", name);
	if (status > 128)
		return err_set(e, status, "%s was ended by signal %d: %s", name, status - 128,
			       last_line(&run->tail));
	if (status > 0)
		return err_set(e, status, "%s failed: %s", name, last_line(&run->tail));
	return 0;
}

int sys_run(const struct sys_cmd *c, struct err *e)
{
	struct run run = {
		.c = c, .pid = -1, .pidfd = -1, .out = -1, .errs = -1, .tail = BUF_INIT(TAIL_MAX)
	};
	int r;

	run.end_ns = c->deadline_ms ? fd_now_ns() + c->deadline_ms * 1000000 : UINT64_MAX;
	r = run_start(&run, e);
	if (r == 0)
		r = run_end(&run, run_loop(&run), e);
	run.out = fd_close(run.out);
	run.errs = fd_close(run.errs);
	run.pidfd = fd_close(run.pidfd);
	buf_done(&run.tail);
	return r;
}
