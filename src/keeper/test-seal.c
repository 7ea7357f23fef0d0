/* What a keeper can do no more, and what it still does. Each in a child: the answer to a call that is not on the list is the end. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "config.h"
#include "keeper/ca.h"
#include "keeper/seal.h"
#include "keeper/vault.h"
#include "seal/seal.h"

static void by_open(void)
{
	(void)!open("/dev/null", O_RDONLY | O_CLOEXEC);
}
static void by_socket(void)
{
	(void)!socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}
static void by_pair(void)
{
	int p[2];

	(void)!socketpair(AF_UNIX, SOCK_STREAM, 0, p);
}
static void by_fork(void)
{
	if (fork() == 0)
		_exit(0);
}
static void by_exec(void)
{
	(void)!execl("/bin/true", "true", NULL);
}
static void by_kill(void)
{
	(void)kill(1, 0);
}
static void by_code(void)
{
	(void)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
static void by_memfd(void)
{
	(void)!memfd_create("x", 0);
}

static void (*const forbidden[])(void) = { by_open, by_socket, by_pair, by_fork,
					   by_exec, by_kill,   by_code, by_memfd };

/* An authority, a certificate and a value, made behind the seal. */
static void at_work(void)
{
	const struct host h = { .kind = HOST_NAME, .text = "a.example" };
	const struct scope s = { .all = true };
	struct ca_leaf l;
	struct ca *c;
	void *p;

	check(ca_new("web", &c) == 0 && ca_renew(c, &s, 1800000000) == 0);
	check(ca_leaf(c, &h, 1800000000, &l) == 0);
	p = vault_copy("value", 6);
	check(p && streq(p, "value"));
	(void)vault_free(p);
	(void)ca_free(c);
}

static int child(void (*run)(void))
{
	pid_t pid = fork();
	int status;

	check(pid >= 0);
	if (pid == 0) {
		tzset();
		check(vault_open() == 0);
		at_work();
		check(seal_begin() == 0 && seal() == 0);
		run();
		_exit(0);
	}
	check(waitpid(pid, &status, 0) == pid);
	return status;
}

int main(void)
{
	int status = child(at_work);

	check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	if (BAC_SANITIZED)
		skip("a sanitizer makes calls of its own: they are noted and pass");
	for (size_t i = 0; i < ARRAY_SIZE(forbidden); i++) {
		status = child(forbidden[i]);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
			(void)fprintf(stderr, "call %zu: status %x\n", i, (unsigned)status);
		check(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	}
	return 0;
}
