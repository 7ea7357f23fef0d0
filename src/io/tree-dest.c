/* The destination of a copy.
 *
 * Only what the user wrote is looked up as open() does. From there on every path comes from the
 * stream, and each is resolved anew from the top by the kernel, which refuses links and anything
 * that leads out (openat2); so it does not matter what the stream, or somebody beside us, has put
 * there before. The last component is never opened: an entry is made under a name that nobody
 * knows and then renamed, and rename() follows nothing. */
#include "io/tree-dest.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/text.h"
#include "io/fd.h"
#include "io/tree-show.h"

enum { DIR_MODE = 0755, TRIES = 100 };

static void init(struct tree_dest *d, const struct tree_recv_opts *o)
{
	*d = (struct tree_dest) { .o = o, .root = -1, .parent = -1 };
	d->file.fd = d->file.parent = -1;
	tree_notes_init(&d->notes);
}

void tree_dest_done(struct tree_dest *d)
{
	tree_dest_drop(d);
	tree_notes_done(&d->notes);
	d->made = tree_made_free(d->made);
	d->root = fd_close(d->root);
	d->parent = fd_close(d->parent);
	free(d->parent_path);
	free(d->shown);
	d->parent_path = d->shown = NULL;
}

static int fault(const struct tree_dest *d, int code, const char *what, const char *path,
		 struct err *e)
{
	return tree_fault(e, code, what, d->shown, path);
}

static int refuse(const struct tree_dest *d, int code, const char *path, const char *why,
		  struct err *e)
{
	char shown[TREE_SHOW_MAX];

	return err_set(e, code, "'%s' %s", tree_show(shown, d->shown, path), why);
}

/* ---- directories ---- */

static int own(const struct tree_recv_opts *o, int fd)
{
	if (o->set_owner && fchownat(fd, "", o->uid, o->gid, AT_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

/* Open the directory `name` in dir; make it if it is missing. A descriptor or -errno. */
static int step(const struct tree_recv_opts *o, int dir, const char *name, mode_t mode,
		bool *ret_made)
{
	_close_ int fd = tree_open_beneath(dir, name, O_PATH | O_DIRECTORY);
	int r;

	*ret_made = false;
	if (fd != -ENOENT)
		return take_fd(&fd);
	if (mkdirat(dir, name, mode) == 0)
		*ret_made = true;
	else if (errno != EEXIST)
		return -errno;
	fd = tree_open_beneath(dir, name, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return fd;
	r = *ret_made ? own(o, fd) : 0;
	return r < 0 ? r : take_fd(&fd);
}

/* As step() for each component of path in turn, which is changed and put together again. */
static int make_dirs(const struct tree_recv_opts *o, int dir, char *path)
{
	_close_ int fd = -1;
	char *at = path;

	for (;;) {
		char *slash = strchr(at, '/');
		bool made;
		int next;

		if (slash)
			*slash = '\0';
		next = step(o, fd < 0 ? dir : fd, at, DIR_MODE, &made);
		if (slash)
			*slash = '/';
		if (next < 0 || !slash)
			return next;
		(void)fd_close(fd);
		fd = next;
		at = slash + 1;
	}
}

/* The directory that holds the entry path, and what it is called there. Borrowed until the next
 * call. */
static int parent_of(struct tree_dest *d, const char *path, int *ret, const char **ret_name,
		     struct err *e)
{
	const char *slash = strrchr(path, '/');
	_free_ char *up = NULL;
	int fd;

	*ret_name = slash ? slash + 1 : *path ? path : d->leaf;
	*ret = d->root;
	if (!slash)
		return 0;
	up = strndup(path, (size_t)(slash - path));
	if (!up)
		return fault(d, -ENOMEM, "cannot make", path, e);
	if (!streq(up, d->parent_path)) {
		fd = tree_open_beneath(d->root, up, O_PATH | O_DIRECTORY);
		if (fd == -ENOENT)
			fd = make_dirs(d->o, d->root, up);
		if (fd == -ELOOP || fd == -ENOTDIR)
			return refuse(d, -ENOTDIR, up, "is not a directory; nothing is put into it",
				      e);
		if (fd < 0)
			return fault(d, fd, "cannot open", up, e);
		(void)fd_close(d->parent);
		free(d->parent_path);
		d->parent = fd;
		d->parent_path = take_ptr(up);
	}
	*ret = d->parent;
	return 0;
}

/* Make the directory `name` in dir, or take the one that is there. */
static int enter(struct tree_dest *d, int dir, const char *name, const struct copy_record *m,
		 int *ret, struct err *e)
{
	bool made;
	_close_ int fd = step(d->o, dir, name, 0700, &made);
	int r;

	if (fd == -ELOOP || fd == -ENOTDIR)
		return refuse(d, -ENOTDIR, m->path,
			      "exists and is not a directory; remove it, or copy to another place",
			      e);
	if (fd < 0)
		return fault(d, fd, "cannot make the directory", m->path, e);
	if (made) {
		/* the top may not be known yet, but it is where the directory is */
		r = tree_notes_add(&d->notes, d->root < 0 ? fd : d->root, m);
		if (r < 0)
			return fault(d, r, "cannot make the directory", m->path, e);
	}
	*ret = take_fd(&fd);
	return 0;
}

int tree_dest_dir(struct tree_dest *d, const struct copy_record *m, struct err *e)
{
	_close_ int fd = -1;
	const char *name;
	int parent, r;

	r = parent_of(d, m->path, &parent, &name, e);
	return r < 0 ? r : enter(d, parent, name, m, &fd, e);
}

/* ---- the place that the user named ---- */

/* Cut "/" and "/." off the end of a path. True if there was any. */
static bool trim(char *path)
{
	size_t n = strlen(path);
	bool cut = false;

	for (;;) {
		if (n > 1 && path[n - 1] == '/')
			n--;
		else if (n > 1 && path[n - 1] == '.' && path[n - 2] == '/')
			n -= n > 2 ? 2 : 1;
		else
			break;
		cut = true;
	}
	path[n] = '\0';
	return cut;
}

/* The directory that holds path, made if it is missing. Here links are followed: this is what the
 * user wrote. */
static int open_parent(struct tree_dest *d, char *path, const char **ret_name, struct err *e)
{
	_close_ int dir = open(path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char *at = path + strspn(path, "/"), *slash;

	for (; dir >= 0 && (slash = strchr(at, '/')); at = slash + 1 + strspn(slash + 1, "/")) {
		int fd, r = 0;
		bool made = false;

		*slash = '\0';
		fd = openat(dir, at, O_PATH | O_DIRECTORY | O_CLOEXEC);
		r = fd < 0 ? -errno : fd;
		if (r == -ENOENT)
			r = step(d->o, dir, at, DIR_MODE, &made);
		if (r < 0)
			tree_fault(e, r, "cannot use the directory", path, "");
		*slash = '/';
		if (r < 0)
			return r;
		(void)fd_close(dir);
		dir = r;
	}
	if (dir < 0)
		return tree_fault(e, -errno, "cannot find", path, "");
	*ret_name = at;
	return take_fd(&dir);
}

/* The destination is a directory that is there. */
static int inside(struct tree_dest *d, int *dir, const char *name, const struct copy_record *top,
		  struct err *e)
{
	if (d->o->content) {
		d->root = take_fd(dir);
		return 0;
	}
	if (top->kind == COPY_DIR)
		return enter(d, *dir, name, top, &d->root, e);
	d->root = take_fd(dir);
	return text_copy(d->leaf, sizeof(d->leaf), name);
}

/* There is nothing of this name, or at least no directory. */
static int instead(struct tree_dest *d, char *path, bool to_dir, const char *name,
		   const struct copy_record *top, struct err *e)
{
	const char *base = NULL;
	_close_ int dir = open_parent(d, path, &base, e), made_dir = -1;
	bool made;

	if (dir < 0)
		return dir;
	if (top->kind == COPY_DIR)
		return enter(d, dir, base, top, &d->root, e);
	if (to_dir) {
		made_dir = step(d->o, dir, base, DIR_MODE, &made);
		if (made_dir < 0)
			return tree_fault(e, made_dir, "cannot make the directory", path, "");
		return inside(d, &made_dir, name, top, e);
	}
	d->root = take_fd(&dir);
	if (text_copy(d->leaf, sizeof(d->leaf), base) < 0)
		return tree_fault(e, -ENAMETOOLONG, "cannot make", path, "");
	return 0;
}

int tree_dest_open(struct tree_dest *d, const char *dest, const struct tree_recv_opts *o,
		   const char *name, const struct copy_record *top, struct err *e)
{
	_free_ char *path = strdup(dest);
	_close_ int dir = -1;
	bool to_dir, wants_dir = top->kind == COPY_DIR;
	struct stat st;
	int r;

	init(d, o);
	if (!path || !*path)
		return err_set(e, -EINVAL, "the destination has no name");
	to_dir = trim(path) || o->to_dir;
	if (!o->content && (strchr(name, '/') || !copy_path_ok(name)))
		return err_set(e, -EINVAL, "'%.200s' is no name for what is copied", name);
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = dir < 0 ? -errno : 0;
	if (asprintf(&d->shown, "%s%s%s", path,
		     dir < 0 || o->content || streq(path, "/") ? "" : "/",
		     dir < 0 || o->content ? "" : name) < 0) {
		d->shown = NULL;
		return err_errno(e, -ENOMEM, "cannot copy to '%.200s'", dest);
	}
	if (dir >= 0)
		return inside(d, &dir, name, top, e);
	if (lstat(path, &st) == 0 && (to_dir || wants_dir))
		return refuse(d, -ENOTDIR, "",
			      "exists and is not a directory; remove it, or copy to another place",
			      e);
	if (r != -ENOENT && r != -ENOTDIR && r != -ELOOP)
		return fault(d, r, "cannot open", "", e);
	if (streq(path, "..") || (strlen(path) > 2 && streq(path + strlen(path) - 3, "/..")))
		return fault(d, r, "cannot open", "", e);
	return instead(d, path, to_dir, name, top, e);
}

/* ---- files and links ---- */

/* May what is called `name` be replaced? Whose it is goes into *f. */
static int may_replace(struct tree_dest *d, int parent, const char *name, const char *path,
		       struct tree_file *f, struct err *e)
{
	struct stat st;

	f->uid = d->o->uid;
	f->gid = d->o->gid;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : fault(d, -errno, "cannot make", path, e);
	if (S_ISDIR(st.st_mode))
		return refuse(d, -EISDIR, path,
			      "is a directory; remove it, or copy to another place", e);
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return refuse(d, -EEXIST, path, "is a device, FIFO or socket; it stays as it is",
			      e);
	if (S_ISREG(st.st_mode)) {
		f->uid = st.st_uid;
		f->gid = st.st_gid;
		if (st.st_nlink == 1)
			tree_made_forget(d->made, st.st_dev, st.st_ino);
	}
	return 0;
}

int tree_dest_file(struct tree_dest *d, const struct copy_record *m, struct err *e)
{
	struct tree_file *f = &d->file;
	const char *name;
	int parent, r;

	r = parent_of(d, m->path, &parent, &name, e);
	if (r == 0)
		r = may_replace(d, parent, name, m->path, f, e);
	if (r < 0)
		return r;
	if (text_copy(f->path, sizeof(f->path), m->path) < 0 ||
	    text_copy(f->name, sizeof(f->name), name) < 0)
		return fault(d, -ENAMETOOLONG, "cannot make", m->path, e);
	f->mode = m->mode;
	f->mtime = (struct timespec) { .tv_sec = m->mtime, .tv_nsec = (long)m->mtime_ns };
	f->parent = fcntl(parent, F_DUPFD_CLOEXEC, 3);
	if (f->parent < 0)
		return fault(d, -errno, "cannot make", m->path, e);
	f->fd = tree_tmp_open(f->parent, f->tmp);
	if (f->fd < 0) {
		r = f->fd;
		f->fd = -1;
		return fault(d, r, "cannot make", m->path, e);
	}
	/* holes are what is not written; and a size that can never be is refused at once */
	if (m->size && ftruncate(f->fd, (off_t)m->size) < 0)
		return fault(d, -errno, "cannot make", m->path, e);
	return 0;
}

int tree_dest_write(struct tree_dest *d, uint64_t offset, const void *p, size_t n, struct err *e)
{
	const uint8_t *at = p;

	while (n) {
		ssize_t k = pwrite(d->file.fd, at, n, (off_t)offset);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return fault(d, k < 0 ? -errno : -EIO, "cannot write", d->file.path, e);
		at += k;
		offset += (uint64_t)k;
		n -= (size_t)k;
	}
	return 0;
}

/* Everything but the name. */
static int dress(struct tree_dest *d, struct stat *ret)
{
	struct tree_file *f = &d->file;
	struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, f->mtime };

	if (d->o->set_owner && fchown(f->fd, f->uid, f->gid) < 0)
		return -errno;
	if (fchmod(f->fd, f->mode) < 0 || futimens(f->fd, times) < 0 || fstat(f->fd, ret) < 0)
		return -errno;
	return 0;
}

/* Some file systems tell only on close() that the disk is full. */
static int close_checked(int *fd)
{
	return close(take_fd(fd)) < 0 && errno != EINTR ? -errno : 0;
}

static int give_name(struct tree_file *f)
{
	int r;

	if (!f->tmp[0]) {
		r = tree_tmp_place(f->fd, f->parent, f->name);
		return r < 0 ? r : close_checked(&f->fd);
	}
	r = close_checked(&f->fd);
	if (r == 0 && renameat(f->parent, f->tmp, f->parent, f->name) < 0)
		r = -errno;
	if (r == 0)
		f->tmp[0] = '\0';
	return r;
}

int tree_dest_commit(struct tree_dest *d, struct err *e)
{
	struct tree_file *f = &d->file;
	struct stat st = { 0 };
	int r;

	if (f->fd < 0)
		return 0;
	r = dress(d, &st);
	if (r == 0)
		r = give_name(f);
	if (r == 0)
		r = tree_made_add(&d->made, st.st_dev, st.st_ino);
	if (r < 0)
		(void)fault(d, r, "cannot write", f->path, e);
	tree_dest_drop(d);
	return r;
}

void tree_dest_drop(struct tree_dest *d)
{
	struct tree_file *f = &d->file;

	if (f->tmp[0] && f->parent >= 0)
		(void)unlinkat(f->parent, f->tmp, 0);
	f->tmp[0] = '\0';
	f->fd = fd_close(f->fd);
	f->parent = fd_close(f->parent);
}

/* Put the link tmp where it belongs, or away. */
static int rename_link(int parent, const char *tmp, const char *name)
{
	int r = renameat(parent, tmp, parent, name) < 0 ? -errno : 0;

	/* rename() leaves both if they are the same file already */
	if (unlinkat(parent, tmp, 0) == 0 && r == 0)
		return 0;
	return r;
}

int tree_dest_link(struct tree_dest *d, const struct copy_record *m, struct err *e)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_NOW },
				     { .tv_sec = m->mtime, .tv_nsec = (long)m->mtime_ns } };
	char tmp[TREE_TMP_MAX];
	struct tree_file f;
	const char *name;
	int parent, r, i;

	r = parent_of(d, m->path, &parent, &name, e);
	if (r == 0)
		r = may_replace(d, parent, name, m->path, &f, e);
	if (r < 0)
		return r;
	for (i = 0, r = -EEXIST; i < TRIES && r == -EEXIST; i++) {
		tree_tmp_name(tmp);
		r = symlinkat(m->target, parent, tmp) < 0 ? -errno : 0;
	}
	if (r < 0)
		return fault(d, r, "cannot make the link", m->path, e);
	if (d->o->set_owner && fchownat(parent, tmp, d->o->uid, d->o->gid, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (r == 0 && utimensat(parent, tmp, times, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (r == 0)
		r = rename_link(parent, tmp, name);
	else
		(void)unlinkat(parent, tmp, 0);
	return r < 0 ? fault(d, r, "cannot make the link", m->path, e) : 0;
}

/* A second name, hidden as yet, for what the stream calls target. */
static int link_target(struct tree_dest *d, const char *target, int parent, char tmp[TREE_TMP_MAX])
{
	const char *slash = strrchr(target, '/');
	_free_ char *up = slash ? strndup(target, (size_t)(slash - target)) : NULL;
	_close_ int from = -1;
	int i, r = -EEXIST;

	if (slash && !up)
		return -ENOMEM;
	if (up) {
		from = tree_open_beneath(d->root, up, O_PATH | O_DIRECTORY);
		if (from < 0)
			return from;
	}
	for (i = 0; i < TRIES && r == -EEXIST; i++) {
		tree_tmp_name(tmp);
		r = linkat(up ? from : d->root, slash ? slash + 1 : target, parent, tmp, 0) < 0
			    ? -errno
			    : 0;
	}
	return r;
}

int tree_dest_hard(struct tree_dest *d, const struct copy_record *m, struct err *e)
{
	char tmp[TREE_TMP_MAX];
	struct tree_file f;
	const char *name;
	struct stat st;
	int parent, r;

	r = parent_of(d, m->path, &parent, &name, e);
	if (r == 0)
		r = may_replace(d, parent, name, m->path, &f, e);
	if (r < 0)
		return r;
	r = link_target(d, m->target, parent, tmp);
	if (r < 0)
		return fault(d, r, "cannot make the hard link", m->path, e);
	/* only now nobody can put another file in its place */
	if (fstatat(parent, tmp, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
	    !tree_made_has(d->made, st.st_dev, st.st_ino)) {
		(void)unlinkat(parent, tmp, 0);
		return refuse(d, -EPROTO, m->path, "was sent as a link to a file outside the copy",
			      e);
	}
	r = rename_link(parent, tmp, name);
	return r < 0 ? fault(d, r, "cannot make the hard link", m->path, e) : 0;
}

/* ---- the end ---- */

static int settle(struct tree_dest *d, const struct copy_record *m)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_NOW },
				     { .tv_sec = m->mtime, .tv_nsec = (long)m->mtime_ns } };
	const char *path = m->path[0] ? m->path : ".";
	_close_ int fd = tree_open_beneath(d->root, path, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return fd;
	return fchmod(fd, m->mode) < 0 || futimens(fd, times) < 0 ? -errno : 0;
}

int tree_dest_finish(struct tree_dest *d, struct err *e)
{
	char path[WIRE_PATH_MAX + 1];
	struct copy_record m;
	int r, first = 0;

	while ((r = tree_notes_pop(&d->notes, &m, path)) > 0) {
		int k = settle(d, &m);

		if (k < 0 && !first)
			first = fault(d, k, "cannot set mode and time of", path, e);
	}
	return r < 0 ? fault(d, r, "cannot set mode and time in", "", e) : first;
}
