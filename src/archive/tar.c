/* Copy stream and tar, either way, through libarchive.
 *
 * Names are bytes here and characters there: libarchive converts them from the archive's charset to
 * the locale's. We set raw bytes and ask for raw bytes; where a name cannot be had in the locale
 * it is taken as UTF-8, which is what pax archives hold. */
#include "archive/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/fd.h"
#include "io/tree-in.h"
#include "io/tree-out.h"

enum { BLOCK = 64 * 1024 };

static int archive_fault(struct err *e, struct archive *a, const char *what)
{
	int code = archive_errno(a);
	const char *why = archive_error_string(a);

	return err_set(e, code > 0 && code < 4096 ? -code : -EIO, "%s: %s", what,
		       why ? why : "unknown error");
}

/* ---- copy stream to tar ---- */

struct writer {
	int out_fd;
	int out_r; /* from when it is not 0, nothing is written */
	struct tree_in in;
	struct tree_count count;
	struct archive *a;
	struct archive_entry *entry;
	char *path, *target; /* COPY_TEXT_MAX + COPY_NAME_MAX bytes each */
};

/* The path in the archive: the stream's, as its sender wrote it. */
static const char *full(const struct writer *w, char *dst, const char *path)
{
	const char *top = w->in.top;
	size_t n = strlen(top), len = strlen(path);

	memcpy(dst, top, n);
	if (n && len)
		dst[n++] = '/';
	memcpy(dst + n, path, len + 1);
	return n + len ? dst : ".";
}

/* For libarchive writing always succeeds: after a failure it would leak what it holds. */
static la_ssize_t on_write(struct archive *a, void *p, const void *data, size_t n)
{
	struct writer *w = p;

	(void)a;
	if (!w->out_r)
		w->out_r = fd_write_all(w->out_fd, data, n);
	return (la_ssize_t)n;
}

/* Did all go well so far? fine is what libarchive thinks. */
static int written(struct writer *w, bool fine, struct err *e)
{
	if (w->out_r < 0)
		return err_errno(e, w->out_r, "cannot write the archive");
	return fine ? 0 : archive_fault(e, w->a, "cannot write the archive");
}

static int write_header(struct writer *w, const struct copy_record *m, struct err *e)
{
	static const mode_t types[] = { [COPY_DIR] = S_IFDIR,
					[COPY_FILE] = S_IFREG,
					[COPY_LINK] = S_IFLNK,
					[COPY_HARD] = S_IFREG };
	struct archive_entry *t = archive_entry_clear(w->entry);

	archive_entry_copy_pathname(t, full(w, w->path, m->path));
	archive_entry_set_filetype(t, types[m->kind]);
	archive_entry_set_perm(t, m->kind == COPY_LINK ? 0777 : (mode_t)m->mode);
	archive_entry_set_mtime(t, (time_t)m->mtime, (long)m->mtime_ns);
	archive_entry_set_uid(t, (int64_t)geteuid());
	archive_entry_set_gid(t, (int64_t)getegid());
	archive_entry_set_size(t, (int64_t)m->size);
	if (m->kind == COPY_LINK)
		archive_entry_copy_symlink(t, m->target);
	if (m->kind == COPY_HARD)
		archive_entry_copy_hardlink(t, full(w, w->target, m->target));
	/* a warning is about a name that is no text: it is written as the bytes that it is */
	return written(w, archive_write_header(w->a, t) >= ARCHIVE_WARN, e);
}

static int write_bytes(struct writer *w, const void *p, size_t n, struct err *e)
{
	return written(w, archive_write_data(w->a, p, n) == (la_ssize_t)n, e);
}

static int write_zeros(struct writer *w, uint64_t n, struct err *e)
{
	static const uint8_t zeros[BLOCK];

	while (n) {
		size_t k = (size_t)MIN(n, (uint64_t)BLOCK);
		int r = write_bytes(w, zeros, k, e);

		if (r < 0)
			return r;
		n -= k;
	}
	return 0;
}

static int write_file(struct writer *w, uint64_t size, struct err *e)
{
	struct tree_data data;
	uint64_t pos = 0;
	int r;

	while ((r = tree_in_data(&w->in, &data, e)) > 0) {
		r = write_zeros(w, data.offset - pos, e);
		if (r == 0)
			r = write_bytes(w, data.p, data.n, e);
		if (r < 0)
			return r;
		pos = data.offset + data.n;
		w->count.bytes += data.n;
	}
	return r < 0 ? r : write_zeros(w, size - pos, e);
}

static int write_entries(struct writer *w, struct err *e)
{
	struct copy_record m;
	int r;

	while ((r = tree_in_next(&w->in, &m, e)) > 0) {
		uint64_t size = m.size;
		uint8_t kind = m.kind;

		r = write_header(w, &m, e);
		if (r == 0 && kind == COPY_FILE)
			r = write_file(w, size, e);
		if (r < 0)
			return r;
		w->count.files += kind == COPY_FILE;
		w->count.dirs += kind == COPY_DIR;
		w->count.links += kind == COPY_LINK || kind == COPY_HARD;
	}
	return r;
}

static int write_archive(struct writer *w, struct err *e)
{
	int r;

	w->a = archive_write_new();
	w->entry = archive_entry_new();
	w->path = malloc(COPY_TEXT_MAX + COPY_NAME_MAX);
	w->target = malloc(COPY_TEXT_MAX + COPY_NAME_MAX);
	if (!w->a || !w->entry || !w->path || !w->target)
		return err_errno(e, -ENOMEM, "cannot write the archive");
	if (archive_write_set_format_pax_restricted(w->a) != ARCHIVE_OK ||
	    archive_write_add_filter_none(w->a) != ARCHIVE_OK ||
	    archive_write_set_bytes_per_block(w->a, BLOCK) != ARCHIVE_OK ||
	    archive_write_set_bytes_in_last_block(w->a, 1) != ARCHIVE_OK ||
	    archive_write_open(w->a, w, NULL, on_write, NULL) != ARCHIVE_OK)
		return archive_fault(e, w->a, "cannot write the archive");
	r = write_entries(w, e);
	return r < 0 ? r : written(w, archive_write_close(w->a) == ARCHIVE_OK, e);
}

int tar_from_copy(int in_fd, int out_fd, struct tree_count *ret_count, struct err *e)
{
	struct writer w = { .out_fd = out_fd };
	int r;

	tree_in_init(&w.in, in_fd);
	r = write_archive(&w, e);
	if (r < 0)
		w.out_r = r; /* freeing it would write a proper end */
	if (w.a)
		(void)archive_write_free(w.a);
	archive_entry_free(w.entry);
	free(w.path);
	free(w.target);
	tree_in_done(&w.in);
	if (ret_count)
		*ret_count = w.count;
	return r;
}

/* ---- tar to copy stream ---- */

struct reader {
	int in_fd;
	uint8_t *block; /* BLOCK bytes */
	struct tree_out out;
	struct tree_count count;
	struct archive *a;
	char path[WIRE_PATH_MAX + 1], target[WIRE_PATH_MAX + 1];
};

/* Make a name fit for the stream: without leading, double and last slashes and without ".". 1, 0 if
 * nothing is left, or -errno. */
static int tidy(char dst[WIRE_PATH_MAX + 1], const char *name, struct err *e)
{
	size_t n = 0;

	if (!name)
		return err_set(e, -EILSEQ, "the archive holds a name that cannot be read");
	for (const char *at = name; *at;) {
		size_t len = strcspn(at, "/");

		if (len == 2 && at[0] == '.' && at[1] == '.')
			return err_set(e, -EINVAL,
				       "the archive holds '%.200s', which leads out of it", name);
		if (len && !(len == 1 && at[0] == '.')) {
			if (n + 1 + len > WIRE_PATH_MAX)
				return err_set(
					e, -ENAMETOOLONG,
					"the archive holds a path that is too long: '%.200s...'",
					name);
			if (n)
				dst[n++] = '/';
			memcpy(dst + n, at, len);
			n += len;
		}
		at += len + (at[len] == '/');
	}
	dst[n] = '\0';
	return n != 0;
}

static const char *first(const char *a, const char *b)
{
	return a ? a : b;
}

static int read_file(struct reader *t, uint64_t size, struct err *e)
{
	const void *block;
	la_int64_t offset;
	uint64_t pos = 0;
	size_t len;
	int ans;

	while ((ans = archive_read_data_block(t->a, &block, &len, &offset)) == ARCHIVE_OK) {
		const uint8_t *p = block;
		uint64_t at = (uint64_t)offset;

		if (offset < 0 || at < pos || at > size || len > size - at)
			return err_set(e, -EINVAL, "the archive is damaged at '%.200s'", t->path);
		for (pos = at + len; len;) {
			size_t n = MIN(len, (size_t)TREE_CHUNK);
			uint8_t *room = tree_out_room(&t->out, e);

			if (!room)
				return e->code;
			memcpy(room, p, n);
			tree_out_extent(&t->out, at, n);
			t->count.bytes += n;
			p += n;
			at += n;
			len -= n;
		}
	}
	return ans == ARCHIVE_EOF ? 0 : archive_fault(e, t->a, "cannot read the archive");
}

static int send_file(struct reader *t, struct copy_record *m, struct archive_entry *entry,
		     struct err *e)
{
	int64_t size = archive_entry_size(entry);
	struct err second;
	int r, k;

	if (size < 0)
		return err_set(e, -EINVAL, "the archive is damaged at '%.200s'", t->path);
	m->kind = COPY_FILE;
	m->size = (uint64_t)size;
	r = tree_out_record(&t->out, m, e);
	if (r < 0)
		return r;
	t->count.files++;
	r = read_file(t, m->size, e);
	k = tree_out_close(&t->out, m->size, r < 0 ? &second : e);
	return r < 0 ? r : k;
}

static int send_link(struct reader *t, struct copy_record *m, struct archive_entry *entry,
		     const char *hard, struct err *e)
{
	int r;

	t->count.links++;
	if (hard) {
		r = tidy(t->target, hard, e);
		if (r < 0)
			return r;
		m->kind = COPY_HARD;
		m->target = t->target;
		return tree_out_record(&t->out, m, e);
	}
	m->kind = COPY_LINK;
	m->mode = 0;
	m->target = first(archive_entry_symlink(entry), archive_entry_symlink_utf8(entry));
	if (!m->target || !*m->target)
		return err_set(e, -EINVAL, "the archive is damaged at '%.200s'", t->path);
	return tree_out_record(&t->out, m, e);
}

static struct copy_record entry_record(struct reader *t, struct archive_entry *entry)
{
	long ns = archive_entry_mtime_nsec(entry);

	return (struct copy_record) {
		.mode = (uint32_t)archive_entry_perm(entry) & 0777,
		.mtime = archive_entry_mtime(entry),
		.mtime_ns = ns >= 0 && ns < 1000000000 ? (uint32_t)ns : 0,
		.path = t->path,
		.target = "",
	};
}

static int send_entry(struct reader *t, struct archive_entry *entry, struct err *e)
{
	const char *hard = first(archive_entry_hardlink(entry), archive_entry_hardlink_utf8(entry));
	struct copy_record m;
	int r;

	r = tidy(t->path, first(archive_entry_pathname(entry), archive_entry_pathname_utf8(entry)),
		 e);
	if (r <= 0)
		return r; /* "./" is where everything goes: the receiver has it already */
	m = entry_record(t, entry);
	if (hard || archive_entry_filetype(entry) == AE_IFLNK)
		return send_link(t, &m, entry, hard, e);
	if (archive_entry_filetype(entry) == AE_IFREG)
		return send_file(t, &m, entry, e);
	if (archive_entry_filetype(entry) != AE_IFDIR) {
		t->count.skipped++;
		return 0;
	}
	m.kind = COPY_DIR;
	t->count.dirs++;
	return tree_out_record(&t->out, &m, e);
}

static int send_entries(struct reader *t, struct err *e)
{
	struct copy_record top = { .kind = COPY_DIR, .mode = 0755, .path = "", .target = "" };
	struct archive_entry *entry;
	int r, ans;

	top.mtime = (int64_t)(fd_real_ns() / 1000000000);
	r = tree_out_record(&t->out, &top, e);
	if (r < 0)
		return r;
	/* a warning is about something that we do not use, or a name that was looked at twice */
	while ((ans = archive_read_next_header(t->a, &entry)) >= ARCHIVE_WARN &&
	       ans != ARCHIVE_EOF) {
		r = send_entry(t, entry, e);
		if (r < 0)
			return r;
	}
	if (ans != ARCHIVE_EOF)
		return archive_fault(e, t->a, "cannot read the archive");
	return tree_out_end(&t->out, e);
}

static la_ssize_t on_read(struct archive *a, void *p, const void **ret)
{
	struct reader *t = p;
	ssize_t n = fd_read_all(t->in_fd, t->block, BLOCK);

	*ret = t->block;
	if (n < 0)
		archive_set_error(a, (int)-n, "%s", err_text((int)n));
	return n < 0 ? -1 : n;
}

static int open_archive(struct reader *t, struct err *e)
{
	t->a = archive_read_new();
	t->block = malloc(BLOCK);
	if (!t->a || !t->block)
		return err_errno(e, -ENOMEM, "cannot read the archive");
	/* not filter_all: that one runs programs */
	if (archive_read_support_filter_gzip(t->a) < ARCHIVE_WARN ||
	    archive_read_support_filter_bzip2(t->a) < ARCHIVE_WARN ||
	    archive_read_support_filter_xz(t->a) < ARCHIVE_WARN ||
	    archive_read_support_filter_zstd(t->a) < ARCHIVE_WARN ||
	    archive_read_support_filter_lz4(t->a) < ARCHIVE_WARN ||
	    archive_read_support_format_tar(t->a) < ARCHIVE_WARN ||
	    archive_read_open(t->a, t, NULL, on_read, NULL) != ARCHIVE_OK)
		return archive_fault(e, t->a, "cannot read the archive");
	return 0;
}

int tar_to_copy(int in_fd, int out_fd, struct tree_count *ret_count, struct err *e)
{
	struct reader t = { .in_fd = in_fd };
	int r;

	r = tree_out_init(&t.out, out_fd, e);
	if (r == 0) {
		r = open_archive(&t, e);
		if (r == 0)
			r = send_entries(&t, e);
		if (r < 0)
			tree_out_fail(&t.out, e);
	}
	if (t.a)
		(void)archive_read_free(t.a);
	free(t.block);
	tree_out_done(&t.out);
	if (ret_count)
		*ret_count = t.count;
	return r;
}
