/* The small parts of a copy: names, sets, notes, temporary files. */
#include "io/tree-links.h"
#include "io/tree-made.h"
#include "io/tree-names.h"
#include "io/tree-notes.h"
#include "io/tree-show.h"
#include "io/tree-test.h"
#include "io/tree-tmp.h"
#include "io/tree.h"

static void source_names(void)
{
	static const struct {
		const char *path;
		int r;
		const char *name;
	} rows[] = {
		{ "a", 1, "a" },      { "a/b", 1, "b" },     { "/a/b/", 1, "b" },
		{ "a//b//", 1, "b" }, { "/", 0, "" },        { "//", 0, "" },
		{ ".", 0, "" },       { "..", 0, "" },       { "a/.", 0, "" },
		{ "a/..", 0, "" },    { "./", 0, "" },       { "a/./", 0, "" },
		{ "...", 1, "..." },  { "a/.b", 1, ".b" },   { "..b", 1, "..b" },
		{ "", -EINVAL, "" },  { "a/ \n", 1, " \n" },
	};
	char name[COPY_NAME_MAX + 1], longer[COPY_NAME_MAX + 2];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		name[0] = '\0';
		check(tree_source_name(rows[i].path, name) == rows[i].r);
		check(streq(name, rows[i].name));
	}
	memset(longer, 'n', sizeof(longer));
	longer[COPY_NAME_MAX + 1] = '\0';
	check(tree_source_name(longer, name) == -ENAMETOOLONG);
	check(tree_source_name(longer + 1, name) == 1 && strlen(name) == COPY_NAME_MAX);
}

static void shown_paths(void)
{
	char dst[TREE_SHOW_MAX], longer[5000];
	struct err e;

	check(streq(tree_show(dst, "/a", ""), "/a") &&
	      streq(tree_show(dst, "/a", "b/c"), "/a/b/c"));
	check(streq(tree_show(dst, "/a/", "b"), "/a/b") && streq(tree_show(dst, "/", "b"), "/b"));
	memset(longer, 'l', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	check(streq(tree_show(dst, longer, "b"), ".../b"));
	check(strlen(tree_show(dst, "/a", longer)) == TREE_SHOW_MAX - 1 &&
	      starts_with(dst, "...l"));
	check(strlen(tree_show(dst, longer, "")) == TREE_SHOW_MAX - 1 && starts_with(dst, "...l"));
	for (size_t n = TREE_SHOW_MAX - 10; n < TREE_SHOW_MAX + 10; n++) {
		check(strlen(tree_show(dst, "/a", longer + sizeof(longer) - 1 - n)) <
		      TREE_SHOW_MAX);
		check(strlen(tree_show(dst, longer + sizeof(longer) - 1 - n, "x")) < TREE_SHOW_MAX);
	}
	check(tree_fault(&e, -ENOSPC, "cannot write", longer, longer) == -ENOSPC);
	check(strstr(e.msg, "': No space left on device") &&
	      starts_with(e.msg, "cannot write '...l"));
}

/* The first COPY_LINKS_MAX are kept, and no others. */
static void made_files(void)
{
	struct tree_made *m = NULL;
	ino_t i;

	check(!tree_made_has(m, 1, 1));
	tree_made_forget(m, 1, 1);
	for (i = 1; i <= COPY_LINKS_MAX; i++)
		check(tree_made_add(&m, i % 3, i * 4096) == 0);
	check(tree_made_add(&m, 9, 9) == 0);
	for (i = 1; i <= COPY_LINKS_MAX; i++)
		check(tree_made_has(m, i % 3, i * 4096) && !tree_made_has(m, i % 3 + 1, i * 4096));
	check(!tree_made_has(m, 9, 9) && !tree_made_has(m, 0, 1) && !tree_made_has(m, 1, 0));
	for (i = 2; i <= COPY_LINKS_MAX; i += 2)
		tree_made_forget(m, i % 3, i * 4096);
	for (i = 1; i <= COPY_LINKS_MAX; i++)
		check(tree_made_has(m, i % 3, i * 4096) == i % 2);
	check(!tree_made_free(m));

	m = NULL; /* forgotten and made again, often: the set does not fill up with graves */
	for (i = 0; i < 10000; i++) {
		check(tree_made_add(&m, 1, 1 + i % 200) == 0 && tree_made_has(m, 1, 1 + i % 200));
		tree_made_forget(m, 1, 1 + i % 200);
		check(!tree_made_has(m, 1, 1 + i % 200));
	}
	check(!tree_made_free(m));
}

static void seen_links(void)
{
	struct tree_links *l = NULL;
	struct stat st = { .st_dev = 1, .st_nlink = 3 };
	char path[32];
	ino_t i;

	for (i = 0; i < 5000; i++) {
		st.st_ino = i;
		check(snprintf(path, sizeof(path), "p%lu", (unsigned long)i) > 0);
		check(!tree_links_seen(&l, &st, path));
	}
	st.st_dev = 2;
	check(!tree_links_seen(&l, &st, "elsewhere"));
	st.st_dev = 1;
	for (i = 0; i < 5000; i += 3) {
		st.st_ino = i;
		check(snprintf(path, sizeof(path), "p%lu", (unsigned long)i) > 0);
		check(streq(tree_links_seen(&l, &st, "x"), path));
		check(streq(tree_links_seen(&l, &st, "y"), path)); /* the last of its names */
		check(!tree_links_seen(&l, &st, "new"));           /* it had become another file */
	}
	check(!tree_links_free(l) && !tree_links_free(NULL));
}

static void names(int top)
{
	static const char *const want[] = { "\n", " a", "-x", ".h", "B", "a", "b", "\377" };
	struct tree_names n;
	size_t i;
	int fd;

	check(mkdirat(top, "names", 0700) == 0);
	fd = openat(top, "names", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(fd >= 0 && tree_names_read(&n, fd) == 0 && n.n == 0);
	tree_names_done(&n);
	for (i = ARRAY_SIZE(want); i--;)
		check(mkdirat(fd, want[i], 0700) == 0);
	for (int twice = 0; twice < 2; twice++) {
		check(tree_names_read(&n, fd) == 0 && n.n == ARRAY_SIZE(want));
		for (i = 0; i < n.n; i++)
			check(streq(n.v[i], want[i]));
		tree_names_done(&n);
	}
	check(tree_names_read(&n, -1) == -EBADF);
	check(close(fd) == 0);
}

/* More than fits into memory; back in reverse, each as it was. */
static void notes(int top, int count, size_t path_len)
{
	char path[WIRE_PATH_MAX + 1], longer[WIRE_PATH_MAX + 1];
	struct tree_notes n;
	struct copy_record m = { 0 };
	int i;

	tree_notes_init(&n);
	memset(longer, 'p', sizeof(longer));
	longer[path_len] = '\0';
	for (i = 0; i < count; i++) {
		m = (struct copy_record) { .path = longer + i % 100,
					   .mode = (uint32_t)i & 0777,
					   .mtime = -i,
					   .mtime_ns = (uint32_t)i };
		check(tree_notes_add(&n, top, &m) == 0);
	}
	while (i--) {
		check(tree_notes_pop(&n, &m, path) == 1);
		check(streq(m.path, longer + i % 100) && m.mode == ((unsigned)i & 0777));
		check(m.mtime == -i && m.mtime_ns == (uint32_t)i);
	}
	check(tree_notes_pop(&n, &m, path) == 0 && tree_notes_pop(&n, &m, path) == 0);
	tree_notes_done(&n);
}

static void beneath(int top)
{
	int fd;

	check(mkdirat(top, "in", 0700) == 0 && mkdirat(top, "in/deep", 0700) == 0);
	check(symlinkat("..", top, "in/up") == 0 && symlinkat("deep", top, "in/side") == 0);
	check(symlinkat("/tmp", top, "in/abs") == 0);
	fd = openat(top, "in", O_PATH | O_DIRECTORY | O_CLOEXEC);
	check(fd >= 0);
	check(tree_open_beneath(fd, "..", O_PATH) == -EXDEV);
	check(tree_open_beneath(fd, "/tmp", O_PATH) == -EXDEV);
	check(tree_open_beneath(fd, "deep/../..", O_PATH) == -EXDEV);
	check(tree_open_beneath(fd, "up", O_PATH | O_DIRECTORY) == -ENOTDIR ||
	      tree_open_beneath(fd, "up", O_PATH | O_DIRECTORY) == -ELOOP);
	check(tree_open_beneath(fd, "up/names", O_PATH) == -ELOOP);
	check(tree_open_beneath(fd, "abs/x", O_PATH) == -ELOOP);
	check(tree_open_beneath(fd, "side/x", O_PATH) == -ELOOP);
	check(tree_open_beneath(fd, "none", O_PATH) == -ENOENT);
	check(close(tree_open_beneath(fd, "deep", O_PATH | O_DIRECTORY)) == 0);
	check(close(tree_open_beneath(fd, ".", O_RDONLY | O_DIRECTORY)) == 0);
	check(close(fd) == 0);
}

static void temporaries(int top)
{
	char a[TREE_TMP_MAX], b[TREE_TMP_MAX];
	struct tree_names n;
	struct stat st;
	int fd, dir;

	tree_tmp_name(a);
	tree_tmp_name(b);
	check(starts_with(a, ".bac-cp-") && strlen(a) == 14 && !streq(a, b));
	check(mkdirat(top, "tmp", 0700) == 0);
	dir = openat(top, "tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = tree_tmp_nameless(dir);
	check(dir >= 0 && fd >= 0 && fstat(fd, &st) == 0 && st.st_nlink == 0);
	check((st.st_mode & 07777) == 0600 && close(fd) == 0);
	fd = tree_tmp_open(dir, a);
	check(fd >= 0);
	if (!a[0]) { /* this file system can */
		check(tree_tmp_place(fd, dir, "x") == 0);
		check(close(fd) == 0);
		fd = tree_tmp_open(dir, a);
		check(fd >= 0 && tree_tmp_place(fd, dir, "x") == 0); /* in place of the first */
		check(fstat(fd, &st) == 0 && st.st_nlink == 1);
		check(mkdirat(dir, "d", 0700) == 0);
		check(close(fd) == 0);
		fd = tree_tmp_open(dir, a);
		check(fd >= 0 && tree_tmp_place(fd, dir, "d") == -EISDIR);
		check(close(fd) == 0);
		fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		check(fd >= 0 && tree_names_read(&n, fd) == 0 && n.n == 2); /* "d" and "x" */
		tree_names_done(&n);
	}
	check(close(fd) == 0 && close(dir) == 0);
}

int main(void)
{
	char top[64];
	int dir;

	source_names();
	shown_paths();
	made_files();
	seen_links();
	dir = test_top(top, "test-tree-parts");
	names(dir);
	notes(dir, 0, 100);
	notes(dir, 1, 0);
	notes(dir, 1, WIRE_PATH_MAX);
	notes(dir, 100, 100);
	notes(dir, 100, WIRE_PATH_MAX);
	notes(dir, 20000, 101);
	beneath(dir);
	temporaries(dir);
	check(close(dir) == 0);
	test_remove(AT_FDCWD, top);
	return 0;
}
