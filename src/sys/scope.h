#pragma once
/* A systemd scope: the cgroup in which a sandbox's processes are counted and limited together. */
#include "base/base.h"

/* Where systemd is looked for; the tests make one up. */
struct sys_systemd {
	bool root;         /* the system's manager, not the user's */
	char *socket;      /* its private socket */
	char *systemd_run; /* the program */
};

struct sys_scope {
	const char *id;       /* letters, digits, '-', '_'; the unit is bac-ID.scope */
	const char *text;     /* description for people; NULL: none */
	uint64_t memory_max;  /* bytes; 0: no limit */
	uint64_t tasks_max;   /* 0: no limit */
	unsigned cpu_percent; /* of one CPU: 200 is two; 0: no limit */
};

/* The manager that answers here (its socket takes a connection and systemd-run is installed): 1 and
 * *ret (sys_systemd_done()), or 0. */
int sys_systemd_find(struct sys_systemd *ret);
void sys_systemd_done(struct sys_systemd *m);

/* The words to put before a command, so that it runs in a scope of its own and in place: systemd-run
 * becomes the command, with the same process id. A NULL-terminated heap array of heap texts, freed
 * with sys_scope_free(); NULL if m is NULL, if the id is not fit for a unit's name, or on lack of
 * memory: run without a scope then. */
char **sys_scope_argv(const struct sys_systemd *m, const struct sys_scope *s);
char **sys_scope_free(char **argv);
