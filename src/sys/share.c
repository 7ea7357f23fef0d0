/* Taking a share.
 *
 * A detached mount can be made by whoever may mount: root, or an ordinary user in namespaces of its own. The
 * mount namespace of a child is enough for that, and the child is gone when it has sent the descriptor: the
 * mount lives as long as somebody holds it. The child looks the path up itself, since a descriptor from
 * outside belongs to a mount of the other namespace, which it may not clone. */
#include "sys/share.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/fd.h"
#include "sys/cage.h"

static int clone_tree(const char *path, bool read_only, int *ret)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
	_close_ int at = -1, tree = -1;

	at = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	if (at < 0)
		return -errno;
	tree = open_tree(at, "",
			 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH);
	if (tree < 0)
		return -errno;
	if (read_only)
		attr.attr_set |= MOUNT_ATTR_RDONLY;
	if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return -errno;
	*ret = take_fd(&tree);
	return 0;
}

/* The answer is a number, 0 or a negative errno, with the descriptor if it is 0. */
static int receive_tree(int sock, int *ret)
{
	int code = -EPIPE, fd;
	ssize_t n = fd_receive_with(sock, &code, sizeof(code), 0, &fd);

	if (n != (ssize_t)sizeof(code))
		return -EPIPE;
	if (code < 0 || fd < 0)
		return code < 0 ? code : -EPIPE;
	*ret = fd;
	return 0;
}

static _noreturn_ void child(int sock, const char *path, bool read_only)
{
	int r, tree = -1;

	r = unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 ? -errno : 0;
	if (r == 0)
		r = clone_tree(path, read_only, &tree);
	_exit(fd_send_with(sock, &r, sizeof(r), tree, 0) < 0);
}

static int take_in_child(const char *path, bool read_only, int *ret)
{
	_close_ int ours = -1, theirs = -1;
	int p[2], r, status;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p) < 0)
		return -errno;
	ours = p[0];
	theirs = p[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		child(theirs, path, read_only);
	theirs = fd_close(theirs);
	r = receive_tree(ours, ret);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return r;
}

int share_take(const char *path, bool read_only, int *ret_fd, struct err *e)
{
	int r = geteuid() == 0 ? clone_tree(path, read_only, ret_fd) : -EPERM;

	if (r == -EPERM)
		r = take_in_child(path, read_only, ret_fd);
	if (r == -EPERM || r == -ENOSPC || r == -EUSERS || r == -ENOSYS) {
		(void)cage_explain(e, r, "take a folder", "/proc/sys");
		return err_ctx(e, "cannot share %s", path);
	}
	return r < 0 ? err_errno(e, r, "cannot share %s", path) : 0;
}
