/* Names that come, go and move. The guest's kernel holds the directory, so what it sees is in order; what
 * the host does meanwhile is the host's kernel's to settle. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/fd.h"
#include "workspace/entry.h"
#include "workspace/gitguard.h"
#include "workspace/make.h"
#include "workspace/ops.h"
#include "workspace/place.h"
#include "workspace/ruling.h"

ssize_t op_symlink(struct fs *f, struct call *c)
{
	int dir, r = ruling_symlink(f, c->m.op, c->n, c->m.name);

	if (r < 0)
		return r;
	dir = make_in(f, c, c->m.name);
	if (dir < 0)
		return dir;
	if (symlinkat(c->m.name2, dir, c->m.name) < 0)
		return -errno;
	return entry_put(f, c, c->m.name);
}

ssize_t op_mknod(struct fs *f, struct call *c)
{
	const struct fuse_mknod_in *in = c->m.arg;
	uint32_t type = in->mode & S_IFMT;
	int dir;

	if (type != S_IFREG && type != S_IFIFO && type != S_IFSOCK && type != 0)
		return -EPERM;
	dir = make_in(f, c, c->m.name);
	if (dir < 0)
		return dir;
	make_umask(f, in->umask);
	if (mknodat(dir, c->m.name, type | (in->mode & MAKE_MODE), 0) < 0)
		return -errno;
	return entry_put(f, c, c->m.name);
}

ssize_t op_mkdir(struct fs *f, struct call *c)
{
	const struct fuse_mkdir_in *in = c->m.arg;
	int dir = make_in(f, c, c->m.name);

	if (dir < 0)
		return dir;
	make_umask(f, in->umask);
	if (mkdirat(dir, c->m.name, in->mode & (MAKE_MODE | S_ISGID)) < 0)
		return -errno;
	return entry_put(f, c, c->m.name);
}

ssize_t op_link(struct fs *f, struct call *c)
{
	const struct fuse_link_in *in = c->m.arg;
	struct node *old = node_get(&f->nodes, in->oldnodeid);
	_place_ struct place p = { .own = -1 };
	int dir, r;

	if (!old || !old->share)
		return -ESTALE;
	if (old->share != c->n->share)
		return -EXDEV;
	if (S_ISDIR(old->type))
		return -EPERM;
	r = ruling_change(f, c->m.op, old);
	if (r == 0 && S_ISLNK(old->type))
		r = ruling_symlink(f, c->m.op, c->n, c->m.name);
	if (r == 0)
		r = gitguard_link(f, old, c->n, c->m.name);
	if (r < 0)
		return r;
	r = place_node(f, old, &p);
	if (r < 0)
		return r;
	dir = make_in(f, c, c->m.name);
	if (dir < 0)
		return dir;
	if (linkat(f->cfg.proc_fd, p.text, dir, c->m.name, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	return entry_put(f, c, c->m.name);
}

/* True if this name is the root of another share: it stays where it is. */
static bool is_root(struct fs *f, struct node *parent, int dir, const char *name)
{
	struct statx s;
	struct node_key k;

	if (!parent->share->nests || place_statx(dir, name, &s) < 0)
		return false;
	k = (struct node_key) { .dev = (uint64_t)s.stx_dev_major << 32 | s.stx_dev_minor,
				.ino = s.stx_ino };
	return share_by_root(&f->shares, &k) != NULL;
}

/* True if the root of another share lies below this name. */
static bool root_below(struct fs *f, struct node *parent, const char *name)
{
	const struct share *s;
	char *below = f->rule_path[0];
	const char *rest;
	ssize_t len;

	if (!parent->share->nests)
		return false;
	len = place_path(parent, name, below, sizeof(f->rule_path[0]));
	if (len < 0)
		return true;
	for (s = f->shares.first; s; s = s->next) {
		rest = s == parent->share ? NULL : share_below(parent->share, s);
		if (rest && !strncmp(rest, below, (size_t)len) &&
		    (rest[len] == '/' || rest[len] == 0))
			return true;
	}
	return false;
}

/* The name is not there any more; whoever has the file open keeps it. */
static void gone(struct fs *f, struct node *parent, const char *name)
{
	struct node *n = node_by_name(&f->nodes, parent, name);

	if (!n)
		return;
	node_unplace(&f->nodes, n);
	node_drop(&f->nodes, n);
}

static ssize_t remove_name(struct fs *f, struct call *c, int flag)
{
	int dir, r;

	r = ruling_name(f, c->m.op, c->n, c->m.name);
	if (r < 0)
		return r;
	dir = place_dir(f, c->n);
	if (dir < 0)
		return dir;
	if (is_root(f, c->n, dir, c->m.name))
		return -EBUSY;
	if (unlinkat(dir, c->m.name, flag) < 0)
		return -errno;
	gone(f, c->n, c->m.name);
	return 0;
}

ssize_t op_unlink(struct fs *f, struct call *c)
{
	return remove_name(f, c, 0);
}

ssize_t op_rmdir(struct fs *f, struct call *c)
{
	return remove_name(f, c, AT_REMOVEDIR);
}

struct move {
	struct node *from, *to;
	const char *old, *new;
	int from_fd, to_fd;
	uint32_t flags;
};

/* May this name be taken away or replaced? leaves: what it names goes on elsewhere. */
static int may_go(struct fs *f, struct call *c, struct node *parent, int dir, const char *name,
		  bool leaves)
{
	struct node *n = node_by_name(&f->nodes, parent, name);
	bool is_dir = !n || S_ISDIR(n->type);
	int r = ruling_name(f, c->m.op, parent, name);

	if (r < 0)
		return r;
	if (is_root(f, parent, dir, name) || (leaves && is_dir && root_below(f, parent, name)))
		return -EBUSY;
	return 0;
}

/* May what is at one place lie at the other? *ret_held: see gitguard_moves(). */
static int may_come(struct fs *f, struct call *c, const struct ruling_move *at, int dir, int to,
		    struct gitguard_held *ret_held)
{
	struct ruling_move m = *at;
	struct statx s;
	int r;

	if (!f->cfg.rules)
		return 0;
	r = place_statx(dir, m.old, &s);
	if (r < 0)
		return r;
	m.type = s.stx_mode & S_IFMT;
	r = ruling_moves(f, c->m.op, &m);
	return r < 0 ? r : gitguard_moves(f, c->m.op, &m, dir, to, ret_held);
}

static int may_move(struct fs *f, struct call *c, const struct move *m,
		    struct gitguard_held held[2])
{
	bool both = m->flags & RENAME_EXCHANGE;
	struct ruling_move there = { m->from, m->to, m->old, m->new, 0, both };
	struct ruling_move back = { m->to, m->from, m->new, m->old, 0, both };
	int r = may_go(f, c, m->from, m->from_fd, m->old, true);

	if (r == 0)
		r = may_go(f, c, m->to, m->to_fd, m->new, both);
	if (r == 0)
		r = may_come(f, c, &there, m->from_fd, m->to_fd, &held[0]);
	if (r == 0 && both)
		r = may_come(f, c, &back, m->to_fd, m->from_fd, &held[1]);
	return r;
}

/* Nodes follow the names. */
static void moved(struct fs *f, const struct move *m)
{
	struct node *a = node_by_name(&f->nodes, m->from, m->old);
	struct node *b = node_by_name(&f->nodes, m->to, m->new);
	bool dirs = !a || S_ISDIR(a->type) || (b && S_ISDIR(b->type));

	if (a == b)
		b = NULL;
	if (b) {
		node_ref(b);
		node_unplace(&f->nodes, b);
	}
	/* without memory for the name it is found by the next lookup */
	if (a && node_place(&f->nodes, a, m->to, m->new) < 0)
		node_unplace(&f->nodes, a);
	if (b && m->flags & RENAME_EXCHANGE)
		(void)node_place(&f->nodes, b, m->from, m->old);
	if (b)
		node_unref(&f->nodes, b);
	if (dirs)
		f->rule_epoch++;
}

static ssize_t move(struct fs *f, struct call *c, uint64_t newdir, uint32_t flags)
{
	struct move m = { .from = c->n,
			  .to = node_get(&f->nodes, newdir),
			  .old = c->m.name,
			  .new = c->m.name2,
			  .flags = flags };
	struct gitguard_held held[2] = { { -1, -1 }, { -1, -1 } };
	int r;

	if (flags & ~(uint32_t)(RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	if (!m.to)
		return -ESTALE;
	if (m.to->share != m.from->share)
		return -EXDEV;
	m.to_fd = place_dir(f, m.to);
	m.from_fd = m.to_fd < 0 ? m.to_fd : place_dir(f, m.from);
	if (m.from_fd < 0)
		return m.from_fd;
	r = may_move(f, c, &m, held);
	if (r == 0 && syscall(SYS_renameat2, m.from_fd, m.old, m.to_fd, m.new, flags) < 0)
		r = -errno;
	gitguard_moved(&held[0]);
	gitguard_moved(&held[1]);
	if (r == 0)
		moved(f, &m);
	return r;
}

ssize_t op_rename(struct fs *f, struct call *c)
{
	const struct fuse_rename_in *in = c->m.arg;

	return move(f, c, in->newdir, 0);
}

ssize_t op_rename2(struct fs *f, struct call *c)
{
	const struct fuse_rename2_in *in = c->m.arg;

	return move(f, c, in->newdir, in->flags);
}
