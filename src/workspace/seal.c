/* The list of system calls of a server at work. Whatever a guest makes of it by a flaw, it cannot execute a program,
 * make or connect a socket, map anything executable, send a signal, or look into another process. It can still use
 * all that is on the list on the shares' descriptors: that is what it is there for.
 *
 * Its root is empty, so that a path leads only where a share's descriptor is its start. openat2() with
 * RESOLVE_BENEATH is how names are opened; the flags are behind a pointer, where a filter cannot see them. */
#include "workspace/seal.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>

#include "seal/seal.h"

enum { THREAD = CLONE_THREAD | CLONE_VM | CLONE_SIGHAND };

/* clang-format off */
static const struct seal_permit permits[] = {
	/* the loop: messages of the supervisor and of QEMU, kicks, interrupts, late answers */
	SEAL_ANY(epoll_wait), SEAL_ANY(epoll_pwait), SEAL_ANY(epoll_ctl), SEAL_ANY(recvmsg), SEAL_ANY(sendto),
	SEAL_ANY(read), SEAL_ANY(write), SEAL_ANY(close),
	/* SET_MEM_TABLE: the file's size, seals, pages; an event's kind, and that it never blocks */
	SEAL_ANY(fstat), SEAL_ANY(newfstatat), SEAL_NOT(mmap, 2, PROT_EXEC), SEAL_ANY(munmap),
	SEAL_IS(fcntl, 1, F_GET_SEALS), SEAL_IS(fcntl, 1, F_GETFL), SEAL_IS(fcntl, 1, F_SETFL),
	/* names: find, open, make, move, remove; openat is for /proc/self/fd, to open a descriptor anew */
	SEAL_ANY(openat2), SEAL_ANY(openat), SEAL_ANY(statx), SEAL_ANY(readlinkat), SEAL_ANY(getdents64),
	SEAL_ANY(mkdirat), SEAL_ANY(mknodat), SEAL_ANY(symlinkat), SEAL_ANY(linkat), SEAL_ANY(unlinkat), SEAL_ANY(renameat2), SEAL_ANY(umask),
	/* news of the host */
	SEAL_ANY(inotify_add_watch), SEAL_ANY(inotify_rm_watch),
	/* attributes */
	SEAL_ANY(fchmodat), SEAL_ANY(fchownat), SEAL_ANY(utimensat), SEAL_ANY(ftruncate), SEAL_ANY(fstatfs),
	SEAL_ANY(getxattr), SEAL_ANY(setxattr), SEAL_ANY(listxattr), SEAL_ANY(removexattr),
	/* contents */
	SEAL_ANY(preadv2), SEAL_ANY(pwritev2), SEAL_ANY(lseek), SEAL_ANY(fallocate), SEAL_ANY(copy_file_range),
	SEAL_ANY(fsync), SEAL_ANY(fdatasync), SEAL_ANY(syncfs),
	/* locks */
	SEAL_ANY(flock), SEAL_IS(fcntl, 1, F_OFD_GETLK), SEAL_IS(fcntl, 1, F_OFD_SETLK), SEAL_IS(fcntl, 1, F_OFD_SETLKW),
	SEAL_IS(fcntl, 1, F_SETLEASE),
	/* threads, made when they are needed; one of ours is woken from a lock by a signal */
	SEAL_HAS(clone, 0, THREAD), SEAL_ANY(set_robust_list), SEAL_ANY(rseq), SEAL_ANY(futex), SEAL_ANY(gettid), SEAL_ANY(getpid),
	SEAL_ANY(tgkill), SEAL_ANY(rt_sigaction), SEAL_ANY(rt_sigprocmask), SEAL_ANY(rt_sigreturn), SEAL_ANY(restart_syscall),
	SEAL_ANY(exit), SEAL_ANY(exit_group),
	/* memory of our own */
	SEAL_ANY(brk), SEAL_NOT(mprotect, 2, PROT_EXEC), SEAL_ANY(madvise), SEAL_ANY(mremap),
	/* time and chance, where the library has to ask the kernel */
	SEAL_ANY(clock_gettime), SEAL_ANY(getrandom),
};
/* clang-format on */

/* Its flags are behind a pointer: the library falls back to clone(). */
static const int refused[] = { SCMP_SYS(clone3) };

int seal(void)
{
	const struct seal_list l = { .permits = permits,
				     .n_permits = ARRAY_SIZE(permits),
				     .refused = refused,
				     .n_refused = ARRAY_SIZE(refused),
				     .error = ENOSYS };

	return seal_load(&l);
}
