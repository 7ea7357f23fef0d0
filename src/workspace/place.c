/* A node keeps names, not descriptors. To find it, the names from its share's root are joined and the
 * host's kernel walks them in one openat2() that may follow no link and leave no root; what it finds is
 * compared with what the guest knows. A path that is longer than a path may be is walked in pieces. */
#include "workspace/place.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/fd.h"
#include "workspace/again.h"
#include "workspace/attr.h"

#define ALWAYS   (O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
#define TRIES    8 /* of a walk that a rename on the host disturbed */
#define WALK_FOR (RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS)

void place_done(struct place *p)
{
	p->own = fd_close(p->own);
}

static void set(struct place *p, int fd, int own)
{
	p->fd = fd;
	p->own = own;
	(void)snprintf(p->text, sizeof(p->text), "%d", fd);
}

int place_statx(int fd, const char *name, struct statx *ret)
{
	int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (name ? 0 : AT_EMPTY_PATH);

	return statx(fd, name ? name : "", flags, ATTR_MASK, ret) < 0 ? -errno : 0;
}

/* True if a call that failed for want of descriptors may be tried again. */
static bool made_room(struct fs *f)
{
	return (errno == EMFILE || errno == ENFILE) && dircache_evict(&f->dirs);
}

int place_openat(struct fs *f, int dir, const char *name, int flags, mode_t mode)
{
	int fd;

	do
		fd = openat(dir, name, flags | ALWAYS | O_NOFOLLOW, mode);
	while (fd < 0 && made_room(f));
	return fd < 0 ? -errno : fd;
}

int place_reopen(struct fs *f, int fd, int flags)
{
	char text[12];
	int r;

	(void)snprintf(text, sizeof(text), "%d", fd);
	do
		r = openat(f->cfg.proc_fd, text, flags | ALWAYS);
	while (r < 0 && made_room(f));
	return r < 0 ? -errno : r;
}

/* What went wrong on the way down means that the names lead elsewhere now. */
static int walk_error(int err)
{
	return err == ENOENT || err == ENOTDIR || err == ELOOP || err == EXDEV || err == EAGAIN
		       ? -ESTALE
		       : -err;
}

static int open_below(struct fs *f, int dir, const char *path, int flags)
{
	struct open_how how = { .flags = (uint32_t)flags | O_CLOEXEC | O_NOFOLLOW,
				.resolve = WALK_FOR };
	int tries = TRIES;
	long fd;

	if (!(flags & O_PATH))
		how.flags |= ALWAYS;
	do
		fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
	while (fd < 0 && (made_room(f) || (errno == EAGAIN && tries-- > 0)));
	return fd < 0 ? walk_error(errno) : (int)fd;
}

int place_below(struct fs *f, const struct share *s, const char *path, int flags)
{
	return open_below(f, s->fd, path, flags);
}

/* The names from above (not included) to n, joined, at the end of f->path. */
static const char *join(struct fs *f, const struct node *n, const struct node *above)
{
	char *p = f->path + sizeof(f->path) - 1;

	*p = 0;
	for (; n != above; n = n->parent) {
		if (*p)
			*--p = '/';
		p -= n->name_len;
		memcpy(p, node_name(n), n->name_len);
	}
	return p;
}

/* n by its names, own. A path of more than FS_PATH_MAX is as deep in calls as it is in such lengths. */
static int walk(struct fs *f, struct node *n, int flags) /* NOLINT(misc-no-recursion): as said */
{
	const struct share *s = n->share;
	struct node *above = n;
	size_t len = 0;
	_close_ int own = -1;

	for (; above != s->root; above = above->parent) {
		if (above->gone || !above->parent)
			return -ESTALE;
		if (len + above->name_len + 2U > sizeof(f->path))
			break;
		len += above->name_len + 1U;
	}
	if (above == n)
		return open_below(f, s->fd, ".", flags);
	if (above != s->root) {
		own = walk(f, above, O_PATH | O_DIRECTORY);
		if (own < 0)
			return own;
	}
	return open_below(f, own >= 0 ? own : s->fd, join(f, n, above), flags);
}

int place_dir(struct fs *f, struct node *n)
{
	_close_ int fd = -1;
	struct statx s;
	int r;

	if (n->fd >= 0) {
		dircache_touch(&f->dirs, n);
		return n->fd;
	}
	if (!S_ISDIR(n->type))
		return -ENOTDIR;
	if (n->gone)
		return n->handles && n->handles->fd >= 0 ? n->handles->fd : -ESTALE;
	fd = walk(f, n, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return fd;
	r = place_statx(fd, NULL, &s);
	if (r < 0)
		return r;
	if (!attr_is(n, &s))
		return -ESTALE;
	dircache_put(&f->dirs, n, take_fd(&fd));
	return n->fd;
}

/* A descriptor that the node has already, or -1. */
static int at_hand(struct fs *f, struct node *n)
{
	if (n->fd >= 0) {
		dircache_touch(&f->dirs, n);
		return n->fd;
	}
	return n->handles ? n->handles->fd : again_peek(f, n);
}

int place_node(struct fs *f, struct node *n, struct place *ret)
{
	_close_ int own = -1;
	struct statx s;
	int fd = at_hand(f, n), r;

	if (fd < 0 && S_ISDIR(n->type)) {
		fd = place_dir(f, n);
		if (fd < 0)
			return fd;
	}
	if (fd >= 0) {
		set(ret, fd, -1);
		return 0;
	}
	if (n->gone || !n->parent)
		return -ESTALE;
	fd = place_dir(f, n->parent);
	if (fd < 0)
		return fd;
	own = place_openat(f, fd, node_name(n), O_PATH, 0);
	if (own < 0)
		return walk_error(-own);
	r = place_statx(own, NULL, &s);
	if (r < 0)
		return r;
	if (!attr_is(n, &s))
		return -ESTALE;
	set(ret, own, own);
	own = -1;
	return 0;
}

int place_stat(struct fs *f, struct node *n, struct statx *ret)
{
	int fd = at_hand(f, n), r;
	const char *name = NULL;

	/* a descriptor at hand is the file, whatever an overlay says of its birth now */
	if (fd >= 0)
		return place_statx(fd, NULL, ret);
	if (S_ISDIR(n->type)) {
		fd = place_dir(f, n);
	} else {
		if (n->gone || !n->parent)
			return -ESTALE;
		name = node_name(n);
		fd = place_dir(f, n->parent);
	}
	if (fd < 0)
		return fd;
	r = place_statx(fd, name, ret);
	if (r < 0)
		return walk_error(-r);
	return attr_is(n, ret) ? 0 : -ESTALE;
}

/* Where there may be device files, and a name may have come to be one's: opening one has effects. So the
 * file is found first, looked at, and then opened. */
static int open_looked_at(struct fs *f, struct node *n, int flags, struct statx *ret)
{
	_close_ int fd = walk(f, n, O_PATH);
	int r;

	if (fd < 0)
		return fd;
	r = place_statx(fd, NULL, ret);
	if (r < 0)
		return r;
	return attr_is(n, ret) ? place_reopen(f, fd, flags) : -ESTALE;
}

int place_open(struct fs *f, struct node *n, int flags, struct statx *ret)
{
	_close_ int fd = -1;
	int r, by;

	if (!n->gone && !n->pinned && !n->share->nodev && !S_ISDIR(n->type))
		return open_looked_at(f, n, flags, ret);
	if (n->gone || (n->pinned && !S_ISDIR(n->type))) {
		by = at_hand(f, n);
		fd = by < 0 ? -ESTALE : place_reopen(f, by, flags);
	} else {
		fd = walk(f, n, flags);
	}
	if (fd < 0)
		return fd;
	r = place_statx(fd, NULL, ret);
	if (r < 0)
		return r;
	if (!attr_is(n, ret))
		return -ESTALE;
	return take_fd(&fd);
}

ssize_t place_path(const struct node *parent, const char *name, char *dst, size_t max)
{
	size_t at = max - 1, len = name ? strlen(name) : 0;
	const struct node *n;

	if (len + 1 > max)
		return -ENAMETOOLONG;
	at -= len;
	if (name)
		memcpy(dst + at, name, len);
	dst[max - 1] = 0;
	for (n = parent; n->share && n != n->share->root; n = n->parent) {
		if (n->gone || !n->parent)
			return -ESTALE;
		if (at < n->name_len + 1U)
			return -ENAMETOOLONG;
		if (dst[at])
			dst[--at] = '/';
		at -= n->name_len;
		memcpy(dst + at, node_name(n), n->name_len);
	}
	memmove(dst, dst + at, max - at);
	return (ssize_t)(max - 1 - at);
}
