/* The list of system calls of a keeper at work: it hears and answers, reads the memory files it is handed, and has memory, time and
 * chance. It cannot open, make or connect anything, start a program, signal, or look into another process; its root is empty and its
 * network has no interface. What a proxy makes of it by a flaw can reach the values that it holds, and nobody to tell them but that proxy. */
#include "keeper/seal.h"

#include <sys/mman.h>

#include "seal/seal.h"

/* clang-format off */
static const struct seal_permit permits[] = {
	/* the loop */
	SEAL_ANY(poll), SEAL_ANY(ppoll), SEAL_ANY(recvmsg), SEAL_ANY(sendto), SEAL_ANY(close),
	/* credentials and rules are memory files */
	SEAL_ANY(fstat), SEAL_ANY(newfstatat), SEAL_ANY(pread64),
	/* a line when it dies */
	SEAL_ANY(write),
	/* memory of our own, time, chance, the end */
	SEAL_ANY(brk), SEAL_ANY(munmap), SEAL_ANY(mremap), SEAL_ANY(madvise), SEAL_ANY(clock_gettime), SEAL_ANY(gettimeofday),
	SEAL_ANY(time), SEAL_ANY(getrandom), SEAL_ANY(futex), SEAL_ANY(getpid), SEAL_ANY(gettid), SEAL_ANY(rt_sigprocmask),
	SEAL_ANY(rt_sigreturn), SEAL_ANY(restart_syscall), SEAL_ANY(exit), SEAL_ANY(exit_group),
	SEAL_NOT(mmap, 2, PROT_EXEC), SEAL_NOT(mprotect, 2, PROT_EXEC),
};
/* clang-format on */

int seal(void)
{
	const struct seal_list l = { .permits = permits, .n_permits = ARRAY_SIZE(permits) };

	return seal_load(&l);
}
