/* A number of the host's may be given to a new file as soon as the old one is gone. So a file that has
 * the number of a known one but another birth or type is another one: the old node is left to the
 * handles that the guest still has on it. */
#include "workspace/entry.h"

#include "base/text.h"
#include "workspace/again.h"
#include "workspace/alias.h"
#include "workspace/attr.h"
#include "workspace/place.h"

/* True if n, which has this number, is this file. An overlay gives a file another birth when it is first
 * changed: then an open handle says so too. */
static bool still(struct node *n, const struct statx *s)
{
	struct node_key k = attr_key(s);
	struct statx now;

	if (attr_is(n, s))
		return true;
	if (n->type != (s->stx_mode & S_IFMT) || !n->handles || n->handles->fd < 0)
		return false;
	if (place_statx(n->handles->fd, NULL, &now) < 0 || attr_key(&now).birth != k.birth)
		return false;
	n->key.birth = k.birth;
	return true;
}

static struct node *known(struct fs *f, const struct node *parent, const struct statx *s,
			  bool *ret_root)
{
	struct node_key k = attr_key(s);
	struct node *n;
	struct share *sh;

	*ret_root = true;
	sh = f->shares.n > 1 ? share_by_root(&f->shares, &k) : NULL;
	if (sh)
		return sh->root;
	n = node_by_key(&f->nodes, parent->share, &k);
	*ret_root = n && n == parent->share->root;
	if (n && !*ret_root && !still(n, s)) {
		node_unplace(&f->nodes, n);
		node_unkey(&f->nodes, n);
		node_drop(&f->nodes, n);
		return NULL;
	}
	return n;
}

void entry_links(struct node *n, const struct statx *s)
{
	bool linked = s->stx_nlink > 1 && !S_ISDIR(n->type);

	if (linked != n->linked)
		n->rule_epoch = 0;
	n->linked = linked;
}

/* Who locks a file beside which others come and go (a database's journal) wants to see each of them come and go: in
 * such a directory the guest keeps no entry. */
static void fill(struct fs *f, struct node *n, const struct statx *s, struct fuse_entry_out *ret)
{
	entry_links(n, s);
	n->nlookup++;
	*ret = (struct fuse_entry_out) { .nodeid = node_id(n),
					 .entry_valid = n->parent && n->parent->shared ? 0 : 1,
					 .attr_valid = attr_valid(n) };
	attr_fill(f, n, s, &ret->attr);
}

/* The share that has its place at this name, whatever lies there on the host by now: as with a mount. */
static struct share *placed(struct fs *f, const struct node *parent, const char *name)
{
	struct share *s;
	const char *rest;

	if (!parent->share || !parent->share->nests ||
	    place_path(parent, name, f->path, sizeof(f->path)) < 0)
		return NULL;
	for (s = f->shares.first; s; s = s->next) {
		rest = s == parent->share ? NULL : share_below(parent->share, s);
		if (rest && s->root && streq(rest, f->path))
			return s;
	}
	return NULL;
}

/* The root of a share, by another name than its number. */
static int enter(struct fs *f, struct share *s, struct fuse_entry_out *ret, struct node **ret_node)
{
	struct statx st;
	int r = place_statx(s->fd, NULL, &st);

	if (r < 0)
		return r;
	fill(f, s->root, &st, ret);
	if (ret_node)
		*ret_node = s->root;
	return 0;
}

int entry_make(struct fs *f, struct node *parent, const char *name, const struct statx *s,
	       struct fuse_entry_out *ret, struct node **ret_node)
{
	struct share *other = placed(f, parent, name);
	struct node_key k = attr_key(s);
	struct node *n;
	bool root, fresh;
	int r;

	if (other)
		return enter(f, other, ret, ret_node);
	n = known(f, parent, s, &root);
	fresh = !n;
	if (fresh) {
		n = node_new(&f->nodes, parent->share, &k, (uint16_t)(s->stx_mode & S_IFMT));
		if (!n)
			return -ENFILE;
	}
	if (!root) {
		r = node_place(&f->nodes, n, parent, name);
		if (r < 0) {
			node_drop(&f->nodes, n);
			return r;
		}
		if (fresh && S_ISLNK(n->type))
			alias_met(f, parent, name);
	}
	fill(f, n, s, ret);
	if (ret_node)
		*ret_node = n;
	return 0;
}

int entry_nameless(struct fs *f, struct node *parent, const struct statx *s,
		   struct fuse_entry_out *ret, struct node **ret_node)
{
	bool root;
	struct node_key k = attr_key(s);
	struct node *n = known(f, parent, s, &root);

	if (!n)
		n = node_new(&f->nodes, parent->share, &k, (uint16_t)(s->stx_mode & S_IFMT));
	if (!n)
		return -ENFILE;
	fill(f, n, s, ret);
	*ret_node = n;
	return 0;
}

int entry_share(struct fs *f, const char *name, struct fuse_entry_out *ret)
{
	struct share *s;
	struct statx st;
	uint64_t id;
	int r;

	if (text_u64(name, UINT32_MAX, &id) < 0 || (name[0] == '0' && name[1]))
		return -ENOENT;
	s = share_by_id(&f->shares, (uint32_t)id);
	if (!s)
		return -ENOENT;
	r = place_statx(s->fd, NULL, &st);
	if (r < 0)
		return r;
	fill(f, s->root, &st, ret);
	return 0;
}

ssize_t entry_put(struct fs *f, struct call *c, const char *name)
{
	struct fuse_entry_out out;
	struct again *again = NULL;
	struct node *n;
	struct statx s;
	int dir, r;

	if (c->room < sizeof(out))
		return -ERANGE; /* before anything is counted */
	dir = place_dir(f, c->n);
	if (dir < 0)
		return dir;
	r = again_lookup(f, name, dir, &s, &again);
	if (r > 0)
		r = place_statx(dir, name, &s);
	if (r < 0)
		return r;
	r = entry_make(f, c->n, name, &s, &out, &n);
	if (r < 0)
		return r;
	if (again) {
		again_found(again, n);
		out.entry_valid = 0;
	}
	return call_put(c, &out, sizeof(out));
}
