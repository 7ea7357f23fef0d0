/* Descriptors: whole reads and writes, files read and replaced. */
#include "io/fd.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "io/tree-test.h"

static void ownership(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), other = fd;

	check(fd >= 0 && take_fd(&other) == fd && other == -1);
	errno = ENOENT;
	check(fd_close(fd) == -1 && errno == ENOENT);
	check(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
	check(fd_close(-1) == -1);
	{
		_close_ int scoped = open("/dev/null", O_RDONLY | O_CLOEXEC);

		check(scoped >= 0);
		fd = scoped;
	}
	check(fcntl(fd, F_GETFD) == -1);
}

/* Much more than a pipe holds, through ends that do not block. */
static void whole_transfers(void)
{
	enum { N = 3 * 1024 * 1024 };
	_free_ uint8_t *data = malloc(N), *back = malloc(N + 1);
	int p[2], status;
	size_t i;
	pid_t pid;

	check(data && back && pipe2(p, O_CLOEXEC) == 0);
	for (i = 0; i < N; i++)
		data[i] = (uint8_t)(i * 2654435761U >> 24);
	check(fd_nonblock(p[0], true) == 0 && fd_nonblock(p[1], true) == 0);
	pid = fork();
	check(pid >= 0);
	if (pid == 0)
		_exit(fd_write_all(p[1], data, N) == 0 ? 0 : 1);
	check(close(p[1]) == 0);
	check(fd_read_all(p[0], back, N + 1) == N); /* until the end */
	check(!memcmp(data, back, N));
	check(waitpid(pid, &status, 0) == pid && status == 0);
	check(fd_read_all(p[0], back, 1) == 0);
	check(close(p[0]) == 0);

	check(pipe2(p, O_CLOEXEC) == 0 && close(p[0]) == 0);
	check(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	check(fd_write_all(p[1], data, N) == -EPIPE);
	check(fd_write_all(-1, data, 1) == -EBADF && fd_write_all(-1, data, 0) == 0);
	check(fd_read_all(-1, back, 1) == -EBADF);
	check(close(p[1]) == 0);
}

static void flags(void)
{
	int p[2];

	check(pipe2(p, 0) == 0);
	check(fd_nonblock(p[0], true) == 0 && fcntl(p[0], F_GETFL) & O_NONBLOCK);
	check(fd_nonblock(p[0], false) == 0 && !(fcntl(p[0], F_GETFL) & O_NONBLOCK));
	check(fd_cloexec(p[0], true) == 0 && fcntl(p[0], F_GETFD) == FD_CLOEXEC);
	check(fd_cloexec(p[0], false) == 0 && fcntl(p[0], F_GETFD) == 0);
	check(close(p[0]) == 0 && close(p[1]) == 0);
	check(fd_nonblock(p[0], true) == -EBADF && fd_cloexec(p[0], true) == -EBADF);
	check(fd_now_ns() <= fd_now_ns() && fd_real_ns() > 1500000000000000000);
}

static size_t read_len(int dir, size_t max, int *ret_r)
{
	char *text = NULL;
	size_t n = 0;

	*ret_r = fd_read_file(dir, "file", max, &text, &n);
	if (*ret_r == 0)
		check(text[n] == '\0');
	free(text);
	return n;
}

static void files(int dir)
{
	static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, 100000 };
	_free_ char *data = malloc(100000);
	char *text = NULL;
	struct stat st;
	size_t i;
	int r;

	check(data);
	memset(data, 'd', 100000);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		check(fd_replace_file(dir, "file", 0640, data, sizes[i]) == 0);
		check(read_len(dir, sizes[i], &r) == sizes[i] && r == 0);
		check(read_len(dir, SIZE_MAX, &r) == sizes[i] && r == 0);
		if (sizes[i])
			check(read_len(dir, sizes[i] - 1, &r) == 0 && r == -EFBIG);
	}
	check(fstatat(dir, "file", &st, 0) == 0 && (st.st_mode & 0777 & ~0640U) == 0);
	check(fd_read_file(dir, "none", 10, &text, NULL) == -ENOENT && !text);
	check(fd_read_file(dir, ".", 10, &text, NULL) == -EISDIR && !text);
	check(fd_replace_file(dir, "file", 0600, "abc", 3) == 0);
	check(fd_read_file(dir, "file", 3, &text, NULL) == 0 && streq(text, "abc"));
	free(text);
}

/* What cannot be replaced stays, and nothing is left beside it. */
static void failed_replace(int dir)
{
	char name[300];

	check(mkdirat(dir, "sub", 0700) == 0 && mkdirat(dir, "sub/full", 0700) == 0);
	check(fd_replace_file(dir, "sub", 0600, "x", 1) == -EISDIR);
	check(fd_replace_file(dir, "none/file", 0600, "x", 1) == -ENOENT);
	memset(name, 'n', sizeof(name) - 1);
	name[255] = '\0';
	check(fd_replace_file(dir, name, 0600, "x", 1) == -ENAMETOOLONG);
	check(unlinkat(dir, "sub/full", AT_REMOVEDIR) == 0 &&
	      unlinkat(dir, "sub", AT_REMOVEDIR) == 0);
	check(unlinkat(dir, "file", 0) == 0);
}

/* Bytes with a descriptor beside them, one or none; two are nobody's, and closed. */
static void beside(void)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} two = { .align = { .cmsg_level = SOL_SOCKET,
			     .cmsg_type = SCM_RIGHTS,
			     .cmsg_len = CMSG_LEN(2 * sizeof(int)) } };
	struct iovec iov = { (void *)(uintptr_t) "z", 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &two, .msg_controllen = sizeof(two)
	};
	struct stat a, b;
	int s[2], p[2], fd = -1;
	char c[8];

	check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s) == 0);
	check(pipe2(p, O_CLOEXEC) == 0);
	check(fd_send_with(s[0], "x", 1, p[0], 0) == 0 && fd_send_with(s[0], "yy", 2, -1, 0) == 0);
	check(fd_receive_with(s[1], c, sizeof(c), 0, &fd) == 1 && fd >= 0 && fd != p[0]);
	check(fstat(fd, &a) == 0 && fstat(p[0], &b) == 0 && a.st_ino == b.st_ino);
	check(fcntl(fd, F_GETFD) == FD_CLOEXEC && close(fd) == 0);
	check(fd_receive_with(s[1], c, sizeof(c), 0, &fd) == 2 && fd == -1 && c[0] == 'y');
	memcpy(CMSG_DATA(&two.align), p, sizeof(p));
	check(sendmsg(s[0], &m, 0) == 1);
	check(fd_receive_with(s[1], c, sizeof(c), 0, &fd) == 1 && fd == -1);
	check(close(p[1]) == 0 && read(p[0], c, 1) == 0); /* no other writer is left */
	check(fd_receive_with(s[1], c, sizeof(c), MSG_DONTWAIT, &fd) == -EAGAIN);
	check(close(s[0]) == 0 && fd_receive_with(s[1], c, sizeof(c), 0, &fd) == 0);
	check(fd_send_with(s[1], "x", 1, -1, 0) == -EPIPE);
	check(close(s[1]) == 0 && close(p[0]) == 0);
}

static void memory_files(void)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	char *p;
	size_t n;

	check(fd >= 0 && fd_read_mem(fd, 8, &p, &n) == 0 && n == 0 && !*p);
	free(p);
	check(fd_write_all(fd, "12345678", 8) == 0);
	check(fd_read_mem(fd, 8, &p, &n) == 0 && n == 8 && streq(p, "12345678"));
	free(p);
	check(fd_read_mem(fd, 7, &p, &n) == -E2BIG);
	check(close(fd) == 0 && fd_read_mem(fd, 8, &p, &n) == -EBADF);
}

int main(void)
{
	char top[] = "/tmp/test-fd-XXXXXX";
	int dir;

	ownership();
	whole_transfers();
	flags();
	beside();
	check(mkdtemp(top));
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(dir >= 0);
	files(dir);
	failed_replace(dir);
	check(close(dir) == 0 && rmdir(top) == 0); /* and so it is empty */
	memory_files();
	return 0;
}
