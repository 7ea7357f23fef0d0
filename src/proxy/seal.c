/* The list of system calls of a proxy at work. Whatever a guest or a server makes of it by a flaw, it cannot open a file, execute a program,
 * map anything executable, send a signal or look into another process, or make a socket that is not TCP or UDP. It can still
 * connect to where the host can: that is what it is there for; what it decides is on bac-audit's log, which is another process. */
#include "proxy/seal.h"

#include <fcntl.h>
#include <malloc.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

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

/* clang-format off */
static const struct permit permits[] = {
	/* the loop */
	ANY(epoll_wait), ANY(epoll_pwait), ANY(epoll_ctl),
	/* connections, questions, receipts, messages */
	IS(socket, 0, AF_INET), IS(socket, 0, AF_INET6), ANY(connect), ANY(bind), ANY(accept4), ANY(shutdown),
	ANY(getsockname), ANY(getpeername), ANY(getsockopt), ANY(setsockopt),
	ANY(sendto), ANY(sendmsg), ANY(recvfrom), ANY(recvmsg), ANY(read), ANY(write), ANY(writev), ANY(close),
	ANY(splice), ANY(pipe2),
	IS(fcntl, 1, F_GETFL), IS(fcntl, 1, F_SETFL), IS(fcntl, 1, F_SETFD), IS(fcntl, 1, F_SETPIPE_SZ),
	/* a policy is a memory file */
	ANY(fstat), ANY(newfstatat), ANY(pread64),
	/* memory of our own */
	ANY(brk), NOT(mmap, 2, PROT_EXEC), NOT(mprotect, 2, PROT_EXEC), ANY(munmap), ANY(madvise), ANY(mremap),
	/* time and chance */
	ANY(clock_gettime), ANY(gettimeofday), ANY(time), ANY(getrandom),
	ANY(futex), ANY(rt_sigreturn), ANY(rt_sigprocmask), ANY(restart_syscall), ANY(getpid), ANY(gettid),
	ANY(exit), ANY(exit_group),
};
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
	r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	for (size_t i = 0; i < ARRAY_SIZE(permits) && r == 0; i++)
		r = add(ctx, &permits[i]);
	if (r == 0)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	return r;
}
