/* Decompression, by libarchive's raw format. Only filters that libarchive has in itself are switched on:
 * for others it would run programs. */
#include "archive/unpack.h"

#include <archive.h>

enum { STEP = 256 * 1024 };

static void archive_freep(struct archive **a)
{
	(void)archive_read_free(*a);
}

static int start(struct archive *a, const void *p, size_t n)
{
	int r = archive_read_support_format_raw(a);

	if (r == ARCHIVE_OK)
		r = archive_read_support_filter_gzip(a);
	if (r == ARCHIVE_OK)
		r = archive_read_support_filter_bzip2(a);
	if (r == ARCHIVE_OK)
		r = archive_read_support_filter_xz(a);
	if (r == ARCHIVE_OK)
		r = archive_read_support_filter_lzma(a);
	if (r == ARCHIVE_OK)
		r = archive_read_support_filter_lz4(a);
	if (r == ARCHIVE_OK)
		r = archive_read_support_filter_zstd(a);
	return r == ARCHIVE_OK ? archive_read_open_memory(a, p, n) : r;
}

int archive_unpack(const void *p, size_t n, struct buf *out, struct err *e)
{
	_cleanup_(archive_freep) struct archive *a = archive_read_new();
	struct archive_entry *entry;

	if (!a)
		return err_errno(e, -ENOMEM, "cannot unpack");
	if (start(a, p, n) != ARCHIVE_OK || archive_read_next_header(a, &entry) != ARCHIVE_OK)
		return err_set(e, -EINVAL, "cannot unpack: %s", archive_error_string(a));
	for (;;) {
		size_t step = MIN(STEP, buf_space(out));
		char probe = 0;
		void *to = step ? buf_room(out, step) : &probe;
		la_ssize_t got;

		if (!to)
			return err_errno(e, -ENOMEM, "cannot unpack");
		got = archive_read_data(a, to, step ? step : 1);
		if (got < 0)
			return err_set(e, -EINVAL, "cannot unpack: %s", archive_error_string(a));
		if (got == 0)
			return 0;
		if (!step)
			return err_set(e, -EFBIG, "unpacks to more than %zu bytes", out->max);
		buf_added(out, (size_t)got);
	}
}
