/* The list of system calls of a keeper at work: it hears and answers, reads the memory files it is handed, and has memory, time and
 * chance. It cannot open, make or connect anything, start a program, signal, or look into another process; its root is empty and its
 * network has no interface. What a proxy makes of it by a flaw can reach the values that it holds, and nobody to tell them but that proxy. */
#include "keeper/seal.h"

#include <malloc.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "config.h"

/* Whatever the arguments; or only without PROT_EXEC. */
/* clang-format off */
static const int any[] = {
	/* the loop */
	SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(recvmsg), SCMP_SYS(sendto), SCMP_SYS(close),
	/* credentials and rules are memory files */
	SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(pread64),
	/* a line when it dies */
	SCMP_SYS(write),
	/* memory of our own, time, chance, the end */
	SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday),
	SCMP_SYS(time), SCMP_SYS(getrandom), SCMP_SYS(futex), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn), SCMP_SYS(restart_syscall), SCMP_SYS(exit), SCMP_SYS(exit_group),
};
static const int not_code[] = { SCMP_SYS(mmap), SCMP_SYS(mprotect) };
/* clang-format on */

int seal_begin(void)
{
	const struct rlimit none = { 0, 0 };

	if (setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	(void)mallopt(M_ARENA_MAX, 1);
	return 0;
}

int seal(void)
{
	/* a sanitizer makes calls of its own: those are noted by the kernel, and pass */
	scmp_filter_ctx ctx = seccomp_init(BAC_SANITIZED ? SCMP_ACT_LOG : SCMP_ACT_KILL_PROCESS);
	int r = 0;

	if (!ctx)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(any) && r == 0; i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, any[i], 0);
	for (size_t i = 0; i < ARRAY_SIZE(not_code) && r == 0; i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, not_code[i], 1,
				     SCMP_CMP64(2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (r == 0)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	return r;
}
