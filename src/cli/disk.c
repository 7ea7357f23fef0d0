/* The writable disk of a sandbox. Sparse: only what the guest writes takes room on the host, and what it frees comes
 * back by discard. Journal and inode tables are left to be made lazily, so that a new disk of 30 GiB takes a
 * few hundred KiB and a few hundredths of a second.
 *
 * The file holds two file systems, one behind the other: the sandbox's own, and the Docker Engine's. A second disk would cost every
 * boot a device, whether Docker is used or not; a quota does not hold for the engine, which is root. The first one's size says where the second
 * begins, and it cannot grow over it: the kernel refuses to resize an ext4 with sparse_super2 while it is mounted. (The feature also makes
 * two spare copies of the superblock instead of ten, and without an inode for growing it is a twentieth of the size.) */
#include "cli/disk.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/fd.h"
#include "sys/spawn.h"

#define MIB_REST UINT64_C(0xfffff)

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

/* That many bytes at offset of the file; both are multiples of 1 MiB. per_inode: bytes for which there is one inode; images are many small files. */
static int mkfs(const char *path, const char *label, const char *per_inode, uint64_t offset,
		uint64_t bytes, struct err *e)
{
	char options[160], blocks[32];
	const char *const argv[] = { "mkfs.ext4",
				     "-q",
				     "-F",
				     "-m",
				     "0",
				     "-O",
				     "sparse_super2,^resize_inode",
				     "-I",
				     "256",
				     "-i",
				     per_inode,
				     "-L",
				     label,
				     "-J",
				     "size=32",
				     "-E",
				     options,
				     path,
				     blocks,
				     NULL };
	struct sys_cmd c = { .argv = argv, .deadline_ms = MKFS_MS };
	int r;

	(void)snprintf(
		options, sizeof(options),
		"lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=0:0,offset=%llu",
		(unsigned long long)offset);
	(void)snprintf(blocks, sizeof(blocks), "%lluM", (unsigned long long)(bytes >> 20));
	r = sys_run(&c, e);
	return r == 0 ? 0 : err_ctx(e, "cannot make the disk");
}

static int fill(int fd, const char *path, uint64_t size, uint64_t docker, struct err *e)
{
	int r = try_sparse(fd, path, e);

	if (r < 0)
		return r;
	if (ftruncate(fd, (off_t)(size + docker)) < 0)
		return err_errno(e, -errno, "cannot make the disk %s of %llu bytes", path,
				 (unsigned long long)(size + docker));
	r = mkfs(path, "bac", "32768", 0, size, e);
	if (r == 0 && docker)
		r = mkfs(path, "bac-docker", "16384", size, docker, e);
	return r > 0 ? -EIO : r;
}

int disk_make(const char *path, uint64_t size, uint64_t docker, struct err *e)
{
	_close_ int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return err_errno(e, -errno, "cannot make the disk %s", path);
	r = fill(fd, path, size & ~MIB_REST, docker & ~MIB_REST, e);
	if (r < 0)
		(void)unlink(path);
	return r;
}

/* What is there between two holes. */
static int copy_range(int in, int out, off_t from, off_t end)
{
	while (from < end) {
		off_t to = from;
		ssize_t n = copy_file_range(in, &from, out, &to, (size_t)(end - from), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
	}
	return 0;
}

static int copy_sparse(int in, int out, off_t size)
{
	off_t at = 0, end;
	int r = 0;

	if (ioctl(out, FICLONE, in) == 0)
		return 0;
	if (ftruncate(out, size) < 0)
		return -errno;
	while (r == 0 && at < size) {
		at = lseek(in, at, SEEK_DATA);
		if (at < 0)
			return errno == ENXIO ? 0 : -errno; /* only a hole is left */
		end = lseek(in, at, SEEK_HOLE);
		if (end < 0)
			return -errno;
		r = copy_range(in, out, at, end);
		at = end;
	}
	return r;
}

int disk_copy(const char *from, const char *to, struct err *e)
{
	_close_ int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), out = -1;
	struct stat st;
	int r;

	if (in < 0)
		return errno == ENOENT ? -ENOENT : err_errno(e, -errno, "cannot read %s", from);
	out = open(to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		return err_errno(e, -errno, "cannot make the disk %s", to);
	r = fstat(in, &st) < 0 ? -errno : copy_sparse(in, out, st.st_size);
	if (r < 0)
		(void)unlink(to);
	return r < 0 ? err_errno(e, r, "cannot copy the disk %s", from) : 0;
}
