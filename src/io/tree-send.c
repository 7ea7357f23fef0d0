/* The file system into a copy stream.
 *
 * The tree is walked with one descriptor a level; each entry is opened by its last component only,
 * without following a link, so that somebody who moves things about meanwhile gets what he moved
 * sent, at worst, and nothing from outside. A tree may be deeper than descriptors allow: far above
 * the place where we are, directories are closed and opened again on the way back.
 *
 * A small file is read whole before its record is sent: then its size is the number of bytes that
 * were read, which makes a copy of a log that is being written, or of /proc/cpuinfo, come out
 * right. The size of a large one is sent first and must hold. */
#include "io/tree.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "io/fd.h"
#include "io/tree-links.h"
#include "io/tree-names.h"
#include "io/tree-out.h"
#include "io/tree-show.h"
#include "io/tree-tmp.h"

enum { KEEP_OPEN = 64 }; /* directories */

struct level {
	int fd; /* -1: closed for now */
	dev_t dev;
	ino_t ino;
	size_t path_len;
	struct tree_names names;
	size_t at; /* the next name */
};

struct walk {
	struct tree_out out;
	struct tree_count count;
	struct tree_links *links;
	struct level *level;
	size_t depth, room; /* levels in use, and made */
	const char *shown;  /* what the user calls the top */
	size_t top_len;     /* what of path is the top's name */
	char path[WIRE_PATH_MAX + 1];
	uint8_t *small; /* TREE_CHUNK bytes */
};

/* The current entry below the top. */
static const char *rel(const struct walk *w)
{
	const char *p = w->path + w->top_len;

	return p + (w->top_len && *p == '/');
}

static int fault(const struct walk *w, int code, const char *what, struct err *e)
{
	return tree_fault(e, code, what, w->shown, rel(w));
}

static struct copy_record record(const struct walk *w, enum copy_kind kind, const struct stat *st)
{
	return (struct copy_record) {
		.kind = (uint8_t)kind,
		.mode = kind == COPY_LINK ? 0 : st->st_mode & 0777,
		.mtime = st->st_mtim.tv_sec,
		.mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
		.path = w->path,
		.target = "",
	};
}

/* ---- files ---- */

static int shrank(const struct walk *w, struct err *e)
{
	char shown[TREE_SHOW_MAX];

	return err_set(e, -EBUSY, "'%s' became shorter while it was read; copy it again",
		       tree_show(shown, w->shown, rel(w)));
}

static int send_range(struct walk *w, int fd, off_t from, off_t to, struct err *e)
{
	while (from < to) {
		uint8_t *room = tree_out_room(&w->out, e);
		ssize_t n;

		if (!room)
			return e->code;
		n = pread(fd, room, (size_t)MIN(to - from, (off_t)TREE_CHUNK), from);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fault(w, -errno, "cannot read", e);
		if (n == 0)
			return shrank(w, e);
		tree_out_extent(&w->out, (uint64_t)from, (size_t)n);
		w->count.bytes += (uint64_t)n;
		from += n;
	}
	return 0;
}

static int send_extents(struct walk *w, int fd, off_t size, struct err *e)
{
	off_t data, hole = 0;
	struct stat st;
	int r;

	while (hole < size) {
		data = lseek(fd, hole, SEEK_DATA);
		if (data < 0 && errno == ENXIO)
			break;
		if (data < 0) /* the file system does not know: all is data */
			data = hole;
		if (data >= size)
			break;
		hole = lseek(fd, data, SEEK_HOLE);
		hole = hole <= data ? size : MIN(hole, size);
		r = send_range(w, fd, data, hole, e);
		if (r < 0)
			return r;
	}
	if (fstat(fd, &st) < 0)
		return fault(w, -errno, "cannot read", e);
	return st.st_size < size ? shrank(w, e) : 0;
}

static int send_large(struct walk *w, int fd, const struct stat *st, struct err *e)
{
	struct copy_record m = record(w, COPY_FILE, st);
	struct err second;
	int r, k;

	m.size = (uint64_t)st->st_size;
	r = tree_out_record(&w->out, &m, e);
	if (r < 0)
		return r;
	r = send_extents(w, fd, st->st_size, e);
	/* after a failure, too: so the ERROR finds the receiver between records */
	k = tree_out_close(&w->out, m.size, r < 0 ? &second : e);
	return r < 0 ? r : k;
}

static bool is_hole(const struct stat *st, const uint8_t *p, size_t n)
{
	return n && !st->st_blocks && !p[0] && !memcmp(p, p + 1, n - 1);
}

static int send_small(struct walk *w, int fd, const struct stat *st, struct err *e)
{
	ssize_t n = fd_read_all(fd, w->small, st->st_size ? (size_t)st->st_size : TREE_CHUNK);
	struct copy_record m = record(w, COPY_FILE, st);
	uint8_t *to;
	int r;

	if (n < 0)
		return fault(w, (int)n, "cannot read", e);
	if (!st->st_size && n == TREE_CHUNK)
		return fault(w, -EFBIG, "cannot copy a file that does not tell its size", e);
	m.size = (uint64_t)n;
	r = tree_out_record(&w->out, &m, e);
	if (r < 0)
		return r;
	if (n && !is_hole(st, w->small, (size_t)n)) {
		to = tree_out_room(&w->out, e);
		if (!to)
			return e->code;
		memcpy(to, w->small, (size_t)n);
		tree_out_extent(&w->out, 0, (size_t)n);
		w->count.bytes += (uint64_t)n;
	}
	return tree_out_close(&w->out, m.size, e);
}

static int send_file(struct walk *w, int fd, const struct stat *st, struct err *e)
{
	const char *before = NULL;
	int r;

	if (st->st_nlink > 1 && w->count.files < COPY_LINKS_MAX && w->depth)
		before = tree_links_seen(&w->links, st, w->path);
	if (before) {
		struct copy_record m = record(w, COPY_HARD, st);

		m.target = before;
		w->count.links++;
		return tree_out_record(&w->out, &m, e);
	}
	r = st->st_size <= TREE_CHUNK ? send_small(w, fd, st, e) : send_large(w, fd, st, e);
	w->count.files++;
	return r;
}

/* name in dir, or with AT_FDCWD the path that the user gave. */
static int send_link(struct walk *w, int dir, const char *name, const struct stat *st,
		     struct err *e)
{
	struct copy_record m = record(w, COPY_LINK, st);
	char target[WIRE_PATH_MAX + 2];
	ssize_t n = readlinkat(dir, name, target, sizeof(target));

	if (n < 0)
		return fault(w, -errno, "cannot read the link", e);
	if ((size_t)n == sizeof(target))
		return fault(w, -ENAMETOOLONG, "cannot copy the link", e);
	target[n] = '\0';
	m.target = target;
	w->count.links++;
	return tree_out_record(&w->out, &m, e);
}

/* ---- directories ---- */

/* Worlds without end, which say nothing elsewhere: sent as empty directories when they are mounted
 * below the source. */
static bool is_pseudo(int fd)
{
	static const long kinds[] = { PROC_SUPER_MAGIC,    SYSFS_MAGIC,   CGROUP_SUPER_MAGIC,
				      CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC,
				      SECURITYFS_MAGIC,    BPF_FS_MAGIC,  DEVPTS_SUPER_MAGIC };
	struct statfs fs;
	size_t i;

	if (fstatfs(fd, &fs) < 0)
		return false;
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (fs.f_type == kinds[i])
			return true;
	return false;
}

static int more_levels(struct walk *w, struct err *e)
{
	size_t room = w->room ? w->room * 2 : 16;
	struct level *l;

	if (w->depth < w->room)
		return 0;
	l = realloc(w->level, room * sizeof(*l));
	if (!l)
		return fault(w, -ENOMEM, "cannot copy", e);
	w->level = l;
	w->room = room;
	return 0;
}

/* Send the directory's record, and go down into it. Takes fd over when it succeeds. */
static int descend(struct walk *w, int *fd, const struct stat *st, struct err *e)
{
	bool mounted = w->depth && w->level[w->depth - 1].dev != st->st_dev;
	struct copy_record m = record(w, COPY_DIR, st);
	struct level l = { .dev = st->st_dev, .ino = st->st_ino, .path_len = strlen(w->path) };
	int r;

	r = more_levels(w, e);
	if (r == 0)
		r = tree_out_record(&w->out, &m, e);
	if (r < 0)
		return r;
	w->count.dirs++;
	if (mounted && is_pseudo(*fd)) {
		w->count.skipped++;
		return 0;
	}
	r = tree_names_read(&l.names, *fd);
	if (r < 0)
		return fault(w, r, "cannot read the directory", e);
	l.fd = take_fd(fd);
	if (w->depth > KEEP_OPEN) {
		struct level *far = &w->level[w->depth - KEEP_OPEN];

		far->fd = fd_close(far->fd);
	}
	w->level[w->depth++] = l;
	return 0;
}

static void ascend(struct walk *w)
{
	struct level *l = &w->level[--w->depth];

	l->fd = fd_close(l->fd);
	tree_names_done(&l->names);
}

/* Come back to a directory that was closed. w->path is its path. */
static int reopen(struct walk *w, struct level *l, struct err *e)
{
	_close_ int fd = -1;
	struct stat st;

	if (l->fd >= 0)
		return 0;
	fd = tree_open_beneath(w->level[0].fd, *rel(w) ? rel(w) : ".", O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return fault(w, fd, "cannot come back to", e);
	if (fstat(fd, &st) < 0 || st.st_dev != l->dev || st.st_ino != l->ino)
		return fault(w, -ESTALE, "cannot come back to", e);
	l->fd = take_fd(&fd);
	return 0;
}

/* Open what fstatat() saw. -ENOENT: it is gone, or another thing is there now. */
static int open_entry(struct walk *w, int dir, const char *name, int flags, struct stat *st,
		      struct err *e)
{
	_close_ int fd = openat(dir, name,
				O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | flags);
	mode_t type = st->st_mode & S_IFMT;

	if (fd < 0 && (errno == ENOENT || errno == ELOOP || errno == ENOTDIR || errno == ENXIO))
		return -ENOENT;
	if (fd < 0)
		return fault(w, -errno, "cannot open", e);
	if (fstat(fd, st) < 0)
		return fault(w, -errno, "cannot open", e);
	return (st->st_mode & S_IFMT) == type ? take_fd(&fd) : -ENOENT;
}

static int send_entry(struct walk *w, int dir, const char *name, struct err *e)
{
	_close_ int fd = -1;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : fault(w, -errno, "cannot read", e);
	if (S_ISLNK(st.st_mode))
		return send_link(w, dir, name, &st, e);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) {
		w->count.skipped++;
		return 0;
	}
	fd = open_entry(w, dir, name, S_ISDIR(st.st_mode) ? O_DIRECTORY : 0, &st, e);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return fd;
	return S_ISDIR(st.st_mode) ? descend(w, &fd, &st, e) : send_file(w, fd, &st, e);
}

/* Put name behind the directory's path. */
static int set_path(struct walk *w, const struct level *l, const char *name, struct err *e)
{
	size_t len = strlen(name), at = l->path_len;
	char shown[TREE_SHOW_MAX];

	if (at + (at != 0) + len > WIRE_PATH_MAX)
		return err_set(e, -ENAMETOOLONG, "'%s' cannot be copied: its path is too long",
			       tree_show(shown, w->path, name));
	if (at)
		w->path[at++] = '/';
	memcpy(w->path + at, name, len + 1);
	return 0;
}

static int send_below(struct walk *w, struct err *e)
{
	int r;

	while (w->depth) {
		struct level *l = &w->level[w->depth - 1];
		const char *name;

		w->path[l->path_len] = '\0';
		if (l->at == l->names.n) {
			ascend(w);
			continue;
		}
		name = l->names.v[l->at++];
		r = reopen(w, l, e);
		if (r == 0)
			r = set_path(w, l, name, e);
		if (r == 0)
			r = send_entry(w, l->fd, name, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- the top ---- */

static int send_top(struct walk *w, const char *path, bool follow, bool content, struct err *e)
{
	_close_ int fd = -1;
	struct stat st;
	int r;

	if (fstatat(AT_FDCWD, path, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
		return fault(w, -errno, "cannot copy", e);
	if (content && !S_ISDIR(st.st_mode))
		return fault(w, -ENOTDIR, "cannot copy what is in", e);
	if (S_ISLNK(st.st_mode))
		return send_link(w, AT_FDCWD, path, &st, e);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return err_set(e, -EINVAL,
			       "'%.200s' is a device, FIFO or socket, which is not copied", path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow ? 0 : O_NOFOLLOW));
	if (fd < 0 || fstat(fd, &st) < 0)
		return fault(w, -errno, "cannot open", e);
	if (S_ISREG(st.st_mode) && !content)
		return send_file(w, fd, &st, e);
	r = descend(w, &fd, &st, e);
	return r < 0 ? r : send_below(w, e);
}

static int send_tree(struct walk *w, const char *path, const struct tree_send_opts *o,
		     struct err *e)
{
	bool content, follow;
	int r;

	r = tree_source_name(path, w->path);
	if (r < 0)
		return fault(w, r, "cannot copy", e);
	content = o->content || r == 0;
	if (content)
		w->path[0] = '\0';
	w->top_len = strlen(w->path);
	w->small = malloc(TREE_CHUNK);
	if (!w->small)
		return fault(w, -ENOMEM, "cannot copy", e);
	follow = o->follow || content || path[strlen(path) - 1] == '/';
	r = send_top(w, path, follow, content, e);
	return r < 0 ? r : tree_out_end(&w->out, e);
}

int tree_send(int out_fd, const char *path, const struct tree_send_opts *o,
	      struct tree_count *ret_count, struct err *e)
{
	struct walk w = { .shown = path };
	int r;

	r = tree_out_init(&w.out, out_fd, e);
	if (r == 0)
		r = send_tree(&w, path, o, e);
	if (r < 0)
		tree_out_fail(&w.out, e);
	while (w.depth)
		ascend(&w);
	free(w.level);
	free(w.small);
	(void)tree_links_free(w.links);
	tree_out_done(&w.out);
	if (ret_count)
		*ret_count = w.count;
	return r;
}
