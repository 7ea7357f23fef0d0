/* The process group of a command is not all of it: a shell gives its jobs groups of their own. So the
 * last step looks through /proc for every process of the session, and looks again until a pass finds
 * none, since processes fork. A process that made a session of its own has left on purpose. */
#include "guest/init/killer.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/text.h"
#include "io/fd.h"

enum { PASSES = 8 };

struct killer {
	struct timer t;
	struct sessions *ss;
	pid_t sid;
	struct killer *next;
};

/* The session of a process that is not a zombie; 0 if there is none. */
static pid_t session_of(int proc, const char *pid)
{
	char path[64], text[512], state;
	int ppid, group, sid;
	_close_ int fd = -1;
	const char *p;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%.20s/stat", pid);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	p = strrchr(text, ')'); /* the name before it may hold anything */
	if (!p || sscanf(p + 1, " %c %d %d %d", &state, &ppid, &group, &sid) != 4 || state == 'Z')
		return 0;
	return sid;
}

/* How many were found. */
static unsigned pass(int proc, pid_t sid)
{
	int copy = openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;
	unsigned n = 0;
	uint64_t pid;

	while (d && (e = readdir(d)))
		if (text_u64(e->d_name, INT32_MAX, &pid) == 0 && pid > 1 &&
		    session_of(proc, e->d_name) == sid && kill((pid_t)pid, SIGKILL) == 0)
			n++;
	if (d)
		(void)closedir(d);
	else
		(void)fd_close(copy);
	return n;
}

static void on_time(struct timer *t)
{
	struct killer *k = container_of(t, struct killer, t), **p;
	int i;

	for (i = 0; i < PASSES && pass(k->ss->proc_fd, k->sid); i++)
		;
	for (p = &k->ss->killers; *p != k; p = &(*p)->next)
		;
	*p = k->next;
	free(k);
}

void killer_start(struct sessions *ss, pid_t sid, uint64_t ms)
{
	struct killer *k;

	for (k = ss->killers; k; k = k->next)
		if (k->sid == sid)
			return;
	k = calloc(1, sizeof(*k));
	if (!k)
		return;
	*k = (struct killer) { .t = { .fn = on_time }, .ss = ss, .sid = sid, .next = ss->killers };
	ss->killers = k;
	loop_after(ss->loop, &k->t, ms);
}
