#pragma once
/* Descriptors: owned, handed over, read and written whole. Used by host and guest. */
#include <sys/types.h>

#include "base/base.h"

static inline int take_fd(int *fd)
{
	int v = *fd;

	*fd = -1;
	return v;
}

/* Closes *fd if it is open; keeps errno. */
void fd_closep(int *fd);

/* A descriptor that is closed at the end of its scope. */
#define _close_ _cleanup_(fd_closep)

/* Close fd (-1 is fine), keep errno, return -1: fd = fd_close(fd). */
int fd_close(int fd);

/* Write all n bytes; waits on a non-blocking descriptor. 0 or -errno. */
int fd_write_all(int fd, const void *p, size_t n) _must_check_;

/* Read until n bytes or the end. Bytes read, or -errno. */
ssize_t fd_read_all(int fd, void *p, size_t n) _must_check_;

/* Send n bytes in one call, with a descriptor beside the first of them (SCM_RIGHTS, unix(7)); fd -1: none, and it stays
 * the caller's. MSG_NOSIGNAL is added to flags. 0; -EMSGSIZE if only a part went; -errno. */
int fd_send_with(int sock, const void *p, size_t n, int fd, int flags) _must_check_;

/* Receive at most n bytes in one call, and what came beside them: *ret_fd (close-on-exec, the caller's) is the one
 * descriptor, or -1 if there was none or more than one, which are closed. Bytes, 0 at the end, or -errno. */
ssize_t fd_receive_with(int sock, void *p, size_t n, int flags, int *ret_fd) _must_check_;

/* The whole content of a file of at most max bytes as a heap text with a NUL behind; the length in
 * *ret_len if that is not NULL. 0, -EFBIG, -ENOMEM or -errno. */
int fd_read_file(int dir, const char *path, size_t max, char **ret, size_t *ret_len) _must_check_;

/* The same for a file that is open, and was handed over (a memory file): from its start, wherever its offset is. 0, -E2BIG, -ENOMEM, -EIO
 * if it shrinks meanwhile, or -errno. */
int fd_read_mem(int fd, size_t max, char **ret, size_t *ret_n) _must_check_;

/* Make path hold these bytes, or leave it as it was: written beside it, synced, renamed over it. 0
 * or -errno. */
int fd_replace_file(int dir, const char *path, mode_t mode, const void *p, size_t n) _must_check_;

int fd_nonblock(int fd, bool on) _must_check_;
int fd_cloexec(int fd, bool on) _must_check_;

/* Clock readings in nanoseconds. */
uint64_t fd_now_ns(void);  /* CLOCK_MONOTONIC */
uint64_t fd_real_ns(void); /* CLOCK_REALTIME */
