/* Three ways to unpack: none, zlib for gzip, libarchive's filters for the rest. libarchive has a filter for gzip as well, which does not
 * look at the check sums. Only filters that libarchive has in itself are switched on: for others it would run programs. */
#include "layer/source.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <unistd.h>

#include "base/text.h"

enum { TELL_EVERY = 8 * 1024 * 1024, MAGIC_MAX = 6 };

/* clang-format off */
static const struct {
	uint8_t form, n;
	uint8_t magic[MAGIC_MAX];
	const char *name;
	int (*filter)(struct archive *);
} forms[] = {
	{ SOURCE_PLAIN, 0, { 0 }, "tar", NULL },
	{ SOURCE_GZIP, 2, { 0x1f, 0x8b }, "gzip", NULL },
	{ SOURCE_ZSTD, 4, { 0x28, 0xb5, 0x2f, 0xfd }, "zstd", archive_read_support_filter_zstd },
	{ SOURCE_XZ, 6, { 0xfd, '7', 'z', 'X', 'Z', 0 }, "xz", archive_read_support_filter_xz },
	{ SOURCE_BZIP2, 3, { 'B', 'Z', 'h' }, "bzip2", archive_read_support_filter_bzip2 },
};
/* clang-format on */

/* ---- reading ---- */

/* Fill the buffer if all of it is used. 1, 0 at the end, or -errno. */
static int fill(struct source *s)
{
	size_t want = (size_t)MIN(s->left, (uint64_t)SOURCE_BUFFER), n = 0;

	if (s->in_off < s->in_n)
		return 1;
	while (n < want) {
		ssize_t k = s->seeks ? pread(s->fd, s->in + n, want - n, (off_t)s->at)
				     : read(s->fd, s->in + n, want - n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return err_errno(&s->err, -errno, "cannot read the archive");
		if (k == 0)
			break;
		n += (size_t)k;
		s->at += (uint64_t)k;
	}
	if (n < want && s->left != UINT64_MAX)
		return err_set(&s->err, -ENODATA, "the archive is shorter than it should be");
	if (s->left != UINT64_MAX)
		s->left -= n;
	hash_add(&s->as_came, s->in, n);
	s->came += n;
	s->in_n = n;
	s->in_off = 0;
	return n != 0;
}

static size_t available(const struct source *s)
{
	return s->in_n - s->in_off;
}

/* ---- gzip ---- */

/* Behind a member of a gzip file may stand another one, or nothing. 1 to go on, 0, or -errno. */
static int next_member(struct source *s)
{
	int r = fill(s);

	if (r <= 0)
		return r;
	if (s->in[s->in_off] != forms[SOURCE_GZIP].magic[0])
		return err_set(&s->err, -EINVAL, "there is garbage behind the compressed data");
	s->z_ended = false;
	return inflateReset(&s->z) == Z_OK ? 1 : err_errno(&s->err, -ENOMEM, "cannot unpack");
}

static int gzip_step(struct source *s)
{
	int r = fill(s), z;

	if (r < 0)
		return r;
	if (r == 0)
		return err_set(&s->err, -ENODATA, "the compressed data is cut off");
	s->z.next_in = s->in + s->in_off;
	s->z.avail_in = (uInt)available(s);
	z = inflate(&s->z, Z_NO_FLUSH);
	s->in_off = s->in_n - s->z.avail_in;
	if (z == Z_STREAM_END)
		s->z_ended = true;
	else if (z == Z_MEM_ERROR)
		return err_errno(&s->err, -ENOMEM, "cannot unpack");
	else if (z != Z_OK && z != Z_BUF_ERROR)
		return err_set(&s->err, -EINVAL, "the compressed data is damaged: %s",
			       s->z.msg ? s->z.msg : "not gzip");
	return 1;
}

static int gzip_next(struct source *s, const uint8_t **ret, size_t *ret_n)
{
	int r = 1;

	s->z.next_out = s->out;
	s->z.avail_out = SOURCE_BUFFER;
	while (r > 0 && s->z.avail_out) {
		if (s->z_ended)
			r = next_member(s);
		if (r > 0)
			r = gzip_step(s);
	}
	if (r < 0)
		return r;
	*ret = s->out;
	*ret_n = SOURCE_BUFFER - s->z.avail_out;
	return *ret_n != 0;
}

static int gzip_open(struct source *s)
{
	s->out = malloc(SOURCE_BUFFER);
	s->z_ready = s->out && inflateInit2(&s->z, 15 + 16) == Z_OK;
	return s->z_ready ? 0 : err_errno(&s->err, -ENOMEM, "cannot unpack");
}

/* ---- zstd, xz, bzip2 ---- */

static la_ssize_t on_read(struct archive *a, void *p, const void **ret)
{
	struct source *s = p;
	int r = fill(s);
	size_t n;

	(void)a;
	if (r < 0)
		return ARCHIVE_FATAL;
	*ret = s->in + s->in_off;
	n = available(s);
	s->in_off = s->in_n;
	return (la_ssize_t)n;
}

static int filter_fault(struct source *s)
{
	const char *why = archive_error_string(s->a);

	if (s->err.code)
		return s->err.code;
	return err_set(&s->err, archive_errno(s->a) == ENOMEM ? -ENOMEM : -EINVAL,
		       "the compressed data is damaged: %s", why ? why : "unknown error");
}

static int filter_open(struct source *s)
{
	struct archive_entry *entry;
	struct archive *a = archive_read_new();

	s->a = a;
	if (!a || archive_read_support_format_raw(a) != ARCHIVE_OK ||
	    forms[s->form].filter(a) != ARCHIVE_OK)
		return err_errno(&s->err, -ENOMEM, "cannot unpack");
	if (archive_read_open(a, s, NULL, on_read, NULL) != ARCHIVE_OK ||
	    archive_read_next_header(a, &entry) != ARCHIVE_OK)
		return filter_fault(s);
	/* one filter, and what reads: nothing that is packed twice */
	if (archive_filter_count(a) != 2)
		return err_set(&s->err, -EINVAL, "the compressed data is damaged: not %s",
			       forms[s->form].name);
	return 0;
}

/* All of the input belongs to the compressed data? */
static int filter_end(struct source *s)
{
	la_int64_t used = archive_filter_bytes(s->a, -1);
	int r;

	s->in_off = s->in_n;
	r = fill(s);
	if (r < 0)
		return r;
	if (r > 0 || used < 0 || (uint64_t)used != s->came)
		return err_set(&s->err, -EINVAL, "there is garbage behind the compressed data");
	return 0;
}

static int filter_next(struct source *s, const uint8_t **ret, size_t *ret_n)
{
	const void *p;
	la_int64_t offset;
	int r;

	do {
		r = archive_read_data_block(s->a, &p, ret_n, &offset);
	} while (r == ARCHIVE_OK && !*ret_n);
	if (r == ARCHIVE_EOF)
		return filter_end(s);
	if (r != ARCHIVE_OK)
		return filter_fault(s);
	*ret = p;
	return 1;
}

/* ---- all ---- */

static int plain_next(struct source *s, const uint8_t **ret, size_t *ret_n)
{
	int r = fill(s);

	if (r <= 0)
		return r;
	*ret = s->in + s->in_off;
	*ret_n = available(s);
	s->in_off = s->in_n;
	return 1;
}

static int check_limits(struct source *s)
{
	char size[32];

	if (s->plain > s->limits.bytes)
		return err_set(&s->err, -EFBIG, "unpacks to more than %s",
			       text_from_size(size, sizeof(size), s->limits.bytes));
	if (s->form != SOURCE_PLAIN && s->plain > LAYER_RATIO_FREE &&
	    s->plain / s->limits.ratio > s->came)
		return err_set(&s->err, -EFBIG,
			       "unpacks to more than %llu times its size: this is a bomb",
			       (unsigned long long)s->limits.ratio);
	return 0;
}

int source_next(struct source *s, const uint8_t **ret, size_t *ret_n)
{
	static int (*const next[])(struct source *, const uint8_t **, size_t *) = {
		[SOURCE_PLAIN] = plain_next,  [SOURCE_GZIP] = gzip_next,
		[SOURCE_ZSTD] = filter_next,  [SOURCE_XZ] = filter_next,
		[SOURCE_BZIP2] = filter_next,
	};
	int r;

	if (s->err.code)
		return s->err.code;
	r = next[s->form](s, ret, ret_n);
	if (r <= 0)
		return r;
	hash_add(&s->as_plain, *ret, *ret_n);
	s->plain += *ret_n;
	if (s->on_progress && s->came + s->plain - s->told >= TELL_EVERY) {
		s->told = s->came + s->plain;
		s->on_progress(s);
	}
	r = check_limits(s);
	return r < 0 ? r : 1;
}

uint64_t source_skip(struct source *s, uint64_t n)
{
	size_t here = available(s);
	uint64_t ahead;

	if (!s->seeks || s->form != SOURCE_PLAIN || s->as_came.ctx || n <= here ||
	    s->left == UINT64_MAX)
		return 0;
	ahead = MIN(n - here, s->left);
	s->in_off = s->in_n;
	s->at += ahead;
	s->left -= ahead;
	s->came += ahead;
	s->plain += here + ahead;
	return here + ahead;
}

static uint8_t form_of(const struct source *s)
{
	for (size_t i = SOURCE_GZIP; i < ARRAY_SIZE(forms); i++)
		if (s->in_n >= forms[i].n && !memcmp(s->in, forms[i].magic, forms[i].n))
			return (uint8_t)i;
	return SOURCE_PLAIN;
}

static int start(struct source *s, bool hashed)
{
	int r = 0;

	s->in = malloc(SOURCE_BUFFER);
	if (!s->in)
		r = -ENOMEM;
	if (hashed && r == 0)
		r = hash_begin(&s->as_came);
	if (hashed && r == 0)
		r = hash_begin(&s->as_plain);
	if (r < 0)
		return err_errno(&s->err, r, "cannot read the archive");
	r = fill(s);
	if (r <= 0)
		return r < 0 ? r : err_set(&s->err, -ENODATA, "the archive is empty");
	s->form = form_of(s);
	if (s->form == SOURCE_PLAIN)
		return 0;
	return s->form == SOURCE_GZIP ? gzip_open(s) : filter_open(s);
}

/* A file has an end that can be sought, a pipe has none; where others read in it stays. (fstat() is a call by name for the library, and
 * the seal permits none.) */
static void look(struct source *s)
{
	off_t here = lseek(s->fd, 0, SEEK_CUR), end = lseek(s->fd, 0, SEEK_END);

	s->seeks = here >= 0 && end >= 0 && lseek(s->fd, here, SEEK_SET) >= 0;
	if (s->seeks && s->left == UINT64_MAX)
		s->left = (uint64_t)end > s->at ? (uint64_t)end - s->at : 0;
}

int source_open(struct source *s, int fd, uint64_t offset, uint64_t size,
		const struct layer_limits *limits, bool hashed, struct err *e)
{
	int r;

	*s = (struct source) { .fd = fd, .at = offset, .left = size, .limits = *limits };
	look(s);
	if (!s->seeks && offset)
		return err_set(e, -ESPIPE, "a pipe has no offset");
	r = start(s, hashed);
	if (r < 0)
		*e = s->err;
	return r;
}

void source_done(struct source *s)
{
	if (s->a)
		(void)archive_read_free(s->a);
	if (s->z_ready)
		(void)inflateEnd(&s->z);
	hash_done(&s->as_came);
	hash_done(&s->as_plain);
	free(s->in);
	free(s->out);
	s->a = NULL;
	s->z_ready = false;
	s->in = s->out = NULL;
}
