/* Kits in archives: bac-archive reads them, sealed, and its word is not taken either: io/tree.h keeps what it says below the folder. */
#include <fcntl.h>
#include <unistd.h>

#include "cli/kit-fetch.h"
#include "cli/kit-tree.h"
#include "io/fd.h"
#include "io/tree.h"
#include "sys/dirs.h"
#include "sys/spawn.h"

static int unpack(int fd, const char *how, const char *raw, struct err *e)
{
	_free_ char *prog = dirs_program("bac-archive");
	const char *argv[] = { prog, how, NULL };
	static const char *const env[] = { "LC_ALL=C.UTF-8", NULL };
	struct tree_recv_opts o = { .content = true,
				    .max_bytes = KIT_TREE_BYTES_MAX,
				    .max_entries = 2UL * KIT_TREE_ENTRIES_MAX };
	_close_ int in = -1, out = -1, pidfd = -1;
	int p[2], status = 0, r;
	pid_t pid;

	if (!prog || pipe2(p, O_CLOEXEC) < 0)
		return err_errno(e, prog ? -errno : -ENOMEM, "cannot unpack it");
	in = p[0];
	out = p[1];
	r = sys_spawn(&(struct sys_cmd) { .argv = argv,
					  .env = env,
					  .fds = (struct sys_fd[]) { { fd, 0 }, { out, 1 } },
					  .n_fds = 2 },
		      &pid, &pidfd, e);
	if (r < 0)
		return r;
	out = fd_close(out);
	r = tree_recv(in, raw, &o, NULL, e);
	if (r < 0)
		sys_kill(pid);
	else if (sys_wait(pid, pidfd, UINT64_MAX, &status) < 0 || status)
		r = err_set(e, -EIO, "bac-archive failed");
	return r;
}

int kit_fetch_zip(int fd, const char *raw, struct err *e)
{
	return unpack(fd, "zip-to-copy", raw, e);
}

int kit_fetch_tar(int fd, const char *raw, struct err *e)
{
	return unpack(fd, "to-copy", raw, e);
}
