#include "workspace/reset.h"

#include "workspace/late.h"

void reset_all(struct fs *f)
{
	struct handle *h;
	struct node *n;
	size_t at = 0;

	f->ready = false;
	late_cancel_share(f, NULL);
	lock_release_share(&f->locks, &f->nodes, NULL);
	while ((h = handle_each(&f->handles, &at)))
		if (!h->released)
			handle_release(&f->handles, &f->nodes, h);
	/* the deepest first or not: a parent stays until its last child goes */
	for (at = 0; (n = node_each(&f->nodes, &at));)
		node_forget(&f->nodes, n, UINT64_MAX);
}

void reset_share(struct fs *f, struct share *s)
{
	struct handle *h;
	struct node *n;
	size_t at = 0;

	late_cancel_share(f, s);
	lock_release_share(&f->locks, &f->nodes, s);
	while ((h = handle_each(&f->handles, &at)))
		if (h->node->share == s)
			handle_kill(h);
	for (at = 0; (n = node_each(&f->nodes, &at));)
		if (n->share == s)
			dircache_drop(&f->dirs, n);
}

static bool is_below(const struct node *n, const struct node *top)
{
	while (n && n != top)
		n = n->parent;
	return n != NULL;
}

/* First marked, then cut: cutting takes away the way by which it is seen what lies below. */
void reset_below(struct fs *f, struct node *top)
{
	struct handle *h;
	struct node *n;
	size_t at = 0;

	while ((n = node_each(&f->nodes, &at)))
		n->cut = n->share == top->share && is_below(n, top);
	for (at = 0; (h = handle_each(&f->handles, &at));)
		if (h->node->cut)
			handle_kill(h);
	for (at = 0; (n = node_each(&f->nodes, &at));) {
		if (!n->cut)
			continue;
		n->cut = false;
		node_ref(n);
		dircache_drop(&f->dirs, n);
		node_unkey(&f->nodes, n);
		node_unplace(&f->nodes, n);
		node_unref(&f->nodes, n);
	}
}
