#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "io/fd.h"
#include "workspace/attr.h"
#include "workspace/entry.h"
#include "workspace/gitguard.h"
#include "workspace/ops.h"
#include "workspace/place.h"
#include "workspace/ruling.h"

#define NSEC_MAX 999999999U

/* The directory of the shares. */
static ssize_t put_root(const struct call *c)
{
	struct fuse_attr_out out = {
		.attr_valid = 1,
		.attr = { .ino = NODE_ROOT, .mode = S_IFDIR | 0555, .nlink = 2, .blksize = 4096 }
	};

	return call_put(c, &out, sizeof(out));
}

ssize_t op_getattr(struct fs *f, struct call *c)
{
	struct statx s;
	int r;

	if (c->n == f->root)
		return put_root(c);
	r = place_stat(f, c->n, &s);
	if (r < 0)
		return r;
	entry_links(c->n, &s);
	return attr_put(f, c, &s);
}

static int set_size(struct fs *f, struct call *c, const struct fuse_setattr_in *in, int fd)
{
	struct handle *h = in->valid & FATTR_FH ? handle_get(&f->handles, c->n, in->fh) : NULL;
	_close_ int own = -1;
	int r;

	if (S_ISDIR(c->n->type))
		return -EISDIR;
	if (!S_ISREG(c->n->type) || in->size > INT64_MAX)
		return -EINVAL;
	r = gitguard_size(f, c->m.op, c->n, h, in->size);
	if (r < 0)
		return r;
	if (h && h->fd >= 0 && h->acc != O_RDONLY && !h->resting) {
		fd = h->fd;
	} else {
		own = place_reopen(f, fd, O_WRONLY);
		if (own < 0)
			return own == -EAGAIN ? -ESTALE : own;
		if (!ruling_there(f, c->n, own))
			return -ESTALE;
		fd = own;
	}
	return ftruncate(fd, (off_t)in->size) < 0 ? -errno : 0;
}

/* No owner but the one it has, as the guest sees it. Where the host allows that no-op it is done: it
 * strips setuid bits and moves ctime, as the guest's programs expect. */
static int set_owner(struct fs *f, const struct fuse_setattr_in *in, int fd)
{
	struct statx s;
	int r = place_statx(fd, NULL, &s);
	uid_t uid = (uid_t)-1;
	gid_t gid = (gid_t)-1;

	if (r < 0)
		return r;
	if (in->valid & FATTR_UID) {
		if (in->uid != attr_uid(f, s.stx_uid))
			return -EPERM;
		uid = s.stx_uid;
	}
	if (in->valid & FATTR_GID) {
		if (in->gid != attr_gid(f, s.stx_gid))
			return -EPERM;
		gid = s.stx_gid;
	}
	if (fchownat(fd, "", uid, gid, AT_EMPTY_PATH) < 0 && errno != EPERM)
		return -errno;
	return 0;
}

static int set_mode(struct fs *f, const struct node *n, uint32_t mode, const struct place *p)
{
	mode &= 07777U & ~(uint32_t)S_ISUID;
	if (!S_ISDIR(n->type))
		mode &= ~(uint32_t)S_ISGID;
	if (S_ISLNK(n->type))
		return -EOPNOTSUPP;
	return fchmodat(f->cfg.proc_fd, p->text, mode, 0) < 0 ? -errno : 0;
}

static int one_time(struct timespec *ret, uint32_t valid, uint32_t set, uint32_t now, uint64_t s,
		    uint32_t ns)
{
	*ret = (struct timespec) { .tv_nsec = UTIME_OMIT };
	if (!(valid & set))
		return 0;
	if (valid & now) {
		ret->tv_nsec = UTIME_NOW;
		return 0;
	}
	if (ns > NSEC_MAX)
		return -EINVAL;
	*ret = (struct timespec) { .tv_sec = (time_t)s, .tv_nsec = ns };
	return 0;
}

static int set_times(struct fs *f, const struct fuse_setattr_in *in, const struct place *p)
{
	struct timespec ts[2];

	if (one_time(&ts[0], in->valid, FATTR_ATIME, FATTR_ATIME_NOW, in->atime, in->atimensec) <
		    0 ||
	    one_time(&ts[1], in->valid, FATTR_MTIME, FATTR_MTIME_NOW, in->mtime, in->mtimensec) < 0)
		return -EINVAL;
	return utimensat(f->cfg.proc_fd, p->text, ts, 0) < 0 ? -errno : 0;
}

ssize_t op_setattr(struct fs *f, struct call *c)
{
	const struct fuse_setattr_in *in = c->m.arg;
	_place_ struct place p = { .own = -1 };
	struct statx s;
	int r;

	r = ruling_change(f, c->m.op, c->n);
	if (r == 0)
		r = place_node(f, c->n, &p);
	if (r == 0 && in->valid & (FATTR_UID | FATTR_GID))
		r = set_owner(f, in, p.fd);
	if (r == 0 && in->valid & FATTR_SIZE)
		r = set_size(f, c, in, p.fd);
	if (r == 0 && in->valid & FATTR_MODE)
		r = set_mode(f, c->n, in->mode, &p);
	if (r == 0 && in->valid & (FATTR_ATIME | FATTR_MTIME))
		r = set_times(f, in, &p);
	if (r == 0)
		r = place_statx(p.fd, NULL, &s);
	return r < 0 ? r : attr_put(f, c, &s);
}

ssize_t op_readlink(struct fs *f, struct call *c)
{
	ssize_t len;
	int dir;

	if (!S_ISLNK(c->n->type))
		return -EINVAL;
	if (c->n->gone || !c->n->parent)
		return -ESTALE;
	dir = place_dir(f, c->n->parent);
	if (dir < 0)
		return dir;
	len = readlinkat(dir, node_name(c->n), (char *)f->out, PATH_MAX - 1);
	if (len < 0)
		return errno == EINVAL || errno == ENOENT || errno == ENOTDIR ? -ESTALE : -errno;
	return call_put(c, f->out, (size_t)len);
}
