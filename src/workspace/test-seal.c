/* The seal: each of these is tried by a child of its own, which must live or die of it. */
#include "workspace/seal.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "seal/seal.h"

static void *nothing(void *arg)
{
	return arg;
}

static long thread(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, nothing, NULL) || pthread_join(t, NULL))
		return -1;
	return 0;
}

static long memory(void)
{
	void *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? -1 : munmap(p, 1 << 20);
}

static long code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
	       MAP_FAILED;
}

static char page[8192] __attribute__((aligned(4096)));

static long data_to_code(void)
{
	return mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

static long open_2(void)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH };

	return syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof(how)) < 0;
}

static long execute(void)
{
	char *const argv[] = { "true", NULL };

	return execv("/bin/true", argv);
}

static long child(void)
{
	return fork() < 0;
}

static long new_user(void)
{
	return unshare(CLONE_NEWUSER);
}

static long tcp(void)
{
	return socket(AF_INET, SOCK_STREAM, 0);
}

static long connect_fd(void)
{
	return connect(0, NULL, 0);
}

static long signal_init(void)
{
	return kill(1, 0);
}

static long trace(void)
{
	return syscall(SYS_ptrace, 0, 0, 0, 0);
}

static long vm_read(void)
{
	return syscall(SYS_process_vm_readv, getpid(), NULL, 0, NULL, 0, 0);
}

static long ring(void)
{
	return syscall(SYS_io_uring_setup, 1, NULL);
}

static long owner(void)
{
	return fcntl(0, F_SETOWN, 1);
}

static long io_control(void)
{
	return syscall(SYS_ioctl, 0, 0x5412, "x");
}

static long mounts(void)
{
	return syscall(SYS_mount, "a", "b", "c", 0, NULL);
}

static long dumpable(void)
{
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static const struct {
	long (*try)(void);
	bool dies;
} tries[] = {
	{ thread, false },      { memory, false },    { open_2, false },     { code, true },
	{ data_to_code, true }, { execute, true },    { child, true },       { new_user, true },
	{ tcp, true },          { connect_fd, true }, { signal_init, true }, { trace, true },
	{ vm_read, true },      { ring, true },       { owner, true },       { io_control, true },
	{ mounts, true },       { dumpable, true },
};

static int sealed(size_t i)
{
	const pid_t pid = fork();
	int status = 0;

	check(pid >= 0);
	if (!pid) {

		check(seal_begin() == 0 && seal() == 0);
		_exit(tries[i].try() == 0 ? 0 : 1);
	}
	check(waitpid(pid, &status, 0) == pid);
	return status;
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
		int status = sealed(i);

		if (tries[i].dies ? !WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS
				  : status != 0) {
			(void)fprintf(stderr, "try %zu: status 0x%x\n", i, (unsigned)status);
			abort();
		}
	}
	return 0;
}
