/* The guest may keep what it has cached of a file if the file is as it was when that cache was begun,
 * to the nanosecond. Clocks of file systems are coarse: two changes within one tick look alike, so a
 * file that changed just now says nothing. */
#include <fcntl.h>
#include <unistd.h>

#include "io/fd.h"
#include "workspace/again.h"
#include "workspace/attr.h"
#include "workspace/entry.h"
#include "workspace/gitguard.h"
#include "workspace/make.h"
#include "workspace/ops.h"
#include "workspace/place.h"
#include "workspace/ruling.h"

#define TICK_NS 20000000 /* no coarse clock is coarser */

/* The access mode for the host. Appending is a matter of each write (op-file.c). */
static int access_of(uint32_t flags)
{
	int acc = (int)(flags & O_ACCMODE);

	return acc == O_ACCMODE ? O_RDWR : acc;
}

static uint32_t keep_cache(struct node *n, const struct statx *s, bool truncated)
{
	struct node_seen now = attr_seen(s);
	bool old = (int64_t)fd_real_ns() - now.ctime > TICK_NS;
	bool keep = n->cache_good && old && !truncated && now.size == n->seen.size &&
		    now.mtime == n->seen.mtime && now.ctime == n->seen.ctime;

	n->cache_good = old && !truncated;
	n->seen = now;
	return keep ? FOPEN_KEEP_CACHE : 0;
}

/* *ret_looked: it is what the guest has just been told to look for. */
static int open_node(struct fs *f, struct node *n, uint32_t flags, struct statx *s,
		     bool *ret_looked)
{
	_close_ int kept = again_take(f, n);
	int acc = access_of(flags), fd, r;

	if (kept >= 0) {
		fd = place_reopen(f, kept, acc);
		r = fd < 0 ? fd : place_statx(fd, NULL, s);
		if (r == 0) {
			*ret_looked = true;
			return fd;
		}
		(void)fd_close(fd);
	}
	fd = place_open(f, n, acc, s);

	/* a file that may only be appended to (chattr +a) */
	if (fd == -EPERM && acc != O_RDONLY && flags & O_APPEND)
		fd = place_open(f, n, acc | O_APPEND, s);
	return fd;
}

static bool writes(uint32_t flags)
{
	return access_of(flags) != O_RDONLY || flags & O_TRUNC;
}

/* The guest knows size and time of the file from when it looked, up to a second ago, and reads no further than
 * that size. If they are others by now it is to look again, which ESTALE makes its kernel do: once, so that a file
 * that changes all the time can be opened too. */
static bool must_look_again(struct node *n, const struct statx *s)
{
	struct node_seen now = attr_seen(s);
	bool other = n->told_good && (now.size != n->told.size || now.mtime != n->told.mtime);

	n->stale_said = other && !n->stale_said;
	return n->stale_said;
}

ssize_t op_open(struct fs *f, struct call *c)
{
	const struct fuse_open_in *in = c->m.arg;
	bool trunc = in->flags & O_TRUNC, looked = false;
	_close_ int fd = -1;
	struct handle *h;
	struct statx s;
	struct fuse_open_out out = { 0 };
	int r;

	if (!S_ISREG(c->n->type))
		return S_ISDIR(c->n->type) ? -EISDIR : -EACCES;
	if (writes(in->flags) && c->n->share->flags & FS_SHARE_RO)
		return -EROFS;
	r = ruling_open(f, c->m.op, c->n, writes(in->flags));
	if (r < 0)
		return r;
	fd = open_node(f, c->n, in->flags, &s, &looked);
	if (fd >= 0 && !looked && !trunc && must_look_again(c->n, &s)) {
		(void)fd_close(fd);
		fd = -ESTALE;
	}
	if (fd < 0)
		return fd == -EAGAIN ? -ESTALE : fd; /* a lease is on it: it is being moved */
	if (writes(in->flags) && !ruling_there(f, c->n, fd))
		return -ESTALE;
	h = handle_new(&f->handles, c->n, take_fd(&fd));
	if (!h)
		return -ENFILE;
	h->acc = (uint8_t)access_of(in->flags);
	r = writes(in->flags) ? gitguard_opened(f, c->n, h) : 0;
	if (r == 0 && trunc && ftruncate(h->fd, 0) < 0)
		r = -errno;
	if (r < 0) {
		handle_release(&f->handles, &f->nodes, h);
		return r;
	}
	out.fh = handle_id(h);
	out.open_flags = keep_cache(c->n, &s, trunc);
	return call_put(c, &out, sizeof(out));
}

/* The answer to CREATE and TMPFILE: an entry and a handle. */
struct created {
	struct fuse_entry_out entry;
	struct fuse_open_out open;
};

static ssize_t created(struct fs *f, struct call *c, struct created *out, struct node *n, int fd,
		       uint32_t flags)
{
	struct handle *h = handle_new(&f->handles, n, fd);

	if (!h) {
		node_forget(&f->nodes, n, 1);
		return -ENFILE;
	}
	h->acc = (uint8_t)access_of(flags);
	out->open.fh = handle_id(h);
	n->cache_good = false;
	return call_put(c, out, sizeof(*out));
}

/* It came to be since the guest looked: open what is there, if that is a file. */
static int open_existing(struct fs *f, struct call *c, int dir, uint32_t flags)
{
	_close_ int fd = -1;
	struct statx s;
	int r;

	r = place_statx(dir, c->m.name, &s);
	if (r < 0)
		return r;
	if (!S_ISREG(s.stx_mode) || gitguard_name(f, c->n, c->m.name))
		return -ESTALE; /* the guest looks again, sees what it is, and opens it */
	fd = place_openat(f, dir, c->m.name, access_of(flags), 0);
	if (fd < 0)
		return fd == -ELOOP ? -ESTALE : fd;
	r = place_statx(fd, NULL, &s);
	if (r < 0 || !S_ISREG(s.stx_mode))
		return r < 0 ? r : -ESTALE;
	if (flags & O_TRUNC && ftruncate(fd, 0) < 0)
		return -errno;
	return take_fd(&fd);
}

/* The new file behind fd (taken): its node, by name or, without one, as a file that has none. */
static ssize_t made(struct fs *f, struct call *c, int fd, const char *name)
{
	const struct fuse_create_in *in = c->m.arg;
	struct created out = { 0 };
	_close_ int own = fd;
	struct node *n = NULL;
	struct statx s;
	int r = place_statx(own, NULL, &s);

	if (r == 0)
		r = name ? entry_make(f, c->n, name, &s, &out.entry, &n)
			 : entry_nameless(f, c->n, &s, &out.entry, &n);
	return n ? created(f, c, &out, n, take_fd(&own), in->flags) : r;
}

ssize_t op_create(struct fs *f, struct call *c)
{
	const struct fuse_create_in *in = c->m.arg;
	int dir, fd;

	if (c->room < sizeof(struct created))
		return -ERANGE;
	dir = make_in(f, c, c->m.name);
	if (dir < 0)
		return dir;
	make_umask(f, in->umask);
	fd = place_openat(f, dir, c->m.name, O_CREAT | O_EXCL | access_of(in->flags),
			  in->mode & MAKE_MODE);
	if (fd == -EEXIST && !(in->flags & O_EXCL))
		fd = open_existing(f, c, dir, in->flags);
	return fd < 0 ? fd : made(f, c, fd, c->m.name);
}

ssize_t op_tmpfile(struct fs *f, struct call *c)
{
	const struct fuse_create_in *in = c->m.arg;
	int dir, fd;

	if (c->room < sizeof(struct created))
		return -ERANGE;
	dir = place_dir(f, c->n);
	if (dir < 0)
		return dir;
	make_umask(f, in->umask);
	fd = place_openat(f, dir, ".", O_TMPFILE | access_of(in->flags), in->mode & MAKE_MODE);
	return fd < 0 ? fd : made(f, c, fd, NULL);
}

ssize_t op_release(struct fs *f, struct call *c)
{
	const struct fuse_release_in *in = c->m.arg;
	/* by its number alone: it is due even when the share is gone */
	struct handle *h = handle_get(&f->handles, NULL, in->fh);

	if (!h || node_id(h->node) != c->m.h.nodeid)
		return -EBADF;
	handle_release(&f->handles, &f->nodes, h);
	return 0;
}
