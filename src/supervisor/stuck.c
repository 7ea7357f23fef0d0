#include "supervisor/stuck.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "io/fd.h"

enum { TEXT_MAX = 1024, MS = 1000000 };

/* A file of /proc/PID, on the heap; NULL: it cannot be read. */
static char *text_of(pid_t pid, const char *name)
{
	char path[64], *text = NULL;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return fd_read_file(AT_FDCWD, path, TEXT_MAX, &text, NULL) < 0 ? NULL : text;
}

bool stuck_judge(struct stuck *s, pid_t pid, char state, uint64_t ran_ns, uint64_t now_ns)
{
	const struct stuck before = *s, now = { pid, now_ns, ran_ns };
	const uint64_t span = now_ns - before.at_ns, had = ran_ns - before.ran_ns;
	bool waits;

	if (before.pid != pid || span > (uint64_t)STUCK_STALE_MS * MS) {
		*s = now;
		return false;
	}
	if (span < (uint64_t)STUCK_SPAN_MS * MS)
		return false;
	waits = state == 'D' || (state == 'R' && had < span / 4);
	*s = waits ? now : (struct stuck) { 0 };
	return !waits;
}

bool stuck(struct stuck *s, pid_t pid)
{
	_free_ char *stat = text_of(pid, "stat"), *sched = text_of(pid, "schedstat");
	const char *end = stat && sched ? strrchr(stat, ')') : NULL; /* a name may have any byte */
	char state = 'X';                                            /* gone */

	if (end && end[1])
		state = end[2];
	return stuck_judge(s, pid, state, sched ? strtoull(sched, NULL, 10) : 0, fd_now_ns());
}
