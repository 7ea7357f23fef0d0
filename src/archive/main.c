/* bac-archive: the one program that opens foreign archives. It turns bytes on stdin into bytes on stdout, and has
 * no other descriptor, no network and no file: the process that started it judges what comes out.
 *
 *   bac-archive unpack MAX      compressed to plain, at most MAX bytes (status 3 beyond)
 *   bac-archive from-copy       a copy stream to a tar archive
 *   bac-archive to-copy         a tar archive to a copy stream
 *   bac-archive zip-to-copy     a ZIP archive of a kit to a copy stream
 *
 * Status 0, or 1 with one line on stderr; an empty line if the other side knows better. */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "archive/seal.h"
#include "archive/tar.h"
#include "archive/unpack.h"
#include "archive/zip.h"
#include "base/text.h"
#include "io/fd.h"

enum { IN_MAX = 512 * 1024 * 1024, IN_STEP = 1024 * 1024, STATUS_TOO_LARGE = 3 };

static int read_in(struct buf *in, struct err *e)
{
	for (;;) {
		void *to = buf_room(in, IN_STEP);
		ssize_t n;

		if (!to)
			return err_set(e, -EFBIG, "the compressed data is too large");
		n = fd_read_all(STDIN_FILENO, to, IN_STEP);
		if (n < 0)
			return err_errno(e, (int)n, "cannot read");
		if (n == 0)
			return 0;
		buf_added(in, (size_t)n);
	}
}

static int unpack(const char *max, struct err *e)
{
	struct buf in = BUF_INIT(IN_MAX), out;
	uint64_t limit;
	int r;

	if (text_u64(max, SIZE_MAX / 2, &limit) < 0)
		return err_set(e, -EINVAL, "'%.40s' is not a number", max);
	buf_init(&out, limit);
	r = read_in(&in, e);
	if (r == 0)
		r = archive_unpack(buf_data(&in), in.n, &out, e);
	if (r == 0)
		r = fd_write_all(STDOUT_FILENO, buf_data(&out), out.n);
	buf_done(&in);
	buf_done(&out);
	return r;
}

static int work(int argc, char **argv, struct err *e)
{
	struct tree_count n = { 0 };
	int r;

	if (argc == 3 && streq(argv[1], "unpack"))
		return unpack(argv[2], e);
	if (argc == 2 && streq(argv[1], "from-copy"))
		r = tar_from_copy(STDIN_FILENO, STDOUT_FILENO, &n, e);
	else if (argc == 2 && streq(argv[1], "to-copy"))
		r = tar_to_copy(STDIN_FILENO, STDOUT_FILENO, &n, e);
	else if (argc == 2 && streq(argv[1], "zip-to-copy"))
		r = zip_to_copy(STDIN_FILENO, STDOUT_FILENO, e);
	else
		return err_set(e, -EINVAL, "bac-archive is started by bac, not by hand");
	if (r == -EPIPE || r == -EREMOTEIO)
		e->msg[0] = '\0';
	return r;
}

int main(int argc, char **argv)
{
	struct rlimit none = { 0, 0 };
	struct err e = { 0 };
	int r;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	r = archive_seal();
	if (r < 0)
		(void)err_errno(&e, r, "cannot seal bac-archive (seccomp)");
	else
		r = work(argc, argv, &e);
	if (r == 0)
		return 0;
	(void)fprintf(stderr, "%s\n", e.msg);
	return r == -EFBIG ? STATUS_TOO_LARGE : 1;
}
