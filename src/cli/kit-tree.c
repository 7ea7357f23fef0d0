#include "cli/kit-tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sha256.h"
#include "base/text.h"
#include "io/fd.h"

enum { IGNORED_MAX = 64, STEP = 64 * 1024 };

static const char *const tops[] = { "home", "workspace" };

struct walk {
	int src, to; /* the kit's top, and where the copy's is or -1 */
	int top;     /* files/home or files/workspace, which links must not leave */
	size_t depth;
	struct kit_tree t;
};

void kit_tree_done(struct kit_tree *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->v[i].path);
		free(t->v[i].link);
	}
	for (size_t i = 0; i < t->n_ignored; i++)
		free(t->ignored[i]);
	free(t->v);
	free(t->ignored);
	*t = (struct kit_tree) { 0 };
}

/* Below dir, through no link (links: also through such as stay inside), and never waiting for a FIFO. */
static int open_in(int dir, const char *path, int flags, bool links)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC | O_NONBLOCK),
		.resolve =
			RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | (links ? 0 : RESOLVE_NO_SYMLINKS),
	};
	long fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static struct kit_entry *add(struct walk *w, const char *path, uint8_t kind, struct err *e)
{
	struct kit_entry *v;

	if (w->t.n == KIT_TREE_ENTRIES_MAX) {
		(void)err_set(e, -EFBIG, "it has more than %d files", KIT_TREE_ENTRIES_MAX);
		return NULL;
	}
	v = reallocarray(w->t.v, w->t.n + 1, sizeof(*v));
	if (v) {
		w->t.v = v;
		v = &w->t.v[w->t.n];
		*v = (struct kit_entry) { .path = strdup(path), .kind = kind };
	}
	if (!v || !v->path) {
		(void)err_errno(e, -ENOMEM, "cannot read '%.200s'", path);
		return NULL;
	}
	w->t.n++;
	return v;
}

static int ignore(struct walk *w, const char *path, struct err *e)
{
	char **v;

	if (w->t.n_ignored == IGNORED_MAX)
		return 0;
	v = reallocarray(w->t.ignored, w->t.n_ignored + 1, sizeof(*v));
	if (!v)
		return err_errno(e, -ENOMEM, "cannot read '%.200s'", path);
	w->t.ignored = v;
	v[w->t.n_ignored] = strdup(path);
	if (!v[w->t.n_ignored])
		return err_errno(e, -ENOMEM, "cannot read '%.200s'", path);
	w->t.n_ignored++;
	return 0;
}

/* All of an open file into its sum and, if there is one, its copy. */
static int pour(struct walk *w, int fd, int copy, struct kit_entry *f, uint64_t max, struct err *e)
{
	_free_ uint8_t *block = malloc(STEP);
	struct sha256 s;
	ssize_t n;
	int r = 0;

	if (!block)
		return err_errno(e, -ENOMEM, "cannot read '%.200s'", f->path);
	sha256_init(&s);
	while ((n = fd_read_all(fd, block, STEP)) > 0) {
		f->size += (uint64_t)n;
		w->t.bytes += (uint64_t)n;
		if (f->size > max)
			return err_set(e, -EFBIG, "'%.200s' is larger than %llu KiB", f->path,
				       (unsigned long long)max / 1024);
		if (w->t.bytes > KIT_TREE_BYTES_MAX)
			return err_set(e, -EFBIG, "its files are larger than %d MiB together",
				       KIT_TREE_BYTES_MAX / 1024 / 1024);
		sha256_add(&s, block, (size_t)n);
		if (copy >= 0)
			r = fd_write_all(copy, block, (size_t)n);
		if (r < 0)
			return err_errno(e, r, "cannot copy '%.200s'", f->path);
	}
	if (n < 0)
		return err_errno(e, (int)n, "cannot read '%.200s'", f->path);
	sha256_end(&s, f->sum);
	return 0;
}

static int take_file(struct walk *w, int fd, const char *path, uint64_t max, struct err *e)
{
	_close_ int copy = -1;
	struct kit_entry *f;
	struct stat st;
	mode_t mode;

	if (fstat(fd, &st) < 0)
		return err_errno(e, -errno, "cannot read '%.200s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "'%.200s' is neither a file, a folder nor a link", path);
	mode = st.st_mode & 0111 ? 0755 : 0644;
	f = add(w, path, mode == 0755 ? KIT_EXEC : KIT_FILE, e);
	if (!f)
		return e->code;
	if (w->to >= 0) {
		copy = openat(w->to, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			      mode);
		if (copy < 0 || fchmod(copy, mode) < 0)
			return err_errno(e, -errno, "cannot copy '%.200s'", path);
	}
	return pour(w, fd, copy, f, max, e);
}

/* Does a link in a folder of this depth below its top, taken by its letters, stay there? */
static bool stays(const char *link, size_t depth)
{
	while (*link) {
		size_t n = strcspn(link, "/");

		if (n == 2 && link[0] == '.' && link[1] == '.') {
			if (!depth--)
				return false;
		} else if (n && !(n == 1 && link[0] == '.')) {
			depth++;
		}
		link += n + (link[n] == '/');
	}
	return true;
}

static int take_link(struct walk *w, int dir, const char *name, const char *path, struct err *e)
{
	char link[KIT_TREE_PATH_MAX + 1];
	ssize_t n = readlinkat(dir, name, link, sizeof(link) - 1);
	const char *below = strchr(path + strlen("files/"), '/') + 1;
	_close_ int there = -1;
	struct kit_entry *l;

	if (n < 0 || n == sizeof(link) - 1)
		return err_set(e, -EINVAL, "'%.200s' is a link that cannot be read", path);
	link[n] = '\0';
	if (link[0] == '/' || !text_is_utf8(link, (size_t)n) || !stays(link, w->depth - 1))
		return err_set(e, -EINVAL, "'%.200s' is a link that leads out of the kit", path);
	there = open_in(w->top, below, O_PATH, true);
	if (there == -EXDEV || there == -ELOOP)
		return err_set(e, -EINVAL, "'%.200s' is a link that leads out of the kit", path);
	l = add(w, path, KIT_LINK, e);
	if (!l)
		return e->code;
	l->link = strdup(link);
	if (!l->link)
		return err_errno(e, -ENOMEM, "cannot read '%.200s'", path);
	if (w->to >= 0 && symlinkat(link, w->to, path) < 0)
		return err_errno(e, -errno, "cannot copy '%.200s'", path);
	return 0;
}

static int take_dir(struct walk *w, int fd, const char *path, struct err *e);

/* NOLINTNEXTLINE(misc-no-recursion): at most KIT_TREE_DEPTH_MAX deep */
static int take_name(struct walk *w, int dir, const char *name, const char *path, struct err *e)
{
	_close_ int fd = -1;
	struct stat st;

	if (!text_is_utf8(name, strlen(name)) || strpbrk(name, "\n\r\t\033"))
		return err_set(e, -EINVAL, "'%.200s' is a name that a kit cannot have", path);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_errno(e, -errno, "cannot read '%.200s'", path);
	if (S_ISLNK(st.st_mode))
		return take_link(w, dir, name, path, e);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return err_set(e, -EINVAL, "'%.200s' is neither a file, a folder nor a link", path);
	fd = open_in(dir, name, O_RDONLY | (S_ISDIR(st.st_mode) ? O_DIRECTORY : 0), false);
	if (fd < 0)
		return err_errno(e, fd, "cannot read '%.200s'", path);
	return S_ISDIR(st.st_mode) ? take_dir(w, fd, path, e)
				   : take_file(w, fd, path, KIT_TREE_BYTES_MAX, e);
}

/* A stream over a folder; the descriptor stays the caller's. NULL with *e set. */
static DIR *look_in(int fd, const char *path, struct err *e)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	DIR *d = own < 0 ? NULL : fdopendir(own);

	if (!d) {
		(void)err_errno(e, -errno, "cannot read '%.200s'", path);
		(void)fd_close(own);
	}
	return d;
}

/* NOLINTNEXTLINE(misc-no-recursion): as above */
static int take_names(struct walk *w, DIR *d, int fd, const char *path, struct err *e)
{
	char below[KIT_TREE_PATH_MAX + 1];
	struct dirent *n;
	int r = 0;

	while (r == 0 && (errno = 0, n = readdir(d))) {
		if (streq(n->d_name, ".") || streq(n->d_name, ".."))
			continue;
		if ((size_t)snprintf(below, sizeof(below), "%s/%s", path, n->d_name) >=
		    sizeof(below))
			return err_set(e, -ENAMETOOLONG, "'%.200s...' is too long a path", below);
		r = take_name(w, fd, n->d_name, below, e);
	}
	return r == 0 && errno ? err_errno(e, -errno, "cannot read '%.200s'", path) : r;
}

/* NOLINTNEXTLINE(misc-no-recursion): as above */
static int take_dir(struct walk *w, int fd, const char *path, struct err *e)
{
	DIR *d;
	int r;

	if (w->depth == KIT_TREE_DEPTH_MAX)
		return err_set(e, -EFBIG, "'%.200s' is more than %d folders deep", path,
			       KIT_TREE_DEPTH_MAX);
	if (!add(w, path, KIT_DIR, e))
		return e->code;
	if (w->to >= 0 && (mkdirat(w->to, path, 0755) < 0 || fchmodat(w->to, path, 0755, 0) < 0))
		return err_errno(e, -errno, "cannot copy '%.200s'", path);
	d = look_in(fd, path, e);
	if (!d)
		return e->code;
	w->depth++;
	r = take_names(w, d, fd, path, e);
	w->depth--;
	(void)closedir(d);
	return r;
}

static int take_top(struct walk *w, int files, const char *name, const char *path, struct err *e)
{
	_close_ int fd = open_in(files, name, O_RDONLY | O_DIRECTORY, false);
	int r;

	if (fd < 0)
		return err_errno(e, fd, "'%.200s' is not a folder", path);
	w->top = fd;
	w->depth = 0;
	r = take_dir(w, fd, path, e);
	w->top = -1;
	return r;
}

static int take_files(struct walk *w, struct err *e)
{
	_close_ int files = open_in(w->src, "files", O_RDONLY | O_DIRECTORY, false);
	char path[KIT_TREE_PATH_MAX + 1];
	struct dirent *n;
	DIR *d;
	int r = 0;

	if (files == -ENOENT)
		return 0;
	if (files < 0)
		return err_errno(e, files, "'files' is not a folder of the kit");
	if (w->to >= 0 &&
	    (mkdirat(w->to, "files", 0755) < 0 || fchmodat(w->to, "files", 0755, 0) < 0))
		return err_errno(e, -errno, "cannot copy 'files'");
	d = look_in(files, "files", e);
	if (!d)
		return e->code;
	while (r == 0 && (n = readdir(d))) {
		bool known = streq(n->d_name, tops[0]) || streq(n->d_name, tops[1]);

		if (streq(n->d_name, ".") || streq(n->d_name, ".."))
			continue;
		(void)snprintf(path, sizeof(path), "files/%s", n->d_name);
		r = known ? take_top(w, files, n->d_name, path, e) : ignore(w, path, e);
	}
	(void)closedir(d);
	return r;
}

/* Always "spec.yaml" afterwards. It alone may be a link, to a file of the kit. */
static int take_spec(struct walk *w, struct err *e)
{
	_close_ int yaml = open_in(w->src, "spec.yaml", O_RDONLY, true);
	_close_ int yml = open_in(w->src, "spec.yml", O_RDONLY, true);
	int fd = yaml >= 0 ? yaml : yml;

	if (yaml >= 0 && yml >= 0)
		return err_set(e, -EINVAL, "it has both spec.yaml and spec.yml");
	if (yaml == -ENOENT && yml == -ENOENT)
		return err_set(e, -ENOENT, "it has no spec.yaml");
	if (fd < 0)
		return err_errno(e, yaml == -ENOENT ? yml : yaml, "cannot read spec.yaml");
	return take_file(w, fd, "spec.yaml", KIT_SPEC_MAX, e);
}

static int by_path(const void *a, const void *b)
{
	const struct kit_entry *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* Lengths are not needed: no path or link has a NUL. Folders do not count: git and ZIPs know no empty ones. */
static void seal(struct kit_tree *t)
{
	uint8_t sum[SHA256_SIZE];
	struct sha256 s;

	if (t->n)
		qsort(t->v, t->n, sizeof(*t->v), by_path);
	sha256_init(&s);
	sha256_add(&s, "bac kit 1", 10);
	for (size_t i = 0; i < t->n; i++) {
		const struct kit_entry *f = &t->v[i];
		const char *link = f->link ? f->link : "";

		if (f->kind == KIT_DIR)
			continue;
		sha256_add(&s, &f->kind, 1);
		sha256_add(&s, f->path, strlen(f->path) + 1);
		sha256_add(&s, link, strlen(link) + 1);
		sha256_add(&s, f->sum, sizeof(f->sum));
	}
	sha256_end(&s, sum);
	for (size_t i = 0; i < sizeof(sum); i++)
		(void)snprintf(t->digest + 2 * i, 3, "%02x", sum[i]);
}

int kit_tree_take(int src, int to, struct kit_tree *ret, struct err *e)
{
	struct walk w = { .src = src, .to = to, .top = -1 };
	int r = take_spec(&w, e);

	if (r == 0)
		r = take_files(&w, e);
	if (r < 0) {
		kit_tree_done(&w.t);
		return r;
	}
	seal(&w.t);
	*ret = w.t;
	return 0;
}

int kit_tree_read(int kit, const char *path, size_t max, char **ret, size_t *ret_n, struct err *e)
{
	_close_ int fd = open_in(kit, path, O_RDONLY, false);
	_free_ char *text = NULL;
	ssize_t n;

	if (fd < 0)
		return err_errno(e, fd, "cannot read '%.200s'", path);
	text = malloc(max + 1);
	if (!text)
		return err_errno(e, -ENOMEM, "cannot read '%.200s'", path);
	n = fd_read_all(fd, text, max + 1);
	if (n < 0 || (size_t)n > max)
		return err_errno(e, n < 0 ? (int)n : -EFBIG, "cannot read '%.200s'", path);
	text[n] = '\0';
	*ret = take_ptr(text);
	*ret_n = (size_t)n;
	return 0;
}
