/* A layer's archive, entry by entry. Nothing is looked up here: what an entry replaces, which whiteout hides what and where a hard link
 * leads is for merge, which knows all layers. */
#include "layer/apply.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layer/reader.h"
#include "layer/sink.h"
#include "wire/copy.h"

#define WHITEOUT     ".wh."
#define WHITEOUT_ALL ".wh..wh..opq"
#define WHITEOUT_AUX ".wh..wh." /* what aufs notes for itself */

struct apply {
	struct reader r;
	struct sink blob, tree;
	uint64_t entries, dropped, bytes;
	char path[WIRE_PATH_MAX + 1], target[WIRE_PATH_MAX + 1];
	uint8_t attrs[LAYER_ATTRS_MAX];
	uint8_t record[LAYER_RECORD_MAX];
};

static int damaged(const struct apply *a, struct err *e)
{
	return err_set(e, -EINVAL, "the archive is damaged at '%.200s'", a->path);
}

static int put(struct apply *a, const struct layer_entry *m, struct err *e)
{
	size_t n;

	if (layer_entry_put(a->record, &n, m) < 0)
		return damaged(a, e);
	sink_bytes(&a->tree, a->record, n);
	a->entries++;
	return a->tree.r < 0 ? err_errno(e, a->tree.r, "cannot write the layer's tree") : 0;
}

/* ---- whiteouts ---- */

/* The name that a whiteout hides must be one that a file can have. */
static int put_whiteout(struct apply *a, char *base, struct err *e)
{
	struct layer_entry m = { .kind = LAYER_WHITEOUT, .path = a->path, .target = "" };
	const char *hidden = base + strlen(WHITEOUT);

	if (streq(base, WHITEOUT_ALL)) {
		m.kind = LAYER_OPAQUE;
		*(base > a->path ? base - 1 : base) = '\0';
		return put(a, &m, e);
	}
	if (starts_with(base, WHITEOUT_AUX))
		return 0;
	if (!*hidden || streq(hidden, ".") || streq(hidden, ".."))
		return err_set(e, -EINVAL, "the archive holds '%.200s', which hides nothing",
			       a->path);
	memmove(base, hidden, strlen(hidden) + 1);
	return put(a, &m, e);
}

/* 1 if the path is a whiteout, which is done with then; 0 if not. */
static int take_whiteout(struct apply *a, struct err *e)
{
	char *at = a->path, *slash;
	int r;

	while ((slash = strchr(at, '/'))) {
		if (starts_with(at, WHITEOUT))
			return err_set(e, -EINVAL,
				       "the archive holds '%.200s', which is below a whiteout",
				       a->path);
		at = slash + 1;
	}
	if (!starts_with(at, WHITEOUT))
		return 0;
	r = put_whiteout(a, at, e);
	return r < 0 ? r : 1;
}

/* ---- attributes ---- */

static const struct {
	uint8_t prefix;
	const char *begins;
	const char *whole; /* the one name that is taken; NULL: any but those of an overlay */
} taken[] = {
	{ LAYER_USER, "user.", NULL },
	{ LAYER_SECURITY, "security.", "security.capability" },
};

static int add_attr(struct apply *a, struct wr *w, const char *name, const void *value, size_t n,
		    struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++) {
		struct layer_attr x = { .prefix = taken[i].prefix, .value = value };
		const char *rest = name + strlen(taken[i].begins);

		if (!starts_with(name, taken[i].begins) || starts_with(name, "user.overlay.") ||
		    (taken[i].whole && !streq(name, taken[i].whole)))
			continue;
		if (!*rest || strlen(name) > COPY_NAME_MAX || n > LAYER_VALUE_MAX)
			return err_set(e, -E2BIG,
				       "'%.200s' has an attribute that is too long: '%.80s'",
				       a->path, name);
		x.name = (const uint8_t *)rest;
		x.name_len = (uint8_t)strlen(rest);
		x.len = (uint16_t)n;
		layer_attr_put(w, &x);
		return 1;
	}
	a->dropped++;
	return 0;
}

static int read_attrs(struct apply *a, struct archive_entry *entry, struct layer_entry *m,
		      struct err *e)
{
	struct wr w = wr_init(a->attrs, sizeof(a->attrs));
	const char *name;
	const void *value;
	size_t n, count = 0;
	int r;

	if (archive_entry_xattr_reset(entry) > 0)
		while (archive_entry_xattr_next(entry, &name, &value, &n) == ARCHIVE_OK) {
			r = add_attr(a, &w, name ? name : "", value, n, e);
			if (r < 0)
				return r;
			count += (size_t)r;
		}
	if (!wr_ok(&w) || count > LAYER_XATTRS_MAX)
		return err_set(e, -E2BIG, "'%.200s' has too many attributes", a->path);
	m->attrs = a->attrs;
	m->attrs_len = w.n;
	return 0;
}

/* ---- files ---- */

static int copy_data(struct apply *a, uint64_t size, struct err *e)
{
	uint64_t begin = a->blob.pos, pos = 0, at;
	const uint8_t *p;
	size_t n;
	int r;

	while ((r = reader_data(&a->r, &p, &n, &at, e)) > 0) {
		if (at < pos || at > size || n > size - at)
			return damaged(a, e);
		sink_zeros(&a->blob, at - pos);
		sink_bytes(&a->blob, p, n);
		pos = at + n;
		if (a->blob.r < 0)
			return err_errno(e, a->blob.r, "cannot write the layer's files");
	}
	if (r < 0)
		return r;
	sink_zeros(&a->blob, size - pos);
	sink_align(&a->blob, LAYER_BLOCK);
	return a->blob.pos >= begin + size ? 0 : damaged(a, e);
}

static int put_file(struct apply *a, struct layer_entry *m, struct archive_entry *entry,
		    struct err *e)
{
	const struct layer_limits *l = &a->r.s.limits;
	int64_t size = archive_entry_size(entry);
	int r;

	if (size < 0)
		return damaged(a, e);
	m->kind = LAYER_FILE;
	m->size = (uint64_t)size;
	m->offset = size ? a->blob.pos : 0;
	if (m->size > l->file)
		return err_set(e, -EFBIG, "'%.200s' is larger than a file of an image may be",
			       a->path);
	if (m->size > l->bytes - a->bytes)
		return err_set(e, -EFBIG, "the files are larger than those of a layer may be");
	a->bytes += m->size;
	r = put(a, m, e);
	return r < 0 ? r : copy_data(a, m->size, e);
}

/* ---- entries ---- */

static int put_hard(struct apply *a, const char *to, struct archive_entry *entry, struct err *e)
{
	struct layer_entry m = { .kind = LAYER_HARD, .path = a->path, .target = a->target };
	int r = reader_name(a->target, to, "a link to ", e);

	if (r < 0)
		return r;
	if (r == 0 || streq(a->path, a->target))
		return err_set(e, -EINVAL, "the archive holds '%.200s', which links to %s", a->path,
			       r ? "itself" : "a directory");
	if (archive_entry_size(entry) > 0)
		return err_set(e, -EINVAL, "the archive holds '%.200s', a link with a content",
			       a->path);
	return put(a, &m, e);
}

static int set_owner(struct apply *a, struct archive_entry *entry, struct layer_entry *m,
		     struct err *e)
{
	int64_t uid = archive_entry_uid(entry), gid = archive_entry_gid(entry);
	long ns = archive_entry_mtime_nsec(entry);

	if (uid < 0 || uid >= UINT32_MAX || gid < 0 || gid >= UINT32_MAX)
		return err_set(e, -ERANGE,
			       "'%.200s' belongs to %lld:%lld, which is no user and group", a->path,
			       (long long)uid, (long long)gid);
	m->uid = (uint32_t)uid;
	m->gid = (uint32_t)gid;
	m->mode = (uint16_t)(archive_entry_perm(entry) & 07777);
	m->mtime = archive_entry_mtime(entry);
	m->mtime_ns = ns >= 0 && ns < 1000000000 ? (uint32_t)ns : 0;
	if (m->mtime < 0 && m->mtime_ns) { /* -1.5 is said as -1 and a half */
		m->mtime--;
		m->mtime_ns = 1000000000 - m->mtime_ns;
	}
	return 0;
}

static int put_symlink(struct apply *a, struct layer_entry *m, struct archive_entry *entry,
		       struct err *e)
{
	m->kind = LAYER_SYMLINK;
	m->mode = 0777;
	m->target = archive_entry_symlink(entry);
	if (!m->target || !*m->target || strlen(m->target) > WIRE_PATH_MAX)
		return err_set(e, -EINVAL,
			       "the symbolic link '%.200s' leads to nothing, or to a name that is "
			       "too long",
			       a->path);
	return put(a, m, e);
}

static int put_device(struct apply *a, struct layer_entry *m, struct archive_entry *entry,
		      struct err *e)
{
	dev_t major = archive_entry_rdevmajor(entry), minor = archive_entry_rdevminor(entry);

	m->kind = archive_entry_filetype(entry) == AE_IFCHR ? LAYER_CHAR : LAYER_BLOCKDEV;
	if (major >= 1 << 12 || minor >= 1 << 20)
		return err_set(e, -ERANGE, "'%.200s' is a device with numbers that none can have",
			       a->path);
	m->major = (uint32_t)major;
	m->minor = (uint32_t)minor;
	return put(a, m, e);
}

/* What a name stands for; path is "" for the top. */
static int put_entry(struct apply *a, struct archive_entry *entry, struct err *e)
{
	struct layer_entry m = { .path = a->path, .target = "" };
	mode_t type = archive_entry_filetype(entry);
	int r = set_owner(a, entry, &m, e);

	if (r == 0)
		r = read_attrs(a, entry, &m, e);
	if (r < 0)
		return r;
	if (!a->path[0] && type != AE_IFDIR)
		return err_set(e, -EINVAL, "the archive's top is not a directory");
	switch (type) {
	case AE_IFDIR:
		m.kind = LAYER_DIR;
		return put(a, &m, e);
	case AE_IFREG:
		return put_file(a, &m, entry, e);
	case AE_IFLNK:
		return put_symlink(a, &m, entry, e);
	case AE_IFCHR:
	case AE_IFBLK:
		return put_device(a, &m, entry, e);
	case AE_IFIFO:
		m.kind = LAYER_FIFO;
		return put(a, &m, e);
	default:
		return err_set(e, -EINVAL, "'%.200s' is of a kind that no image has", a->path);
	}
}

static int take(struct apply *a, struct archive_entry *entry, struct err *e)
{
	const char *hard = archive_entry_hardlink(entry);
	int r = reader_name(a->path, archive_entry_pathname(entry), "", e);

	if (r > 0) {
		r = take_whiteout(a, e);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	if (r < 0)
		return r;
	return hard && a->path[0] ? put_hard(a, hard, entry, e) : put_entry(a, entry, e);
}

static int take_all(struct apply *a, struct err *e)
{
	struct layer_entry end = { .kind = LAYER_END, .path = "", .target = "" };
	struct archive_entry *entry;
	int r;

	sink_bytes(&a->tree, LAYER_TREE_MAGIC, strlen(LAYER_TREE_MAGIC));
	while ((r = reader_next(&a->r, &entry, e)) > 0) {
		r = take(a, entry, e);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	end.size = a->entries;
	end.offset = a->blob.pos;
	r = put(a, &end, e);
	if (r < 0)
		return r;
	r = sink_end(&a->tree);
	if (r == 0)
		r = sink_end(&a->blob);
	return r < 0 ? err_errno(e, r, "cannot write the layer") : 0;
}

static void answer(struct apply *a, struct apply_result *ret)
{
	hash_end_hex(&a->r.s.as_came, ret->digest);
	hash_end_hex(&a->r.s.as_plain, ret->diff);
	ret->came = a->r.s.came;
	ret->blob = a->blob.pos;
	ret->tree = a->tree.pos;
	ret->entries = a->entries - 1; /* without the end */
	ret->dropped = a->dropped;
}

int apply_layer(int fd, uint64_t offset, uint64_t size, int blob, int tree,
		const struct layer_limits *limits, void (*on_progress)(struct source *s),
		struct apply_result *ret, struct err *e)
{
	_free_ struct apply *a = calloc(1, sizeof(*a));
	int r = a ? sink_open(&a->blob, blob) : -ENOMEM;

	if (r == 0)
		r = sink_open(&a->tree, tree);
	if (r < 0) {
		if (a)
			sink_done(&a->blob);
		return err_errno(e, r, "cannot read the layer");
	}
	r = reader_open(&a->r, fd, offset, size, limits, true, e);
	a->r.s.on_progress = on_progress;
	if (r == 0)
		r = take_all(a, e);
	if (r == 0)
		answer(a, ret);
	reader_done(&a->r);
	sink_done(&a->blob);
	sink_done(&a->tree);
	return r;
}
