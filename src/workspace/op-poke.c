/* Pokes: requests of the guest's init that ask for nothing to be done and that this be called a success, so
 * that the guest's kernel tells its watchers what the host has done already (docs/workspace.md).
 *
 * They are told by their group. Any root in the guest could send them: it would fool nobody but its own kernel, about
 * things that are not so, for a second.
 *
 *   to make     LOOKUP finds nothing, so that the kernel goes on to MKNOD or MKDIR, which get what is there
 *   to change   SETATTR is answered with what is there
 *   to remove   LOOKUP finds what is not there any more, so that the kernel goes on to UNLINK or RMDIR: the node
 *               that it was, or one that stands for nothing, if the guest has forgotten it */
#include "wire/msg.h"
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

static ssize_t unseen(struct fs *f, struct call *c)
{
	int r = there(f, c);

	return r == 0 ? -ENOENT : r;
}

/* A node for a name that is gone; it is nowhere, and forgotten like any other. */
static struct node *ghost(struct fs *f, const struct call *c, uint16_t type)
{
	struct node *n = node_by_name(&f->nodes, c->n, c->m.name);
	struct node_key none = { .birth = UINT64_MAX };

	if (n && n->share == c->n->share && n->type == type)
		return n;
	n = node_new(&f->nodes, c->n->share, &none, type);
	if (n)
		node_unkey(&f->nodes, n);
	return n;
}

static ssize_t still_seen(struct fs *f, struct call *c, uint16_t type)
{
	struct fuse_entry_out out = { 0 };
	struct node *n;
	int r = there(f, c);

	if (r != -ENOENT || !c->n->share || c->room < sizeof(out))
		return r == 0 ? -ENOENT : r;
	n = ghost(f, c, type);
	if (!n)
		return -ENFILE;
	n->nlookup++;
	out.nodeid = node_id(n);
	out.attr.ino = node_id(n);
	out.attr.mode = (uint32_t)type | 0600;
	out.attr.nlink = 1;
	return call_put(c, &out, sizeof(out));
}

static ssize_t file_seen(struct fs *f, struct call *c)
{
	return still_seen(f, c, S_IFREG);
}

static ssize_t dir_seen(struct fs *f, struct call *c)
{
	return still_seen(f, c, S_IFDIR);
}

static ssize_t made(struct fs *f, struct call *c)
{
	return entry_put(f, c, c->m.name);
}

static ssize_t removed(struct fs *f, struct call *c)
{
	int r = there(f, c);

	return r == 0 ? -EEXIST : r == -ENOENT ? 0 : r;
}

call_fn *op_poke(uint32_t opcode, uint32_t group)
{
	static const struct {
		uint32_t group, opcode;
		call_fn *fn;
	} pokes[] = {
		{ POKE_MAKE, FUSE_LOOKUP, unseen },
		{ POKE_MAKE, FUSE_MKNOD, made },
		{ POKE_MAKE, FUSE_MKDIR, made },
		{ POKE_CHANGE, FUSE_SETATTR, op_getattr },
		{ POKE_REMOVE, FUSE_LOOKUP, file_seen },
		{ POKE_REMOVE, FUSE_UNLINK, removed },
		{ POKE_REMOVE_DIR, FUSE_LOOKUP, dir_seen },
		{ POKE_REMOVE_DIR, FUSE_RMDIR, removed },
	};

	if (group < POKE_MAKE || group > POKE_REMOVE_DIR)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(pokes); i++)
		if (pokes[i].group == group && pokes[i].opcode == opcode)
			return pokes[i].fn;
	return NULL;
}
