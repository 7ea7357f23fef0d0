#include "workspace/entry.h"
#include "workspace/ops.h"

ssize_t op_lookup(struct fs *f, struct call *c)
{
	struct fuse_entry_out out;
	int r;

	if (c->n != f->root)
		return entry_put(f, c, c->m.name);
	if (c->room < sizeof(out))
		return -ERANGE;
	r = entry_share(f, c->m.name, &out);
	return r < 0 ? r : call_put(c, &out, sizeof(out));
}

static void forget(struct fs *f, uint64_t id, uint64_t lookups)
{
	struct node *n = node_get(&f->nodes, id);

	if (n)
		node_forget(&f->nodes, n, lookups);
}

ssize_t op_forget(struct fs *f, struct call *c)
{
	const struct fuse_forget_in *in = c->m.arg;

	forget(f, c->m.h.nodeid, in->nlookup);
	return 0;
}

ssize_t op_batch_forget(struct fs *f, struct call *c)
{
	const struct fuse_batch_forget_in *in = c->m.arg;
	struct fuse_forget_one one;
	size_t i, n = MIN(in->count, c->m.data_len / sizeof(one));

	for (i = 0; i < n; i++) {
		memcpy(&one, c->m.data + i * sizeof(one), sizeof(one));
		forget(f, one.nodeid, one.nlookup);
	}
	return 0;
}
