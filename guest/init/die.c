/* The last words.
 *
 * PID 1 may not exit: the kernel would panic. Whatever goes wrong ends here, with a line for people
 * and the power off, so that the supervisor never waits for a guest that cannot come. */
#include "guest/init/die.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/reboot.h>
#include <unistd.h>

#include "guest/init/port.h"
#include "io/fd.h"

enum { LAST_WORDS_MS = 1000, CRASH_STACK = 32 * 1024 };

struct state {
	struct port *port;
	int old_root;
	bool dying;
	char stack[CRASH_STACK];
};

/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): all that a crash can go by */
static struct state state = { .old_root = -1 };

void die_know(struct port *p, int old_root)
{
	state.port = p;
	state.old_root = old_root;
}

static void say(const char *path, const char *level, const char *text)
{
	_close_ int fd = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	char line[ERR_MSG_MAX + 32];
	int n = snprintf(line, sizeof(line), "%sbac-init: %s\n", level, text);

	/* one write is one record; dprintf() does not take a file that cannot seek */
	if (fd >= 0 && n > 0 && (size_t)n < sizeof(line))
		(void)!write(fd, line, (size_t)n);
}

void die_note(const char *fmt, ...)
{
	char text[ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	say("/dev/kmsg", "<5>", text);
}

void die_power_off(void)
{
	if (getpid() != 1)
		abort(); /* a child, or a test */
	(void)reboot(RB_POWER_OFF);
	(void)reboot(RB_HALT_SYSTEM);
	for (;;)
		(void)pause();
}

static void sync_disk(void)
{
	_close_ int fd = -1;

	if (state.old_root < 0)
		return;
	fd = openat(state.old_root, "disk", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		(void)syncfs(fd);
}

void die(const char *fmt, ...)
{
	char text[ERR_MSG_MAX];
	va_list ap;

	if (state.dying)
		die_power_off();
	state.dying = true;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	say("/dev/kmsg", "<2>", text);
	say("/dev/console", "", text);
	if (state.port && wire_text_add(&state.port->ctl, 0, WIRE_FAIL, text) == 0)
		(void)port_drain(state.port, LAST_WORDS_MS);
	sync_disk();
	die_power_off();
}

static void on_crash(int signo)
{
	static const char text[] = "bac-init: crashed; turning the machine off\n";
	int fd;

	if (getpid() != 1)
		_exit(128 + signo);
	fd = open("/dev/console", O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

	(void)!write(fd, text, sizeof(text) - 1);
	die_power_off();
}

void die_catch_crashes(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS };
	struct sigaction sa = { .sa_handler = on_crash, .sa_flags = SA_ONSTACK };
	stack_t st = { .ss_sp = state.stack, .ss_size = sizeof(state.stack) };
	size_t i;

	(void)sigaltstack(&st, NULL);
	for (i = 0; i < ARRAY_SIZE(signals); i++)
		(void)sigaction(signals[i], &sa, NULL);
}
