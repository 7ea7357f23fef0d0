/* Where the second file system begins. */
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "guest/init/volume.h"
#include "io/fd.h"

enum { MIB = 1024 * 1024, SUPER = 1024 };

static void put(int fd, int64_t at, const void *p, size_t n)
{
	check(pwrite(fd, p, n, at) == (ssize_t)n);
}

static void put32(int fd, int64_t at, uint32_t v)
{
	v = htole32(v);
	put(fd, at, &v, sizeof(v));
}

/* A superblock that says so many blocks of 1024 << log_block bytes; high: and the 64bit feature. */
static void super(int fd, int64_t at, uint32_t blocks, uint32_t log_block, uint32_t high)
{
	static const uint8_t magic[] = { 0x53, 0xef };

	put32(fd, at + SUPER + 0x04, blocks);
	put32(fd, at + SUPER + 0x18, log_block);
	put(fd, at + SUPER + 0x38, magic, sizeof(magic));
	put32(fd, at + SUPER + 0x60, high ? 0x80 : 0);
	put32(fd, at + SUPER + 0x150, high);
}

static int fresh(int64_t size)
{
	int fd = memfd_create("disk", MFD_CLOEXEC);

	check(fd >= 0 && ftruncate(fd, size) == 0);
	return fd;
}

int main(void)
{
	_close_ int fd = fresh(64L * MIB);

	check(volume_find(fd) == 0); /* not ext4 */
	super(fd, 0, 32 * 1024, 0, 0);
	check(volume_find(fd) == 0); /* nothing behind it */
	super(fd, 32L * MIB, 1, 2, 0);
	check(volume_find(fd) == 32L * MIB);
	super(fd, 0, 8 * 1024, 2, 0);
	check(volume_find(fd) == 32L * MIB);
	super(fd, 0, 8 * 1024, 7, 0); /* no such block size */
	check(volume_find(fd) == 0);
	super(fd, 0, 16 * 1024, 2, 0); /* it fills the disk: an older sandbox */
	check(volume_find(fd) == 0);
	super(fd, 0, UINT32_MAX, 6, 0xffff); /* far behind it */
	check(volume_find(fd) == 0);
	super(fd, 0, 0, 2, 0); /* it would be itself */
	check(volume_find(fd) == 0);

	/* beyond 32 bits of blocks */
	(void)fd_close(take_fd(&fd));
	fd = fresh(INT64_C(5) << 42);
	super(fd, 0, 4, 2, 1);
	super(fd, (INT64_C(1) << 44) + 16384, 1, 2, 0);
	check(volume_find(fd) == (INT64_C(1) << 44) + 16384);
	check(volume_find(-1) == -EBADF);
	return 0;
}
