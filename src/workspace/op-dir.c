/* Reading directories. The cookie of an entry is the host's d_off behind it, so that the guest's telldir()
 * and seekdir() mean what they mean on the host. Entries are read ahead into a lent buffer (dirbuf.h); the
 * descriptor is moved only when the guest reads elsewhere than where the buffer goes on.
 *
 * The guest asks for attributes with all names (op-init.c). What it gets it keeps, and so do we: a directory larger than
 * OP_DIR_TOLD has only names from there on, which are looked up one by one if somebody cares. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/fd.h"
#include "workspace/attr.h"
#include "workspace/entry.h"
#include "workspace/ops.h"
#include "workspace/place.h"
#include "workspace/watch.h"

struct host_dirent { /* of getdents64(2) */
	uint64_t ino, off;
	uint16_t len;
	uint8_t type;
	char name[];
};

struct listing {
	struct fs *f;
	struct call *c;
	struct handle *h;
	int dir;       /* for READDIRPLUS; -1: READDIR */
	size_t n, max; /* bytes in f->out */
};

ssize_t op_opendir(struct fs *f, struct call *c)
{
	struct fuse_open_out out = { 0 };
	_close_ int fd = -1;
	struct handle *h;
	struct statx s;

	if (!S_ISDIR(c->n->type))
		return -ENOTDIR;
	if (c->n != f->root) {
		fd = place_open(f, c->n, O_RDONLY | O_DIRECTORY, &s);
		if (fd < 0)
			return fd;
	}
	h = handle_new(&f->handles, c->n, take_fd(&fd));
	if (!h)
		return -ENFILE;
	h->dir = true;
	if (h->fd >= 0)
		watch_dir(f, c->n, h->fd);
	out.fh = handle_id(h);
	return call_put(c, &out, sizeof(out));
}

/* One entry at the end of the answer; e: as the guest will know it (READDIRPLUS). False: no room. */
static bool put(struct listing *l, const struct fuse_dirent *d, const char *name,
		const struct fuse_entry_out *e)
{
	size_t head = sizeof(*d) + (l->dir >= 0 ? sizeof(*e) : 0);
	size_t len = FUSE_REC_ALIGN(head + d->namelen);
	uint8_t *p = l->f->out + l->n;

	if (l->max - l->n < len)
		return false;
	if (l->dir >= 0) {
		memcpy(p, e, sizeof(*e));
		p += sizeof(*e);
	}
	memcpy(p, d, sizeof(*d));
	memcpy(p + sizeof(*d), name, d->namelen);
	memset(p + sizeof(*d) + d->namelen, 0, len - head - d->namelen);
	l->n += len;
	return true;
}

static bool is_dots(const char *s)
{
	return streq(s, ".") || streq(s, "..");
}

/* An entry of the host's: 1 taken, 0 left out (it is gone by now), -ENOSPC no room. */
static int put_host(struct listing *l, const struct host_dirent *e)
{
	struct node *n = l->h->node;
	struct fuse_dirent d = { .ino = attr_ino(l->f, n->key.dev, e->ino),
				 .off = e->off,
				 .namelen = (uint32_t)strlen(e->name),
				 .type = e->type };
	struct fuse_entry_out out = { 0 };
	size_t need = FUSE_REC_ALIGN(sizeof(d) + sizeof(out) + d.namelen);
	struct node *made = NULL;
	struct statx s;
	int r;

	if (l->dir >= 0 && !is_dots(e->name) && l->h->told < OP_DIR_TOLD) {
		if (l->max - l->n < need)
			return -ENOSPC; /* before it is counted */
		r = place_statx(l->dir, e->name, &s);
		if (r == -ENOENT)
			return 0;
		/* without a node it is listed all the same: nodeid 0 says that nothing is known */
		if (r == 0 && entry_make(l->f, n, e->name, &s, &out, &made) == 0) {
			d.ino = out.attr.ino;
			l->h->told++;
		} else {
			out = (struct fuse_entry_out) { 0 };
		}
	}
	return put(l, &d, e->name, &out) ? 1 : -ENOSPC;
}

/* The buffer of this handle, standing before offset off. */
static int stand(struct listing *l, uint64_t off, struct dirbuf **ret)
{
	struct dirbuf *b = dirbuf_take(&l->f->dirbufs, l->h);

	if (!b)
		return -ENOMEM;
	if (b->at < b->n && b->next_off == off && off) {
		*ret = b;
		return 0;
	}
	b->at = b->n = 0;
	b->next_off = off;
	if (!off)
		l->h->told = 0;
	if (l->h->pos != off) {
		if (lseek(l->h->fd, (off_t)off, SEEK_SET) < 0)
			return -errno;
		l->h->pos = off;
	}
	*ret = b;
	return 0;
}

/* Read on: 1, 0 at the end, -errno. */
static int fill(struct listing *l, struct dirbuf *b)
{
	long n = syscall(SYS_getdents64, l->h->fd, b->bytes, sizeof(b->bytes));
	const struct host_dirent *e;
	size_t at;

	if (n < 0)
		return errno == ENOENT ? 0 : -errno; /* removed: empty */
	b->at = 0;
	b->n = (size_t)n;
	for (at = 0; at < b->n; at += e->len) {
		e = (const struct host_dirent *)(const void *)(b->bytes + at);
		l->h->pos = e->off;
	}
	return n > 0;
}

static ssize_t list_host(struct listing *l, uint64_t off)
{
	const struct host_dirent *e;
	struct dirbuf *b = NULL;
	int r = stand(l, off, &b);

	while (r >= 0 && b) {
		if (b->at >= b->n) {
			r = fill(l, b);
			if (r <= 0)
				break;
		}
		e = (const struct host_dirent *)(const void *)(b->bytes + b->at);
		r = put_host(l, e);
		if (r == -ENOSPC)
			return l->n ? (ssize_t)l->n : -EINVAL;
		if (r < 0)
			break;
		b->at += e->len;
		b->next_off = e->off;
	}
	return r < 0 && !l->n ? r : (ssize_t)l->n;
}

/* The root: ".", "..", then the shares by number; an offset is 2 + the number behind it. */
static ssize_t list_shares(struct listing *l, uint64_t off)
{
	struct fuse_entry_out out = { 0 };
	struct fuse_dirent d = { .type = DT_DIR };
	const struct share *s, *next;
	char name[16];

	for (; off < 2; off++) {
		d = (struct fuse_dirent) { .ino = NODE_ROOT,
					   .off = off + 1,
					   .type = DT_DIR,
					   .namelen = (uint32_t)off + 1 };
		if (!put(l, &d, "..", &out))
			return (ssize_t)l->n;
	}
	for (;;) {
		next = NULL;
		for (s = l->f->shares.first; s; s = s->next)
			if (s->id + 2ULL >= off && (!next || s->id < next->id))
				next = s;
		if (!next)
			break;
		d = (struct fuse_dirent) {
			.ino = attr_ino(l->f, next->root->key.dev, next->root->key.ino),
			.off = next->id + 3ULL,
			.type = next->flags & FS_SHARE_FILE ? DT_REG : DT_DIR,
			.namelen = (uint32_t)snprintf(name, sizeof(name), "%u", next->id)
		};
		if (!put(l, &d, name, &out))
			break;
		off = d.off;
	}
	return (ssize_t)l->n;
}

static ssize_t list(struct fs *f, struct call *c, bool plus)
{
	const struct fuse_read_in *in = c->m.arg;
	struct listing l = { .f = f,
			     .c = c,
			     .h = handle_get(&f->handles, c->n, in->fh),
			     .dir = -1,
			     .max = MIN(MIN(in->size, c->room), FS_OUT_MAX) };
	ssize_t len;

	if (!l.h || !l.h->dir)
		return -EBADF;
	if (l.h->dead)
		return -ESTALE;
	if (plus)
		l.dir = c->n == f->root ? 0 : l.h->fd;
	len = c->n == f->root ? list_shares(&l, in->offset) : list_host(&l, in->offset);
	return len < 0 ? len : call_put(c, f->out, (size_t)len);
}

ssize_t op_readdir(struct fs *f, struct call *c)
{
	return list(f, c, false);
}

ssize_t op_readdirplus(struct fs *f, struct call *c)
{
	return list(f, c, true);
}
