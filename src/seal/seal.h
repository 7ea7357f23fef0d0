#pragma once
/* From which moment on a process may only make the system calls of a list. Each process room has its own list; this is how they are
 * written and loaded: seccomp(2), by libseccomp. */
#include <seccomp.h>

#include "base/base.h"

/* A call, with whatever arguments, or only if of the bits in mask argument arg has exactly those of value. Several rows for one
 * call permit what any of them does. */
struct seal_permit {
	int call;
	uint8_t arg;
	uint64_t mask, value;
};

/* clang-format off */
#define SEAL_ANY(name)           { SCMP_SYS(name), 0, 0, 0 }
#define SEAL_NOT(name, arg, bits) { SCMP_SYS(name), arg, bits, 0 }
#define SEAL_HAS(name, arg, bits) { SCMP_SYS(name), arg, bits, bits }
#define SEAL_IS(name, arg, v)    { SCMP_SYS(name), arg, UINT32_MAX, v }
/* clang-format on */

struct seal_list {
	const struct seal_permit *permits;
	size_t n_permits;
	const int *refused; /* answered with error: what a library tries and does without */
	size_t n_refused;
	int error;
};

/* At the very start: no new privileges, no core files, nobody may look into the process, one heap for all threads (for more the library
 * counts the processors, in files). 0 or -errno. */
int seal_begin(void) _must_check_;

/* Before the first foreign byte: from here on any other call ends the process, whichever thread makes it. In a build with sanitizers,
 * which make calls of their own, the kernel only notes it. The list must have what free() needs: brk, munmap, madvise; qsort() needs no
 * more. 0 or -errno. */
int seal_load(const struct seal_list *l) _must_check_;

/* These are answered with error from here on, all others as before. 0 or -errno. */
int seal_refuse(const int *calls, size_t n, int error) _must_check_;

/* The start is over: what it had of the heap and of the program's own pages goes back to the system; pages that are needed again come
 * from the file. seal_load() does so itself. */
void seal_settle(void);
