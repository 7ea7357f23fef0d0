/* Looking again.
 *
 * A request for a file that is not what has the name by now is answered with ESTALE, and the guest's kernel looks the
 * name up anew and does the whole call once more; a second ESTALE is the program's. On the host the name may be replaced
 * again in between: git's index is, many times a second. So what that lookup finds is held, and what the same
 * call then wants of it is done with that file whatever happened to the name: it had the name after the program asked,
 * which is all that an open() or a stat() promises.
 *
 * The lookups of a call are those of each name on its way; the last one is what counts.
 *
 * A later call must not get it, or a program would open a file that was gone before it asked: SQLite would play back
 * the journal of somebody else's finished transaction. So what is held is for the thread that was told to look, and
 * the guest may not keep the entry, so that each call begins with a lookup, which replaces what is held. */
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

/* The place of the thread at hand, or NULL. */
static struct again *find(struct fs *f)
{
	uint64_t now = f->n_again ? fd_now_ns() : 0;
	struct again *found = NULL;

	for (size_t i = 0; i < AGAIN_MAX && f->n_again; i++) {
		struct again *a = &f->again[i];

		if (a->used && a->until < now)
			drop(f, a);
		if (a->used && a->pid == f->pid)
			found = a;
	}
	return found;
}

void again_stale(struct fs *f)
{
	struct again *a = find(f);

	if (!a) {
		a = &f->again[f->again_next];
		f->again_next = (f->again_next + 1) % AGAIN_MAX;
		drop(f, a);
		*a = (struct again) { .used = true, .fd = -1, .pid = f->pid };
		f->n_again++;
	}
	a->until = fd_now_ns() + AGAIN_NS;
}

int again_lookup(struct fs *f, const char *name, int dir, struct statx *ret,
		 struct again **ret_slot)
{
	struct again *a = find(f);
	_close_ int fd = -1;
	int r;

	if (!a)
		return 1;
	a->fd = fd_close(a->fd);
	a->node = 0;
	fd = place_openat(f, dir, name, O_PATH, 0);
	r = fd < 0 ? fd : place_statx(fd, NULL, ret);
	if (r < 0)
		return r;
	a->fd = take_fd(&fd);
	*ret_slot = a;
	return 0;
}

void again_found(struct again *a, const struct node *n)
{
	a->node = node_id(n);
}

static struct again *held(struct fs *f, const struct node *n)
{
	for (size_t i = 0; i < AGAIN_MAX && f->n_again; i++) {
		struct again *a = &f->again[i];

		if (a->used && a->pid == f->pid && a->fd >= 0 && a->node == node_id(n))
			return a;
	}
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
