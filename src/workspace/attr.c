/* Inode numbers: all shares are one file system to the guest, so the host's numbers could meet. The
 * first device seen keeps its numbers; those of the others are mixed with a small index in the bits that
 * inode numbers do not reach. */
#include "workspace/attr.h"

#include "workspace/ruling.h"

#define NS 1000000000

static int64_t ns_of(const struct statx_timestamp *t)
{
	return (int64_t)((uint64_t)t->tv_sec * NS + t->tv_nsec);
}

static uint64_t dev_of(const struct statx *s)
{
	return (uint64_t)s->stx_dev_major << 32 | s->stx_dev_minor;
}

struct node_key attr_key(const struct statx *s)
{
	struct node_key k = { .dev = dev_of(s), .ino = s->stx_ino };

	if (S_ISREG(s->stx_mode) && s->stx_mask & STATX_BTIME)
		k.birth = (uint64_t)ns_of(&s->stx_btime);
	return k;
}

bool attr_is(const struct node *n, const struct statx *s)
{
	struct node_key k = attr_key(s);

	return n->key.ino == k.ino && n->key.dev == k.dev && n->key.birth == k.birth &&
	       n->type == (s->stx_mode & S_IFMT);
}

struct node_seen attr_seen(const struct statx *s)
{
	return (struct node_seen) { .size = s->stx_size,
				    .mtime = ns_of(&s->stx_mtime),
				    .ctime = ns_of(&s->stx_ctime) };
}

uint64_t attr_ino(struct fs *f, uint64_t dev, uint64_t ino)
{
	unsigned i;

	for (i = 0; i < f->n_devs && f->devs[i] != dev; i++)
		;
	if (i == f->n_devs && i < FS_DEVS)
		f->devs[f->n_devs++] = dev;
	if (i == FS_DEVS) /* more devices than indexes: a hash, and the top bit */
		i = 128 | (unsigned)((dev ^ dev >> 32) & 127);
	return ino ^ (uint64_t)i << 56;
}

uint32_t attr_uid(const struct fs *f, uint32_t host_uid)
{
	return host_uid == f->cfg.uid ? FS_AGENT_ID : host_uid;
}

uint32_t attr_gid(const struct fs *f, uint32_t host_gid)
{
	return host_gid == f->cfg.gid ? FS_AGENT_ID : host_gid;
}

static uint32_t rdev(const struct statx *s)
{
	uint32_t major = s->stx_rdev_major, minor = s->stx_rdev_minor;

	return (minor & 0xff) | major << 8 | (minor & ~0xffU) << 12;
}

/* Who locks a file wants to see what others wrote under their lock. The guest's kernel asks for the attributes before
 * it reads from its cache, if it may not believe the ones it has, and drops the cache if the time of the last
 * change is another one. So these are never to be believed for a file that is locked at times, and each lock that
 * is got moves that time by some nanoseconds: clocks of file systems are too coarse to tell two changes apart. */
static void mark_locked(const struct node *n, struct fuse_attr *a)
{
	if (n->lock_gen)
		a->mtimensec ^=
			1 + n->lock_gen % 3; /* stays below a second: its last two bits are 11 */
}

void attr_fill(struct fs *f, struct node *n, const struct statx *s, struct fuse_attr *ret)
{
	*ret = (struct fuse_attr) {
		.ino = attr_ino(f, dev_of(s), s->stx_ino),
		.size = n && ruling_hides(f, n) ? 0 : s->stx_size,
		.blocks = s->stx_blocks,
		.atime = (uint64_t)s->stx_atime.tv_sec,
		.mtime = (uint64_t)s->stx_mtime.tv_sec,
		.ctime = (uint64_t)s->stx_ctime.tv_sec,
		.atimensec = s->stx_atime.tv_nsec,
		.mtimensec = s->stx_mtime.tv_nsec,
		.ctimensec = s->stx_ctime.tv_nsec,
		.mode = s->stx_mode,
		.nlink = s->stx_nlink,
		.uid = attr_uid(f, s->stx_uid),
		.gid = attr_gid(f, s->stx_gid),
		.rdev = rdev(s),
		.blksize = s->stx_blksize,
	};
	if (!n)
		return;
	n->told = attr_seen(s);
	n->told_good = true;
	mark_locked(n, ret);
}

uint64_t attr_valid(const struct node *n)
{
	return n->lock_gen ? 0 : 1;
}

ssize_t attr_put(struct fs *f, const struct call *c, const struct statx *s)
{
	struct fuse_attr_out out = { .attr_valid = attr_valid(c->n) };

	attr_fill(f, c->n, s, &out.attr);
	return call_put(c, &out, sizeof(out));
}
