#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "io/fd.h"
#include "workspace/late.h"
#include "workspace/ops.h"
#include "workspace/place.h"
#include "workspace/reset.h"

#define MINOR_MIN       31U /* the first with virtio-fs (Linux 5.4) */
#define MAX_PAGES       (FS_MAX_WRITE / 4096)
#define BACKGROUND      64 /* requests of readahead and the like at a time */
#define BACKGROUND_FULL 48

/* What we can do; what the guest can too is agreed. Not here, on purpose: WRITEBACK_CACHE (the host
 * would see changes late and sizes twice), READDIRPLUS_AUTO (the guest asks for the first 23 names with attributes and for
 * the others without, since a program reads a directory before it looks at what is in it: then each costs a request),
 * EXPORT_SUPPORT, SUBMOUNTS, MAP_ALIGNMENT (no DAX), SETXATTR_EXT, SECURITY_CTX and other extensions of requests. */
static const uint32_t can[] = {
	FUSE_ASYNC_READ,         /* several reads of a file at a time */
	FUSE_POSIX_LOCKS,        /* GETLK, SETLK, SETLKW */
	FUSE_FLOCK_LOCKS,        /* SETLK with FUSE_LK_FLOCK */
	FUSE_ATOMIC_O_TRUNC,     /* OPEN truncates */
	FUSE_BIG_WRITES,         /* WRITE of more than a page */
	FUSE_DONT_MASK,          /* umask comes with the request: default ACLs overrule it */
	FUSE_AUTO_INVAL_DATA,    /* cached data go when size or mtime changed */
	FUSE_DO_READDIRPLUS,     /* names with attributes: op-dir.c */
	FUSE_ASYNC_DIO,          /* O_DIRECT in parallel */
	FUSE_PARALLEL_DIROPS,    /* lookups in one directory in parallel */
	FUSE_HANDLE_KILLPRIV_V2, /* the host's kernel strips setuid: no GETXATTR before each write */
	FUSE_POSIX_ACL,          /* the guest checks ACLs; files without cost nothing */
	FUSE_MAX_PAGES,          /* 1 MiB at a time */
	FUSE_INIT_EXT,           /* 64 flags */
};

ssize_t op_init(struct fs *f, struct call *c)
{
	const struct fuse_init_in *in = c->m.arg;
	struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION,
				     .minor = FUSE_KERNEL_MINOR_VERSION };
	size_t i;

	if (in->major > FUSE_KERNEL_VERSION)
		return call_put(c, &out, sizeof(out)); /* it asks again */
	if (in->major < FUSE_KERNEL_VERSION || in->minor < MINOR_MIN)
		return -EPROTO;
	reset_all(f); /* a guest that begins anew */
	for (i = 0; i < ARRAY_SIZE(can); i++)
		out.flags |= in->flags & can[i];
	out.max_readahead = in->max_readahead;
	out.max_background = BACKGROUND;
	out.congestion_threshold = BACKGROUND_FULL;
	out.max_write = FS_MAX_WRITE;
	out.max_pages = MAX_PAGES;
	out.time_gran = 1;
	f->ready = true;
	return call_put(c, &out, sizeof(out));
}

ssize_t op_destroy(struct fs *f, struct call *c)
{
	(void)c;
	reset_all(f);
	return 0;
}

ssize_t op_interrupt(struct fs *f, struct call *c)
{
	const struct fuse_interrupt_in *in = c->m.arg;

	late_cancel_unique(f, in->unique);
	return 0;
}

static int host_statfs(struct fs *f, struct node *n, struct statfs *ret)
{
	struct node *dir = S_ISDIR(n->type) || !n->parent ? n : n->parent;
	int fd = place_dir(f, dir);

	if (fd == -ESTALE)
		fd = n->share->fd;
	if (fd < 0)
		return fd;
	return fstatfs(fd, ret) < 0 ? -errno : 0;
}

ssize_t op_statfs(struct fs *f, struct call *c)
{
	struct fuse_statfs_out out = { .st = { .bsize = 4096, .frsize = 4096, .namelen = 255 } };
	struct statfs s;
	int r;

	if (c->n == f->root)
		return call_put(c, &out, sizeof(out));
	r = host_statfs(f, c->n, &s);
	if (r < 0)
		return r;
	out.st = (struct fuse_kstatfs) { .blocks = s.f_blocks,
					 .bfree = s.f_bfree,
					 .bavail = s.f_bavail,
					 .files = s.f_files,
					 .ffree = s.f_ffree,
					 .bsize = (uint32_t)s.f_bsize,
					 .namelen = (uint32_t)s.f_namelen,
					 .frsize = (uint32_t)s.f_frsize };
	return call_put(c, &out, sizeof(out));
}

static int run_syncfs(struct job *j)
{
	int r = 0;
	unsigned i;

	for (i = 0; i < j->n_fds; i++)
		if (syncfs(j->fd[i]) < 0 && r == 0)
			r = -errno;
	return r;
}

/* Each host device once, up to JOB_FDS: files of more are synced by FSYNC alone. */
ssize_t op_syncfs(struct fs *f, struct call *c)
{
	struct job j = { .run = run_syncfs, .own_fds = true };
	uint64_t devs[JOB_FDS];
	const struct share *s;
	unsigned i;
	int fd;

	for (s = f->shares.first; s && j.n_fds < JOB_FDS; s = s->next) {
		for (i = 0; i < j.n_fds && devs[i] != s->root->key.dev; i++)
			;
		if (i < j.n_fds)
			continue;
		fd = place_reopen(f, s->fd, O_RDONLY);
		if (fd < 0)
			continue;
		devs[j.n_fds] = s->root->key.dev;
		j.fd[j.n_fds++] = fd;
	}
	return j.n_fds ? late_run(f, c, &j, false) : 0;
}
