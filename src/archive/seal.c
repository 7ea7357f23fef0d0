#include "archive/seal.h"

#include <iconv.h>
#include <seccomp.h>
#include <sys/mman.h>

#include "config.h"

/* clang-format off */
static const int allowed[] = {
	SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(readv), SCMP_SYS(writev), SCMP_SYS(lseek), SCMP_SYS(close),
	SCMP_SYS(fstat), SCMP_SYS(poll), SCMP_SYS(ppoll),
	SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(brk), SCMP_SYS(madvise), SCMP_SYS(futex),
	SCMP_SYS(clock_gettime), SCMP_SYS(getrandom), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getuid),
	SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid),
	SCMP_SYS(sched_getaffinity), SCMP_SYS(sysinfo),
	SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigprocmask), SCMP_SYS(restart_syscall), SCMP_SYS(exit),
	SCMP_SYS(exit_group),
};

/* What libraries try and do without: character sets, locales, time zones. */
static const int refused[] = {
	SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(stat),
	SCMP_SYS(newfstatat), SCMP_SYS(readlink), SCMP_SYS(ioctl), SCMP_SYS(prlimit64),
};
/* clang-format on */

/* The library of character sets reads its list of them once. libarchive converts between these two. */
static void prepare(void)
{
	iconv_t cd = iconv_open("UTF-8", "ANSI_X3.4-1968");

	if (cd != (iconv_t)-1) /* NOLINT(performance-no-int-to-ptr): as iconv says that it failed */
		(void)iconv_close(cd);
}

int archive_seal(void)
{
	/* a sanitizer makes calls of its own: those are noted by the kernel, and pass */
	scmp_filter_ctx ctx = seccomp_init(BAC_SANITIZED ? SCMP_ACT_LOG : SCMP_ACT_KILL_PROCESS);
	static const int mapping[] = { SCMP_SYS(mmap), SCMP_SYS(mprotect) };
	int r = ctx ? 0 : -ENOMEM;
	size_t i;

	prepare();
	for (i = 0; i < ARRAY_SIZE(allowed) && r == 0; i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
	for (i = 0; i < ARRAY_SIZE(refused) && r == 0; i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EACCES), refused[i], 0);
	for (i = 0; i < ARRAY_SIZE(mapping) && r == 0; i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, mapping[i], 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (r == 0)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	return r;
}
