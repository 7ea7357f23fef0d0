/* Descriptors. */
#include "io/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Room for what comes beside a message, placed as the kernel's macros want it. */
union beside {
	struct cmsghdr align;
	char room[CMSG_SPACE(4 * sizeof(int))];
};

int fd_send_with(int sock, const void *p, size_t n, int fd, int flags)
{
	union beside b = { 0 };
	struct iovec iov = { (void *)p, n };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t k;

	if (fd >= 0) {
		m.msg_control = &b;
		m.msg_controllen = CMSG_SPACE(sizeof(int));
		b.align.cmsg_level = SOL_SOCKET;
		b.align.cmsg_type = SCM_RIGHTS;
		b.align.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&b.align), &fd, sizeof(int));
	}
	do
		k = sendmsg(sock, &m, flags | MSG_NOSIGNAL);
	while (k < 0 && errno == EINTR);
	if (k < 0)
		return -errno;
	return (size_t)k == n ? 0 : -EMSGSIZE;
}

ssize_t fd_receive_with(int sock, void *p, size_t n, int flags, int *ret_fd)
{
	union beside b = { 0 };
	struct iovec iov = { p, n };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &b, .msg_controllen = sizeof(b)
	};
	int one = -1, count = 0;
	ssize_t k;

	do
		k = recvmsg(sock, &m, flags | MSG_CMSG_CLOEXEC);
	while (k < 0 && errno == EINTR);
	if (k < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		size_t fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < fds; i++, count++) {
			(void)fd_close(one);
			memcpy(&one, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
		}
	}
	*ret_fd = count > 1 ? fd_close(one) : one;
	return k;
}

int fd_close(int fd)
{
	int saved = errno;

	if (fd >= 0)
		(void)close(fd);
	errno = saved;
	return -1;
}

void fd_closep(int *fd)
{
	*fd = fd_close(*fd);
}

static int wait_for(int fd, short what)
{
	struct pollfd p = { .fd = fd, .events = what };

	return poll(&p, 1, -1) < 0 && errno != EINTR ? -errno : 0;
}

int fd_write_all(int fd, const void *p, size_t n)
{
	const uint8_t *at = p;

	while (n) {
		ssize_t k = write(fd, at, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0 && errno == EAGAIN) {
			int r = wait_for(fd, POLLOUT);

			if (r < 0)
				return r;
			continue;
		}
		if (k < 0)
			return -errno;
		at += k;
		n -= (size_t)k;
	}
	return 0;
}

ssize_t fd_read_all(int fd, void *p, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t k = read(fd, (uint8_t *)p + got, n - got);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0 && errno == EAGAIN) {
			int r = wait_for(fd, POLLIN);

			if (r < 0)
				return r;
			continue;
		}
		if (k < 0)
			return -errno;
		if (k == 0)
			break;
		got += (size_t)k;
	}
	return (ssize_t)got;
}

int fd_read_file(int dir, const char *path, size_t max, char **ret, size_t *ret_len)
{
	_close_ int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	size_t cap = 4096, n = 0;
	_free_ char *p = NULL;

	if (fd < 0)
		return -errno;
	for (;;) {
		char *more = realloc(p, cap + 1);
		ssize_t k;

		if (!more)
			return -ENOMEM;
		p = more;
		k = fd_read_all(fd, p + n, cap - n);
		if (k < 0)
			return (int)k;
		n += (size_t)k;
		if (n > max)
			return -EFBIG;
		if (n < cap)
			break;
		cap *= 2;
	}
	p[n] = '\0';
	*ret = take_ptr(p);
	if (ret_len)
		*ret_len = n;
	return 0;
}

static int write_beside(int dir, const char *tmp, mode_t mode, const void *p, size_t n)
{
	_close_ int fd =
		openat(dir, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
	int r;

	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, p, n);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	return r;
}

int fd_replace_file(int dir, const char *path, mode_t mode, const void *p, size_t n)
{
	char tmp[4096];
	int r, k;

	k = snprintf(tmp, sizeof(tmp), "%s.new-%ld", path, (long)getpid());
	if (k < 0 || (size_t)k >= sizeof(tmp))
		return -ENAMETOOLONG;
	r = write_beside(dir, tmp, mode, p, n);
	if (r == 0 && renameat(dir, tmp, dir, path) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir, tmp, 0);
	return r;
}

int fd_nonblock(int fd, bool on)
{
	int fl = fcntl(fd, F_GETFL);

	if (fl < 0)
		return -errno;
	fl = on ? fl | O_NONBLOCK : fl & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, fl) < 0 ? -errno : 0;
}

int fd_cloexec(int fd, bool on)
{
	return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? -errno : 0;
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	(void)clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t fd_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t fd_real_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

int fd_read_mem(int fd, size_t max, char **ret, size_t *ret_n)
{
	_free_ char *text = NULL;
	struct stat st;
	size_t n = 0;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < 0 || (size_t)st.st_size > max)
		return -E2BIG;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	while (n < (size_t)st.st_size) {
		ssize_t got = pread(fd, text + n, (size_t)st.st_size - n, (off_t)n);

		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		n += (size_t)got;
	}
	text[n] = '\0';
	*ret = take_ptr(text);
	*ret_n = n;
	return 0;
}
