/* Reading ZIP archives.
 *
 * An archive is read from its end: the "end of central directory" says where the directory is, the directory where each file's own header is, and
 * behind that header are the bytes. Nothing of that is taken on trust: the end record closes the file, the directory ends where the end
 * record begins, every file's own header says what the directory says, and no two files share a byte, so that an archive means one thing only and cannot
 * unpack to more than its bytes could. */
#include "archive/zip.h"

#include <sys/stat.h>
#define ZLIB_CONST
#include <zlib.h>

#include "base/rdwr.h"
#include "base/text.h"
#include "wire/copy.h"

enum {
	SIG_LOCAL = 0x04034b50,
	SIG_CENTRAL = 0x02014b50,
	SIG_END = 0x06054b50,
	SIG_END64 = 0x07064b50, /* the locator of ZIP64's end record */
	END_SIZE = 22,
	LOCAL_SIZE = 30,
	CENTRAL_SIZE = 46,
	COMMENT_MAX = 65535,
	FLAG_ENCRYPTED = 1 << 0,
	FLAG_BEHIND = 1 << 3, /* sizes stand behind the data, and in the directory */
	FLAGS_REFUSED =
		FLAG_ENCRYPTED | 1 << 5 /* patch */ | 1 << 6 /* strong */ | 1 << 13 /* masked */,
	HOST_UNIX = 3,
};

static uint16_t le16(struct rd *r)
{
	const uint8_t *p = rd_take(r, 2);

	return p ? (uint16_t)(p[1] << 8 | p[0]) : 0;
}

static uint32_t le32(struct rd *r)
{
	uint32_t lo = le16(r);

	return (uint32_t)le16(r) << 16 | lo;
}

void zip_done(struct zip *z)
{
	for (size_t i = 0; i < z->n_v; i++)
		free(z->v[i].name);
	free(z->v);
	*z = (struct zip) { 0 };
}

static int damaged(struct err *e)
{
	return err_set(e, -EINVAL, "the ZIP is damaged, or is not a ZIP");
}

struct end {
	size_t at; /* of the end record */
	uint32_t off, size;
	uint16_t entries;
};

/* The end record is the last one whose comment reaches to the end of the file. */
static int find_end(const uint8_t *p, size_t n, struct end *ret, struct err *e)
{
	size_t at, least = n > END_SIZE + COMMENT_MAX ? n - END_SIZE - COMMENT_MAX : 0;
	uint16_t disk, start, here;
	struct rd r;

	if (n < END_SIZE)
		return damaged(e);
	for (at = n - END_SIZE;; at--) {
		r = (struct rd) { .p = p + at, .n = n - at };
		if (le32(&r) == SIG_END)
			break;
		if (at == least)
			return damaged(e);
	}
	disk = le16(&r);
	start = le16(&r);
	here = le16(&r);
	ret->entries = le16(&r);
	ret->size = le32(&r);
	ret->off = le32(&r);
	(void)rd_take(&r, le16(&r));
	ret->at = at;
	if (!rd_done(&r))
		return damaged(e);
	if (ret->entries == 0xffff || ret->off == UINT32_MAX || ret->size == UINT32_MAX)
		return err_set(e, -EINVAL, "the ZIP is a ZIP64, which is not taken");
	if (disk || start || here != ret->entries)
		return err_set(e, -EINVAL, "the ZIP is one of several parts");
	if (ret->off > at || ret->size != at - ret->off)
		return damaged(e);
	return 0;
}

static int name_fault(const char *name, struct err *e, const char *what)
{
	return err_set(e, -EINVAL, "the ZIP holds '%.200s', %s", name, what);
}

/* n bytes at p, which may hold anything, as the entry's name. */
static int take_name(struct zip_entry *f, const uint8_t *p, size_t n, struct err *e)
{
	if (!n || n > ZIP_NAME_MAX || memchr(p, '\0', n))
		return err_set(e, -EINVAL,
			       "the ZIP holds a name that is empty, too long or damaged");
	f->name = text_dup(p, n);
	if (!f->name)
		return err_errno(e, -ENOMEM, "cannot read the ZIP");
	if (!text_is_utf8(f->name, n))
		return name_fault(f->name, e, "a name that is not UTF-8");
	for (size_t i = 0; i < n; i++)
		if (p[i] < 0x20 || p[i] == 0x7f)
			return name_fault(f->name, e, "a name with control characters");
	if (strchr(f->name, '\\'))
		return name_fault(f->name, e, "a name with a backslash");
	if (f->name[0] == '/')
		return name_fault(f->name, e, "an absolute path");
	if (f->name[n - 1] == '/') {
		f->dir = true;
		f->name[n - 1] = '\0';
	}
	return copy_path_ok(f->name)
		       ? 0
		       : name_fault(f->name, e, "which leads out of it or is not a plain path");
}

/* What the directory says of the file's kind: the upper half of the attributes is a mode where the host was a Unix. */
static int take_kind(struct zip_entry *f, uint16_t made_by, uint32_t attributes, struct err *e)
{
	uint32_t mode = made_by >> 8 == HOST_UNIX ? attributes >> 16 : 0;

	if (S_ISLNK(mode))
		return name_fault(f->name, e, "a symbolic link, which is not taken from a ZIP");
	if ((mode & S_IFMT) && !S_ISREG(mode) && !S_ISDIR(mode))
		return name_fault(f->name, e, "which is neither a file nor a folder");
	if ((mode & S_IFMT) && S_ISDIR(mode) != f->dir)
		return name_fault(f->name, e, "of which it says both file and folder");
	f->exec = !f->dir && (mode & 0111);
	if (f->dir && (f->size || f->packed > 2))
		return name_fault(f->name, e, "a folder with content");
	return 0;
}

static int check_sizes(const struct zip_entry *f, struct err *e)
{
	if (f->size == UINT32_MAX || f->packed == UINT32_MAX || f->local == UINT32_MAX)
		return err_set(e, -EINVAL, "the ZIP is a ZIP64, which is not taken");
	if (!f->deflate && f->size != f->packed)
		return damaged(e);
	if (f->size > ZIP_RATIO_FROM && f->size / ZIP_RATIO_MAX > f->packed)
		return err_set(e, -EFBIG, "the ZIP unpacks '%.200s' to more than %d times its size",
			       f->name, ZIP_RATIO_MAX);
	return 0;
}

/* The file's own header says the same as the directory. Sets where its bytes are. */
static int check_local(const struct zip *z, const struct end *end, struct zip_entry *f,
		       uint16_t flags, uint16_t method, struct err *e)
{
	uint32_t crc, packed, size;
	uint16_t own, way, n_name, n_extra;
	const uint8_t *name;
	struct rd r;

	if (f->local > end->off)
		return damaged(e);
	r = (struct rd) { .p = z->p + f->local, .n = end->off - f->local };
	if (le32(&r) != SIG_LOCAL)
		return damaged(e);
	(void)le16(&r); /* version */
	own = le16(&r);
	way = le16(&r);
	(void)le32(&r); /* time and date */
	crc = le32(&r);
	packed = le32(&r);
	size = le32(&r);
	n_name = le16(&r);
	n_extra = le16(&r);
	name = rd_take(&r, n_name);
	(void)rd_take(&r, n_extra);
	if (r.bad || n_name != strlen(f->name) + f->dir ||
	    memcmp(name, f->name, strlen(f->name)) != 0 || way != method ||
	    ((own ^ flags) & (FLAGS_REFUSED | FLAG_BEHIND)))
		return damaged(e);
	if (!(flags & FLAG_BEHIND) && (crc != f->crc || packed != f->packed || size != f->size))
		return damaged(e);
	if ((flags & FLAG_BEHIND) && ((crc && crc != f->crc) || (packed && packed != f->packed) ||
				      (size && size != f->size)))
		return damaged(e);
	if (r.n < f->packed)
		return damaged(e);
	f->data = (uint32_t)(r.p - z->p);
	return 0;
}

static int take_entry(const struct zip *z, const struct end *end, struct rd *r, struct zip_entry *f,
		      struct err *e)
{
	uint16_t made_by, flags, method, n_name, n_extra, n_comment, disk;
	const uint8_t *name;
	uint32_t attributes;
	int k;

	if (le32(r) != SIG_CENTRAL)
		return damaged(e);
	made_by = le16(r);
	(void)le16(r); /* version that is needed */
	flags = le16(r);
	method = le16(r);
	(void)le32(r); /* time and date */
	f->crc = le32(r);
	f->packed = le32(r);
	f->size = le32(r);
	n_name = le16(r);
	n_extra = le16(r);
	n_comment = le16(r);
	disk = le16(r);
	(void)le16(r); /* internal attributes */
	attributes = le32(r);
	f->local = le32(r);
	name = rd_take(r, n_name);
	(void)rd_take(r, n_extra);
	(void)rd_take(r, n_comment);
	if (r->bad || disk)
		return damaged(e);
	k = take_name(f, name, n_name, e);
	if (k < 0)
		return k;
	if (flags & FLAGS_REFUSED)
		return name_fault(f->name, e, "which is encrypted");
	if (method != 0 && method != Z_DEFLATED)
		return name_fault(f->name, e, "which is packed in a way other than deflate");
	f->deflate = method == Z_DEFLATED;
	k = take_kind(f, made_by, attributes, e);
	if (k == 0)
		k = check_sizes(f, e);
	return k == 0 ? check_local(z, end, f, flags, method, e) : k;
}

static int by_name(const void *a, const void *b)
{
	const struct zip_entry *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static int by_place(const void *a, const void *b)
{
	const struct zip_entry *const *x = a, *const *y = b;

	return (*x)->local < (*y)->local ? -1 : (*x)->local > (*y)->local;
}

/* No name twice, no byte in two files. */
static int check_all(const struct zip *z, struct err *e)
{
	_free_ const struct zip_entry **order = calloc(z->n_v + 1, sizeof(struct zip_entry *));
	size_t i;

	if (!order)
		return err_errno(e, -ENOMEM, "cannot read the ZIP");
	for (i = 0; i < z->n_v; i++)
		order[i] = &z->v[i];
	qsort(order, z->n_v, sizeof(struct zip_entry *), by_name);
	for (i = 1; i < z->n_v; i++)
		if (streq(order[i - 1]->name, order[i]->name))
			return name_fault(order[i]->name, e, "which comes twice");
	qsort(order, z->n_v, sizeof(struct zip_entry *), by_place);
	for (i = 1; i < z->n_v; i++)
		if (order[i]->local - order[i - 1]->local <
		    order[i - 1]->data - order[i - 1]->local + order[i - 1]->packed)
			return err_set(e, -EINVAL,
				       "the ZIP is damaged: '%.100s' and '%.100s' overlap",
				       order[i - 1]->name, order[i]->name);
	return 0;
}

static int take_entries(struct zip *z, const struct end *end, struct err *e)
{
	struct rd r = { .p = z->p + end->off, .n = end->size };
	uint64_t bytes = 0;
	int k;

	for (uint16_t i = 0; i < end->entries; i++) {
		z->n_v++;
		k = take_entry(z, end, &r, &z->v[i], e);
		if (k < 0)
			return k;
		bytes += z->v[i].size;
		if (bytes > ZIP_BYTES_MAX)
			return err_set(e, -EFBIG, "the ZIP unpacks to more than %d MiB",
				       ZIP_BYTES_MAX / 1024 / 1024);
	}
	return rd_done(&r) ? check_all(z, e) : damaged(e);
}

int zip_read(const void *p, size_t n, struct zip *ret, struct err *e)
{
	struct zip z = { .p = p, .n = n };
	struct end end = { 0 };
	int r;

	if (n > ZIP_FILE_MAX)
		return err_set(e, -EFBIG, "the ZIP is larger than %d MiB",
			       ZIP_FILE_MAX / 1024 / 1024);
	r = find_end(z.p, n, &end, e);
	if (r < 0)
		return r;
	if (end.entries > ZIP_ENTRIES_MAX)
		return err_set(e, -EFBIG, "the ZIP has more than %d files", ZIP_ENTRIES_MAX);
	z.v = calloc(end.entries + 1U, sizeof(*z.v));
	if (!z.v)
		return err_errno(e, -ENOMEM, "cannot read the ZIP");
	r = take_entries(&z, &end, e);
	if (r < 0)
		zip_done(&z);
	else
		*ret = z;
	return r;
}

/* All of the packed bytes make exactly f->size. */
static int inflate_to(const struct zip *z, const struct zip_entry *f, uint8_t *dst)
{
	uint8_t none = 0;
	z_stream s = { .next_in = z->p + f->data, .avail_in = f->packed };
	int r;

	s.next_out = f->size ? dst : &none;
	s.avail_out = f->size;
	if (inflateInit2(&s, -MAX_WBITS) != Z_OK)
		return -ENOMEM;
	r = inflate(&s, Z_FINISH);
	(void)inflateEnd(&s);
	return r == Z_STREAM_END && !s.avail_in && !s.avail_out ? 0 : -EINVAL;
}

int zip_data(const struct zip *z, const struct zip_entry *f, struct buf *out, struct err *e)
{
	uint8_t *room = buf_room(out, f->size + 1UL);
	int r = 0;

	if (!room)
		return err_errno(e, -ENOMEM, "cannot read '%.200s' of the ZIP", f->name);
	if (f->deflate)
		r = inflate_to(z, f, room);
	else
		memcpy(room, z->p + f->data, f->size);
	if (r == 0 && crc32_z(0, room, f->size) != f->crc)
		r = -EINVAL;
	if (r < 0)
		return err_set(e, r, "the ZIP is damaged at '%.200s'", f->name);
	buf_added(out, f->size);
	return 0;
}
