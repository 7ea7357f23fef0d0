/* The list of system calls of a proxy at work. Whatever a guest or a server makes of it by a flaw, it cannot open a file, execute a program,
 * map anything executable, send a signal or look into another process, or make a socket that is not TCP or UDP. It can still
 * connect to where the host can: that is what it is there for; what it decides is on bac-audit's log, which is another process. */
#include "proxy/seal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "seal/seal.h"

/* clang-format off */
static const struct seal_permit permits[] = {
	/* the loop */
	SEAL_ANY(epoll_wait), SEAL_ANY(epoll_pwait), SEAL_ANY(epoll_ctl),
	/* connections, questions, receipts, messages */
	SEAL_IS(socket, 0, AF_INET), SEAL_IS(socket, 0, AF_INET6), SEAL_ANY(connect), SEAL_ANY(bind),
	SEAL_ANY(accept4), SEAL_ANY(shutdown),
	SEAL_ANY(getsockname), SEAL_ANY(getpeername), SEAL_ANY(getsockopt), SEAL_ANY(setsockopt),
	SEAL_ANY(sendto), SEAL_ANY(sendmsg), SEAL_ANY(recvfrom), SEAL_ANY(recvmsg),
	SEAL_ANY(read), SEAL_ANY(write), SEAL_ANY(writev), SEAL_ANY(close),
	SEAL_ANY(splice), SEAL_ANY(pipe2),
	SEAL_IS(fcntl, 1, F_GETFL), SEAL_IS(fcntl, 1, F_SETFL), SEAL_IS(fcntl, 1, F_SETFD),
	SEAL_IS(fcntl, 1, F_SETPIPE_SZ),
	/* a policy is a memory file */
	SEAL_ANY(fstat), SEAL_ANY(newfstatat), SEAL_ANY(pread64),
	/* memory of our own */
	SEAL_ANY(brk), SEAL_NOT(mmap, 2, PROT_EXEC), SEAL_NOT(mprotect, 2, PROT_EXEC), SEAL_ANY(munmap),
	SEAL_ANY(madvise), SEAL_ANY(mremap),
	/* time and chance */
	SEAL_ANY(clock_gettime), SEAL_ANY(gettimeofday), SEAL_ANY(time), SEAL_ANY(getrandom),
	SEAL_ANY(futex), SEAL_ANY(rt_sigreturn), SEAL_ANY(rt_sigprocmask), SEAL_ANY(restart_syscall),
	SEAL_ANY(getpid), SEAL_ANY(gettid),
	SEAL_ANY(exit), SEAL_ANY(exit_group),
};
/* clang-format on */

int seal(void)
{
	const struct seal_list l = { .permits = permits, .n_permits = ARRAY_SIZE(permits) };

	return seal_load(&l);
}
