/* A table of names keyed by directory and name: SipHash with a seed of its own, since names are chosen by others. */
#include "layer/nodes.h"

#include <sys/random.h>

#include "wire/copy.h"

enum { CHUNK = 1024 * 1024, TABLE_FIRST = 1024, WALK_MAX = 4 * (WIRE_PATH_MAX + 1) };

struct chunk {
	struct chunk *next;
	size_t used, size;
	uint8_t bytes[] __attribute__((aligned(8)));
};

static void *take(struct nodes *t, size_t n)
{
	struct chunk *c = t->chunks;
	void *p;

	n = (n + 7) & ~(size_t)7;
	if (!c || c->size - c->used < n) {
		size_t size = MAX(n, (size_t)CHUNK);

		c = malloc(sizeof(*c) + size);
		if (!c)
			return NULL;
		*c = (struct chunk) { .next = t->chunks, .size = size };
		t->chunks = c;
	}
	p = c->bytes + c->used;
	c->used += n;
	return memset(p, 0, n);
}

void *nodes_copy(struct nodes *t, const void *p, size_t n)
{
	void *to = take(t, n);

	return to && n ? memcpy(to, p, n) : to;
}

/* ---- the table ---- */

static uint64_t rotate(uint64_t x, int n)
{
	return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

static void sip_add(uint64_t v[4], uint64_t m)
{
	v[3] ^= m;
	sip_round(v);
	v[0] ^= m;
}

static uint64_t hash(const struct nodes *t, const struct node *dir, const char *name, size_t len)
{
	uint64_t v[4] = { t->seed[0] ^ 0x736f6d6570736575, t->seed[1] ^ 0x646f72616e646f6d,
			  t->seed[0] ^ 0x6c7967656e657261, t->seed[1] ^ 0x7465646279746573 };
	uint64_t m = 0;

	sip_add(v, (uintptr_t)dir);
	for (size_t i = 0; i < len; i += 8) {
		m = 0;
		memcpy(&m, name + i, MIN(len - i, (size_t)8));
		sip_add(v, m);
	}
	sip_add(v, len);
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static struct node **slot(const struct nodes *t, const struct node *dir, const char *name,
			  size_t len)
{
	return &t->table[hash(t, dir, name, len) & t->mask];
}

static int grow(struct nodes *t)
{
	size_t size = t->table ? 2 * (t->mask + 1) : TABLE_FIRST, old = t->table ? t->mask + 1 : 0;
	struct node **was = t->table, **table = calloc(size, sizeof(struct node *));

	if (!table)
		return -ENOMEM;
	t->table = table;
	t->mask = size - 1;
	for (size_t i = 0; i < old; i++) {
		struct node *n = was[i];

		while (n) {
			struct node *next = n->chain;
			struct node **to = slot(t, n->parent, n->name, n->len);

			n->chain = *to;
			*to = n;
			n = next;
		}
	}
	free(was);
	return 0;
}

struct node *nodes_find(const struct nodes *t, const struct node *dir, const char *name, size_t len)
{
	struct node *n = *slot(t, dir, name, len);

	while (n && !(n->parent == dir && n->len == len && !memcmp(n->name, name, len)))
		n = n->chain;
	return n;
}

/* ---- nodes ---- */

struct inode *nodes_inode(struct nodes *t, uint8_t kind)
{
	struct inode *i = take(t, sizeof(*i));

	if (i)
		i->kind = kind;
	return i;
}

static struct node *make_node(struct nodes *t, const char *name, size_t len, struct inode *inode)
{
	struct node *n;

	if (t->made >= NODES_MAX)
		return NULL;
	n = take(t, sizeof(*n) + len + 1);
	if (!n)
		return NULL;
	t->made++;
	memcpy(n->name, name, len);
	n->len = (uint8_t)len;
	n->inode = inode;
	return n;
}

struct node *nodes_add(struct nodes *t, struct node *dir, const char *name, size_t len,
		       struct inode *inode)
{
	struct node *n, **to;

	if (t->n > t->mask && grow(t) < 0)
		return NULL;
	n = make_node(t, name, len, inode);
	if (!n)
		return NULL;
	n->parent = dir;
	n->depth = (uint16_t)(dir->depth + 1);
	to = slot(t, dir, name, len);
	n->chain = *to;
	*to = n;
	n->next = dir->inode->first;
	if (n->next)
		n->next->prev = n;
	dir->inode->first = n;
	dir->inode->n++;
	dir->inode->subdirs += inode->kind == LAYER_DIR;
	inode->names++;
	t->n++;
	return n;
}

void nodes_remove(struct nodes *t, struct node *node) /* NOLINT(misc-no-recursion) */
{
	struct node **at = slot(t, node->parent, node->name, node->len);
	struct inode *dir = node->parent->inode;

	/* no deeper than NODES_DEPTH_MAX: a recursion with an end */
	while (node->inode->kind == LAYER_DIR && node->inode->first)
		nodes_remove(t, node->inode->first);
	while (*at != node)
		at = &(*at)->chain;
	*at = node->chain;
	if (node->prev)
		node->prev->next = node->next;
	else
		dir->first = node->next;
	if (node->next)
		node->next->prev = node->prev;
	dir->n--;
	dir->subdirs -= node->inode->kind == LAYER_DIR;
	node->inode->names--;
	t->n--;
}

static struct inode *default_dir(struct nodes *t)
{
	struct inode *i = nodes_inode(t, LAYER_DIR);

	if (i)
		i->mode = 0755;
	return i;
}

int nodes_init(struct nodes *t, struct err *e)
{
	struct inode *top;

	*t = (struct nodes) { 0 };
	if (getrandom(t->seed, sizeof(t->seed), 0) != sizeof(t->seed))
		return err_errno(e, -EIO, "cannot get random bytes");
	top = default_dir(t);
	if (top)
		t->root = make_node(t, "", 0, top);
	if (!t->root || grow(t) < 0)
		return err_errno(e, -ENOMEM, "cannot put the layers together");
	t->root->parent = t->root;
	top->names = 1;
	return 0;
}

void nodes_done(struct nodes *t)
{
	struct chunk *c = t->chunks;

	while (c) {
		struct chunk *next = c->next;

		free(c);
		c = next;
	}
	free(t->table);
	*t = (struct nodes) { 0 };
}

/* ---- paths ---- */

struct walk {
	struct nodes *t;
	const char *path; /* for messages */
	bool make;
	struct node *at;
	unsigned links;
	char rest[WALK_MAX]; /* what is left to go */
};

/* What is left becomes the link's target and then what is left. */
static int follow(struct walk *w, const char *target, const char *rest, struct err *e)
{
	char next[WALK_MAX];
	int n = snprintf(next, sizeof(next), "%s/%s", target, rest);

	if (++w->links > NODES_LINKS_MAX || n < 0 || (size_t)n >= sizeof(next))
		return err_set(e, -ELOOP, "'%.200s' leads through too many symbolic links",
			       w->path);
	if (target[0] == '/')
		w->at = w->t->root;
	memcpy(w->rest, next, (size_t)n + 1);
	return 0;
}

static int enter_missing(struct walk *w, const char *name, size_t len, struct err *e)
{
	struct inode *dir;
	struct node *n = NULL;

	if (!w->make)
		return 1;
	if (len > COPY_NAME_MAX || w->at->depth >= NODES_DEPTH_MAX)
		return err_set(e, -ENAMETOOLONG, "'%.200s' leads to a name that is too long",
			       w->path);
	dir = default_dir(w->t);
	if (dir)
		n = nodes_add(w->t, w->at, name, len, dir);
	if (!n)
		return err_errno(e, -ENOMEM, "the image has too many files");
	w->at = n;
	return 0;
}

/* One component on the way; rest is behind it. */
static int step(struct walk *w, const char *name, size_t len, const char *rest, struct err *e)
{
	struct node *n;

	if (++w->t->steps > NODES_STEPS_MAX)
		return err_set(e, -ELOOP, "the image's symbolic links lead too far about");
	if (!len || (len == 1 && name[0] == '.'))
		return 0;
	if (len == 2 && name[0] == '.' && name[1] == '.') {
		w->at = w->at->parent;
		return 0;
	}
	n = nodes_find(w->t, w->at, name, len);
	if (!n)
		return enter_missing(w, name, len, e);
	if (n->inode->kind == LAYER_SYMLINK)
		return follow(w, n->inode->target, rest, e);
	if (n->inode->kind != LAYER_DIR)
		return w->make ? err_set(e, -ENOTDIR,
					 "'%.200s' is below '%.100s', which is not a directory",
					 w->path, n->name)
			       : 1;
	w->at = n;
	return 0;
}

/* w->rest, to its end, from w->at. */
static int go(struct walk *w, struct err *e)
{
	const char *p = w->rest;

	while (*p) {
		size_t len = strcspn(p, "/");
		const char *rest = p + len + (p[len] == '/');
		unsigned links = w->links;
		int r = step(w, p, len, rest, e);

		if (r != 0)
			return r;
		p = w->links == links ? rest : w->rest;
	}
	return 0;
}

int nodes_walk(struct nodes *t, const char *path, bool make, struct node **ret_dir,
	       const char **ret_name, struct err *e)
{
	struct walk w = { .t = t, .path = path, .make = make, .at = t->root };
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	int r;

	if (n >= sizeof(w.rest))
		return err_errno(e, -ENAMETOOLONG, "a path in a layer");
	memcpy(w.rest, path, n);
	w.rest[n] = '\0';
	r = go(&w, e);
	if (r != 0)
		return r;
	if (w.at->depth >= NODES_DEPTH_MAX)
		return err_set(e, -ENAMETOOLONG, "'%.200s' is too deep", path);
	*ret_dir = w.at;
	*ret_name = slash ? slash + 1 : path;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct node *x = *(struct node *const *)a, *y = *(struct node *const *)b;
	int r = memcmp(x->name, y->name, MIN(x->len, y->len));

	return r ? r : (int)x->len - (int)y->len;
}

int nodes_sort(struct inode *dir)
{
	_free_ struct node **v = NULL;
	struct node *n = dir->first;
	size_t k = 0;

	if (dir->n < 2)
		return 0;
	v = calloc(dir->n, sizeof(struct node *));
	if (!v)
		return -ENOMEM;
	for (; n; n = n->next)
		v[k++] = n;
	qsort(v, k, sizeof(struct node *), by_name);
	for (size_t i = 0; i < k; i++) {
		v[i]->prev = i ? v[i - 1] : NULL;
		v[i]->next = i + 1 < k ? v[i + 1] : NULL;
	}
	dir->first = v[0];
	return 0;
}
