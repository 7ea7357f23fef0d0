#include "workspace/gitguard.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "io/fd.h"
#include "policy/gitconfig.h"
#include "workspace/place.h"

/* Of size_t, for sums. */
#define CONTENT_MAX ((size_t)GITCONFIG_MAX)

/* A file's bytes; more than git would be asked about counts as too many. */
struct content {
	uint8_t *p;
	size_t n;
};

static void content_done(struct content *c)
{
	free(c->p);
}

#define _content_ _cleanup_(content_done)

/* 0, -EFBIG, -ENOMEM or -errno. */
static int content_read(struct content *c, int fd)
{
	struct iovec v;
	ssize_t n;

	c->p = malloc(CONTENT_MAX + 1);
	if (!c->p)
		return -ENOMEM;
	for (c->n = 0; c->n <= CONTENT_MAX; c->n += (size_t)n) {
		v = (struct iovec) { c->p + c->n, CONTENT_MAX + 1 - c->n };
		n = preadv2(fd, &v, 1, (off_t)c->n, 0);
		if (n < 0)
			return -errno;
		if (!n)
			return 0;
	}
	return -EFBIG;
}

static int judge(struct fs *f, const char *op, const struct share *s, const char *path,
		 const struct content *old, const struct content *new)
{
	struct gitconfig_answer a =
		gitconfig_adds(path, strlen(path), old->p, old->n, new->p, new->n);
	char why[GITCONFIG_KEY_MAX + 128];

	if (!a.adds)
		return 0;
	(void)snprintf(why, sizeof(why), "git configuration: %s%s%.80s", a.key, a.key[0] ? " " : "",
		       a.why);
	return ruling_refuse(f, op, s, path, why);
}

/* The path of a node in f->rule_path[0]. */
static const char *path_of(struct fs *f, const struct node *n)
{
	if (!n->parent ||
	    place_path(n->parent, node_name(n), f->rule_path[0], sizeof(f->rule_path[0])) < 0)
		f->rule_path[0][0] = 0;
	return f->rule_path[0];
}

bool gitguard_minds(struct fs *f, struct node *n)
{
	return ruling_git(f, n) != GITCONFIG_OTHER;
}

static int too_large(struct fs *f, const char *op, struct node *n)
{
	return ruling_refuse(f, op, n->share, path_of(f, n),
			     "git configuration: is too large to be checked");
}

int gitguard_opened(struct fs *f, struct node *n, struct handle *h)
{
	_content_ struct content c = { 0 };
	_close_ int fd = -1;
	int r;

	if (!gitguard_minds(f, n))
		return 0;
	if (f->handles.befores >= GITGUARD_FILES)
		return -ENFILE;
	fd = place_reopen(f, h->fd, O_RDONLY);
	if (fd < 0)
		return fd;
	r = content_read(&c, fd);
	if (r < 0)
		return r == -EFBIG ? too_large(f, "OPEN", n) : r;
	h->before_len = c.n;
	h->before = realloc(take_ptr(c.p), c.n + 1);
	if (!h->before)
		return -ENOMEM;
	f->handles.befores++;
	return 0;
}

/* What it was: when the handle was opened, or now. */
static struct content before(const struct handle *h, const struct content *now)
{
	return h && h->before ? (struct content) { h->before, h->before_len } : *now;
}

static int now_of(struct fs *f, const char *op, struct node *n, struct content *ret)
{
	_place_ struct place p = { .own = -1 };
	_close_ int fd = -1;
	int r = place_node(f, n, &p);

	if (r < 0)
		return r;
	fd = place_reopen(f, p.fd, O_RDONLY);
	if (fd < 0)
		return fd;
	r = content_read(ret, fd);
	return r == -EFBIG ? too_large(f, op, n) : r;
}

static int judge_change(struct fs *f, const char *op, struct node *n, const struct handle *h,
			const struct content *now, const struct content *new)
{
	struct content old = before(h, now);

	return judge(f, op, n->share, path_of(f, n), &old, new);
}

ssize_t gitguard_write(struct fs *f, const char *op, struct handle *h, void *p, size_t n,
		       uint64_t off, int flags)
{
	_content_ struct content now = { 0 }, new = { 0 };
	struct iovec v = { p, n };
	ssize_t r = now_of(f, op, h->node, &now);

	if (r < 0)
		return r;
	if (off == UINT64_MAX)
		off = now.n;
	if (off > CONTENT_MAX || n > CONTENT_MAX - off)
		return too_large(f, op, h->node);
	new.n = MAX(now.n, (size_t)off + n);
	new.p = calloc(1, new.n + 1);
	if (!new.p)
		return -ENOMEM;
	memcpy(new.p, now.p, now.n);
	memcpy(new.p + off, p, n);
	r = judge_change(f, op, h->node, h, &now, &new);
	if (r < 0)
		return r;
	r = pwritev2(h->fd, &v, 1, (off_t)off, flags & ~RWF_APPEND);
	return r < 0 ? -errno : r;
}

int gitguard_size(struct fs *f, const char *op, struct node *n, const struct handle *h,
		  uint64_t size)
{
	_content_ struct content now = { 0 }, new = { 0 };
	int r;

	if (!gitguard_minds(f, n))
		return 0;
	if (size > CONTENT_MAX)
		return too_large(f, op, n);
	r = now_of(f, op, n, &now);
	if (r < 0)
		return r;
	new.n = (size_t)size;
	new.p = calloc(1, new.n + 1);
	if (!new.p)
		return -ENOMEM;
	memcpy(new.p, now.p, MIN(new.n, now.n));
	return judge_change(f, op, n, h, &now, &new);
}

/* The file of this name, or nothing if there is none. */
static int read_name(struct fs *f, int dir, const char *name, struct content *ret)
{
	_close_ int fd = -1;
	struct statx s;
	int r = place_statx(dir, name, &s);

	if (r == -ENOENT || (r == 0 && !S_ISREG(s.stx_mode)))
		return 0;
	if (r < 0)
		return r;
	fd = place_openat(f, dir, name, O_RDONLY, 0);
	return fd < 0 ? fd : content_read(ret, fd);
}

/* A directory under which a file named "config" would be something else to git than it was. */
static int dir_moves(struct fs *f)
{
	enum gitconfig_kind kind[2];
	unsigned i;

	for (i = 0; i < 2; i++) {
		size_t len = strlen(f->rule_path[i]);

		if (len + sizeof("/config") > sizeof(f->rule_path[i]))
			return -EXDEV;
		memcpy(f->rule_path[i] + len, "/config", sizeof("/config"));
		kind[i] = gitconfig_kind(f->rule_path[i], len + 7);
		f->rule_path[i][len] = 0;
	}
	return kind[0] == kind[1] ? 0 : -EXDEV;
}

/* It may not write from now on; where that fails it is one of those that are in the way. */
static void rest(struct fs *f, struct handle *h)
{
	int fd;

	if (h->dir || h->dead || h->busy || h->resting || h->fd < 0 || h->acc == O_RDONLY)
		return;
	fd = place_reopen(f, h->fd, O_RDONLY);
	if (fd < 0)
		return;
	(void)fd_close(h->fd);
	h->fd = fd;
	h->resting = true;
}

int gitguard_wake(struct fs *f, struct handle *h)
{
	_close_ int fd = -1;

	if (!h->resting)
		return 0;
	fd = place_reopen(f, h->fd, h->acc);
	if (fd < 0)
		return fd == -EAGAIN ? -ESTALE : fd;
	if (!ruling_there(f, h->node, fd))
		return -ESTALE;
	(void)fd_close(h->fd);
	h->fd = take_fd(&fd);
	h->resting = false;
	return 0;
}

/* The handle that could not be woken: what its descriptor is of, nobody may open for writing again. Or NULL. */
static struct handle *sleepless(struct fs *f, const struct node *n)
{
	struct handle *h;
	int fd;

	for (h = n ? n->handles : NULL; h; h = h->next)
		if (!h->dir && !h->dead && !h->busy && !h->resting && h->fd >= 0 &&
		    h->acc == O_RDWR)
			break;
	if (!h)
		return NULL;
	fd = place_reopen(f, h->fd, O_WRONLY);
	if (fd >= 0)
		(void)fd_close(fd);
	return fd == -EACCES ? h : NULL;
}

/* h is of this name, which is the file's only one, and nobody else has it open. */
static bool hold_alone(const struct handle *h, int dir, const char *name)
{
	struct statx a, b;

	if (fcntl(h->fd, F_SETLEASE, F_WRLCK) < 0)
		return false;
	if (place_statx(dir, name, &a) == 0 && place_statx(h->fd, NULL, &b) == 0 &&
	    a.stx_ino == b.stx_ino && a.stx_dev_major == b.stx_dev_major &&
	    a.stx_dev_minor == b.stx_dev_minor && b.stx_nlink == 1)
		return true;
	(void)fcntl(h->fd, F_SETLEASE, F_UNLCK);
	return false;
}

/* A lease on it, where there are leases. The descriptor to read it by is borrowed. */
static int hold(struct fs *f, const struct ruling_move *m, int dir, struct gitguard_held *held)
{
	struct node *n = node_by_name(&f->nodes, m->from, m->old);
	/* of two that change places the other one is read after this: no lease may be in its way */
	struct handle *h = m->exchange ? NULL : sleepless(f, n);
	_close_ int fd = -1;

	if (h && hold_alone(h, dir, m->old))
		return held->handle = h->fd;
	fd = place_openat(f, dir, m->old, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	for (h = n ? n->handles : NULL; h; h = h->next)
		rest(f, h);
	if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0 && errno != EINVAL && errno != EOPNOTSUPP)
		return -EXDEV;
	return held->own = take_fd(&fd);
}

void gitguard_moved(struct gitguard_held *held)
{
	if (held->handle >= 0)
		(void)fcntl(held->handle, F_SETLEASE, F_UNLCK);
	(void)fd_close(held->own);
	*held = (struct gitguard_held) { -1, -1 };
}

int gitguard_moves(struct fs *f, const char *op, const struct ruling_move *m, int from_fd,
		   int to_fd, struct gitguard_held *ret_held)
{
	_content_ struct content was = { 0 }, will = { 0 };
	enum gitconfig_kind kind = gitconfig_kind(f->rule_path[1], strlen(f->rule_path[1]));
	const struct share *s = m->to->share;
	_cleanup_(gitguard_moved) struct gitguard_held held = { -1, -1 };
	int r;

	if (m->type == S_IFDIR)
		return dir_moves(f);
	if (kind == GITCONFIG_OTHER)
		return 0;
	if (m->type != S_IFREG)
		return kind == GITCONFIG_MAYBE ? 0
					       : ruling_refuse(f, op, s, f->rule_path[1],
							       "git configuration: no file");
	r = read_name(f, to_fd, m->new, &was);
	if (r == 0)
		r = hold(f, m, from_fd, &held);
	if (r >= 0)
		r = content_read(&will, r);
	if (r == 0)
		r = judge(f, op, s, f->rule_path[1], &was, &will);
	if (r == 0) {
		*ret_held = held;
		held = (struct gitguard_held) { -1, -1 };
	}
	return r == -EFBIG ? ruling_refuse(f, op, s, f->rule_path[1],
					   "git configuration: is too large to be checked")
			   : r;
}

bool gitguard_name(struct fs *f, struct node *parent, const char *name)
{
	ssize_t len;

	if (!f->cfg.rules)
		return false;
	len = place_path(parent, name, f->rule_path[0], sizeof(f->rule_path[0]));
	return len < 0 || gitconfig_kind(f->rule_path[0], (size_t)len) != GITCONFIG_OTHER;
}

int gitguard_link(struct fs *f, struct node *n, struct node *parent, const char *name)
{
	return gitguard_minds(f, n) || gitguard_name(f, parent, name) ? -EXDEV : 0;
}
