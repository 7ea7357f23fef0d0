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
