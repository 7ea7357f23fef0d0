/* Set of files by device and inode: open addressing, at most half full. */
#include "io/tree-made.h"

#include "wire/limits.h"

struct slot {
	dev_t dev;
	ino_t ino;  /* 0: never used. No file system hands out inode 0 */
	bool there; /* false with an inode: used once, search on */
};

struct tree_made {
	size_t cap, used; /* cap is a power of two; used counts what was forgotten, too */
	uint64_t added;
	struct slot slot[];
};

static struct slot *find(const struct tree_made *m, dev_t dev, ino_t ino)
{
	uint64_t h = ((uint64_t)dev * 0x9e3779b97f4a7c15 + ino) * 0xff51afd7ed558ccd;
	size_t at = (size_t)(h >> 20) & (m->cap - 1);

	while (m->slot[at].ino && (m->slot[at].ino != ino || m->slot[at].dev != dev))
		at = (at + 1) & (m->cap - 1);
	return (struct slot *)&m->slot[at];
}

static int grow(struct tree_made **m)
{
	size_t cap = *m ? (*m)->cap * 2 : 256, i;
	struct tree_made *bigger = calloc(1, sizeof(*bigger) + cap * sizeof(struct slot));

	if (!bigger)
		return -ENOMEM;
	bigger->cap = cap;
	for (i = 0; *m && i < (*m)->cap; i++) {
		const struct slot *s = &(*m)->slot[i];

		if (!s->there)
			continue;
		*find(bigger, s->dev, s->ino) = *s;
		bigger->used++;
	}
	bigger->added = *m ? (*m)->added : 0;
	free(*m);
	*m = bigger;
	return 0;
}

int tree_made_add(struct tree_made **m, dev_t dev, ino_t ino)
{
	struct slot *s;

	if (*m && (*m)->added >= COPY_LINKS_MAX)
		return 0;
	if ((!*m || (*m)->used * 2 >= (*m)->cap) && grow(m) < 0)
		return -ENOMEM;
	s = find(*m, dev, ino);
	if (!s->ino)
		(*m)->used++;
	*s = (struct slot) { dev, ino, true };
	(*m)->added++;
	return 0;
}

bool tree_made_has(const struct tree_made *m, dev_t dev, ino_t ino)
{
	return m && ino && find(m, dev, ino)->there;
}

void tree_made_forget(struct tree_made *m, dev_t dev, ino_t ino)
{
	if (tree_made_has(m, dev, ino))
		find(m, dev, ino)->there = false;
}

struct tree_made *tree_made_free(struct tree_made *m)
{
	free(m);
	return NULL;
}
