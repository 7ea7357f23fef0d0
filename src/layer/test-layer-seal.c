/* The seal of bac-layer: each of these is tried by a child of its own. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "layer/hash.h"
#include "layer/seal.h"

static int file;

static long bytes(void)
{
	void *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct hash h = { 0 };
	uint8_t sum[HASH_SIZE];

	if (hash_begin(&h) < 0)
		return false;
	hash_add(&h, "x", 1);
	hash_end(&h, sum);
	return p != MAP_FAILED && munmap(p, 1 << 20) == 0 && pwrite(file, sum, 32, 4096) == 32 &&
	       pread(file, sum, 32, 0) == 32 && ftruncate(file, 0) == 0;
}

static long no_file(void)
{
	return open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES;
}

static long code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	       MAP_FAILED;
}

static long talk(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0);
}

static long execute(void)
{
	char *none[] = { NULL };

	return execve("/bin/true", none, none);
}

static long child(void)
{
	return fork();
}

static long folder(void)
{
	return mkdirat(AT_FDCWD, "x", 0700);
}

/* How a sealed child that does it ends: a wait status. */
static int ends(long (*what)(void))
{
	int status = -1;
	pid_t pid = fork();

	check(pid >= 0);
	if (pid == 0)
		_exit(layer_seal() < 0 ? 2 : what() ? 0 : 1);
	check(waitpid(pid, &status, 0) == pid);
	return status;
}

int main(void)
{
	static long (*const deadly[])(void) = { code, talk, execute, child, folder };

	file = memfd_create("file", MFD_CLOEXEC);
	check(file >= 0 && ends(bytes) == 0);
	check(ends(no_file) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(deadly); i++)
		check(WIFSIGNALED(ends(deadly[i])) && WTERMSIG(ends(deadly[i])) == SIGSYS);
	return 0;
}
