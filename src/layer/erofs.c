/* Two walks over the tree, in the same order: the first gives each inode its place, the second writes. A directory's inode comes before
 * those in it, and the other entries of a directory before its subdirectories, so that what is looked at together lies together.
 *
 * Inodes are found by their place: number of 32 bytes ("nid"). An inode, its attributes and its tail must lie in one block,
 * if it has a tail; one that does not fit begins at the next block. */
#include "layer/erofs.h"

#include <stdio.h>

#include "layer/sink.h"

enum {
	BLOCK = LAYER_BLOCK,
	SUPER = 1024, /* where in block 0 */
	SLOT = 32,
	INODE = 64,
	DIRENT = 12,
	ATTR_HEAD = 12,
	FLAT_PLAIN = 0,
	FLAT_INLINE = 2,
	COMPAT_SUM = 1,
	COMPAT_MTIME = 2,
};

static const uint32_t magic = 0xe0f5e1e2;

/* Types in inodes and in directories. */
static const struct {
	uint16_t mode;
	uint8_t dirent;
} types[] = {
	[LAYER_DIR] = { 0040000, 2 },      [LAYER_FILE] = { 0100000, 1 },
	[LAYER_SYMLINK] = { 0120000, 7 },  [LAYER_CHAR] = { 0020000, 3 },
	[LAYER_BLOCKDEV] = { 0060000, 4 }, [LAYER_FIFO] = { 0010000, 5 },
};

struct writer {
	struct erofs *x;
	struct sink out;
	uint64_t pos;                    /* the first walk: where the next inode may lie */
	uint64_t blocks;                 /* of directories and links, then of all of the image */
	uint64_t base[LAYER_LAYERS_MAX]; /* the first block of each blob */
	uint64_t first;                  /* block behind the inodes */
	uint8_t pass;
	int r;
};

static uint64_t round_up(uint64_t n, uint64_t step)
{
	return (n + step - 1) / step * step;
}

static uint8_t *le16(uint8_t *p, uint16_t v)
{
	*p++ = (uint8_t)v;
	*p++ = (uint8_t)(v >> 8);
	return p;
}

static uint8_t *le32(uint8_t *p, uint32_t v)
{
	return le16(le16(p, (uint16_t)v), (uint16_t)(v >> 16));
}

static uint8_t *le64(uint8_t *p, uint64_t v)
{
	return le32(le32(p, (uint32_t)v), (uint32_t)(v >> 32));
}

/* ---- directories ---- */

/* The entries of a directory in the order of their names, "." and ".." among them. */
struct dirents {
	const struct node *dir, *next; /* the next of its names */
	uint8_t dots;                  /* of "." and "..", how many were given */
};
struct dirent_ {
	const char *name;
	uint8_t len;
	const struct inode *inode;
};

static bool dirents_next(struct dirents *d, struct dirent_ *ret)
{
	static const char *const dots[] = { ".", ".." };
	const struct node *n = d->next;

	if (d->dots < 2 && (!n || strcmp(dots[d->dots], n->name) < 0)) {
		*ret = (struct dirent_) { .name = dots[d->dots], .len = (uint8_t)(d->dots + 1) };
		ret->inode = d->dots ? d->dir->parent->inode : d->dir->inode;
		d->dots++;
		return true;
	}
	if (!n)
		return false;
	*ret = (struct dirent_) { .name = n->name, .len = n->len, .inode = n->inode };
	d->next = n->next;
	return true;
}

/* The entries of the next block: how many, with how many bytes (names too); 0: none are left. d moves behind them. */
static unsigned next_block(struct dirents *d, size_t *ret_bytes)
{
	struct dirents at = *d;
	struct dirent_ x;
	size_t bytes = 0;
	unsigned n = 0;

	while (dirents_next(&at, &x) && bytes + DIRENT + x.len <= BLOCK) {
		bytes += DIRENT + (size_t)x.len;
		*d = at;
		n++;
	}
	*ret_bytes = bytes;
	return n;
}

static uint64_t dir_size(const struct node *dir)
{
	struct dirents d = { .dir = dir, .next = dir->inode->first };
	uint64_t full = 0;
	size_t bytes, last = 0;

	while (next_block(&d, &bytes)) {
		full++;
		last = bytes;
	}
	return (full - 1) * BLOCK + last;
}

/* One block's entries; d moves behind them. */
static void put_block(struct dirents *d, uint8_t block[BLOCK], unsigned n)
{
	size_t names = (size_t)n * DIRENT;
	uint8_t *p = block;
	struct dirent_ x;

	while (n-- && dirents_next(d, &x)) {
		p = le64(p, x.inode->at / SLOT);
		p = le16(p, (uint16_t)names);
		*p++ = types[x.inode->kind].dirent;
		*p++ = 0;
		memcpy(block + names, x.name, x.len);
		names += x.len;
	}
}

/* The blocks from number from up to that before to; padded: each is a whole one. */
static void put_dir(struct writer *w, const struct node *dir, uint64_t from, uint64_t to,
		    bool padded)
{
	struct dirents d = { .dir = dir, .next = dir->inode->first }, ahead = d;
	uint8_t block[BLOCK];
	size_t bytes;
	unsigned n;

	for (uint64_t i = 0; i < to && (n = next_block(&ahead, &bytes)); i++) {
		if (i >= from) {
			memset(block, 0, sizeof(block));
			put_block(&d, block, n);
			sink_bytes(&w->out, block, padded ? BLOCK : bytes);
		}
		d = ahead;
	}
}

/* ---- inodes ---- */

static size_t attrs_size(const struct inode *i)
{
	struct rd r = rd_init(i->attrs, i->attrs_len);
	struct layer_attr a;
	size_t n = 0;

	while (layer_attr_next(&r, &a))
		n += round_up(4 + (uint64_t)a.name_len + a.len, 4);
	return n ? ATTR_HEAD + n : 0;
}

static void put_attrs(struct writer *w, const struct inode *i)
{
	static const uint8_t head[ATTR_HEAD];
	struct rd r = rd_init(i->attrs, i->attrs_len);
	struct layer_attr a;

	if (i->attrs_len)
		sink_bytes(&w->out, head, sizeof(head));
	while (layer_attr_next(&r, &a)) {
		uint8_t x[4] = { a.name_len, a.prefix };

		(void)le16(x + 2, a.len);
		sink_bytes(&w->out, x, sizeof(x));
		sink_bytes(&w->out, a.name, a.name_len);
		sink_bytes(&w->out, a.value, a.len);
		sink_align(&w->out, 4);
	}
}

/* What is not a file's content: of directories and links. */
static uint64_t own_size(const struct node *n)
{
	if (n->inode->kind == LAYER_DIR)
		return dir_size(n);
	return n->inode->kind == LAYER_SYMLINK ? strlen(n->inode->target) : 0;
}

struct shape {
	size_t head;   /* inode and attributes */
	size_t tail;   /* bytes behind them */
	uint64_t size; /* of directories and links */
	uint64_t full; /* blocks elsewhere */
};

static struct shape shape_of(const struct node *n)
{
	struct shape s = { .head = INODE + attrs_size(n->inode), .size = own_size(n) };
	size_t rest = (size_t)(s.size % BLOCK);

	if (rest && s.head + rest <= BLOCK)
		s.tail = rest;
	s.full = s.tail ? s.size / BLOCK : round_up(s.size, BLOCK) / BLOCK;
	return s;
}

/* The first walk: a place. */
static void settle(struct writer *w, const struct node *n)
{
	struct shape s = shape_of(n);
	size_t together = s.tail ? s.head + s.tail : INODE;

	if (w->pos % BLOCK + together > BLOCK)
		w->pos = round_up(w->pos, BLOCK);
	n->inode->at = w->pos;
	n->inode->number = (uint32_t)++w->x->inodes;
	w->pos = round_up(w->pos + s.head + s.tail, SLOT);
	n->inode->block = (uint32_t)w->blocks;
	w->blocks += s.full;
}

static uint32_t nlink_of(const struct inode *i)
{
	return i->kind == LAYER_DIR ? 2 + i->subdirs : i->names;
}

static uint32_t place_of(const struct writer *w, const struct inode *i, const struct shape *s)
{
	if (i->kind == LAYER_CHAR || i->kind == LAYER_BLOCKDEV)
		return (i->minor & 0xff) | i->major << 8 | (i->minor & ~0xffU) << 12;
	if (i->kind == LAYER_FILE)
		return i->size ? (uint32_t)(w->base[i->layer] + i->offset / BLOCK) : 0;
	return s->full ? (uint32_t)(w->first + i->block) : 0;
}

static void put_inode(struct writer *w, const struct inode *i, const struct shape *s)
{
	uint8_t b[INODE] = { 0 }, *p = b;
	size_t attrs = s->head - INODE;

	p = le16(p, (uint16_t)(1 | (s->tail ? FLAT_INLINE : FLAT_PLAIN) << 1));
	p = le16(p, (uint16_t)(attrs ? 1 + (attrs - ATTR_HEAD) / 4 : 0));
	p = le16(p, types[i->kind].mode | i->mode);
	p = le16(p, 0);
	p = le64(p, i->kind == LAYER_FILE ? i->size : s->size);
	p = le32(p, place_of(w, i, s));
	p = le32(p, i->number);
	p = le32(p, i->uid);
	p = le32(p, i->gid);
	p = le64(p, (uint64_t)i->mtime);
	p = le32(p, i->mtime_ns);
	(void)le32(p, nlink_of(i));
	sink_bytes(&w->out, b, sizeof(b));
}

/* The second walk. */
static void put_node(struct writer *w, const struct node *n)
{
	struct shape s = shape_of(n);

	sink_zeros(&w->out, n->inode->at - w->out.pos);
	put_inode(w, n->inode, &s);
	put_attrs(w, n->inode);
	if (s.tail && n->inode->kind == LAYER_DIR)
		put_dir(w, n, s.full, s.full + 1, false);
	else if (s.tail)
		sink_bytes(&w->out, n->inode->target, s.tail);
}

/* And the third, for blocks. */
static void put_blocks(struct writer *w, const struct node *n)
{
	struct shape s = shape_of(n);

	if (s.full && n->inode->kind == LAYER_DIR)
		put_dir(w, n, 0, s.full, true);
	else if (s.full)
		sink_bytes(&w->out, n->inode->target, (size_t)s.size);
	sink_align(&w->out, BLOCK);
}

/* ---- the walk ---- */

/* Each inode once, whatever names it has. */
static void visit(struct writer *w, const struct node *n,
		  void (*fn)(struct writer *w, const struct node *n))
{
	if (n->inode->seen == w->pass)
		return;
	n->inode->seen = w->pass;
	fn(w, n);
}

/* No deeper than NODES_DEPTH_MAX. */
static void walk_dir(struct writer *w, const struct node *dir, /* NOLINT(misc-no-recursion) */
		     void (*fn)(struct writer *w, const struct node *n))
{
	const struct node *n;

	if (w->pass == 1 && nodes_sort(dir->inode) < 0)
		w->r = -ENOMEM;
	visit(w, dir, fn);
	for (n = dir->inode->first; n; n = n->next)
		if (n->inode->kind != LAYER_DIR)
			visit(w, n, fn);
	for (n = dir->inode->first; n; n = n->next)
		if (n->inode->kind == LAYER_DIR)
			walk_dir(w, n, fn);
}

static void walk(struct writer *w, void (*fn)(struct writer *w, const struct node *n))
{
	w->pass++;
	walk_dir(w, w->x->tree->root, fn);
}

/* ---- the image ---- */

/* Castagnoli's, as Linux has it: no inversion at the end. */
static uint32_t crc32c(uint32_t crc, const uint8_t *p, size_t n)
{
	while (n--) {
		crc ^= *p++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (0x82f63b78 & -(crc & 1));
	}
	return crc;
}

static void put_super(struct writer *w)
{
	uint8_t block[BLOCK] = { 0 }, *p = block + SUPER;

	p = le32(p, magic);
	p = le32(p, 0); /* the check sum */
	p = le32(p, COMPAT_SUM | COMPAT_MTIME);
	*p++ = 12; /* the block size is 1 << 12 */
	*p++ = 0;
	p = le16(p, BLOCK / SLOT); /* the root: the first in block 1 */
	p = le64(p, w->x->inodes);
	p = le64(p, 0); /* when it was made */
	p = le32(p, 0);
	p = le32(p, (uint32_t)w->blocks);
	p = le32(p, 0); /* where inodes are counted from */
	p = le32(p, 0); /* no shared attributes */
	memcpy(p, w->x->uuid, sizeof(w->x->uuid));
	(void)le32(block + SUPER + 4, crc32c(UINT32_MAX, block + SUPER, BLOCK - SUPER));
	sink_bytes(&w->out, block, sizeof(block));
}

/* Where blocks of directories, and then the blobs, begin. */
static int settle_blocks(struct writer *w, struct err *e)
{
	w->first = round_up(w->pos, BLOCK) / BLOCK;
	w->blocks += w->first;
	w->x->bytes = w->blocks * BLOCK;
	for (size_t i = 0; i < w->x->n_blobs; i++) {
		w->base[i] = w->blocks;
		w->blocks += w->x->blobs[i] / BLOCK;
		if (w->blocks > UINT32_MAX)
			return err_set(e, -EFBIG, "the image is larger than 16 TiB");
	}
	return 0;
}

static int write_all(struct writer *w, struct err *e)
{
	int r;

	walk(w, settle);
	r = w->r < 0 ? err_errno(e, w->r, "cannot put the layers together") : settle_blocks(w, e);
	if (r < 0)
		return r;
	put_super(w);
	walk(w, put_node);
	sink_align(&w->out, BLOCK);
	walk(w, put_blocks);
	r = sink_end(&w->out);
	if (r == 0 && w->out.pos != w->x->bytes)
		r = -EIO;
	return r < 0 ? err_errno(e, r, "cannot write the image") : 0;
}

int erofs_write(struct erofs *x, struct err *e)
{
	_free_ struct writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w || sink_open(&w->out, x->out) < 0)
		return err_errno(e, -ENOMEM, "cannot write the image");
	w->x = x;
	w->pos = BLOCK;
	x->uuid[6] = (uint8_t)((x->uuid[6] & 15) | 8 << 4); /* version 8: made by its own rules */
	x->uuid[8] = (uint8_t)((x->uuid[8] & 63) | 128);
	r = write_all(w, e);
	sink_done(&w->out);
	return r;
}
