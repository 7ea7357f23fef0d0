/* The seal of bac-archive: each of these is tried by a child of its own. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "archive/seal.h"
#include "base/check.h"

static long bytes(void)
{
	char c = 0;
	void *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p != MAP_FAILED && munmap(p, 1 << 20) == 0 && write(STDERR_FILENO, &c, 0) == 0;
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

/* How a sealed child that does it ends: a wait status. */
static int ends(long (*what)(void))
{
	int status = -1;
	pid_t pid = fork();

	check(pid >= 0);
	if (pid == 0)
		_exit(archive_seal() < 0 ? 2 : what() ? 0 : 1);
	check(waitpid(pid, &status, 0) == pid);
	return status;
}

int main(void)
{
	static long (*const deadly[])(void) = { code, talk, execute, child };

	check(ends(bytes) == 0);
	check(ends(no_file) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(deadly); i++)
		check(WIFSIGNALED(ends(deadly[i])) && WTERMSIG(ends(deadly[i])) == SIGSYS);
	return 0;
}
