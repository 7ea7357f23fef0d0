/* From here on, the supervisor may only do what it needs to serve: move bytes between descriptors that
 * it has, accept clients, watch, signal and reap QEMU, and end. It can open nothing but what an already open
 * directory lets it unlink, start nothing, connect to nothing. A guest that takes it over by a flaw in
 * the parsers finds itself in that. */
#include <jansson.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include "supervisor/sup.h"

/* clang-format off */
static const int allowed[] = {
	/* bytes */
	SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(readv), SCMP_SYS(writev), SCMP_SYS(recvfrom),
	SCMP_SYS(sendto), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(close), SCMP_SYS(shutdown),
	SCMP_SYS(accept4), SCMP_SYS(accept), SCMP_SYS(getsockopt), SCMP_SYS(fcntl), SCMP_SYS(ioctl),
	/* the log and run.json, which are open */
	SCMP_SYS(pwrite64), SCMP_SYS(pread64), SCMP_SYS(ftruncate), SCMP_SYS(fstat),
	SCMP_SYS(newfstatat), SCMP_SYS(lseek), SCMP_SYS(unlinkat),
	/* waiting */
	SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_ctl), SCMP_SYS(poll),
	SCMP_SYS(timerfd_settime), SCMP_SYS(futex), SCMP_SYS(restart_syscall),
	/* QEMU */
	SCMP_SYS(pidfd_send_signal), SCMP_SYS(wait4), SCMP_SYS(waitid),
	/* memory and time */
	SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(brk), SCMP_SYS(madvise),
	SCMP_SYS(mprotect), SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres),
	SCMP_SYS(clock_nanosleep), SCMP_SYS(getrandom),
	/* ourselves */
	SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(geteuid), SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(exit), SCMP_SYS(exit_group),
};
/* clang-format on */

/* A ring takes its orders from memory, past any filter, so that io_uring cannot be on the list. libuv
 * makes one with the loop where the kernel has it, and falls back to epoll where it does not. Its
 * UV_USE_IO_URING=0 speaks of another ring. */
int sup_seal_rings(struct err *e)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int r;

	if (!ctx)
		return err_errno(e, -ENOMEM, "cannot seal the supervisor");
	r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(io_uring_setup), 0);
	if (r == 0)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	return r < 0 ? err_errno(e, r, "cannot seal the supervisor (seccomp)") : 0;
}

int sup_seal(struct err *e)
{
	scmp_filter_ctx ctx;
	size_t i;
	int r = 0;

	/* jansson opens /dev/urandom for the seed of its tables when it first needs one */
	json_object_seed(0);
	ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);

	if (!ctx)
		return err_errno(e, -ENOMEM, "cannot seal the supervisor");
	for (i = 0; i < ARRAY_SIZE(allowed) && r == 0; i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
	if (r == 0)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	return r < 0 ? err_errno(e, r, "cannot seal the supervisor (seccomp)") : 0;
}
