/* Notes: a path, and behind it its length with the rest, so that they can be read backwards. */
#include "io/tree-notes.h"

#include <unistd.h>

#include "io/fd.h"
#include "io/tree-tmp.h"

enum { TAIL = 2 + 4 + 8 + 4, NOTES_BUF = 64 * 1024 };

void tree_notes_init(struct tree_notes *n)
{
	*n = (struct tree_notes) { .fd = -1 };
	buf_init(&n->buf, NOTES_BUF);
}

void tree_notes_done(struct tree_notes *n)
{
	buf_done(&n->buf);
	n->fd = fd_close(n->fd);
}

static int spill(struct tree_notes *n, int dir)
{
	int r;

	if (n->fd < 0) {
		r = tree_tmp_nameless(dir);
		if (r < 0)
			return r;
		n->fd = r;
	}
	if (lseek(n->fd, (off_t)n->len, SEEK_SET) < 0)
		return -errno;
	r = fd_write_all(n->fd, buf_data(&n->buf), n->buf.n);
	if (r < 0)
		return r;
	n->len += n->buf.n;
	buf_consume(&n->buf, n->buf.n);
	return 0;
}

int tree_notes_add(struct tree_notes *n, int dir, const struct copy_record *m)
{
	size_t len = strlen(m->path);
	struct wr w;
	uint8_t *to;
	int r;

	if (len > WIRE_PATH_MAX)
		return -ENAMETOOLONG;
	if (buf_space(&n->buf) < len + TAIL) {
		r = spill(n, dir);
		if (r < 0)
			return r;
	}
	to = buf_room(&n->buf, len + TAIL);
	if (!to)
		return -ENOMEM;
	w = wr_init(to, len + TAIL);
	wr_bytes(&w, m->path, len);
	wr_be16(&w, (uint16_t)len);
	wr_be32(&w, m->mode);
	wr_be64(&w, (uint64_t)m->mtime);
	wr_be32(&w, m->mtime_ns);
	buf_added(&n->buf, w.n);
	return 0;
}

/* The len bytes before the end, from memory or from the file; the end moves there. A note is in one
 * of them as a whole. */
static int take_back(struct tree_notes *n, void *to, size_t len)
{
	ssize_t k;

	if (!len)
		return 0;
	if (n->buf.n) {
		memcpy(to, buf_data(&n->buf) + n->buf.n - len, len);
		n->buf.n -= len;
		return 0;
	}
	if (n->len < len)
		return -EIO;
	n->len -= len;
	k = pread(n->fd, to, len, (off_t)n->len);
	if (k < 0)
		return -errno;
	return (size_t)k == len ? 0 : -EIO;
}

int tree_notes_pop(struct tree_notes *n, struct copy_record *ret, char path[WIRE_PATH_MAX + 1])
{
	struct copy_record m = { .kind = COPY_DIR, .path = path, .target = "" };
	uint8_t tail[TAIL];
	struct rd rd;
	size_t len;
	int r;

	if (!n->buf.n && !n->len)
		return 0;
	r = take_back(n, tail, TAIL);
	if (r < 0)
		return r;
	rd = rd_init(tail, TAIL);
	len = rd_be16(&rd);
	m.mode = rd_be32(&rd);
	m.mtime = (int64_t)rd_be64(&rd);
	m.mtime_ns = rd_be32(&rd);
	if (len > WIRE_PATH_MAX)
		return -EIO;
	r = take_back(n, path, len);
	if (r < 0)
		return r;
	path[len] = '\0';
	*ret = m;
	return 1;
}
