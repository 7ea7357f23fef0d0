/* What a list permits, refuses and forbids: each is tried by a child of its own. */
#include "seal/seal.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

static const struct seal_permit permits[] = {
	SEAL_ANY(getpid),
	SEAL_ANY(exit_group),
	SEAL_ANY(brk),
	SEAL_ANY(munmap),
	SEAL_ANY(madvise),
	SEAL_ANY(futex),
	SEAL_ANY(pause),
	SEAL_NOT(mmap, 2, PROT_EXEC),
	SEAL_IS(fcntl, 1, F_GETFL),
	SEAL_IS(fcntl, 1, F_GETFD),
	SEAL_HAS(umask, 0, 070),
};
static const int refused[] = { SCMP_SYS(getppid), SCMP_SYS(getuid) };
static const struct seal_list list = { .permits = permits,
				       .n_permits = ARRAY_SIZE(permits),
				       .refused = refused,
				       .n_refused = ARRAY_SIZE(refused),
				       .error = EACCES };

static long map(int prot)
{
	void *p = mmap(NULL, 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? -1 : munmap(p, 4096);
}

static long permitted(void)
{
	return syscall(SYS_getpid) > 0 && map(PROT_READ) == 0 && fcntl(1, F_GETFL) >= 0 &&
			       fcntl(1, F_GETFD) >= 0 && umask(072) <= 0777
		       ? 0
		       : -1;
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static long sorts(void)
{
	static int v[1 << 16];

	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		v[i] = (int)(ARRAY_SIZE(v) - i);
	qsort(v, ARRAY_SIZE(v), sizeof(v[0]), by_value);
	return v[0] == 1 ? 0 : -1;
}

static long is_refused(void)
{
	return syscall(SYS_getppid) < 0 && errno == EACCES && syscall(SYS_getuid) < 0 ? 0 : -1;
}

static long not_on_it(void)
{
	return syscall(SYS_gettid);
}

static long code(void)
{
	return map(PROT_READ | PROT_EXEC);
}

static long another_value(void)
{
	return fcntl(1, F_SETFD, 0);
}

static long too_few_bits(void)
{
	return (long)umask(050);
}

static const struct {
	long (*try)(void);
	bool dies;
} tries[] = {
	{ permitted, false }, { sorts, false },        { is_refused, false },  { not_on_it, true },
	{ code, true },       { another_value, true }, { too_few_bits, true },
};

static int status_of(void (*child)(const void *arg), const void *arg)
{
	const pid_t pid = fork();
	int status = 0;

	check(pid >= 0);
	if (!pid) {
		child(arg);
		_exit(1);
	}
	check(waitpid(pid, &status, 0) == pid);
	return status;
}

static void sealed(const void *arg)
{
	check(seal_begin() == 0 && seal_load(&list) == 0);
	_exit(tries[*(const size_t *)arg].try() == 0 ? 0 : 1);
}

/* A process as it begins. */
static void begun(const void *arg)
{
	struct rlimit core = { 1, 1 };

	(void)arg;
	check(seal_begin() == 0);
	check(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
	check(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	check(getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max == 0);
	_exit(0);
}

static _Atomic bool go;

static void *late(void *arg)
{
	while (!go)
		;
	(void)syscall(SYS_gettid);
	return arg;
}

/* A thread from before the seal is under it. */
static void other_thread(const void *arg)
{
	pthread_t t;

	(void)arg;
	check(pthread_create(&t, NULL, late, NULL) == 0);
	check(seal_begin() == 0 && seal_load(&list) == 0);
	go = true;
	for (;;)
		(void)syscall(SYS_pause);
}

static void some_refused(const void *arg)
{
	(void)arg;
	check(seal_begin() == 0 && seal_refuse(refused, ARRAY_SIZE(refused), ENOSYS) == 0);
	check(syscall(SYS_getppid) < 0 && errno == ENOSYS && syscall(SYS_gettid) > 0);
	_exit(0);
}

int main(void)
{
	int status;

	check(status_of(begun, NULL) == 0);
	check(status_of(some_refused, NULL) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
		status = status_of(sealed, &i);
		check(tries[i].dies ? WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS
				    : status == 0);
	}
	status = status_of(other_thread, NULL);
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	return 0;
}
