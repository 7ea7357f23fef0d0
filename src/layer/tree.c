#include "layer/tree.h"

#include <unistd.h>

static int damaged(struct err *e)
{
	return err_set(e, -EINVAL, "the cache's copy of a layer is damaged");
}

/* More bytes behind those that are there. The number of new ones, or -errno. */
static ssize_t more(struct tree *t)
{
	ssize_t k;

	memmove(t->b, t->b + t->off, t->n - t->off);
	t->n -= t->off;
	t->off = 0;
	do {
		k = pread(t->fd, t->b + t->n, TREE_BUFFER - t->n, (off_t)t->at);
	} while (k < 0 && errno == EINTR);
	if (k < 0)
		return -errno;
	if (t->hash)
		hash_add(t->hash, t->b + t->n, (size_t)k);
	t->at += (uint64_t)k;
	t->n += (size_t)k;
	return k;
}

int tree_open(struct tree *t, int fd, struct hash *hash, struct err *e)
{
	size_t n = strlen(LAYER_TREE_MAGIC);
	ssize_t k;

	*t = (struct tree) { .fd = fd, .hash = hash, .b = malloc(TREE_BUFFER) };
	if (!t->b)
		return err_errno(e, -ENOMEM, "cannot read a layer");
	k = more(t);
	if (k < 0)
		return err_errno(e, (int)k, "cannot read a layer");
	if (t->n < n || memcmp(t->b, LAYER_TREE_MAGIC, n) != 0)
		return damaged(e);
	t->off = n;
	return 0;
}

/* Each file lies in the blob behind the one before it. */
static bool in_order(struct tree *t, const struct layer_entry *m)
{
	if (m->kind != LAYER_FILE || !m->size)
		return true;
	if (m->offset < t->blob)
		return false;
	t->blob = (m->offset + m->size + LAYER_BLOCK - 1) / LAYER_BLOCK * LAYER_BLOCK;
	return true;
}

/* Nothing may follow the end. */
static int at_end(struct tree *t, const struct layer_entry *m, struct err *e)
{
	ssize_t k = t->off < t->n ? 1 : more(t);

	if (k < 0)
		return err_errno(e, (int)k, "cannot read a layer");
	if (k > 0 || m->size != t->entries || m->offset < t->blob)
		return damaged(e);
	t->blob = m->offset;
	return 0;
}

int tree_next(struct tree *t, struct layer_entry *ret, struct err *e)
{
	size_t used = 0;
	int ans;

	while ((ans = layer_entry_parse(ret, &used, t->b + t->off, t->n - t->off)) == WIRE_AGAIN) {
		ssize_t k = more(t);

		if (k < 0)
			return err_errno(e, (int)k, "cannot read a layer");
		if (k == 0)
			return damaged(e);
	}
	if (ans != WIRE_OK)
		return damaged(e);
	t->off += used;
	if (ret->kind == LAYER_END)
		return at_end(t, ret, e);
	t->entries++;
	return in_order(t, ret) ? 1 : damaged(e);
}

void tree_done(struct tree *t)
{
	free(take_ptr(t->b));
}
