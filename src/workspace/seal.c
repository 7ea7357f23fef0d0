/* The list of system calls of a server at work. Whatever a guest makes of it by a flaw, it cannot execute a program,
 * make or connect a socket, map anything executable, send a signal, or look into another process. It can still use
 * all that is on the list on the shares' descriptors: that is what it is there for.
 *
 * Its root is empty, so that a path leads only where a share's descriptor is its start. openat2() with
 * RESOLVE_BENEATH is how names are opened; the flags are behind a pointer, where a filter cannot see them. */
#include "workspace/seal.h"

#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "config.h"

/* Only if, of the bits in mask, argument arg has exactly those of value; mask 0: whatever the arguments. */
struct permit {
	int call;
	uint8_t arg;
	uint64_t mask, value;
};

#define ANY(name) \
	{ \
		SCMP_SYS(name), 0, 0, 0 \
	}
#define NOT(name, arg, bits) \
	{ \
		SCMP_SYS(name), arg, bits, 0 \
	}
#define IS(name, arg, v) \
	{ \
		SCMP_SYS(name), arg, UINT32_MAX, v \
	}
#define HAS(name, arg, bits) \
	{ \
		SCMP_SYS(name), arg, bits, bits \
	}

enum { THREAD = CLONE_THREAD | CLONE_VM | CLONE_SIGHAND };

/* clang-format off */
static const struct permit permits[] = {
	/* the loop: messages of the supervisor and of QEMU, kicks, interrupts, late answers */
	ANY(epoll_wait), ANY(epoll_pwait), ANY(epoll_ctl), ANY(recvmsg), ANY(sendto),
	ANY(read), ANY(write), ANY(close),
	/* SET_MEM_TABLE: the file's size, seals, pages; an event's kind, and that it never blocks */
	ANY(fstat), ANY(newfstatat), NOT(mmap, 2, PROT_EXEC), ANY(munmap),
	IS(fcntl, 1, F_GET_SEALS), IS(fcntl, 1, F_GETFL), IS(fcntl, 1, F_SETFL),
	/* names: find, open, make, move, remove; openat is for /proc/self/fd, to open a descriptor anew */
	ANY(openat2), ANY(openat), ANY(statx), ANY(readlinkat), ANY(getdents64),
	ANY(mkdirat), ANY(mknodat), ANY(symlinkat), ANY(linkat), ANY(unlinkat), ANY(renameat2), ANY(umask),
	/* news of the host */
	ANY(inotify_add_watch), ANY(inotify_rm_watch),
	/* attributes */
	ANY(fchmodat), ANY(fchownat), ANY(utimensat), ANY(ftruncate), ANY(fstatfs),
	ANY(getxattr), ANY(setxattr), ANY(listxattr), ANY(removexattr),
	/* contents */
	ANY(preadv2), ANY(pwritev2), ANY(lseek), ANY(fallocate), ANY(copy_file_range),
	ANY(fsync), ANY(fdatasync), ANY(syncfs),
	/* locks */
	ANY(flock), IS(fcntl, 1, F_OFD_GETLK), IS(fcntl, 1, F_OFD_SETLK), IS(fcntl, 1, F_OFD_SETLKW),
	/* threads, made when they are needed; one of ours is woken from a lock by a signal */
	HAS(clone, 0, THREAD), ANY(set_robust_list), ANY(rseq), ANY(futex), ANY(gettid), ANY(getpid),
	ANY(tgkill), ANY(rt_sigaction), ANY(rt_sigprocmask), ANY(rt_sigreturn), ANY(restart_syscall),
	ANY(exit), ANY(exit_group),
	/* memory of our own */
	ANY(brk), NOT(mprotect, 2, PROT_EXEC), ANY(madvise), ANY(mremap),
	/* time and chance, where the library has to ask the kernel */
	ANY(clock_gettime), ANY(getrandom),
};
/* clang-format on */

int seal_begin(void)
{
	const struct rlimit none = { 0, 0 };

	if (setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	/* one heap for all threads: the library would count the processors to decide, in files */
	(void)mallopt(M_ARENA_MAX, 1);
	return 0;
}

static int add(scmp_filter_ctx ctx, const struct permit *p)
{
	if (!p->mask)
		return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, p->call, 0);
	return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, p->call, 1,
				SCMP_CMP64(p->arg, SCMP_CMP_MASKED_EQ, p->mask, p->value));
}

int seal(void)
{
	/* a sanitizer makes calls of its own: those are noted by the kernel, and pass */
	scmp_filter_ctx ctx = seccomp_init(BAC_SANITIZED ? SCMP_ACT_LOG : SCMP_ACT_KILL_PROCESS);
	int r;

	if (!ctx)
		return -ENOMEM;
	/* a tree instead of a list, and threads that there are already are sealed too */
	r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	/* its flags are behind a pointer: the library falls back to clone() */
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	for (size_t i = 0; i < ARRAY_SIZE(permits) && r == 0; i++)
		r = add(ctx, &permits[i]);
	if (r == 0)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	return r;
}
