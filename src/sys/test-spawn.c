/* Running other programs: what they get, what they give back, what remains of them. */
#include "sys/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "io/fd.h"

static int sh(const char *script, struct sys_cmd c, struct err *e)
{
	const char *argv[] = { "/bin/sh", "-c", script, NULL };

	c.argv = argv;
	return sys_run(&c, e);
}

static void statuses(void)
{
	struct err e = { 0 };

	check(sh("exit 0", (struct sys_cmd) { 0 }, &e) == 0);
	check(sh("echo first >&2; echo why >&2; exit 7", (struct sys_cmd) { 0 }, &e) == 7);
	check(streq(e.msg, "/bin/sh failed: why"));
	check(sh("exit 3", (struct sys_cmd) { 0 }, &e) == 3);
	check(streq(e.msg, "/bin/sh failed: it said nothing about why"));
	check(sh("kill -9 $$", (struct sys_cmd) { 0 }, &e) == 137);
	check(sh("head -c 100000 /dev/zero | tr '\\0' x >&2; echo >&2; echo end >&2; exit 1",
		 (struct sys_cmd) { 0 }, &e) == 1);
	check(streq(e.msg, "/bin/sh failed: end"));
	/* text of a program must not reach the terminal as it is */
	check(sh("printf 'a\\033[31m' >&2; exit 1", (struct sys_cmd) { 0 }, &e) == 1);
	check(!strchr(e.msg, '\033'));
}

static void streams(void)
{
	struct buf out = BUF_INIT(64 * 1024), errs = BUF_INIT(16);
	struct err e = { 0 };
	_free_ char *big = malloc(300000);

	check(big);
	memset(big, 'y', 300000);
	check(sh("cat; echo 123456789012345678 >&2",
		 (struct sys_cmd) { .in = "hello", .n_in = 5, .out = &out, .errs = &errs },
		 &e) == 0);
	check(streq(buf_str(&out), "hello"));
	check(errs.n == 16); /* cut at its maximum, and the program was not held up */
	buf_consume(&out, out.n);
	check(sh("wc -c", (struct sys_cmd) { .in = big, .n_in = 300000, .out = &out }, &e) == 0);
	check(streq(buf_str(&out), "300000\n"));
	buf_consume(&out, out.n);
	check(sh("head -c 300000 /dev/zero", (struct sys_cmd) { .out = &out }, &e) == 0);
	check(out.n == 64 * 1024);
	/* nobody asked for anything: /dev/null everywhere */
	check(sh("cat; echo x; test -c /dev/stdin && test -c /dev/stdout", (struct sys_cmd) { 0 },
		 &e) == 0);
	buf_done(&out);
	buf_done(&errs);
}

static void surroundings(void)
{
	static const char *const env[] = { "ONE=1", NULL };
	struct buf out = BUF_INIT(4096);
	struct err e = { 0 };
	int p[2], extra = dup(1); /* not close-on-exec */

	check(extra >= 0);
	check(sh("pwd; echo $ONE; test -z \"$HOME\"",
		 (struct sys_cmd) { .dir = "/usr", .env = env, .out = &out }, &e) == 0);
	check(streq(buf_str(&out), "/usr\n1\n"));
	buf_consume(&out, out.n);
	/* only what the map says; 9 and 8 change places on the way */
	check(pipe2(p, O_CLOEXEC) == 0);
	check(dup3(p[0], 8, O_CLOEXEC) == 8 && dup3(p[1], 9, O_CLOEXEC) == 9);
	check(sh("echo through >&8; head -c 8 <&9; for i in $(seq 0 300); do "
		 "test -e /proc/$$/fd/$i && printf '%s ' $i; done; true",
		 (struct sys_cmd) {
			 .fds = (struct sys_fd[]) { { 8, 9 }, { 9, 8 } }, .n_fds = 2, .out = &out },
		 &e) == 0);
	check(streq(buf_str(&out), "through\n0 1 2 8 9 "));
	buf_consume(&out, out.n);
	/* signals that we block or ignore are the program's again */
	check(signal(SIGTERM, SIG_IGN) == SIG_DFL);
	check(sh("kill -TERM $$; exit 0", (struct sys_cmd) { 0 }, &e) == 128 + SIGTERM);
	check(signal(SIGTERM, SIG_DFL) == SIG_IGN);
	for (int i = 0; i < 2; i++) {
		check(close(p[i]) == 0);
		check(close(8 + i) == 0);
	}
	check(close(extra) == 0);
	buf_done(&out);
}

static void missing(void)
{
	const char *argv[] = { "mkfs.nothing", NULL };
	struct sys_cmd c = { .argv = argv };
	struct err e = { 0 };
	char *path = NULL;

	check(sys_run(&c, &e) == -ENOENT);
	check(streq(e.msg, "mkfs.nothing is not installed: sudo apt install mkfs.nothing"));
	check(streq(sys_package("/usr/sbin/mkfs.ext4"), "e2fsprogs"));
	argv[0] = "/etc/passwd";
	check(sys_run(&c, &e) == -ENOENT);
	argv[0] = "/etc"; /* "executable", but not a program */
	check(sys_run(&c, &e) == -EACCES);
	check(streq(e.msg, "cannot run /etc: Permission denied"));
	check(setenv("PATH", "relative:.::/nowhere", 1) == 0);
	check(sys_find("sh", &path, &e) == 0 && path[0] == '/');
	free(path);
}

static void deadlines(void)
{
	struct buf out = BUF_INIT(4096);
	uint64_t t = fd_now_ns();
	struct err e = { 0 };
	_close_ int fd = -1;
	pid_t pid;
	int status;

	check(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
	check(sh("sleep 20 & echo $!; wait",
		 (struct sys_cmd) { .out = &out, .group = true, .deadline_ms = 300 },
		 &e) == -ETIMEDOUT);
	check(streq(e.msg, "/bin/sh did not end within 300 ms"));
	check(fd_now_ns() - t < 10000000000u);
	/* the grandchild went with the group: it is ours to reap, which not every process 1 does */
	check(strtol(buf_str(&out), NULL, 10) > 0);
	pid = (pid_t)strtol(buf_str(&out), NULL, 10);
	check(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	/* a grandchild that keeps stdout open does not hold us up */
	t = fd_now_ns();
	check(sh("sleep 3 & exit 5", (struct sys_cmd) { .out = &out }, &e) == 5);
	check(fd_now_ns() - t < 2000000000u);

	check(sys_spawn(&(struct sys_cmd) { .argv = (const char *const[]) { "sleep", "20", NULL } },
			&pid, &fd, &e) == 0);
	check(sys_wait(pid, fd, fd_now_ns() + 1000000, &status) == -ETIMEDOUT);
	check(kill(pid, SIGKILL) == 0);
	check(sys_wait(pid, fd, UINT64_MAX, &status) == 0 && status == 137);
	buf_done(&out);
}

/* The child of a parent that is killed dies. */
static void orphan(void)
{
	int p[2], n;
	char c;
	pid_t middle;

	check(pipe2(p, O_CLOEXEC) == 0);
	middle = fork();
	check(middle >= 0);
	if (middle == 0) {
		const char *argv[] = { "/bin/sh", "-c", "echo; exec sleep 20", NULL };
		struct sys_fd map = { p[1], 1 };
		struct err e;

		check(sys_spawn(&(struct sys_cmd) { .argv = argv, .fds = &map, .n_fds = 1 }, NULL,
				NULL, &e) == 0);
		(void)pause();
	}
	check(close(p[1]) == 0);
	check(read(p[0], &c, 1) == 1);
	sys_kill(middle);
	n = (int)read(p[0], &c, 1); /* ends when the last holder is gone */
	check(n == 0);
	check(close(p[0]) == 0);
}

int main(void)
{
	statuses();
	streams();
	surroundings();
	deadlines();
	orphan();
	missing();
	return 0;
}
