/* How a build shows itself. */
#include "cli/progress.h"

#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "io/fd.h"

/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a signal handler has no other */
static volatile sig_atomic_t caught;

static void note(int sig)
{
	caught = sig;
}

int progress_signal(void)
{
	return caught ? 128 + (int)caught : 0;
}

static int columns(void)
{
	struct winsize ws;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 20 ? ws.ws_col : 80;
}

static void say(void *user, const char *line, int percent)
{
	unsigned long long s;
	struct progress *p = user;
	char text[192];

	if (p->quiet)
		return;
	s = (fd_now_ns() - p->began) / 1000000000;
	if (percent >= 0)
		(void)snprintf(text, sizeof(text), "%.120s, %d%%", line, percent);
	else
		(void)snprintf(text, sizeof(text), "%.160s", line);
	if (p->tty) {
		(void)fprintf(stderr, "\r\033[K[%3llu s] %.*s", s, columns() - 10, text);
		p->open = true;
	} else if (starts_with(text, p->step) && p->step[0]) {
		return; /* a count within the step */
	} else {
		(void)fprintf(stderr, "[%3llu s] %s\n", s, text);
	}
	(void)snprintf(p->step, sizeof(p->step), "%.150s", line); /* without the percent */
	(void)fflush(stderr);
}

void progress_begin(struct progress *p, bool quiet)
{
	const struct sigaction sa = { .sa_handler = note };
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	size_t i;

	*p = (struct progress) { .quiet = quiet, .began = fd_now_ns() };
	p->p.say = say;
	p->p.user = p;
	p->tty = isatty(STDERR_FILENO);
	for (i = 0; i < ARRAY_SIZE(signals); i++)
		(void)sigaction(signals[i], &sa, NULL);
}

void progress_end(struct progress *p)
{
	if (p->open)
		(void)fprintf(stderr, "\r\033[K");
	p->open = false;
}
