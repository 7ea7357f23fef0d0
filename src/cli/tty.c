/* Raw mode.
 *
 * A process that is killed cannot clean up, so a child stands by: it waits for the end of a pipe that only we
 * hold open. A byte on it means that all is well; its end without a byte means that we were killed, and then
 * the child puts the terminal back. */
#include "cli/tty.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "io/fd.h"

struct tty {
	int fd;
	int alive; /* our end of the pipe */
	pid_t watcher;
	struct termios before;
};

_noreturn_ static void watch(int fd, int pipe_end, const struct termios *before)
{
	sigset_t all;
	char c;
	ssize_t n;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	(void)prctl(PR_SET_NAME, "bac-tty", 0, 0, 0);
	do
		n = read(pipe_end, &c, 1);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		(void)tcsetattr(fd, TCSANOW, before);
	_exit(0);
}

static int start_watcher(struct tty *t)
{
	int fd[2];

	if (pipe2(fd, O_CLOEXEC) < 0)
		return -errno;
	t->watcher = fork();
	if (t->watcher < 0) {
		(void)fd_close(fd[0]);
		(void)fd_close(fd[1]);
		return -errno;
	}
	if (t->watcher == 0) {
		(void)fd_close(fd[1]);
		watch(t->fd, fd[0], &t->before);
	}
	(void)fd_close(fd[0]);
	t->alive = fd[1];
	return 0;
}

int tty_raw(int fd, struct tty **ret)
{
	struct tty *t = calloc(1, sizeof(*t));
	struct termios raw;
	int r;

	if (!t)
		return -ENOMEM;
	t->fd = fd;
	t->alive = -1;
	if (tcgetattr(fd, &t->before) < 0) {
		r = -errno;
		free(t);
		return r;
	}
	r = start_watcher(t);
	if (r < 0) {
		free(t);
		return r;
	}
	raw = t->before;
	cfmakeraw(&raw);
	if (tcsetattr(fd, TCSANOW, &raw) < 0) {
		r = -errno;
		tty_restore(t);
		return r;
	}
	*ret = t;
	return 0;
}

struct tty *tty_restore(struct tty *t)
{
	if (!t)
		return NULL;
	(void)tcsetattr(t->fd, TCSANOW, &t->before);
	if (t->alive >= 0 && write(t->alive, "x", 1) < 0)
		errno = 0;
	(void)fd_close(t->alive);
	while (t->watcher > 0 && waitpid(t->watcher, NULL, 0) < 0 && errno == EINTR)
		;
	free(t);
	return NULL;
}

void tty_size(int fd, uint16_t *ret_rows, uint16_t *ret_cols)
{
	struct winsize ws = { 0 };

	if (ioctl(fd, TIOCGWINSZ, &ws) < 0 || !ws.ws_row || !ws.ws_col) {
		ws.ws_row = 24;
		ws.ws_col = 80;
	}
	*ret_rows = ws.ws_row;
	*ret_cols = ws.ws_col;
}
