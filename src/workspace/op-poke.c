/* Pokes: requests of the guest's init that ask for nothing to be done and that this be called a success, so
 * that the guest's kernel tells its watchers what the host has done already (docs/workspace.md).
 *
 * They are told by their group. Any root in the guest could send them: it would fool nobody but its own kernel, about
 * things that are not so, for a second.
 *
 *   LOOKUP   what is there is not found, so that the kernel goes on to make it; what is not there but was known is
 *            found, so that the kernel goes on to remove it
 *   MKNOD, MKDIR, UNLINK, RMDIR, SETATTR   are answered with what is there */
#include "workspace/attr.h"
#include "workspace/entry.h"
#include "workspace/ops.h"
#include "workspace/place.h"

static int there(struct fs *f, struct call *c)
{
	struct statx s;
	int dir = place_dir(f, c->n);

	return dir < 0 ? dir : place_statx(dir, c->m.name, &s);
}

static ssize_t poke_lookup(struct fs *f, struct call *c)
{
	struct fuse_entry_out out = { 0 };
	struct node *n = node_by_name(&f->nodes, c->n, c->m.name);
	int r = there(f, c);

	if (r == 0)
		return -ENOENT;
	if (r != -ENOENT || !n || n->share != c->n->share || c->room < sizeof(out))
		return r;
	out.nodeid = node_id(n);
	out.attr.ino = attr_ino(f, n->key.dev, n->key.ino);
	out.attr.mode = (uint32_t)n->type | 0600;
	out.attr.nlink = 1;
	out.attr.size = n->seen.size;
	n->nlookup++;
	return call_put(c, &out, sizeof(out));
}

static ssize_t poke_made(struct fs *f, struct call *c)
{
	return entry_put(f, c, c->m.name);
}

static ssize_t poke_removed(struct fs *f, struct call *c)
{
	int r = there(f, c);

	return r == 0 ? -EEXIST : r == -ENOENT ? 0 : r;
}

call_fn *op_poke(uint32_t opcode)
{
	switch (opcode) {
	case FUSE_LOOKUP:
		return poke_lookup;
	case FUSE_MKNOD:
	case FUSE_MKDIR:
		return poke_made;
	case FUSE_UNLINK:
	case FUSE_RMDIR:
		return poke_removed;
	case FUSE_SETATTR:
		return op_getattr;
	default:
		return NULL;
	}
}
