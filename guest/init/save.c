/* The sandbox's file system as a tar archive. */
#include "guest/init/save.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/err.h"
#include "guest/init/pause.h"
#include "guest/init/pax.h"
#include "io/fd.h"

#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif
#ifndef OPEN_TREE_CLOEXEC
#define OPEN_TREE_CLOEXEC O_CLOEXEC
#endif

enum {
	PATH_LONGEST = 8192,
	MOUNTS_MAX = 4 << 20,
	SHARES_MAX = 1100,
	READ_SIZE = 128 * 1024,
	XATTR_NAMES_MAX = 64 * 1024,
	XATTR_VALUE_MAX = 64 * 1024,
	EXTENTS_MAX = 64 * 1024,
	HOLES_MIN = 64 * 1024, /* bytes of holes that are worth the other format */
	LINKS_STEP = 1024,
};

/* Nothing of these goes into the archive but themselves. */
static const char *const hollow[] = { "var/lib/docker", "proc", "sys", "dev", "run" };

struct link {
	dev_t dev;
	ino_t ino;
	char *path; /* the first name of this file */
};

struct save {
	struct pax x;
	struct err e;
	char path[PATH_LONGEST]; /* relative; "" at the top */
	size_t n;
	char *mounts;        /* what shares borrows from */
	const char **shares; /* relative paths of mounts of the host's folders */
	size_t n_shares;
	struct link *links; /* by dev and ino, open addressing */
	size_t n_links, cap;
	uint8_t *buf;
};

static int fail(struct save *s, int r, const char *what)
{
	if (!s->e.code)
		(void)err_errno(&s->e, r, "cannot %s /%.300s", what, s->path);
	return r;
}

/* ---- shares ---- */

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* \040 and the like, in place. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; to++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && is_octal(s[2]) &&
		    is_octal(s[3])) {
			*to = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 4;
		} else {
			*to = *s++;
		}
	}
	*to = '\0';
}

/* Where the host's folders and files are mounted: proc_pid_mountinfo(5). */
static int read_shares(struct save *s)
{
	char *line, *rest = NULL;
	int r = fd_read_file(AT_FDCWD, "/proc/self/mountinfo", MOUNTS_MAX, &s->mounts, NULL);

	s->shares = calloc(SHARES_MAX, sizeof(*s->shares));
	if (r < 0 || !s->shares)
		return r < 0 ? r : -ENOMEM;
	for (line = strtok_r(s->mounts, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *type = strstr(line, " - "), *words = NULL, *path = NULL;
		int i;

		if (!type || !starts_with(type + 3, "virtiofs ") || s->n_shares == SHARES_MAX)
			continue;
		for (i = 0; i < 5; i++)
			path = strtok_r(i ? NULL : line, " ", &words);
		if (!path || path[0] != '/' || !path[1])
			continue;
		unescape(path);
		s->shares[s->n_shares++] = path + 1;
	}
	return 0;
}

static bool is_share(const struct save *s)
{
	for (size_t i = 0; i < s->n_shares; i++)
		if (streq(s->shares[i], s->path))
			return true;
	return false;
}

/* ---- hard links ---- */

static struct link *slot(struct save *s, dev_t dev, ino_t ino)
{
	size_t i = ((size_t)ino * 2654435761U ^ (size_t)dev) & (s->cap - 1);

	while (s->links[i].path && (s->links[i].dev != dev || s->links[i].ino != ino))
		i = (i + 1) & (s->cap - 1);
	return &s->links[i];
}

static int grow_links(struct save *s)
{
	struct link *old = s->links;
	size_t n = s->cap, i;

	s->cap = n ? n * 2 : LINKS_STEP;
	s->links = calloc(s->cap, sizeof(*s->links));
	if (!s->links) {
		s->links = old;
		s->cap = n;
		return -ENOMEM;
	}
	for (i = 0; i < n; i++)
		if (old[i].path)
			*slot(s, old[i].dev, old[i].ino) = old[i];
	free(old);
	return 0;
}

/* Another name of a file that is in the archive already: its first one, else NULL and it is noted. */
static int find_link(struct save *s, const struct stat *st, const char **ret)
{
	struct link *l;

	if (2 * (s->n_links + 1) > s->cap && grow_links(s) < 0)
		return -ENOMEM;
	l = slot(s, st->st_dev, st->st_ino);
	*ret = l->path;
	if (l->path)
		return 0;
	*l = (struct link) { st->st_dev, st->st_ino, strdup(s->path) };
	s->n_links++;
	return l->path ? 0 : -ENOMEM;
}

/* ---- entries ---- */

/* fd is of any kind of file (O_PATH). */
static int add_xattrs(struct save *s, int fd)
{
	static char names[XATTR_NAMES_MAX], value[XATTR_VALUE_MAX];
	char self[40];
	ssize_t n, len;
	char *name;

	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	n = listxattr(self, names, sizeof(names));
	if (n < 0)
		return errno == ENOTSUP ? 0 : -errno;
	for (name = names; name < names + n; name += strlen(name) + 1) {
		len = getxattr(self, name, value, sizeof(value));
		if (len < 0 && errno != ENODATA)
			return -errno;
		if (len >= 0)
			pax_xattr(&s->x, name, value, (size_t)len);
	}
	return 0;
}

static struct pax_entry entry_of(const struct save *s, const struct stat *st)
{
	return (struct pax_entry) {
		.path = s->path,
		.mode = st->st_mode & 07777,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.mtime = st->st_mtim.tv_sec,
		.mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
	};
}

/* The parts of a file that are not holes. 0 and *ret_n extents; 1: not worth it. */
static int find_extents(int fd, const struct stat *st, struct pax_extent *v, size_t *ret_n)
{
	uint64_t data = 0;
	off_t at = 0;
	size_t n = 0;

	if ((uint64_t)st->st_blocks * 512 + HOLES_MIN > (uint64_t)st->st_size)
		return 1;
	while (at < st->st_size && n < EXTENTS_MAX) {
		off_t from = lseek(fd, at, SEEK_DATA), to;

		if (from < 0 && errno == ENXIO)
			break;
		to = from < 0 ? -1 : lseek(fd, from, SEEK_HOLE);
		if (to < 0)
			return 1;
		to = MIN(to, st->st_size);
		v[n++] = (struct pax_extent) { (uint64_t)from, (uint64_t)(to - from) };
		data += (uint64_t)(to - from);
		at = to;
	}
	if (n == EXTENTS_MAX || data + HOLES_MIN > (uint64_t)st->st_size)
		return 1;
	*ret_n = n;
	return 0;
}

static int copy_part(struct save *s, int fd, uint64_t at, uint64_t len)
{
	while (len && s->x.r == 0) {
		ssize_t n = pread(fd, s->buf, (size_t)MIN(len, READ_SIZE), (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0; /* it became shorter */
		pax_data(&s->x, s->buf, (size_t)n);
		at += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

static int save_file(struct save *s, int dir, const char *name, struct pax_entry *e,
		     const struct stat *st)
{
	static struct pax_extent v[EXTENTS_MAX];
	_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	size_t n = 1, i;
	int r = 0;

	if (fd < 0)
		return fail(s, -errno, "open");
	e->type = PAX_FILE;
	e->size = streq(s->path, "etc/machine-id") ? 0 : (uint64_t)st->st_size;
	if (e->size && find_extents(fd, st, v, &n) == 0) {
		pax_sparse(&s->x, e, v, n);
	} else {
		v[0] = (struct pax_extent) { 0, e->size };
		n = 1;
		pax_entry(&s->x, e);
	}
	for (i = 0; i < n && r == 0; i++)
		r = copy_part(s, fd, v[i].offset, v[i].len);
	pax_fill(&s->x);
	return r < 0 ? fail(s, r, "read") : 0;
}

static int save_link(struct save *s, int dir, const char *name, struct pax_entry *e)
{
	char target[PATH_LONGEST];
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

	if (n < 0)
		return fail(s, -errno, "read");
	target[n] = '\0';
	e->type = PAX_LINK;
	e->target = target;
	pax_entry(&s->x, e);
	return 0;
}

static void save_node(struct save *s, struct pax_entry *e, const struct stat *st)
{
	e->type = S_ISFIFO(st->st_mode) ? PAX_FIFO : S_ISCHR(st->st_mode) ? PAX_CHAR : PAX_BLOCK;
	if (e->type != PAX_FIFO) {
		e->major = major(st->st_rdev);
		e->minor = minor(st->st_rdev);
	}
	pax_entry(&s->x, e);
}

/* Anything but a directory. */
static int save_other(struct save *s, int dir, const char *name, int fd, const struct stat *st)
{
	struct pax_entry e = entry_of(s, st);
	const char *first = NULL;
	int r = st->st_nlink > 1 ? find_link(s, st, &first) : 0;

	if (r < 0)
		return fail(s, r, "remember");
	if (first) {
		e.type = PAX_HARD;
		e.target = first;
		pax_entry(&s->x, &e);
		return 0;
	}
	r = add_xattrs(s, fd);
	if (r < 0)
		return fail(s, r, "read the attributes of");
	if (S_ISREG(st->st_mode))
		return save_file(s, dir, name, &e, st);
	if (S_ISLNK(st->st_mode))
		return save_link(s, dir, name, &e);
	save_node(s, &e, st);
	return 0;
}

/* ---- directories ---- */

struct names {
	char **v;
	size_t n;
};

static void names_done(struct names *l)
{
	while (l->n)
		free(l->v[--l->n]);
	free(l->v);
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list(int dir, struct names *ret)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;
	int r = 0;

	if (!d) {
		r = -errno;
		(void)fd_close(copy);
		return r;
	}
	while (r == 0 && (e = readdir(d))) {
		char **more;

		if (streq(e->d_name, ".") || streq(e->d_name, ".."))
			continue;
		more = reallocarray(ret->v, ret->n + 1, sizeof(*ret->v));
		if (!more) {
			r = -ENOMEM;
			break;
		}
		ret->v = more;
		ret->v[ret->n] = strdup(e->d_name);
		r = ret->v[ret->n] ? 0 : -ENOMEM;
		ret->n += r == 0;
	}
	(void)closedir(d);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_bytes);
	return r;
}

static bool is_hollow(const struct save *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(hollow); i++)
		if (streq(hollow[i], s->path))
			return true;
	return false;
}

static int save_dir(struct save *s, int dir);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as a path of PATH_LONGEST bytes */
static int save_one(struct save *s, int dir, const char *name)
{
	_close_ int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), sub = -1;
	struct pax_entry e;
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fail(s, -errno, "look at");
	if (S_ISSOCK(st.st_mode) || is_share(s))
		return 0;
	if (!S_ISDIR(st.st_mode))
		return save_other(s, dir, name, fd, &st);
	r = add_xattrs(s, fd);
	if (r < 0)
		return fail(s, r, "read the attributes of");
	e = entry_of(s, &st);
	e.type = PAX_DIR;
	pax_entry(&s->x, &e);
	if (is_hollow(s))
		return 0;
	sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return sub < 0 ? fail(s, -errno, "open") : save_dir(s, sub);
}

/* What is in it; s->path is its own. */
/* NOLINTNEXTLINE(misc-no-recursion): likewise */
static int save_dir(struct save *s, int dir)
{
	struct names l = { 0 };
	size_t before = s->n, i;
	int r = list(dir, &l);

	if (r < 0)
		(void)fail(s, r, "list");
	for (i = 0; i < l.n && r == 0 && s->x.r == 0; i++) {
		int n = snprintf(s->path + before, sizeof(s->path) - before, "%s%s",
				 before ? "/" : "", l.v[i]);

		if (n < 0 || (size_t)n >= sizeof(s->path) - before) {
			r = fail(s, -ENAMETOOLONG, "name what is in");
			break;
		}
		s->n = before + (size_t)n;
		r = save_one(s, dir, l.v[i]);
		s->n = before;
		s->path[before] = '\0';
	}
	names_done(&l);
	return r;
}

/* ---- the whole ---- */

static int save_root(struct save *s)
{
	_close_ int root =
		(int)syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	struct pax_entry e;
	struct stat st;
	int r;

	if (root < 0 || fstat(root, &st) < 0)
		return fail(s, -errno, "open");
	r = add_xattrs(s, root);
	if (r < 0)
		return fail(s, r, "read the attributes of");
	e = entry_of(s, &st);
	e.path = ".";
	e.type = PAX_DIR;
	pax_entry(&s->x, &e);
	return save_dir(s, root);
}

int save_main(void)
{
	static struct save s;
	struct pause still;
	int r = pause_begin(&still);

	if (r < 0) {
		(void)fprintf(stderr, "cannot stop the programs: %s\n", err_text(r));
		return 1;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	s.buf = malloc(READ_SIZE);
	r = s.buf ? pax_init(&s.x, STDOUT_FILENO) : -ENOMEM;
	if (r == 0)
		r = read_shares(&s);
	if (r == 0)
		r = save_root(&s);
	if (r == 0)
		r = pax_end(&s.x);
	pause_end(&still);
	if (r < 0)
		(void)fprintf(stderr, "%s\n", s.e.code ? s.e.msg : err_text(r));
	return r < 0;
}
