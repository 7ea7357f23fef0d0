/* Watching.
 *
 * The working directory is /proc/self/fd (fs_new()), so that a directory is named to inotify by its descriptor's number.
 *
 * The host's kernel tells us of our own work for the guest too, and the guest's kernel has told its watchers of
 * that already: doing it again would make a dev server build twice. Events do not say who caused them. So what was
 * done through us is remembered for a second, by folder and name, and an event that fits is no news. The
 * memory is a table without chains: what falls out of it is told twice, at worst. */
#include "workspace/watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "io/fd.h"
#include "wire/msg.h"
#include "workspace/place.h"

#define SLOTS    16384U /* a power of two, well above WATCH_MAX */
#define OWN_MAX  4096U  /* likewise, of names */
#define OWN_NS   1000000000U
#define READ_MAX 16384

#define MASK \
	(IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | \
	 IN_ONLYDIR | IN_EXCL_UNLINK)

/* A watched folder, found by inotify's number for it. */
struct watch {
	uint64_t node; /* its number, which is not used again */
	struct node_key key;
	uint32_t share; /* its id */
	int wd;         /* 0: free */
	uint32_t used;  /* when it was listed last */
};

struct own {
	uint64_t what; /* folder and name */
	uint64_t until;
};

struct watches {
	int fd;
	uint32_t n, clock;
	struct watch slot[SLOTS];
	struct own own[OWN_MAX];
};

struct watches *watch_new(void)
{
	struct watches *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	return w->fd < 0 ? watch_free(w) : w;
}

struct watches *watch_free(struct watches *w)
{
	if (w)
		(void)fd_close(w->fd);
	free(w);
	return NULL;
}

int watch_fd(const struct watches *w)
{
	return w ? w->fd : -1;
}

/* The slot of this number, or the free one where it would be. */
static struct watch *find(struct watches *w, int wd)
{
	uint32_t at = (uint32_t)wd * 2654435761U;

	for (uint32_t i = 0; i < SLOTS; i++) {
		struct watch *s = &w->slot[(at + i) % SLOTS];

		if (!s->wd || s->wd == wd)
			return s;
	}
	return NULL; /* never: there are more slots than watches */
}

/* Take a slot out; those behind it that were pushed on move up. */
static void take_out(struct watches *w, struct watch *s)
{
	uint32_t at = (uint32_t)(s - w->slot);

	*s = (struct watch) { 0 };
	w->n--;
	for (at = (at + 1) % SLOTS; w->slot[at].wd; at = (at + 1) % SLOTS) {
		struct watch moved = w->slot[at];

		w->slot[at] = (struct watch) { 0 };
		*find(w, moved.wd) = moved;
	}
}

static void forget(struct watches *w, struct watch *s)
{
	(void)inotify_rm_watch(w->fd, s->wd);
	take_out(w, s);
}

/* The node of a watched folder; NULL: the guest has forgotten it. A guest that keeps no entries (entry.c) forgets a
 * folder as soon as it is closed, and may know it by another number a moment later. */
static const struct node *node_of(struct fs *f, struct watch *s)
{
	const struct node *n = node_get(&f->nodes, s->node);
	const struct share *share = n ? NULL : share_by_id(&f->shares, s->share);

	if (share)
		n = node_by_key(&f->nodes, share, &s->key);
	if (n)
		s->node = node_id(n);
	return n && n->share && !n->share->dead ? n : NULL;
}

/* Half of those that were listed longest ago, and those that the guest has forgotten. */
static void make_room(struct fs *f)
{
	struct watches *w = f->watches;
	uint32_t old = w->clock - w->n / 2;

	for (uint32_t i = 0; i < SLOTS; i++)
		while (w->slot[i].wd &&
		       (!node_of(f, &w->slot[i]) || (int32_t)(w->slot[i].used - old) < 0))
			forget(w, &w->slot[i]);
}

void watch_dir(struct fs *f, const struct node *n, int fd)
{
	struct watches *w = f->watches;
	struct watch *s;
	char name[12];
	int wd;

	if (!w || !f->cfg.changed || !n->share)
		return;
	if (w->n >= WATCH_MAX)
		make_room(f);
	(void)snprintf(name, sizeof(name), "%d", fd);
	wd = inotify_add_watch(w->fd, name, MASK);
	if (wd <= 0)
		return; /* the user's limit: what is watched stays so */
	s = find(w, wd);
	if (!s)
		return;
	w->n += !s->wd;
	*s = (struct watch) { .node = node_id(n),
			      .key = n->key,
			      .share = n->share->id,
			      .wd = wd,
			      .used = ++w->clock };
}

/* ---- our own work ---- */

static uint64_t mix(uint64_t folder, const char *name)
{
	uint64_t h = folder * 0x9e3779b97f4a7c15U;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3U;
	return h | 1;
}

static struct own *own_slot(struct watches *w, uint64_t what)
{
	return &w->own[(what >> 20) % OWN_MAX];
}

static void own(struct watches *w, const struct node *folder, const char *name)
{
	uint64_t what;

	if (!folder || !name)
		return;
	what = mix(node_id(folder), name);
	*own_slot(w, what) = (struct own) { what, fd_now_ns() + OWN_NS };
}

static void own_node(struct watches *w, const struct node *n)
{
	if (n && n->parent)
		own(w, n->parent, node_name(n));
}

static void own_rename(struct fs *f, const struct call *c, uint64_t newdir)
{
	own(f->watches, c->n, c->m.name);
	own(f->watches, node_get(&f->nodes, newdir), c->m.name2);
}

void watch_own(struct fs *f, const struct call *c)
{
	struct watches *w = f->watches;

	if (!w || !w->n)
		return;
	switch (c->m.h.opcode) {
	case FUSE_CREATE:
	case FUSE_MKNOD:
	case FUSE_MKDIR:
	case FUSE_SYMLINK:
	case FUSE_UNLINK:
	case FUSE_RMDIR:
		own(w, c->n, c->m.name);
		break;
	case FUSE_LINK:
		own(w, c->n, c->m.name);
		own_node(w,
			 node_get(&f->nodes, ((const struct fuse_link_in *)c->m.arg)->oldnodeid));
		break;
	case FUSE_RENAME:
		own_rename(f, c, ((const struct fuse_rename_in *)c->m.arg)->newdir);
		break;
	case FUSE_RENAME2:
		own_rename(f, c, ((const struct fuse_rename2_in *)c->m.arg)->newdir);
		break;
	case FUSE_WRITE:
	case FUSE_SETATTR:
	case FUSE_FALLOCATE:
	case FUSE_SETXATTR:
	case FUSE_REMOVEXATTR:
		own_node(w, c->n);
		break;
	case FUSE_OPEN:
		if (((const struct fuse_open_in *)c->m.arg)->flags & O_TRUNC)
			own_node(w, c->n);
		break;
	case FUSE_COPY_FILE_RANGE:
		own_node(w,
			 node_get(&f->nodes,
				  ((const struct fuse_copy_file_range_in *)c->m.arg)->nodeid_out));
		break;
	default:
		break;
	}
}

static bool is_own(struct watches *w, const struct node *folder, const char *name)
{
	uint64_t what = mix(node_id(folder), name);
	const struct own *o = own_slot(w, what);

	return o->what == what && fd_now_ns() < o->until;
}

/* ---- news ---- */

static uint8_t kind_of(uint32_t mask)
{
	if (mask & (IN_CREATE | IN_MOVED_TO))
		return CHANGED_CREATED;
	if (mask & (IN_DELETE | IN_MOVED_FROM))
		return CHANGED_DELETED;
	return mask & IN_MODIFY ? CHANGED_MODIFIED : CHANGED_ATTRIBUTES;
}

static void tell(struct fs *f, const struct inotify_event *e)
{
	struct watches *w = f->watches;
	struct watch *s = find(w, e->wd);
	struct fs_change change = { .kind = kind_of(e->mask), .dir = e->mask & IN_ISDIR };
	const struct node *n;

	if (!s || !s->wd)
		return;
	if (e->mask & IN_IGNORED) { /* the folder is gone */
		take_out(w, s);
		return;
	}
	n = node_of(f, s);
	if (!n) {
		forget(w, s);
		return;
	}
	if (!e->len || is_own(w, n, e->name) ||
	    place_path(n, e->name, f->path, sizeof(f->path)) < 0)
		return;
	change.share = n->share->id;
	change.path = f->path;
	f->cfg.changed(f->cfg.refused_arg, &change);
}

void watch_read(struct fs *f)
{
	_Alignas(struct inotify_event) char bytes[READ_MAX];
	ssize_t n = f->watches ? read(f->watches->fd, bytes, sizeof(bytes)) : 0;
	ssize_t at = 0;

	while (at < n) {
		const struct inotify_event *e = (const struct inotify_event *)(bytes + at);

		if (e->wd >= 0)
			tell(f, e);
		at += (ssize_t)sizeof(*e) + e->len;
	}
}
