/* Appending. The guest says where it thinks the end is, and other writers may have moved it. So a write
 * of a handle that appends is written where the end is (RWF_APPEND), which the host's kernel settles
 * among all writers; but pages of a shared mapping (FUSE_WRITE_CACHE), which the guest may send by any of
 * the file's handles, go where they belong. For that the host's descriptor itself does not append. */
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "workspace/gitguard.h"
#include "workspace/late.h"
#include "workspace/marks.h"
#include "workspace/ops.h"

#define COPY_MAX   (1U << 30) /* of one COPY_FILE_RANGE: the guest asks for the rest */
#define COPY_SHORT (1U << 20) /* is done at once */
#define ROOM_SHORT (64U << 20)

/* The call's open handle on a regular file. */
static int handle_of(const struct fs *f, const struct node *n, uint64_t fh, struct handle **ret)
{
	struct handle *h = handle_get(&f->handles, n, fh);

	if (!h || h->dir)
		return -EBADF;
	if (h->dead)
		return -ESTALE;
	*ret = h;
	return 0;
}

/* The same, to write. */
static int writable_of(struct fs *f, const struct node *n, uint64_t fh, struct handle **ret)
{
	int r = handle_of(f, n, fh, ret);

	return r < 0 ? r : gitguard_wake(f, *ret);
}

ssize_t op_read(struct fs *f, struct call *c)
{
	const struct fuse_read_in *in = c->m.arg;
	size_t len, n;
	struct handle *h;
	ssize_t r = handle_of(f, c->n, in->fh, &h);

	if (r < 0)
		return r;
	if (in->offset > INT64_MAX)
		return -EINVAL;
	len = MIN(MIN(in->size, FS_MAX_WRITE), c->room);
	n = iov_cut(f->iov, FS_IOV_MAX, c->r->out, c->r->n_out, sizeof(struct fuse_out_header), len,
		    &len);
	r = preadv2(h->fd, f->iov, (int)n, (off_t)in->offset, 0);
	return r < 0 ? -errno : r;
}

static int write_flags(const struct fuse_write_in *in)
{
	int flags = 0;

	if (in->flags & O_APPEND && !(in->write_flags & FUSE_WRITE_CACHE))
		flags |= RWF_APPEND;
	if ((in->flags & O_SYNC) == O_SYNC)
		flags |= RWF_SYNC;
	else if (in->flags & O_DSYNC)
		flags |= RWF_DSYNC;
	return flags;
}

/* Of a file whose changes are judged: first copied, so that what is judged is what is written. */
static ssize_t write_judged(struct fs *f, struct call *c, struct handle *h, size_t skip, size_t len)
{
	const struct fuse_write_in *in = c->m.arg;
	_free_ uint8_t *own = malloc(len + 1);
	int flags = write_flags(in);

	if (!own)
		return -ENOMEM;
	len = iov_get(c->r->in, c->r->n_in, skip, own, len);
	return gitguard_write(f, c->m.op, h, own, len, flags & RWF_APPEND ? UINT64_MAX : in->offset,
			      flags);
}

ssize_t op_write(struct fs *f, struct call *c)
{
	const struct fuse_write_in *in = c->m.arg;
	struct fuse_write_out out = { 0 };
	size_t len, n, skip = sizeof(struct fuse_in_header) + sizeof(*in);
	struct handle *h;
	ssize_t r = writable_of(f, c->n, in->fh, &h);

	if (r < 0)
		return r;
	if (in->offset > INT64_MAX || in->size != c->m.h.len - skip)
		return -EINVAL;
	if (c->room < sizeof(out))
		return -ERANGE;
	len = MIN(in->size, FS_MAX_WRITE);
	r = marks_write(f, c, h, skip, len);
	if (r < 0)
		return r;
	if (gitguard_minds(f, c->n)) {
		r = write_judged(f, c, h, skip, len);
	} else {
		n = iov_cut(f->iov, FS_IOV_MAX, c->r->in, c->r->n_in, skip, len, &len);
		r = pwritev2(h->fd, f->iov, (int)n, (off_t)in->offset, write_flags(in));
		r = r < 0 ? -errno : r;
	}
	if (r < 0)
		return r;
	out.size = (uint32_t)r;
	return call_put(c, &out, sizeof(out));
}

ssize_t op_flush(struct fs *f, struct call *c)
{
	const struct fuse_flush_in *in = c->m.arg;
	struct lock_owner *l = lock_get(&f->locks, c->n, in->lock_owner);

	if (l)
		lock_release(&f->locks, &f->nodes, l);
	return 0;
}

static int run_fsync(struct job *j)
{
	int r = j->flags & FUSE_FSYNC_FDATASYNC ? fdatasync(j->fd[0]) : fsync(j->fd[0]);

	return r < 0 ? -errno : 0;
}

ssize_t op_fsync(struct fs *f, struct call *c)
{
	const struct fuse_fsync_in *in = c->m.arg;
	struct handle *h = handle_get(&f->handles, c->n, in->fh);
	struct job j = { .run = run_fsync, .flags = in->fsync_flags, .handles = { h } };

	if (!h)
		return -EBADF;
	if (h->dead)
		return -ESTALE;
	if (h->fd < 0)
		return 0; /* the root */
	j.fd[0] = h->fd;
	return late_run(f, c, &j, false);
}

static int run_fallocate(struct job *j)
{
	return fallocate(j->fd[0], (int)j->flags, (off_t)j->off[0], (off_t)j->len) < 0 ? -errno : 0;
}

ssize_t op_fallocate(struct fs *f, struct call *c)
{
	const struct fuse_fallocate_in *in = c->m.arg;
	struct handle *h;
	struct job j = {
		.run = run_fallocate, .flags = in->mode, .off = { in->offset }, .len = in->length
	};
	int r = writable_of(f, c->n, in->fh, &h);

	if (r < 0)
		return r;
	if (in->offset > INT64_MAX || in->length > INT64_MAX)
		return -EFBIG;
	if (gitguard_minds(f, c->n))
		return -EOPNOTSUPP; /* programs write instead */
	j.handles[0] = h;
	j.fd[0] = h->fd;
	return in->length > ROOM_SHORT ? late_run(f, c, &j, false) : run_fallocate(&j);
}

ssize_t op_lseek(struct fs *f, struct call *c)
{
	const struct fuse_lseek_in *in = c->m.arg;
	struct fuse_lseek_out out;
	struct handle *h;
	int r = handle_of(f, c->n, in->fh, &h);
	off_t off;

	if (r < 0)
		return r;
	if (in->offset > INT64_MAX || (in->whence != SEEK_DATA && in->whence != SEEK_HOLE))
		return -EINVAL;
	off = lseek(h->fd, (off_t)in->offset, (int)in->whence);
	if (off < 0)
		return -errno;
	out.offset = (uint64_t)off;
	return call_put(c, &out, sizeof(out));
}

static int run_copy(struct job *j)
{
	off_t in = (off_t)j->off[0], out = (off_t)j->off[1];
	ssize_t n = copy_file_range(j->fd[0], &in, j->fd[1], &out, j->len, 0);

	return n < 0 ? -errno : (int)n;
}

static ssize_t answer_copy(struct fs *f, struct job *j, void *body)
{
	struct fuse_write_out out = { .size = (uint32_t)j->result };

	(void)f;
	memcpy(body, &out, sizeof(out));
	return sizeof(out);
}

ssize_t op_copy_file_range(struct fs *f, struct call *c)
{
	const struct fuse_copy_file_range_in *in = c->m.arg;
	struct node *to = node_get(&f->nodes, in->nodeid_out);
	struct job j = { .run = run_copy,
			 .answer = answer_copy,
			 .off = { in->off_in, in->off_out },
			 .len = MIN(in->len, COPY_MAX) };
	int r = handle_of(f, c->n, in->fh_in, &j.handles[0]);

	if (r == 0)
		r = to ? writable_of(f, to, in->fh_out, &j.handles[1]) : -EBADF;
	if (r < 0)
		return r;
	if (gitguard_minds(f, to))
		return -EOPNOTSUPP; /* the guest's kernel reads and writes instead */
	if (in->flags || in->off_in > INT64_MAX || in->off_out > INT64_MAX)
		return -EINVAL;
	j.fd[0] = j.handles[0]->fd;
	j.fd[1] = j.handles[1]->fd;
	if (j.len > COPY_SHORT)
		return late_run(f, c, &j, false);
	j.result = run_copy(&j);
	if (j.result < 0)
		return j.result;
	return call_put(c, f->out, (size_t)answer_copy(f, &j, f->out));
}
