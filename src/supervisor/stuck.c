#include "supervisor/stuck.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/fd.h"

enum { TEXT_MAX = 1024, MS = 1000000 };

/* A file of /proc/PID, or "". */
static void text_of(pid_t pid, const char *name, char text[TEXT_MAX])
{
	char path[64];
	_close_ int fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, TEXT_MAX - 1);
	text[n > 0 ? n : 0] = '\0';
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
	char text[TEXT_MAX], state = 'X'; /* gone */
	const char *end;

	text_of(pid, "stat", text);
	end = strrchr(text, ')'); /* a name may have any byte */
	if (end && end[1])
		state = end[2];
	text_of(pid, "schedstat", text);
	return stuck_judge(s, pid, state, strtoull(text, NULL, 10), fd_now_ns());
}
