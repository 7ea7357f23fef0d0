/* Who is stuck, and who only waits: decided from figures, and for real processes. */
#include "supervisor/stuck.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "io/fd.h"

static const uint64_t MS = 1000000;

/* Looked at a second apart, with so much of the processor in between. */
static bool after(char state, uint64_t ran_ms)
{
	struct stuck s = { 0 };

	check(!stuck_judge(&s, 7, 'S', 5 * MS, 1000 * MS));
	return stuck_judge(&s, 7, state, (5 + ran_ms) * MS, 2000 * MS);
}

static void figures(void)
{
	static const struct {
		char state;
		uint64_t ran_ms;
		bool stuck;
	} rows[] = {
		{ 'S', 0, true },    { 'S', 900, true }, { 't', 0, true },   { 'T', 0, true },
		{ 'Z', 0, true },    { 'X', 0, true },   { 'R', 990, true }, { 'R', 250, true },
		{ 'R', 249, false }, { 'R', 0, false },  { 'D', 0, false },  { 'D', 600, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check(after(rows[i].state, rows[i].ran_ms) == rows[i].stuck);
}

static void spans(void)
{
	struct stuck s = { 0 };

	check(!stuck_judge(&s, 7, 'S', 0, 1000 * MS)); /* the first */
	check(!stuck_judge(&s, 7, 'S', 0,
			   1499 * MS)); /* told twice at once: the teller was late itself */
	check(!stuck_judge(&s, 8, 'S', 0, 1999 * MS)); /* another */
	check(!stuck_judge(&s, 8, 'S', 0, 4500 * MS)); /* of another time */
	check(stuck_judge(&s, 8, 'S', 0, 5000 * MS));
	check(!stuck_judge(&s, 8, 'S', 0, 6000 * MS)); /* begun anew */
	/* as long as it waits, each look is compared with the one before */
	check(!stuck_judge(&s, 8, 'R', 100 * MS, 7000 * MS));
	check(!stuck_judge(&s, 8, 'R', 200 * MS, 8000 * MS));
	check(stuck_judge(&s, 8, 'R', 1200 * MS, 9000 * MS));
}

/* As somebody would who says it every 100 ms; what is decided at last. */
static bool decided(pid_t pid)
{
	struct stuck s = { 0 };
	const uint64_t begin = fd_now_ns();

	while (fd_now_ns() - begin < 30000 * MS) {
		if (stuck(&s, pid))
			return true;
		(void)usleep(100000);
	}
	return false;
}

/* One that sleeps, and then is no more. Who works without end is decided from figures only: on a loaded machine it would be in want of a processor. */
static void processes(void)
{
	pid_t pid = fork();

	check(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)alarm(60);
		(void)pause();
		_exit(0);
	}
	check(decided(pid));
	check(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	check(decided(pid));
}

int main(void)
{
	figures();
	spans();
	processes();
	return 0;
}
