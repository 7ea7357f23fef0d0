/* File locks. */
#include "sys/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io/fd.h"

/* The file may have been removed between open and lock: then we hold a lock that nobody else can
 * see, and must try again. */
static bool still_there(int fd, int dir, const char *name)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && fstatat(dir, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
	       a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

int lock_take(int dir, const char *name, bool shared, bool wait, int *ret_fd)
{
	for (;;) {
		_close_ int fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

		if (fd < 0)
			return -errno;
		while (flock(fd, (shared ? LOCK_SH : LOCK_EX) | (wait ? 0 : LOCK_NB)) < 0) {
			if (errno == EINTR)
				continue;
			return errno == EWOULDBLOCK ? -EBUSY : -errno;
		}
		if (!still_there(fd, dir, name))
			continue;
		*ret_fd = take_fd(&fd);
		return 0;
	}
}

int lock_take_within(int dir, const char *name, unsigned ms, int *ret_fd)
{
	uint64_t end = fd_now_ns() + (uint64_t)ms * 1000000;
	struct timespec pause = { .tv_nsec = 2000000 };
	int r;

	for (;;) {
		r = lock_take(dir, name, false, false, ret_fd);
		if (r != -EBUSY || fd_now_ns() >= end)
			return r;
		(void)nanosleep(&pause, NULL);
		if (pause.tv_nsec < 50000000)
			pause.tv_nsec *= 2;
	}
}

int lock_is_held(int dir, const char *name)
{
	_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (flock(fd, LOCK_SH | LOCK_NB) == 0)
		return 0;
	return errno == EWOULDBLOCK ? 1 : -errno;
}
