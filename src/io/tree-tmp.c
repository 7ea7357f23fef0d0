/* Files that are complete before they have a name. */
#include "io/tree-tmp.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/fd.h"

enum { TRIES = 100 };

int tree_open_beneath(int dir, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC | O_NOFOLLOW),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	do {
		fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
	} while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return fd < 0 ? -errno : (int)fd;
}

void tree_tmp_name(char dst[TREE_TMP_MAX])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
	uint8_t r[6] = { 0 };
	size_t n = 0, i;

	n = (size_t)snprintf(dst, TREE_TMP_MAX, ".bac-cp-");
	(void)!getrandom(r, sizeof(r), 0); /* a name that is taken is noticed */
	for (i = 0; i < sizeof(r); i++)
		dst[n++] = letters[r[i] % 32];
	dst[n] = '\0';
}

static int named(int dir, char tmp[TREE_TMP_MAX])
{
	int fd, i;

	for (i = 0; i < TRIES; i++) {
		tree_tmp_name(tmp);
		fd = openat(dir, tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			break;
	}
	tmp[0] = '\0';
	return -errno;
}

static void proc_path(char dst[40], int fd)
{
	(void)snprintf(dst, 40, "/proc/self/fd/%d", fd);
}

int tree_tmp_open(int dir, char tmp[TREE_TMP_MAX])
{
	_close_ int fd = openat(dir, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	char proc[40];

	tmp[0] = '\0';
	if (fd >= 0) {
		proc_path(proc, fd);
		if (access(proc, F_OK) == 0)
			return take_fd(&fd);
	} else if (errno == ENOSPC || errno == EDQUOT || errno == EACCES || errno == EROFS) {
		return -errno;
	}
	return named(dir, tmp);
}

int tree_tmp_place(int fd, int dir, const char *name)
{
	char proc[40], tmp[TREE_TMP_MAX];
	int i, r;

	proc_path(proc, fd);
	if (linkat(AT_FDCWD, proc, dir, name, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	for (i = 0; i < TRIES && errno == EEXIST; i++) {
		tree_tmp_name(tmp);
		if (linkat(AT_FDCWD, proc, dir, tmp, AT_SYMLINK_FOLLOW) < 0)
			continue;
		if (renameat(dir, tmp, dir, name) == 0)
			return 0;
		r = -errno;
		(void)unlinkat(dir, tmp, 0);
		return r;
	}
	return -errno;
}

int tree_tmp_nameless(int dir)
{
	char tmp[TREE_TMP_MAX];
	int fd = tree_tmp_open(dir, tmp);

	if (fd >= 0 && tmp[0])
		(void)unlinkat(dir, tmp, 0);
	return fd;
}
