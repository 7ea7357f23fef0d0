/* Looking again.
 *
 * A request for a file that is not what has the name by now is answered with ESTALE, and the guest's kernel looks the
 * name up anew and does the whole call once more; a second ESTALE is the program's. On the host the name may be replaced
 * again in between: git's index is, many times a second. So what that lookup finds is held, and what the call
 * then wants of it is done with that file whatever happened to the name: it had the name after the program asked, which
 * is all that an open() or a stat() promises.
 *
 * Several programs may be looking for one name at once, so each lookup holds what it found, until the file is
 * opened, AGAIN_NS later, or when the places are used up. */
#include "workspace/again.h"

#include <fcntl.h>

#include "io/fd.h"
#include "workspace/place.h"

#define AGAIN_NS \
	5000000000 /* from one answer to the guest's next request: much, on a host that is busy */

static void drop(struct fs *f, struct again *a)
{
	if (!a->used)
		return;
	a->fd = fd_close(a->fd);
	a->used = false;
	f->n_again--;
}

/* A place for this name, in turn. */
static struct again *take(struct fs *f, uint64_t parent, const char *name, uint64_t until)
{
	struct again *a = &f->again[f->again_next];

	f->again_next = (f->again_next + 1) % AGAIN_MAX;
	drop(f, a);
	*a = (struct again) { .used = true, .fd = -1, .parent = parent, .until = until };
	(void)snprintf(a->name, sizeof(a->name), "%s", name);
	f->n_again++;
	return a;
}

static bool is(const struct again *a, uint64_t parent, const char *name)
{
	return a->used && a->parent == parent && streq(a->name, name);
}

void again_stale(struct fs *f, const struct node *parent, const char *name)
{
	uint64_t until = fd_now_ns() + AGAIN_NS;
	bool known = false;

	for (size_t i = 0; i < AGAIN_MAX; i++) {
		struct again *a = &f->again[i];

		if (a->used && a->until + AGAIN_NS < until)
			drop(f, a);
		if (!is(a, node_id(parent), name))
			continue;
		a->until = until;
		known = true;
	}
	if (!known)
		(void)take(f, node_id(parent), name, until);
}

/* Where to hold what a lookup of this name finds; NULL: nobody was told to look. */
static struct again *place_for(struct fs *f, uint64_t parent, const char *name)
{
	uint64_t now = fd_now_ns(), until = 0;

	for (size_t i = 0; i < AGAIN_MAX; i++) {
		struct again *a = &f->again[i];

		if (a->used && a->until < now)
			drop(f, a);
		if (!is(a, parent, name))
			continue;
		if (a->fd < 0)
			return a;
		until = MAX(until, a->until);
	}
	return until ? take(f, parent, name, until) : NULL;
}

int again_lookup(struct fs *f, const struct node *parent, const char *name, int dir,
		 struct statx *ret, struct again **ret_slot)
{
	struct again *a = f->n_again ? place_for(f, node_id(parent), name) : NULL;
	_close_ int fd = -1;
	int r;

	if (!a)
		return 1;
	fd = place_openat(f, dir, name, O_PATH, 0);
	r = fd < 0 ? fd : place_statx(fd, NULL, ret);
	if (r < 0)
		return r;
	a->fd = take_fd(&fd);
	a->node = 0;
	*ret_slot = a;
	return 0;
}

void again_found(struct again *a, const struct node *n)
{
	a->node = node_id(n);
}

static struct again *held(struct fs *f, const struct node *n)
{
	for (size_t i = 0; i < AGAIN_MAX && f->n_again; i++)
		if (f->again[i].used && f->again[i].fd >= 0 && f->again[i].node == node_id(n))
			return &f->again[i];
	return NULL;
}

int again_peek(struct fs *f, const struct node *n)
{
	const struct again *a = held(f, n);

	return a ? a->fd : -1;
}

int again_take(struct fs *f, const struct node *n)
{
	struct again *a = held(f, n);
	int fd = a ? take_fd(&a->fd) : -1;

	if (a)
		drop(f, a);
	return fd;
}

void again_drop_all(struct fs *f)
{
	for (size_t i = 0; i < AGAIN_MAX; i++)
		drop(f, &f->again[i]);
}
