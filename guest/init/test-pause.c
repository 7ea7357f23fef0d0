/* Programs stand still and go on, also if who stopped them is killed. In a process namespace of its own, since all others are
 * stopped. */
#include "guest/init/pause.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "io/fd.h"

static char state_of(pid_t pid)
{
	char path[64], text[256] = "";
	_close_ int fd = -1;
	const char *p;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	check(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	p = strrchr(text, ')');
	check(p);
	return p[2];
}

static pid_t sleeper(void)
{
	pid_t pid = fork();

	check(pid >= 0);
	if (pid == 0)
		for (;;)
			(void)sigsuspend(&(sigset_t) { 0 });
	return pid;
}

static void wait_state(pid_t pid, int options)
{
	siginfo_t si;

	check(waitid(P_PID, (id_t)pid, &si, options) == 0);
}

static void test_end(void)
{
	pid_t a = sleeper(), stopped = sleeper();
	struct pause p;

	check(kill(stopped, SIGSTOP) == 0);
	wait_state(stopped, WSTOPPED);
	check(pause_begin(&p) == 0);
	wait_state(a, WSTOPPED | WNOWAIT);
	check(state_of(a) == 'T');
	pause_end(&p);
	wait_state(a, WCONTINUED);
	check(state_of(stopped) == 'T');
	check(kill(a, SIGKILL) == 0 && kill(stopped, SIGKILL) == 0);
	wait_state(a, WEXITED);
	wait_state(stopped, WEXITED);
}

/* In a child, which is killed while others stand still. */
static void test_killed(void)
{
	pid_t a = sleeper(), pid;
	int ready[2];
	char c;

	check(pipe(ready) == 0);
	pid = fork();
	check(pid >= 0);
	if (pid == 0) {
		struct pause p;

		check(pause_begin(&p) == 0);
		check(write(ready[1], "x", 1) == 1);
		for (;;)
			(void)sigsuspend(&(sigset_t) { 0 });
	}
	/* we are process 1 here, which goes on */
	check(read(ready[0], &c, 1) == 1);
	wait_state(a, WSTOPPED);
	check(kill(pid, SIGKILL) == 0);
	wait_state(pid, WEXITED);
	wait_state(a, WCONTINUED);
	check(kill(a, SIGKILL) == 0);
	wait_state(a, WEXITED);
}

int main(void)
{
	int status = 0;
	pid_t pid;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0 &&
	    unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS) < 0)
		skip("no process namespace can be made here");
	pid = fork();
	check(pid >= 0);
	if (pid == 0) {
		if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("proc", "/proc", "proc", 0, NULL) < 0)
			_exit(77);
		/* the first two processes are the kernel's: this takes the place of the second */
		check((pid = sleeper()) == 2);
		test_end();
		test_killed();
		_exit(0); /* which ends all of the namespace */
	}
	check(waitpid(pid, &status, 0) == pid);
	/* what looks for leaks at the end would fork into that namespace */
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
