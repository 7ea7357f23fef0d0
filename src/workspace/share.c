/* A list: there are few shares, and they come and go seldom. */
#include "workspace/share.h"

#include "io/fd.h"

static void free_if_done(struct share *s)
{
	if (!s->dead || s->nodes)
		return;
	free(s->path);
	free(s);
}

int share_new(struct share_list *l, uint32_t id, unsigned flags, int fd, const char *path,
	      struct share **ret)
{
	struct share *s;

	if (share_by_id(l, id))
		return -EEXIST;
	if (l->n >= SHARE_MAX)
		return -ENOSPC;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	*s = (struct share) { .id = id, .flags = flags, .path = strdup(path), .fd = fd };
	if (!s->path) {
		free(s);
		return -ENOMEM;
	}
	s->next = l->first;
	l->first = s;
	l->n++;
	*ret = s;
	return 0;
}

struct share *share_by_id(const struct share_list *l, uint32_t id)
{
	struct share *s;

	for (s = l->first; s && s->id != id; s = s->next)
		;
	return s;
}

struct share *share_by_root(const struct share_list *l, const struct node_key *k)
{
	struct share *s;

	for (s = l->first; s; s = s->next)
		if (s->root && s->root->key.ino == k->ino && s->root->key.dev == k->dev)
			return s;
	return NULL;
}

void share_kill(struct share_list *l, struct share *s)
{
	struct share **at = &l->first;

	while (*at && *at != s)
		at = &(*at)->next;
	if (*at) {
		*at = s->next;
		l->n--;
	}
	s->fd = fd_close(s->fd);
	s->dead = true;
	free_if_done(s);
}

const char *share_below(const struct share *s, const struct share *other)
{
	size_t len = strlen(s->path);
	const char *rest;

	while (len && s->path[len - 1] == '/')
		len--;
	if (strncmp(s->path, other->path, len) != 0)
		return NULL;
	rest = other->path + len;
	if (*rest && *rest != '/')
		return NULL;
	while (*rest == '/')
		rest++;
	return rest;
}

void share_nest(struct share_list *l)
{
	struct share *s, *o;

	for (s = l->first; s; s = s->next) {
		s->nests = false;
		for (o = l->first; o && !s->nests; o = o->next)
			s->nests = o != s && share_below(s, o);
	}
}

void share_node_added(struct share *s)
{
	s->nodes++;
}

void share_node_gone(struct share *s)
{
	s->nodes--;
	free_if_done(s);
}
