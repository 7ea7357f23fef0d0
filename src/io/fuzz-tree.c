/* Any bytes received as a tree: whatever they say, nothing beside the destination is touched, no
 * file that was there gets another name, and no temporary file stays. */
#include "io/tree-test.h"
#include "io/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static char top[64];
static int top_fd = -1;
static struct stat canary_was, top_was;

static void clean_up(void)
{
	test_remove(AT_FDCWD, top);
}

static void set_up(void)
{
	int fd;

	top_fd = test_top(top, "fuzz-tree");
	check(atexit(clean_up) == 0);
	fd = openat(top_fd, "canary", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	check(fd >= 0 && fd_write_all(fd, "canary", 6) == 0 && close(fd) == 0);
	check(mkdirat(top_fd, "dest", 0755) == 0);
	check(fstatat(top_fd, "canary", &canary_was, 0) == 0);
}

/* What the stream may meet: a file, a folder with a file in it, and ways out. */
static void fill(int dest)
{
	int fd = openat(dest, "there", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	check(fd >= 0 && fd_write_all(fd, "old", 3) == 0 && close(fd) == 0);
	check(mkdirat(dest, "dir", 0755) == 0);
	check(symlinkat("..", dest, "out") == 0 && symlinkat("../canary", dest, "way") == 0);
	check(linkat(dest, "there", dest, "dir/there", 0) == 0);
}

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_mode == b->st_mode && a->st_size == b->st_size &&
	       a->st_nlink == b->st_nlink && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_uid == b->st_uid;
}

static void untouched(void)
{
	struct stat st;

	check(fstatat(top_fd, "canary", &st, AT_SYMLINK_NOFOLLOW) == 0 && same(&st, &canary_was));
	check(fstat(top_fd, &st) == 0 && same(&st, &top_was));
}

/* The files that were there have no more names than they had. */
static void not_linked(int old)
{
	struct stat st;

	check(fstat(old, &st) == 0 && st.st_nlink <= 2 && st.st_size == 3);
}

static void receive(const uint8_t *p, size_t n, bool content, const char *name, const char *dest)
{
	struct tree_recv_opts o = { .content = content, .name = name };
	_close_ int in = test_input(p, n), dest_fd = -1, old = -1;
	struct tree_count count;
	struct err e = { 0 };
	int r;

	test_remove(top_fd, "dest");
	check(mkdirat(top_fd, "dest", 0755) == 0);
	dest_fd = openat(top_fd, "dest", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(dest_fd >= 0);
	fill(dest_fd);
	old = openat(dest_fd, "there", O_RDONLY | O_CLOEXEC);
	check(old >= 0 && fstat(top_fd, &top_was) == 0);
	r = tree_recv(in, dest, &o, &count, &e);
	check(r <= 0 && (r == 0 || (e.code == r && e.msg[0])));
	untouched();
	not_linked(old);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char dest[80];

	if (top_fd < 0)
		set_up();
	check(snprintf(dest, sizeof(dest), "%s/dest", top) > 0);
	receive(p, n, true, NULL, dest);
	receive(p, n, false, NULL, dest);
	receive(p, n, false, "dir", dest);
	return 0;
}
