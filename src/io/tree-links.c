/* Names of files by device and inode: chains from a fixed array of heads. */
#include "io/tree-links.h"

enum { HEADS = 1024 };

struct entry {
	struct entry *next;
	dev_t dev;
	ino_t ino;
	uint64_t left; /* names that have not been seen yet */
	char path[];
};

struct tree_links {
	struct entry *head[HEADS];
	struct entry *old; /* whose path the caller may still be reading */
};

static struct entry **find(struct tree_links *l, const struct stat *st)
{
	struct entry **at = &l->head[(st->st_ino ^ st->st_ino >> 10 ^ st->st_dev) % HEADS];

	while (*at && ((*at)->ino != st->st_ino || (*at)->dev != st->st_dev))
		at = &(*at)->next;
	return at;
}

static void add(struct entry **at, const struct stat *st, const char *path)
{
	size_t len = strlen(path) + 1;
	struct entry *n = malloc(sizeof(*n) + len);

	if (!n)
		return;
	*n = (struct entry) { NULL, st->st_dev, st->st_ino, st->st_nlink - 1 };
	memcpy(n->path, path, len);
	*at = n;
}

const char *tree_links_seen(struct tree_links **l, const struct stat *st, const char *path)
{
	struct entry **at, *found;

	if (!*l)
		*l = calloc(1, sizeof(**l));
	if (!*l)
		return NULL;
	at = find(*l, st);
	found = *at;
	if (!found) {
		add(at, st, path);
		return NULL;
	}
	if (--found->left == 0) {
		*at = found->next;
		free((*l)->old);
		(*l)->old = found;
	}
	return found->path;
}

struct tree_links *tree_links_free(struct tree_links *l)
{
	size_t i;

	if (!l)
		return NULL;
	for (i = 0; i < HEADS; i++)
		while (l->head[i]) {
			struct entry *e = l->head[i];

			l->head[i] = e->next;
			free(e);
		}
	free(l->old);
	free(l);
	return NULL;
}
