/* Looking again.
 *
 * An OPEN whose file is not what has the name by now is answered with ESTALE, and the guest's kernel looks the name up
 * anew and tries once more; a second ESTALE is the program's. On the host the name may be replaced again in
 * between: git's index is, many times a second. So what that lookup finds is held, and the OPEN gets it whatever
 * happened to the name: it had the name after the program asked, which is all that an open() promises. */
#include "workspace/again.h"

#include <fcntl.h>

#include "io/fd.h"
#include "workspace/place.h"

void again_stale(struct fs *f, const struct node *n)
{
	struct again *a = &f->again[f->again_next];

	if (!n->parent)
		return;
	f->again_next = (f->again_next + 1) % AGAIN_MAX;
	if (a->used)
		a->fd = fd_close(a->fd);
	*a = (struct again) { .used = true, .fd = -1, .parent = node_id(n->parent) };
	memcpy(a->name, node_name(n), (size_t)n->name_len + 1);
}

int again_lookup(struct fs *f, const struct node *parent, const char *name, int dir,
		 struct statx *ret, struct again **ret_slot)
{
	uint64_t id = node_id(parent);

	for (size_t i = 0; i < AGAIN_MAX; i++) {
		struct again *a = &f->again[i];
		int fd, r;

		if (!a->used || a->parent != id || !streq(a->name, name))
			continue;
		fd = place_openat(f, dir, name, O_PATH, 0);
		r = fd < 0 ? fd : place_statx(fd, NULL, ret);
		a->fd = fd_close(a->fd);
		a->node = 0;
		if (r < 0) {
			(void)fd_close(fd);
			return r;
		}
		a->fd = fd;
		*ret_slot = a;
		return 0;
	}
	return 1;
}

void again_found(struct again *a, const struct node *n)
{
	a->node = node_id(n);
}

int again_take(struct fs *f, const struct node *n)
{
	uint64_t id = node_id(n);

	for (size_t i = 0; i < AGAIN_MAX; i++) {
		struct again *a = &f->again[i];

		if (!a->used || a->node != id || a->fd < 0)
			continue;
		a->used = false;
		return take_fd(&a->fd);
	}
	return -1;
}

void again_drop_all(struct fs *f)
{
	for (size_t i = 0; i < AGAIN_MAX; i++)
		if (f->again[i].used) {
			f->again[i].fd = fd_close(f->again[i].fd);
			f->again[i].used = false;
		}
}
