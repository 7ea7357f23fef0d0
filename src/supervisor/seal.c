/* From here on, the supervisor may only do what it needs to serve: move bytes between descriptors that
 * it has, accept clients, watch, signal and reap QEMU, and end. It can open nothing but what an already open
 * directory lets it unlink, start nothing, connect to nothing. A guest that takes it over by a flaw in
 * the parsers finds itself in that. */
#include <jansson.h>

#include "seal/seal.h"
#include "supervisor/sup.h"

/* clang-format off */
static const struct seal_permit permits[] = {
	/* bytes */
	SEAL_ANY(read), SEAL_ANY(write), SEAL_ANY(readv), SEAL_ANY(writev), SEAL_ANY(recvfrom),
	SEAL_ANY(sendto), SEAL_ANY(recvmsg), SEAL_ANY(sendmsg), SEAL_ANY(close), SEAL_ANY(shutdown),
	SEAL_ANY(accept4), SEAL_ANY(accept), SEAL_ANY(getsockopt), SEAL_ANY(fcntl), SEAL_ANY(ioctl),
	/* the log and run.json, which are open */
	SEAL_ANY(pwrite64), SEAL_ANY(pread64), SEAL_ANY(ftruncate), SEAL_ANY(fstat),
	SEAL_ANY(newfstatat), SEAL_ANY(lseek), SEAL_ANY(unlinkat),
	/* waiting */
	SEAL_ANY(epoll_wait), SEAL_ANY(epoll_pwait), SEAL_ANY(epoll_ctl), SEAL_ANY(poll),
	SEAL_ANY(timerfd_settime), SEAL_ANY(futex), SEAL_ANY(restart_syscall),
	/* QEMU */
	SEAL_ANY(pidfd_send_signal), SEAL_ANY(wait4), SEAL_ANY(waitid),
	/* memory and time */
	SEAL_ANY(mmap), SEAL_ANY(munmap), SEAL_ANY(mremap), SEAL_ANY(brk), SEAL_ANY(madvise),
	SEAL_ANY(mprotect), SEAL_ANY(clock_gettime), SEAL_ANY(clock_getres),
	SEAL_ANY(clock_nanosleep), SEAL_ANY(getrandom),
	/* ourselves */
	SEAL_ANY(getpid), SEAL_ANY(gettid), SEAL_ANY(geteuid), SEAL_ANY(rt_sigaction),
	SEAL_ANY(rt_sigprocmask), SEAL_ANY(rt_sigreturn), SEAL_ANY(exit), SEAL_ANY(exit_group),
};
/* clang-format on */

/* A ring takes its orders from memory, past any filter, so that io_uring cannot be on the list. libuv
 * makes one with the loop where the kernel has it, and falls back to epoll where it does not. Its
 * UV_USE_IO_URING=0 speaks of another ring. */
int sup_seal_rings(struct err *e)
{
	static const int rings[] = { SCMP_SYS(io_uring_setup) };
	int r = seal_refuse(rings, ARRAY_SIZE(rings), ENOSYS);

	return r < 0 ? err_errno(e, r, "cannot seal the supervisor (seccomp)") : 0;
}

int sup_seal(struct err *e)
{
	const struct seal_list l = { .permits = permits, .n_permits = ARRAY_SIZE(permits) };
	int r;

	/* jansson opens /dev/urandom for the seed of its tables when it first needs one */
	json_object_seed(0);
	r = seal_load(&l);
	return r < 0 ? err_errno(e, r, "cannot seal the supervisor (seccomp)") : 0;
}
