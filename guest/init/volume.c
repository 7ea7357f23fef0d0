/* A loop device makes a disk of the part of a disk. It is made at the first use and not at boot, which it would make longer; it goes to the
 * disk past the page cache, so nothing is kept twice, and passes on what is freed.
 *
 * Formats: ext4's superblock is Documentation/filesystems/ext4/super.rst of the kernel; all numbers little-endian. */
#include "guest/init/volume.h"

#include <endian.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <linux/major.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/fd.h"

#define DISK_MAX (UINT64_C(1) << 60)

enum { SUPER_AT = 1024, SUPER_MAGIC = 0xef53, LOG_MAX = 6, LOOP_TRIES = 16 };

struct super {
	uint32_t inodes, blocks, reserved, free_blocks, free_inodes, first, log_block;
	uint8_t skipped[28];
	uint16_t magic;
	uint8_t more[38];
	uint32_t incompat;
	uint8_t rest[236];
	uint32_t blocks_high;
};

_Static_assert(offsetof(struct super, magic) == 0x38, "as ext4 has it");
_Static_assert(offsetof(struct super, incompat) == 0x60, "as ext4 has it");
_Static_assert(offsetof(struct super, blocks_high) == 0x150, "as ext4 has it");

enum { INCOMPAT_64BIT = 0x80 };

/* 1: there is one; 0: there is none. */
static int read_super(int disk, int64_t at, struct super *ret)
{
	ssize_t n = pread(disk, ret, sizeof(*ret), at + SUPER_AT);

	if (n < 0)
		return -errno;
	return n == sizeof(*ret) && le16toh(ret->magic) == SUPER_MAGIC &&
	       le32toh(ret->log_block) <= LOG_MAX;
}

int64_t volume_find(int disk)
{
	struct super s;
	uint64_t blocks;
	int64_t at;
	int r = read_super(disk, 0, &s);

	if (r <= 0)
		return r;
	blocks = le32toh(s.blocks);
	if (le32toh(s.incompat) & INCOMPAT_64BIT)
		blocks |= (uint64_t)(le32toh(s.blocks_high) & 0xffff) << 32;
	if (blocks > DISK_MAX >> 10 >> le32toh(s.log_block))
		return 0;
	at = (int64_t)(blocks << 10 << le32toh(s.log_block));
	r = at > 0 ? read_super(disk, at, &s) : 0;
	return r <= 0 ? r : at;
}

/* A kernel that has it as a module shows no way to ask for it. */
static void load_loop(void)
{
	static const char *const paths[] = { "/usr/sbin/modprobe", "/sbin/modprobe" };
	pid_t pid = fork();
	size_t i;

	if (pid == 0) {
		for (i = 0; i < ARRAY_SIZE(paths); i++)
			(void)execl(paths[i], "modprobe", "-q", "loop", (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
}

static int open_control(void)
{
	int fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	load_loop();
	fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A device for what is behind `at`; it is gone when its last user is. A descriptor or -errno; its name in path. */
static int make_loop(int disk, int64_t at, char path[32])
{
	struct loop_config c = { .fd = (uint32_t)disk,
				 .info = { .lo_offset = (uint64_t)at,
					   .lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO } };
	_close_ int control = open_control();
	int i;

	if (control < 0)
		return control;
	/* somebody else may take the free one first */
	for (i = 0; i < LOOP_TRIES; i++) {
		int n = ioctl(control, LOOP_CTL_GET_FREE), fd;

		if (n < 0)
			return -errno;
		(void)snprintf(path, 32, "/dev/loop%d", n);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		if (ioctl(fd, LOOP_CONFIGURE, &c) == 0)
			return fd;
		if (errno != EBUSY) {
			int r = -errno;

			(void)fd_close(fd);
			return r;
		}
		(void)fd_close(fd);
	}
	return -EBUSY;
}

static bool mounted(void)
{
	struct stat st;

	return stat(VOLUME_DIR, &st) == 0 && major(st.st_dev) == LOOP_MAJOR;
}

int volume_mount(const char *disk_dev, struct err *e)
{
	_close_ int disk = -1, dev = -1;
	char path[64];
	int64_t at;

	if (mounted())
		return 0;
	(void)snprintf(path, sizeof(path), "/dev/%s", disk_dev);
	disk = open(path, O_RDWR | O_CLOEXEC);
	if (disk < 0 && errno == EBUSY)
		return 1;
	at = disk < 0 ? -errno : volume_find(disk);
	if (at == 0)
		return 0;
	if (at < 0)
		return err_errno(e, (int)at, "cannot read the disk of " VOLUME_DIR);
	dev = make_loop(disk, at, path);
	if (dev < 0)
		return err_errno(e, dev, "cannot make the disk of " VOLUME_DIR " (a loop device)");
	if (mount(path, VOLUME_DIR, "ext4", MS_NOATIME, "discard,noinit_itable") < 0)
		return err_errno(e, -errno, "cannot mount " VOLUME_DIR);
	(void)chmod(VOLUME_DIR, 0711);
	return 0;
}
