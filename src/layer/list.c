#include "layer/list.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>

#include "io/fd.h"
#include "layer/reader.h"
#include "layer/sink.h"

struct list {
	struct reader r;
	struct sink out;
	uint64_t n;
	char name[WIRE_PATH_MAX + 1];
	uint8_t record[LAYER_RECORD_MAX];
};

static int put(struct list *l, const struct layer_member *m, struct err *e)
{
	size_t n;

	if (layer_member_put(l->record, &n, m) < 0)
		return err_set(e, -EINVAL, "the archive is damaged at '%.200s'", l->name);
	sink_bytes(&l->out, l->record, n);
	return l->out.r < 0 ? err_errno(e, l->out.r, "cannot write the list") : 0;
}

static int add(struct list *l, struct archive_entry *entry, struct err *e)
{
	struct layer_member m = { .name = l->name, .target = "" };
	mode_t type = archive_entry_filetype(entry);
	int k = reader_name(l->name, archive_entry_pathname(entry), "", e);

	if (k <= 0)
		return k; /* the top is there anyway */
	if (archive_entry_hardlink(entry) ||
	    (type != AE_IFREG && type != AE_IFDIR && type != AE_IFLNK))
		return err_set(
			e, -EINVAL,
			"the archive holds '%.200s', which is no file, folder or symbolic link",
			l->name);
	if (archive_entry_sparse_count(entry) > 0)
		return err_set(e, -EINVAL, "the archive holds '%.200s' with holes in it", l->name);
	if (++l->n > LAYER_MEMBERS_MAX)
		return err_set(e, -EFBIG, "the archive has more than %d members",
			       LAYER_MEMBERS_MAX);
	m.type = type == AE_IFREG ? 'f' : type == AE_IFDIR ? 'd' : 'l';
	if (m.type == 'f') {
		m.offset = reader_position(&l->r);
		m.size = (uint64_t)archive_entry_size(entry);
	}
	if (m.type == 'l')
		m.target = archive_entry_symlink(entry);
	if (!m.target || strlen(m.target) > WIRE_PATH_MAX)
		return err_set(e, -EINVAL, "the archive is damaged at '%.200s'", l->name);
	return put(l, &m, e);
}

static int members(struct list *l, struct err *e)
{
	struct layer_member end = { .name = "", .target = "" };
	struct archive_entry *entry;
	int k;

	while ((k = reader_next(&l->r, &entry, e)) > 0) {
		k = add(l, entry, e);
		if (k < 0)
			return k;
	}
	if (k < 0)
		return k;
	end.offset = l->n;
	l->name[0] = '\0';
	k = put(l, &end, e);
	if (k == 0)
		k = sink_end(&l->out);
	return k;
}

/* Plain bytes of what is packed, or comes through a pipe, into a file; its size or -errno. */
static int unpack(struct source *s, int plain, uint64_t *ret_size, struct err *e)
{
	struct sink out;
	const uint8_t *p;
	size_t n;
	int r = sink_open(&out, plain);

	if (r < 0)
		return err_errno(e, r, "cannot unpack");
	while ((r = source_next(s, &p, &n)) > 0 && out.r == 0)
		sink_bytes(&out, p, n);
	if (r < 0)
		*e = s->err;
	else if (sink_end(&out) < 0)
		r = err_errno(e, out.r, "cannot write what was unpacked");
	*ret_size = out.pos;
	sink_done(&out);
	return r;
}

static int list_members(int fd, uint64_t size, int out, const struct layer_limits *limits,
			struct list_result *ret, struct err *e)
{
	_free_ struct list *l = calloc(1, sizeof(*l));
	int r;

	if (!l || sink_open(&l->out, out) < 0)
		return err_errno(e, -ENOMEM, "cannot read the archive");
	r = reader_open(&l->r, fd, 0, size, limits, false, e);
	if (r == 0)
		r = members(l, e);
	ret->n = l->n;
	ret->size = l->r.s.plain;
	reader_done(&l->r);
	sink_done(&l->out);
	return r;
}

int list_archive(int fd, int out, int plain, const struct layer_limits *limits,
		 void (*on_progress)(struct source *s), struct list_result *ret, struct err *e)
{
	struct list_result res = { 0 };
	uint64_t size = UINT64_MAX;
	struct source s;
	int r = source_open(&s, fd, 0, UINT64_MAX, limits, false, e);

	s.on_progress = on_progress;
	res.unpacked = r == 0 && (s.form != SOURCE_PLAIN || !s.seeks);
	if (res.unpacked)
		r = unpack(&s, plain, &size, e);
	source_done(&s);
	if (r == 0)
		r = list_members(res.unpacked ? plain : fd, size, out, limits, &res, e);
	if (r == 0)
		*ret = res;
	return r;
}
