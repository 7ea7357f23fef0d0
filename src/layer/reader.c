/* Two archives of libarchive in one another would see the digest of nothing in between: the source unpacks, the one here only parses.
 *
 * Names are bytes for us and characters for libarchive. In the locale "C", in which this program stays, it does not convert what
 * is no ASCII, says so with a warning, and hands out the bytes as they are, which is what we want. Any other warning means that something of
 * the entry was not understood, and ends it. */
#include "layer/reader.h"

#include <archive.h>
#include <archive_entry.h>

#include "wire/copy.h"

static la_ssize_t on_read(struct archive *a, void *p, const void **ret)
{
	struct reader *r = p;
	uint64_t at = r->s.plain;
	const uint8_t *b;
	size_t n = 0;
	int k = source_next(&r->s, &b, &n);

	(void)a;
	if (k < 0)
		return ARCHIVE_FATAL;
	if (k == 0)
		return 0;
	r->last = b;
	r->last_n = n;
	r->last_at = at;
	*ret = b;
	return (la_ssize_t)n;
}

static la_int64_t on_skip(struct archive *a, void *p, la_int64_t n)
{
	struct reader *r = p;

	(void)a;
	return n > 0 ? (la_int64_t)source_skip(&r->s, (uint64_t)n) : 0;
}

static int fault(const struct reader *r, struct err *e)
{
	const char *why = archive_error_string(r->a);

	if (r->s.err.code) {
		*e = r->s.err;
		return e->code;
	}
	if (archive_errno(r->a) == ENOMEM)
		return err_set(e, -ENOMEM, "the archive asks for too much memory: %s",
			       why ? why : "unknown error");
	return err_set(e, -EINVAL, "the archive is damaged: %s", why ? why : "unknown error");
}

int reader_open(struct reader *r, int fd, uint64_t offset, uint64_t size,
		const struct layer_limits *limits, bool hashed, struct err *e)
{
	struct archive *a;
	int k;

	*r = (struct reader) { 0 };
	k = source_open(&r->s, fd, offset, size, limits, hashed, e);
	if (k < 0)
		return k;
	r->a = a = archive_read_new();
	if (!a || archive_read_support_format_tar(a) != ARCHIVE_OK ||
	    archive_read_set_read_callback(a, on_read) != ARCHIVE_OK ||
	    archive_read_set_skip_callback(a, on_skip) != ARCHIVE_OK ||
	    archive_read_set_callback_data(a, r) != ARCHIVE_OK)
		return err_errno(e, -ENOMEM, "cannot read the archive");
	if (archive_read_open1(a) == ARCHIVE_OK)
		return 0;
	/* the form is found out here */
	return r->s.err.code ? fault(r, e) : err_set(e, -EINVAL, "this is not a tar archive");
}

static bool only_zeros(const uint8_t *p, size_t n)
{
	return !n || (!p[0] && !memcmp(p, p + 1, n - 1));
}

/* What stands behind the end of the archive is read, since it counts for the digests, and may only be padding. */
static int read_rest(struct reader *r, struct err *e)
{
	la_int64_t used = archive_filter_bytes(r->a, 0);
	size_t n = r->last_n;
	const uint8_t *p = r->last;
	int k = 1;

	if (used > 0 && (uint64_t)used > r->last_at) {
		uint64_t skip = MIN((uint64_t)used - r->last_at, (uint64_t)n);

		p += skip;
		n -= (size_t)skip;
	}
	while (k > 0) {
		if (!only_zeros(p, n))
			return err_set(e, -EINVAL,
				       "there is garbage behind the end of the archive");
		k = source_next(&r->s, &p, &n);
	}
	if (k < 0)
		*e = r->s.err;
	return k;
}

static bool about_names_only(struct archive *a)
{
	const char *why = archive_error_string(a);

	return why && strstr(why, "can't be converted from");
}

int reader_next(struct reader *r, struct archive_entry **ret, struct err *e)
{
	int ans = archive_read_next_header(r->a, ret);

	if (ans == ARCHIVE_EOF)
		return read_rest(r, e);
	if (ans != ARCHIVE_OK && !(ans == ARCHIVE_WARN && about_names_only(r->a)))
		return fault(r, e);
	if (++r->entries > r->s.limits.entries)
		return err_set(e, -EFBIG, "the archive has more than %llu entries",
			       (unsigned long long)r->s.limits.entries);
	return 1;
}

int reader_data(struct reader *r, const uint8_t **ret, size_t *ret_n, uint64_t *ret_offset,
		struct err *e)
{
	const void *p;
	la_int64_t at;
	int ans = archive_read_data_block(r->a, &p, ret_n, &at);

	if (ans == ARCHIVE_EOF)
		return 0;
	if (ans != ARCHIVE_OK)
		return fault(r, e);
	if (at < 0)
		return err_set(e, -EINVAL, "the archive is damaged: a place below 0 in a file");
	*ret = p;
	*ret_offset = (uint64_t)at;
	return 1;
}

uint64_t reader_position(const struct reader *r)
{
	return (uint64_t)archive_filter_bytes(r->a, 0);
}

void reader_done(struct reader *r)
{
	if (r->a)
		(void)archive_read_free(r->a);
	r->a = NULL;
	source_done(&r->s);
}

int reader_name(char dst[WIRE_PATH_MAX + 1], const char *name, const char *what, struct err *e)
{
	size_t n = 0;

	if (!name)
		return err_set(e, -EILSEQ, "the archive holds %sa name that cannot be read", what);
	for (const char *at = name; *at;) {
		size_t len = strcspn(at, "/");

		if (len == 2 && at[0] == '.' && at[1] == '.')
			return err_set(e, -EINVAL,
				       "the archive holds %s'%.200s', which leads out of it", what,
				       name);
		if (len > COPY_NAME_MAX || (len && n + 1 + len > WIRE_PATH_MAX))
			return err_set(e, -ENAMETOOLONG,
				       "the archive holds %sa name that is too long: '%.200s...'",
				       what, name);
		if (len && !(len == 1 && at[0] == '.')) {
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
