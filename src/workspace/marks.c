/* A file is looked at as a stream as long as each write begins where the one before ended. A guest that wants to can write a secret in pieces that
 * nobody would find, or change its memory after it was looked at: this tells of accidents, and of agents that do not know better. */
#include "workspace/marks.h"

#include <fcntl.h>

#include "workspace/place.h"

struct marks_file {
	uint64_t next; /* offset behind the last write */
	bool told;
	struct leak_scan scan;
};

void fs_marks(struct fs *f, struct leak_set *s, bool refuse)
{
	leak_set_done(&f->marks);
	f->marks = *s;
	f->marks_refuse = refuse;
	memset(s, 0, sizeof(*s));
}

/* Goes through all of it; the name of the last secret, or NULL. */
static const char *look(struct fs *f, const struct call *c, struct marks_file *m, size_t skip,
			size_t len)
{
	size_t n = iov_cut(f->iov, FS_IOV_MAX, c->r->in, c->r->n_in, skip, len, &len), i, at;
	const char *name = NULL;
	struct leak_hit hit;

	for (i = 0; i < n; i++) {
		for (at = 0; at < f->iov[i].iov_len;) {
			at += leak_scan(&m->scan, &f->marks, (uint8_t *)f->iov[i].iov_base + at,
					f->iov[i].iov_len - at, &hit);
			name = hit.length ? hit.name : name;
		}
	}
	return name;
}

static void tell(struct fs *f, const struct call *c, const struct node *n, const char *name)
{
	const struct fs_refusal r = { .kind = f->marks_refuse ? FS_LEAK_REFUSED : FS_LEAK,
				      .share = n->share ? n->share->id : 0,
				      .path = f->rule_path[0],
				      .rule = name,
				      .op = c->m.op };

	if (!n->parent ||
	    place_path(n->parent, node_name(n), f->rule_path[0], sizeof(f->rule_path[0])) < 0)
		f->rule_path[0][0] = 0;
	if (f->cfg.refused)
		f->cfg.refused(f->cfg.refused_arg, &r);
}

int marks_write(struct fs *f, const struct call *c, struct handle *h, size_t skip, size_t len)
{
	const struct fuse_write_in *in = c->m.arg;
	struct marks_file *m;
	const char *name;

	if (!f->marks.n)
		return 0;
	if (!h->marks)
		h->marks = calloc(1, sizeof(*m));
	m = h->marks;
	if (!m)
		return f->marks_refuse ? -ENOMEM : 0;
	if (m->next != in->offset)
		m->scan = (struct leak_scan) { 0 };
	name = look(f, c, m, skip, len);
	m->next = in->offset + len;
	if (!name)
		return 0;
	if (f->marks_refuse || !m->told)
		tell(f, c, h->node, name);
	m->told = true;
	return f->marks_refuse ? -EACCES : 0;
}
