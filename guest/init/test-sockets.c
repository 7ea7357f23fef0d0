/* A socket that starts its program: the program is a child of this test. */
#include "guest/init/sockets.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "guest/init/die.h"
#include "guest/init/engine.h"
#include "io/fd.h"

#define ASK "GET /_ping HTTP/1.1\r\n\r\n"

static char dir[] = "/tmp/test-sockets-XXXXXX";
static char path[64];

/* What the next start of the program does; children inherit it. */
static enum { FAIL, CRASH, SERVE, HANG } does;

void die_note(const char *fmt, ...)
{
	(void)fmt;
}

/* the real one is not in this test */
bool engine_there(void)
{
	return false;
}

int engine_run(const struct boot *b, const char *notify, struct err *e)
{
	(void)b;
	(void)notify;
	return err_set(e, -ENOSYS, "not here");
}

void engine_last_words(char *dst, size_t max)
{
	(void)max;
	*dst = '\0';
}

static bool there(void)
{
	return true;
}

static void say_ready(const char *notify)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	socklen_t len;

	(void)snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "%s", notify);
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(notify));
	check(sendto(fd, "STATUS=x\nREADY=1", 16, 0, (struct sockaddr *)&a, len) == 16);
	(void)close(fd);
}

static int run(const struct boot *b, const char *notify, struct err *e)
{
	(void)b;
	if (does == FAIL)
		return err_set(e, -ENOENT, "a \"reason\"");
	if (does == CRASH)
		_exit(3);
	(void)alarm(30);
	if (does == SERVE)
		say_ready(notify);
	while (does == SERVE) {
		struct pollfd p = { .fd = 3, .events = POLLIN };
		int fd = poll(&p, 1, -1) > 0 ? accept(3, NULL, NULL) : -1;
		char request[64];

		if (fd >= 0) {
			check(read(fd, request, sizeof(request)) > 0);
			check(write(fd, "served", 6) == 6);
			(void)close(fd);
		}
	}
	for (;;)
		(void)pause();
}

/* as long as they may be, and in JSON six times that */
static void last_words(char *dst, size_t max)
{
	memset(dst, '\1', max - 1);
	dst[max - 1] = '\0';
	memcpy(dst, "last words", 10);
}

static struct socket_kind kind = { .name = "test-sockets",
				   .path = path,
				   .group = "nobody of that name",
				   .start_ms = 60 * 1000,
				   .steady_ms = 3600 * 1000,
				   .refuse_ms = 1,
				   .there = there,
				   .run = run,
				   .last_words = last_words };

/* ---- the loop, as PID 1 turns it */

static struct loop loop;
static struct sockets ss;

static void turn(void)
{
	int status;
	pid_t pid;

	check(loop_turn(&loop, true) == 0);
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		check(sockets_reaped(&ss, pid, status));
}

static int ask(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	check(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	check(write(fd, ASK, sizeof(ASK) - 1) == sizeof(ASK) - 1);
	return fd;
}

/* The answer to a client, while the loop turns. */
static void answer(int fd, char *dst, size_t max)
{
	size_t n = 0;

	check(fd_nonblock(fd, true) == 0);
	for (;;) {
		ssize_t got = recv(fd, dst + n, max - 1 - n, 0);

		if (got > 0)
			n += (size_t)got;
		else if (got == 0 || errno != EAGAIN)
			break;
		turn();
	}
	dst[n] = '\0';
	(void)close(fd);
}

static void expect(const char *want)
{
	char text[4096];

	answer(ask(), text, sizeof(text));
	check(strstr(text, want));
}

static void wait_state(bool idle)
{
	while (sockets_idle(&ss) != idle)
		turn();
}

static void begin(int what)
{
	does = what;
	check(loop_init(&loop) == 0);
	ss = (struct sockets) { .loop = NULL };
	check(sockets_idle(&ss));
	sockets_listen(&ss, &kind, &loop, NULL);
	check(sockets_idle(&ss));
}

static void end(void)
{
	sockets_stop(&ss);
	wait_state(true);
	(void)close(ss.s[0].listener.fd);
	(void)fd_close(ss.s[0].notify.fd);
	(void)close(loop.epfd);
}

static void serves(void)
{
	begin(SERVE);
	expect("served");
	expect("served");
	/* asked to end, it is started again by who asks */
	check(kill(ss.s[0].pid, SIGTERM) == 0);
	wait_state(true);
	expect("served");
	end();
}

static void refuses(void)
{
	begin(FAIL);
	expect("HTTP/1.1 503 ");
	wait_state(true);
	expect("{\"message\":\"test-sockets cannot be started: a \\\"reason\\\"\"}");
	wait_state(true);
	does = CRASH;
	expect("cannot be started: last words");
	wait_state(true);
	does = SERVE;
	expect("served");
	end();
}

/* One that does not say that it is ready is ended, and the client told. */
static void hangs(void)
{
	kind.start_ms = 1;
	begin(HANG);
	expect("it did not come up within");
	end();
	kind.start_ms = 60 * 1000;
}

/* Crashed soon after it was ready: not at once again. */
static void crashes(void)
{
	begin(SERVE);
	expect("served");
	while (ss.s[0].t.at) /* until READY has been read */
		turn();
	check(kill(ss.s[0].pid, SIGKILL) == 0);
	expect("cannot be started: last words");
	wait_state(true);
	expect("served");
	end();
}

int main(void)
{
	check(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/s", dir);
	(void)signal(SIGPIPE, SIG_IGN);
	serves();
	refuses();
	hangs();
	crashes();
	check(unlink(path) == 0 && rmdir(dir) == 0);
	return 0;
}
