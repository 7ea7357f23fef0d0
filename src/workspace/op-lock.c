/* flock() is on the handle's own descriptor; record locks are on the owner's (lock.h). Both are tried
 * at once first; only a wait needs a thread. */
#include <fcntl.h>
#include <sys/file.h>

#include "io/fd.h"
#include "workspace/late.h"
#include "workspace/ops.h"
#include "workspace/place.h"

static int handle_of(const struct fs *f, const struct call *c, const struct fuse_lk_in *in,
		     struct handle **ret)
{
	struct handle *h = handle_get(&f->handles, c->n, in->fh);

	if (!h || h->fd < 0)
		return h && h->dead ? -ESTALE : -EBADF;
	*ret = h;
	return 0;
}

/* The guest's range has a last byte; the host's has a length. */
static int to_flock(const struct fuse_file_lock *lk, struct flock *ret)
{
	*ret = (struct flock) { .l_type = (short)lk->type,
				.l_whence = SEEK_SET,
				.l_start = (off_t)lk->start };
	if (lk->type != F_RDLCK && lk->type != F_WRLCK && lk->type != F_UNLCK)
		return -EINVAL;
	if (lk->start > INT64_MAX || lk->end < lk->start)
		return -EINVAL;
	if (lk->end < INT64_MAX)
		ret->l_len = (off_t)(lk->end - lk->start + 1);
	return 0;
}

/* A description of its own for this owner, as writable as the share and the file allow. */
static int owner_of(struct fs *f, struct call *c, uint64_t owner, const struct handle *h,
		    struct lock_owner **ret)
{
	int fd = -EROFS;

	*ret = lock_get(&f->locks, c->n, owner);
	if (*ret)
		return 0;
	if (!(c->n->share->flags & FS_SHARE_RO) && !h->dir)
		fd = place_reopen(f, h->fd, O_RDWR);
	if (fd < 0)
		fd = place_reopen(f, h->fd, h->acc);
	if (fd < 0)
		return fd;
	*ret = lock_new(&f->locks, c->n, owner, fd);
	return *ret ? 0 : -ENOLCK;
}

ssize_t op_getlk(struct fs *f, struct call *c)
{
	const struct fuse_lk_in *in = c->m.arg;
	struct fuse_lk_out out = { 0 };
	struct lock_owner *l;
	struct handle *h;
	struct flock fl;
	int r = handle_of(f, c, in, &h);

	if (r == 0)
		r = to_flock(&in->lk, &fl);
	if (r < 0)
		return r;
	l = lock_get(&f->locks, c->n, in->owner);
	if (l) {
		r = fcntl(l->fd, F_OFD_GETLK, &fl) < 0 ? -errno : 0;
	} else {
		_close_ int fd = place_reopen(f, h->fd, h->acc);

		r = fd < 0 ? fd : fcntl(fd, F_OFD_GETLK, &fl) < 0 ? -errno : 0;
	}
	if (r < 0)
		return r;
	out.lk.type = (uint32_t)fl.l_type;
	if (fl.l_type != F_UNLCK) {
		out.lk.start = (uint64_t)fl.l_start;
		out.lk.end = fl.l_len ? (uint64_t)(fl.l_start + fl.l_len - 1) : INT64_MAX;
	}
	return call_put(c, &out, sizeof(out));
}

static int flock_wait(struct job *j)
{
	return flock(j->fd[0], (int)j->flags) < 0 ? -errno : 0;
}

static int flock_again(struct job *j)
{
	return flock(j->fd[0], (int)j->flags | LOCK_NB) < 0 ? -errno : 0;
}

static int run_flock(struct job *j)
{
	return worker_wait(j, flock_wait, flock_again);
}

/* It was got: see attr.c. */
static ssize_t locked(struct fs *f, struct job *j, void *body)
{
	(void)f;
	(void)body;
	j->handles[0]->node->lock_gen++;
	return 0;
}

/* At once, or by a thread that waits. */
static ssize_t try_then_wait(struct fs *f, struct call *c, struct job *j, int r, bool wait)
{
	if (r == 0 && j->answer)
		(void)j->answer(f, j, NULL);
	return r == -EAGAIN && wait ? late_run(f, c, j, true) : r;
}

static ssize_t whole_file(struct fs *f, struct call *c, struct handle *h, uint32_t type, bool wait)
{
	struct job j = { .run = run_flock, .handles = { h }, .fd = { h->fd } };
	int r;

	if (type != F_RDLCK && type != F_WRLCK && type != F_UNLCK)
		return -EINVAL;
	j.flags = type == F_RDLCK ? LOCK_SH : type == F_WRLCK ? LOCK_EX : LOCK_UN;
	j.answer = type == F_UNLCK ? NULL : locked;
	r = flock_again(&j);
	return try_then_wait(f, c, &j, r, wait);
}

static struct flock range_of(const struct job *j)
{
	return (struct flock) { .l_type = j->lock_type,
				.l_whence = SEEK_SET,
				.l_start = (off_t)j->off[0],
				.l_len = (off_t)j->len };
}

/* Databases lock ranges: see entry.c for the names beside them. */
static ssize_t range_locked(struct fs *f, struct job *j, void *body)
{
	struct node *dir = j->handles[0]->node->parent;

	if (dir)
		dir->shared = true;
	return locked(f, j, body);
}

static int range_wait(struct job *j)
{
	struct flock fl = range_of(j);

	return fcntl(j->fd[0], F_OFD_SETLKW, &fl) < 0 ? -errno : 0;
}

static int range_again(struct job *j)
{
	struct flock fl = range_of(j);

	return fcntl(j->fd[0], F_OFD_SETLK, &fl) < 0 ? -errno : 0;
}

static int run_range(struct job *j)
{
	return worker_wait(j, range_wait, range_again);
}

static ssize_t set(struct fs *f, struct call *c, bool wait)
{
	const struct fuse_lk_in *in = c->m.arg;
	struct job j = { .run = run_range };
	struct flock fl;
	int r = handle_of(f, c, in, &j.handles[0]);

	if (r < 0)
		return r;
	if (in->lk_flags & FUSE_LK_FLOCK)
		return whole_file(f, c, j.handles[0], in->lk.type, wait);
	r = to_flock(&in->lk, &fl);
	if (r < 0)
		return r;
	if (in->lk.type == F_UNLCK && !lock_get(&f->locks, c->n, in->owner))
		return 0;
	r = owner_of(f, c, in->owner, j.handles[0], &j.owner);
	if (r < 0)
		return r;
	j.fd[0] = j.owner->fd;
	j.lock_type = fl.l_type;
	j.off[0] = (uint64_t)fl.l_start;
	j.len = (uint64_t)fl.l_len;
	j.answer = in->lk.type == F_UNLCK ? NULL : range_locked;
	r = range_again(&j);
	if (r == -EACCES)
		r = -EAGAIN;
	return try_then_wait(f, c, &j, r, wait);
}

ssize_t op_setlk(struct fs *f, struct call *c)
{
	return set(f, c, false);
}

ssize_t op_setlkw(struct fs *f, struct call *c)
{
	return set(f, c, true);
}
