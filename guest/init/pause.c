/* All programs of the sandbox stand still. */
#include "guest/init/pause.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "io/fd.h"

enum { PASSES = 16, KTHREADD = 2 };

struct paused {
	uint32_t n;
	pid_t v[PAUSE_MAX];
};

/* A process of the user's that runs or sleeps. */
static bool is_going(const char *pid)
{
	char path[64], text[512], state;
	_close_ int fd = -1;
	const char *p;
	ssize_t n;
	int ppid;

	(void)snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	p = strrchr(text, ')'); /* the name before it may hold anything */
	return p && sscanf(p + 1, " %c %d", &state, &ppid) == 2 && !strchr("TtZX", state) &&
	       ppid != KTHREADD;
}

/* How many were stopped in this pass. */
static unsigned pass(struct paused *l, pid_t guard)
{
	DIR *d = opendir("/proc");
	unsigned n = 0;
	struct dirent *e;
	uint64_t pid;

	while (d && (e = readdir(d))) {
		if (text_u64(e->d_name, INT32_MAX, &pid) < 0 || pid <= KTHREADD ||
		    (pid_t)pid == getpid() || (pid_t)pid == guard || !is_going(e->d_name) ||
		    l->n == PAUSE_MAX)
			continue;
		l->v[l->n++] = (pid_t)pid; /* noted first: we may be killed in between */
		n += kill((pid_t)pid, SIGSTOP) == 0;
	}
	if (d)
		(void)closedir(d);
	return n;
}

/* The last that was stopped first: a shell that goes on must not find its child stopped. */
static void go_on(const struct paused *l)
{
	for (uint32_t i = MIN(l->n, PAUSE_MAX); i-- > 0;)
		(void)kill(l->v[i], SIGCONT);
}

static _noreturn_ void guard(const struct paused *l, int rope)
{
	char c;

	(void)setsid();
	for (int fd = 0; fd < 3; fd++)
		(void)close(fd); /* nobody waits for us */
	while (read(rope, &c, 1) < 0 && errno == EINTR)
		;
	go_on(l);
	_exit(0);
}

int pause_begin(struct pause *p)
{
	_close_ int theirs = -1, ours = -1;
	struct paused *l =
		mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fds[2], i;
	pid_t pid;

	if (l == MAP_FAILED)
		return -errno;
	if (pipe2(fds, O_CLOEXEC) < 0) {
		(void)munmap(l, sizeof(*l));
		return -errno;
	}
	theirs = fds[0];
	ours = fds[1];
	pid = fork();
	if (pid < 0) {
		(void)munmap(l, sizeof(*l));
		return -errno;
	}
	if (pid == 0) {
		ours = fd_close(ours);
		guard(l, theirs);
	}
	for (i = 0; i < PASSES && pass(l, pid); i++)
		;
	*p = (struct pause) { .list = l, .rope = take_fd(&ours), .guard = pid };
	return 0;
}

void pause_end(struct pause *p)
{
	p->rope = fd_close(p->rope);
	while (waitpid(p->guard, NULL, 0) < 0 && errno == EINTR)
		;
	(void)munmap(p->list, sizeof(*p->list));
	p->list = NULL;
}
