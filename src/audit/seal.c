/* The list of system calls of a writer at work. Whatever a peer makes of it by a flaw, it can spoil the log below the one
 * descriptor that it has, and that is all: it cannot execute, make or connect a socket, map anything executable, or
 * signal. Its root is empty; openat2() with RESOLVE_BENEATH is how files are opened. */
#include "audit/seal.h"

#include <sys/mman.h>

#include "seal/seal.h"

/* clang-format off */
static const struct seal_permit permits[] = {
	/* the loop */
	SEAL_ANY(poll), SEAL_ANY(ppoll), SEAL_ANY(recvmsg), SEAL_ANY(sendto), SEAL_ANY(close),
	/* the files of the log */
	SEAL_ANY(openat2), SEAL_ANY(fstat), SEAL_ANY(newfstatat), SEAL_ANY(read), SEAL_ANY(write),
	SEAL_ANY(pwrite64), SEAL_ANY(fdatasync), SEAL_ANY(unlinkat),
	/* memory of our own, time, the end */
	SEAL_ANY(brk), SEAL_ANY(munmap), SEAL_ANY(mremap), SEAL_ANY(madvise), SEAL_ANY(clock_gettime),
	SEAL_ANY(getrandom), SEAL_ANY(futex), SEAL_ANY(getpid), SEAL_ANY(gettid), SEAL_ANY(rt_sigprocmask),
	SEAL_ANY(rt_sigreturn), SEAL_ANY(restart_syscall), SEAL_ANY(exit), SEAL_ANY(exit_group),
	SEAL_NOT(mmap, 2, PROT_EXEC), SEAL_NOT(mprotect, 2, PROT_EXEC),
};
/* clang-format on */

int seal(void)
{
	const struct seal_list l = { .permits = permits, .n_permits = ARRAY_SIZE(permits) };

	return seal_load(&l);
}
