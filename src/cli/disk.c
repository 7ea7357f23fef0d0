/* The writable disk of a sandbox. Sparse: only what the guest writes takes room on the host, and what it frees comes
 * back by discard. Journal and inode tables are left to be made lazily, so that a new disk of 20 GiB takes a
 * few hundred KiB and well under a second. */
#include "cli/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/fd.h"
#include "sys/spawn.h"

enum { PROBE = 64 * 1024 * 1024, MKFS_MS = 120000 };

/* A file system without holes fills the file as it grows; find out with a small one first. */
static int try_sparse(int fd, const char *path, struct err *e)
{
	struct stat st;

	if (ftruncate(fd, PROBE) < 0 || fstat(fd, &st) < 0)
		return err_errno(e, -errno, "cannot make the disk %s", path);
	if ((uint64_t)st.st_blocks * 512 > PROBE / 4)
		return err_set(
			e, -ENOTSUP,
			"cannot make the disk %s: this file system cannot hold sparse files; set "
			"XDG_STATE_HOME to a folder on ext4, xfs, btrfs or tmpfs",
			path);
	return 0;
}

static int mkfs(const char *path, struct err *e)
{
	const char *const argv[] = {
		"mkfs.ext4",
		"-q",
		"-F",
		"-m",
		"0",
		"-I",
		"256",
		"-i",
		"32768",
		"-L",
		"bac",
		"-J",
		"size=32",
		"-E",
		"lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=0:0",
		path,
		NULL
	};
	struct sys_cmd c = { .argv = argv, .deadline_ms = MKFS_MS };
	int r = sys_run(&c, e);

	return r == 0 ? 0 : err_ctx(e, "cannot make the disk");
}

static int fill(int fd, const char *path, uint64_t size, struct err *e)
{
	int r = try_sparse(fd, path, e);

	if (r < 0)
		return r;
	if (ftruncate(fd, (off_t)size) < 0)
		return err_errno(e, -errno, "cannot make the disk %s of %llu bytes", path,
				 (unsigned long long)size);
	r = mkfs(path, e);
	return r > 0 ? -EIO : r;
}

int disk_make(const char *path, uint64_t size, struct err *e)
{
	_close_ int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return err_errno(e, -errno, "cannot make the disk %s", path);
	r = fill(fd, path, size, e);
	if (r < 0)
		(void)unlink(path);
	return r;
}
