#include "layer/seal.h"

#include <iconv.h>
#include <sys/mman.h>

#include "config.h"
#include "layer/hash.h"
#include "seal/seal.h"

/* clang-format off */
static const struct seal_permit permits[] = {
	SEAL_ANY(read), SEAL_ANY(write), SEAL_ANY(pread64), SEAL_ANY(pwrite64), SEAL_ANY(lseek), SEAL_ANY(close),
	SEAL_ANY(fstat), SEAL_ANY(ftruncate), SEAL_ANY(poll), SEAL_ANY(ppoll), SEAL_ANY(sync_file_range),
	SEAL_ANY(munmap), SEAL_ANY(mremap), SEAL_ANY(brk), SEAL_ANY(madvise), SEAL_ANY(futex),
	SEAL_ANY(clock_gettime), SEAL_ANY(getrandom), SEAL_ANY(getpid), SEAL_ANY(gettid), SEAL_ANY(getuid),
	SEAL_ANY(geteuid), SEAL_ANY(getgid), SEAL_ANY(getegid),
	SEAL_ANY(sched_getaffinity), SEAL_ANY(sched_yield), SEAL_ANY(sysinfo), SEAL_ANY(rseq),
	SEAL_ANY(set_robust_list),
	SEAL_ANY(rt_sigreturn), SEAL_ANY(rt_sigprocmask), SEAL_ANY(restart_syscall), SEAL_ANY(exit),
	SEAL_ANY(exit_group),
	SEAL_NOT(mmap, 2, PROT_EXEC), SEAL_NOT(mprotect, 2, PROT_EXEC),
};

/* What libraries try and do without: character sets, locales, time zones. */
static const int refused[] = {
	SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(stat),
	SCMP_SYS(newfstatat), SCMP_SYS(readlink), SCMP_SYS(ioctl), SCMP_SYS(prlimit64),
};
/* clang-format on */

/* The library of character sets reads its list of them once, that of digests its configuration. */
static void prepare(void)
{
	iconv_t cd = iconv_open("UTF-8", "ANSI_X3.4-1968");

	if (cd != (iconv_t)-1) /* NOLINT(performance-no-int-to-ptr): as iconv says that it failed */
		(void)iconv_close(cd);
	cd = iconv_open("ANSI_X3.4-1968", "UTF-8");
	if (cd != (iconv_t)-1) /* NOLINT(performance-no-int-to-ptr): as above */
		(void)iconv_close(cd);
}

int layer_seal(void)
{
	const struct seal_list l = { .permits = permits,
				     .n_permits = ARRAY_SIZE(permits),
				     .refused = refused,
				     /* a sanitizer looks at itself in /proc at the end */
				     .n_refused = BAC_SANITIZED ? 0 : ARRAY_SIZE(refused),
				     .error = EACCES };
	int r = hash_prepare();

	prepare();
	return r < 0 ? r : seal_load(&l);
}
