/* Poking.
 *
 * The kernel tells inotify watchers of what goes through its own file system calls, and nothing else: a file that the
 * host changed is silently different. virtio-fs has no way for the server to say it. So a process of ours does
 * the change once more, by a call that the file server recognises (the group of the request, enum wire_poke) and answers
 * with success and the file as it is, without doing anything: the kernel then tells its watchers exactly what a
 * program of the guest would have caused.
 *
 *   modified   truncate() to the size that it has     IN_MODIFY
 *   attributes chmod() to the mode that it has        IN_ATTRIB
 *   created    mknod(), mkdir()                       IN_CREATE
 *   deleted    unlink(), rmdir()                      IN_DELETE
 *
 * The process is a child of init: a file server that does not answer holds it and nobody else. */
#include "guest/init/poke.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/init/share.h"
#include "io/fd.h"

enum { PIPE_SIZE = 1024 * 1024 };

/* One in the pipe, as long as its path: written whole or not at all, being no longer than PIPE_BUF. */
struct note {
	uint16_t len; /* of path, with its NUL */
	uint8_t kind;
	uint8_t dir;
	uint32_t share;
	char path[PIPE_BUF - 8];
};

enum { NOTE_HEAD = offsetof(struct note, path) };

static void change(int at, const char *name, const struct note *n)
{
	struct stat st;

	switch (n->kind) {
	case CHANGED_CREATED:
		(void)setfsgid(POKE_MAKE);
		(void)(n->dir ? mkdirat(at, name, 0700) : mknodat(at, name, S_IFREG | 0600, 0));
		break;
	case CHANGED_DELETED:
		(void)setfsgid(n->dir ? POKE_REMOVE_DIR : POKE_REMOVE);
		(void)unlinkat(at, name, n->dir ? AT_REMOVEDIR : 0);
		break;
	default:
		if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISLNK(st.st_mode))
			return;
		(void)fchdir(at);
		(void)setfsgid(POKE_CHANGE);
		if (n->kind == CHANGED_MODIFIED && S_ISREG(st.st_mode))
			(void)!truncate(name, st.st_size);
		else
			(void)chmod(name, st.st_mode & 07777);
	}
}

static void poke(const struct note *n)
{
	char above[PIPE_BUF + 64];
	_close_ int at = -1;
	char *name;

	(void)snprintf(above, sizeof(above), SHARES_ROOT "/%u/%s", n->share, n->path);
	name = strrchr(above, '/');
	*name++ = '\0';
	if (!*name)
		return;
	at = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return;
	change(at, name, n);
	(void)setfsgid(0);
}

static void _noreturn_ serve(int fd)
{
	struct note n;
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	while (fd_read_all(fd, &n, NOTE_HEAD) == NOTE_HEAD &&
	       fd_read_all(fd, n.path, n.len) == n.len)
		poke(&n);
	_exit(0);
}

static void start(struct poke *p)
{
	int fd[2];
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC) < 0)
		return;
	pid = fork();
	if (pid == 0) {
		(void)close(fd[1]);
		serve(fd[0]);
	}
	(void)close(fd[0]);
	(void)fcntl(fd[1], F_SETPIPE_SZ, PIPE_SIZE);
	p->pipe = fd[1];
	if (fd_nonblock(p->pipe, true) < 0)
		p->pipe = fd_close(p->pipe);
}

void poke_send(struct poke *p, const struct wire_changed *m)
{
	struct note n = { .share = m->id, .kind = m->kind, .dir = m->dir };
	size_t len = strlen(m->path) + 1;

	if (len > sizeof(n.path))
		return;
	memcpy(n.path, m->path, len);
	n.len = (uint16_t)len;
	if (p->pipe < 0)
		start(p);
	if (p->pipe >= 0 && write(p->pipe, &n, NOTE_HEAD + len) < 0 && errno == EPIPE)
		p->pipe = fd_close(p->pipe); /* it was killed: the next one starts another */
}
