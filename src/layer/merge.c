/* Layers one over the other, as OCI says: first a layer's whiteouts, which hide what lower layers have and nothing of its own, so the
 * tree is read twice; then its entries in their order, each replacing what has its name. A directory over a directory replaces
 * what is said of it and leaves what is in it. */
#include "layer/merge.h"

#include "layer/erofs.h"
#include "layer/nodes.h"
#include "layer/tree.h"

struct merge {
	struct nodes t;
	struct hash hash;
	uint64_t blobs[LAYER_LAYERS_MAX];
	size_t layer; /* at hand */
};

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "the image has too many files");
}

/* ---- whiteouts ---- */

static struct node *find(struct merge *m, const char *path, struct err *e, int *ret)
{
	struct node *dir = NULL;
	const char *name = NULL;

	*ret = 0;
	if (!*path)
		return m->t.root;
	*ret = nodes_walk(&m->t, path, false, &dir, &name, e);
	return *ret == 0 ? nodes_find(&m->t, dir, name, strlen(name)) : NULL;
}

static int hide(struct merge *m, const struct layer_entry *x, struct err *e)
{
	int r;
	struct node *n = find(m, x->path, e, &r);

	if (!n)
		return MIN(r, 0);
	if (x->kind == LAYER_WHITEOUT)
		nodes_remove(&m->t, n);
	else if (n->inode->kind == LAYER_DIR)
		while (n->inode->first)
			nodes_remove(&m->t, n->inode->first);
	return 0;
}

/* ---- entries ---- */

static int fill(struct merge *m, struct inode *i, const struct layer_entry *x, struct err *e)
{
	i->mode = x->mode;
	i->layer = (uint16_t)m->layer;
	i->uid = x->uid;
	i->gid = x->gid;
	i->mtime = x->mtime;
	i->mtime_ns = x->mtime_ns;
	i->major = x->major;
	i->minor = x->minor;
	i->size = x->size;
	i->offset = x->offset;
	i->attrs = NULL;
	i->attrs_len = (uint32_t)x->attrs_len;
	if (x->attrs_len)
		i->attrs = nodes_copy(&m->t, x->attrs, x->attrs_len);
	if (x->kind == LAYER_SYMLINK)
		i->target = nodes_copy(&m->t, x->target, strlen(x->target) + 1);
	if ((x->attrs_len && !i->attrs) || (x->kind == LAYER_SYMLINK && !i->target))
		return no_memory(e);
	return 0;
}

/* What a hard link names; never a directory. */
static struct inode *linked(struct merge *m, const struct layer_entry *x, struct err *e)
{
	int r;
	struct node *n = find(m, x->target, e, &r);

	if (r < 0)
		return NULL;
	if (!n) {
		(void)err_set(e, -ENOENT, "'%.200s' links to '%.200s', which is not in the image",
			      x->path, x->target);
		return NULL;
	}
	if (n->inode->kind == LAYER_DIR) {
		(void)err_set(e, -EISDIR, "'%.200s' links to '%.200s', which is a directory",
			      x->path, x->target);
		return NULL;
	}
	return n->inode;
}

static int place(struct merge *m, const struct layer_entry *x, struct inode *inode, struct err *e)
{
	struct node *dir = NULL, *old;
	const char *name = NULL;
	int r = nodes_walk(&m->t, x->path, true, &dir, &name, e);

	if (r < 0)
		return r;
	old = nodes_find(&m->t, dir, name, strlen(name));
	if (old && old->inode == inode)
		return 0; /* a link that is there */
	if (old && x->kind == LAYER_DIR && old->inode->kind == LAYER_DIR)
		return fill(m, old->inode, x, e);
	if (!inode) {
		inode = nodes_inode(&m->t, x->kind);
		if (!inode)
			return no_memory(e);
		r = fill(m, inode, x, e);
		if (r < 0)
			return r;
	}
	if (old)
		nodes_remove(&m->t, old);
	return nodes_add(&m->t, dir, name, strlen(name), inode) ? 0 : no_memory(e);
}

static int add(struct merge *m, const struct layer_entry *x, struct err *e)
{
	struct inode *inode = NULL;

	if (!x->path[0])
		return fill(m, m->t.root->inode, x, e);
	if (x->kind == LAYER_HARD) {
		inode = linked(m, x, e);
		if (!inode)
			return e->code;
	}
	return place(m, x, inode, e);
}

/* ---- layers ---- */

static int pass(struct merge *m, int fd, bool hiding, struct err *e)
{
	struct layer_entry x;
	struct tree t;
	int r = tree_open(&t, fd, hiding ? &m->hash : NULL, e);

	while (r >= 0 && (r = tree_next(&t, &x, e)) > 0) {
		bool hides = x.kind == LAYER_WHITEOUT || x.kind == LAYER_OPAQUE;

		if (hides && hiding)
			r = hide(m, &x, e);
		else if (!hides && !hiding)
			r = add(m, &x, e);
		if (r < 0)
			break;
	}
	m->blobs[m->layer] = t.blob;
	tree_done(&t);
	return r;
}

static int put_together(struct merge *m, const int *trees, size_t n, struct err *e)
{
	for (m->layer = 0; m->layer < n; m->layer++) {
		int r = pass(m, trees[m->layer], true, e);

		if (r == 0)
			r = pass(m, trees[m->layer], false, e);
		if (r < 0)
			return err_ctx(e, "layer %zu", m->layer + 1);
	}
	return 0;
}

int merge_layers(const int *trees, size_t n, int out, struct merge_result *ret, struct err *e)
{
	_free_ struct merge *m = calloc(1, sizeof(*m));
	struct erofs x = { .out = out };
	uint8_t id[HASH_SIZE];
	int r = m ? nodes_init(&m->t, e) : no_memory(e);

	if (r == 0 && hash_begin(&m->hash) < 0)
		r = no_memory(e);
	if (r == 0)
		r = put_together(m, trees, n, e);
	if (r == 0) {
		hash_end(&m->hash, id);
		memcpy(x.uuid, id, sizeof(x.uuid));
		x.tree = &m->t;
		x.blobs = m->blobs;
		x.n_blobs = n;
		r = erofs_write(&x, e);
	}
	if (r == 0)
		*ret = (struct merge_result) { .bytes = x.bytes, .inodes = x.inodes };
	if (m) {
		hash_done(&m->hash);
		nodes_done(&m->t);
	}
	return r;
}
