/* The list of system calls of a writer at work. Whatever a peer makes of it by a flaw, it can spoil the log below the one
 * descriptor that it has, and that is all: it cannot execute, make or connect a socket, map anything executable, or
 * signal. Its root is empty; openat2() with RESOLVE_BENEATH is how files are opened. */
#include "audit/seal.h"

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
	/* the files of the log */
	SCMP_SYS(openat2), SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(read), SCMP_SYS(write),
	SCMP_SYS(pwrite64), SCMP_SYS(fdatasync), SCMP_SYS(unlinkat),
	/* memory of our own, time, the end */
	SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(clock_gettime),
	SCMP_SYS(getrandom), SCMP_SYS(futex), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(rt_sigprocmask),
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
