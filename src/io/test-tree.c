/* Trees sent and received, in a folder of their own: where things go, and that they arrive whole. */
#include "io/tree.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "io/tree-test.h"

static struct err sender_err, err;
static struct tree_count sent, got;

struct result {
	int r;
	struct err e;
	struct tree_count count;
};

/* Send in a child, receive here. What tree_recv() said; the sender's word is in sender_err. */
static int copy(const char *src, const struct tree_send_opts *so, const char *dest,
		const struct tree_recv_opts *ro)
{
	struct result result = { 0 };
	int data[2], back[2], status, r;
	pid_t pid;

	check(pipe2(data, O_CLOEXEC) == 0 && pipe2(back, O_CLOEXEC) == 0);
	pid = fork();
	check(pid >= 0);
	if (pid == 0) {
		(void)close(data[0]);
		result.r = tree_send(data[1], src, so, &result.count, &result.e);
		_exit(fd_write_all(back[1], &result, sizeof(result)) != 0);
	}
	check(close(data[1]) == 0 && close(back[1]) == 0);
	err = (struct err) { 0 };
	r = tree_recv(data[0], dest, ro, &got, &err);
	check(close(data[0]) == 0);
	check(fd_read_all(back[0], &result, sizeof(result)) == sizeof(result));
	check(waitpid(pid, &status, 0) == pid && status == 0 && close(back[0]) == 0);
	sender_err = result.e;
	sent = result.count;
	check((r == 0) == !err.msg[0] || r == 0);
	return r;
}

static const struct tree_send_opts plain_send;
static const struct tree_recv_opts plain_recv;

static int cp(const char *src, const char *dest)
{
	return copy(src, &plain_send, dest, &plain_recv);
}

static void put(const char *path, const char *text, mode_t mode)
{
	_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	check(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0 && fchmod(fd, mode) == 0);
}

static bool holds(const char *path, const char *text)
{
	_free_ char *have = NULL;
	struct stat st;

	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	return fd_read_file(AT_FDCWD, path, 1 << 20, &have, NULL) == 0 && streq(have, text);
}

static bool is_dir(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_link(const char *path, const char *target)
{
	char have[5000] = "";

	return readlink(path, have, sizeof(have) - 1) >= 0 && streq(have, target);
}

static bool missing(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 && errno == ENOENT;
}

/* How many entries, hidden ones too: a temporary file that stays is noticed. */
static size_t entries(const char *path)
{
	DIR *d = opendir(path);
	size_t n = 0;

	check(d);
	while (readdir(d))
		n++;
	check(closedir(d) == 0);
	return n - 2;
}

static void make(const char *path)
{
	check(mkdir(path, 0755) == 0 && chmod(path, 0755) == 0);
}

static void gone(const char *path)
{
	test_remove(AT_FDCWD, path);
}

static struct stat stat_of(const char *path)
{
	struct stat st;

	check(lstat(path, &st) == 0);
	return st;
}

/* ---- where things go ---- */

/* The destination is made as told, the copy is done, and what must be there is. `at` is where the
 * source's file "f" (or the file itself) is found; NULL: refused with `r`. */
struct place {
	char dest_is;    /* '-' missing, 'd' directory, 'f' file, 'l' link to a directory,
			    * 'F' link to a file, 'x' link to nothing */
	const char *src; /* "file", "dir", "link", "dir/." */
	const char *dest;
	bool to_dir;
	const char *at;
	int r;
};

static const struct place places[] = {
	{ '-', "file", "new", false, "new", 0 },
	{ '-', "file", "new/", false, "new/file", 0 },
	{ '-', "file", "new", true, "new/file", 0 },
	{ '-', "file", "new/.", false, "new/file", 0 },
	{ '-', "file", "a/b/c", false, "a/b/c", 0 },
	{ '-', "file", "a/b/c//", false, "a/b/c/file", 0 },
	{ '-', "file", "./a//b/c", false, "a/b/c", 0 },
	{ 'd', "file", "d", false, "d/file", 0 },
	{ 'd', "file", "d/", false, "d/file", 0 },
	{ 'd', "file", "d", true, "d/file", 0 },
	{ 'd', "file", "d/x", false, "d/x", 0 },
	{ 'd', "file", "d/../d/x/y", false, "d/x/y", 0 },
	{ 'f', "file", "f", false, "f", 0 },
	{ 'f', "file", "f/", false, NULL, -ENOTDIR },
	{ 'f', "file", "f", true, NULL, -ENOTDIR },
	{ 'f', "file", "f/x", false, NULL, -ENOTDIR },
	{ 'l', "file", "l", false, "d/file", 0 },
	{ 'l', "file", "l/x", false, "d/x", 0 },
	{ 'F', "file", "F", false, "F", 0 },
	{ 'F', "file", "F/", false, NULL, -ENOTDIR },
	{ 'x', "file", "x", false, "x", 0 },
	{ 'x', "file", "x/", false, NULL, -ENOTDIR },
	{ 'x', "file", "x/y", false, NULL, -ENOTDIR },
	{ '-', "file", "..", false, NULL, 1 }, /* the folder above: into it */
	{ '-', "file", "new/..", false, NULL, -ENOENT },
	{ '-', "file", "", false, NULL, -EINVAL },

	{ '-', "dir", "new", false, "new/f", 0 },
	{ '-', "dir", "new/", false, "new/f", 0 },
	{ '-', "dir", "new", true, "new/f", 0 },
	{ '-', "dir", "a/b", false, "a/b/f", 0 },
	{ '-', "dir/", "new", false, "new/f", 0 },
	{ 'd', "dir", "d", false, "d/dir/f", 0 },
	{ 'd', "dir/", "d/", false, "d/dir/f", 0 },
	{ 'f', "dir", "f", false, NULL, -ENOTDIR },
	{ 'f', "dir", "f/", false, NULL, -ENOTDIR },
	{ 'l', "dir", "l", false, "d/dir/f", 0 },
	{ 'F', "dir", "F", false, NULL, -ENOTDIR },
	{ 'x', "dir", "x", false, NULL, -ENOTDIR },

	{ '-', "dir/.", "new", false, "new/f", 0 },
	{ '-', "dir/.", "a/b/", false, "a/b/f", 0 },
	{ 'd', "dir/.", "d", false, "d/f", 0 },
	{ 'd', "dir/.", "d/.", false, "d/f", 0 },
	{ 'f', "dir/.", "f", false, NULL, -ENOTDIR },
	{ 'l', "dir/.", "l", false, "d/f", 0 },
	{ 'x', "dir/.", "x", false, NULL, -ENOTDIR },
};

static void prepare(char dest_is)
{
	switch (dest_is) {
	case 'l':
		check(symlink("d", "l") == 0);
		__attribute__((fallthrough));
	case 'd':
		make("d");
		put("d/kept", "kept", 0600);
		break;
	case 'F':
		check(symlink("f", "F") == 0);
		__attribute__((fallthrough));
	case 'f':
		put("f", "old", 0600);
		break;
	case 'x':
		check(symlink("nothing", "x") == 0);
		break;
	default:
		break;
	}
}

static void one_place(const struct place *p)
{
	bool content = p->src[strlen(p->src) - 1] == '.';
	struct tree_recv_opts ro = { .to_dir = p->to_dir, .content = content };
	char src[64];
	int r;

	make("place");
	check(chdir("place") == 0);
	prepare(p->dest_is);
	check(snprintf(src, sizeof(src), "../src/%s", p->src) > 0);
	r = copy(src, &plain_send, p->dest, &ro);
	if (r != (p->r == 1 ? 0 : p->r))
		fprintf(stderr, "%s to %c '%s': %d %s\n", p->src, p->dest_is, p->dest, r, err.msg);
	check(r == (p->r == 1 ? 0 : p->r));
	if (p->at)
		check(holds(p->at, "text"));
	if (p->dest_is == 'd' || p->dest_is == 'l')
		check(holds("d/kept", "kept"));
	if (p->dest_is == 'F' || (p->dest_is == 'f' && r < 0))
		check(holds("f", "old"));
	if (p->dest_is == 'x')
		check(missing("nothing"));
	if (r < 0 && !strchr("dlFfx", p->dest_is))
		check(entries(".") == 0);
	check(chdir("..") == 0);
	gone("place");
}

static void all_places(void)
{
	size_t i;

	make("src");
	make("src/dir");
	put("src/file", "text", 0644);
	put("src/dir/f", "text", 0644);
	check(symlink("nowhere", "src/link") == 0);
	for (i = 0; i < ARRAY_SIZE(places); i++)
		one_place(&places[i]);
	check(holds("file", "text")); /* from the row with ".." */
	gone("file");

	/* links are copied as links, and with follow as what they point to */
	check(cp("src/link", "l") == 0 && is_link("l", "nowhere") && got.links == 1);
	check(cp("src/link", "src") == 0 && is_link("src/link", "nowhere"));
	check(cp("src/link", "l") == 0 && is_link("l", "nowhere"));
	check(symlink("dir", "src/to-dir") == 0 && symlink("file", "src/to-file") == 0);
	check(cp("src/to-dir", "t") == 0 && is_link("t", "dir"));
	gone("t");
	check(cp("src/to-dir/", "t") == 0 && holds("t/f", "text")); /* as the kernel reads it */
	gone("t");
	check(copy("src/to-dir", &(struct tree_send_opts) { .follow = true }, "t", &plain_recv) ==
	      0);
	check(is_dir("t") && holds("t/f", "text"));
	gone("t");
	make("t");
	check(copy("src/to-file", &(struct tree_send_opts) { .follow = true }, "t", &plain_recv) ==
	      0);
	check(holds("t/to-file", "text"));
	gone("t");
	check(copy("src/to-dir", &(struct tree_send_opts) { .content = true }, "t",
		   &(struct tree_recv_opts) { .content = true }) == 0);
	check(holds("t/f", "text"));
	gone("t");
	gone("l");
}

/* What the receiver asked for counts, not what the sender calls it. */
static void names_are_the_receivers(void)
{
	check(copy("src/file", &plain_send, ".", &(struct tree_recv_opts) { .name = "mine" }) == 0);
	check(holds("mine", "text") && missing("file"));
	gone("mine");
	make("d");
	check(copy("src/dir", &plain_send, "d", &(struct tree_recv_opts) { .name = "mine" }) == 0);
	check(holds("d/mine/f", "text"));
	check(copy("src/dir", &plain_send, "d", &(struct tree_recv_opts) { .content = true }) ==
	      -EPROTO);
	check(copy("src/dir/.", &plain_send, "d", &plain_recv) == -EPROTO);
	check(entries("d") == 1);
	for (const char *const *bad = (const char *const[]) { "", ".", "..", "a/b", "/", NULL };
	     *bad; bad++)
		check(copy("src/file", &plain_send, "d",
			   &(struct tree_recv_opts) { .name = *bad }) == -EINVAL);
	check(entries("d") == 1);
	gone("d");
}

static void source_faults(void)
{
	check(cp("none", "t") == -EREMOTEIO && missing("t"));
	check(sender_err.code == -ENOENT);
	check(streq(err.msg, "cannot copy 'none': No such file or directory"));
	check(streq(err.msg, sender_err.msg));
	check(copy("src/file/.", &plain_send, "t", &(struct tree_recv_opts) { .content = true }) ==
	      -EREMOTEIO);
	check(missing("t"));
	check(cp("", "t") == -EREMOTEIO && sender_err.code == -EINVAL);
	check(mkfifo("fifo", 0600) == 0);
	check(cp("fifo", "t") == -EREMOTEIO && sender_err.code == -EINVAL && missing("t"));
	check(strstr(err.msg, "is a device, FIFO or socket"));
	gone("fifo");
}

/* ---- that they arrive whole ---- */

static void set_time(const char *path, int64_t s, long ns)
{
	struct timespec t[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = s, .tv_nsec = ns } };

	check(utimensat(AT_FDCWD, path, t, AT_SYMLINK_NOFOLLOW) == 0);
}

static void modes_and_times(void)
{
	static const mode_t modes[] = { 0644, 0755, 0400, 0000, 0777, 04755, 02711 };
	struct stat a, b;
	char path[64];
	size_t i;

	make("m");
	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		check(snprintf(path, sizeof(path), "m/%04o", modes[i]) > 0);
		put(path, path, modes[i] & (geteuid() ? 07777 | 0400 : 07777) ? modes[i] : 0400);
		set_time(path, 1000000000 + (int64_t)i, 123456789 + (long)i);
	}
	put("m/old", "", 0600);
	set_time("m/old", -86400, 5);
	check(symlink("0644", "m/link") == 0);
	set_time("m/link", 1234567890, 987654321);
	make("m/closed");
	put("m/closed/f", "x", 0600);
	check(chmod("m/closed", 0500) == 0);
	set_time("m/closed", 1111111111, 1);
	set_time("m", 1222222222, 2);
	check(cp("m", "t") == 0);
	check(got.files == sent.files && got.files == ARRAY_SIZE(modes) + 2 && got.dirs == 2);
	check(got.links == 1 && got.bytes == sent.bytes && got.bytes == 6 * ARRAY_SIZE(modes) + 1);
	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		check(snprintf(path, sizeof(path), "m/%04o", modes[i]) > 0);
		a = stat_of(path);
		path[0] = 't';
		b = stat_of(path);
		check((b.st_mode & 07777) == (a.st_mode & 0777)); /* no setuid, no setgid */
		check(b.st_mtim.tv_sec == a.st_mtim.tv_sec &&
		      b.st_mtim.tv_nsec == a.st_mtim.tv_nsec);
	}
	for (const char *const *p = (const char *const[]) { "old", "link", "closed", "", NULL }; *p;
	     p++) {
		check(snprintf(path, sizeof(path), "m/%s", *p) > 0);
		a = stat_of(path);
		path[0] = 't';
		b = stat_of(path);
		check(b.st_mode == a.st_mode && b.st_mtim.tv_sec == a.st_mtim.tv_sec &&
		      b.st_mtim.tv_nsec == a.st_mtim.tv_nsec);
	}
	gone("m");
	gone("t");
}

static void any_names(void)
{
	char name[256], path[300];
	unsigned c;

	make("n");
	for (c = 1; c < 256; c++) {
		if (c == '/')
			continue;
		check(snprintf(path, sizeof(path), "n/x%c", (char)c) == 4);
		put(path, path, 0600);
	}
	memset(name, 'n', 255);
	name[255] = '\0';
	check(snprintf(path, sizeof(path), "n/%s", name) > 0);
	put(path, "long", 0600);
	put("n/.bac-cp-aaaaaa", "mine", 0600);
	check(cp("n", "t") == 0 && entries("t") == 256);
	check(snprintf(path, sizeof(path), "t/%s", name) > 0);
	check(holds(path, "long") && holds("t/.bac-cp-aaaaaa", "mine"));
	for (c = 1; c < 256; c++) {
		if (c == '/')
			continue;
		check(snprintf(path, sizeof(path), "t/x%c", (char)c) == 4);
		path[0] = 'n';
		memcpy(name, path, 5);
		path[0] = 't';
		check(holds(path, name));
	}
	gone("n");
	gone("t");
}

static void hard_links(void)
{
	struct stat a, b;

	make("h");
	make("h/sub");
	put("h/a", "one", 0600);
	check(link("h/a", "h/b") == 0 && link("h/a", "h/sub/c") == 0 &&
	      link("h/a", "outside") == 0);
	put("h/sub/d", "two", 0600);
	check(link("h/sub/d", "elsewhere") == 0);
	check(symlink("a", "h/s1") == 0 && link("h/s1", "h/s2") == 0);
	for (int twice = 0; twice < 2; twice++) { /* also over what is there */
		check(copy("h/.", &plain_send, "t", &(struct tree_recv_opts) { .content = true }) ==
		      0);
		check(sent.files == 2 && sent.links == 4 && got.files == 2 && got.links == 4);
		a = stat_of("t/a");
		b = stat_of("t/sub/c");
		check(a.st_ino == b.st_ino && a.st_nlink == 3 && holds("t/b", "one"));
		check(stat_of("t/sub/d").st_nlink == 1 && holds("t/sub/d", "two"));
		check(is_link("t/s2", "a"));
		check(entries("t") == 5 && entries("t/sub") == 2);
	}
	gone("h");
	gone("t");
	gone("outside");
	gone("elsewhere");
}

/* 5 GiB with 1 MiB in it, in five places, and a hole at the end. */
static void sparse(void)
{
	const off_t size = (off_t)5 << 30;
	_free_ char *data = malloc(1 << 20), *back = malloc(1 << 20);
	static const off_t at[] = { 0, (off_t)1 << 30, ((off_t)3 << 30) + 4096, (off_t)4 << 30 };
	struct stat st;
	size_t i;
	int fd = open("big", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	check(data && back && fd >= 0 && ftruncate(fd, size) == 0);
	for (i = 0; i < 1 << 20; i++)
		data[i] = (char)(1 + i % 251);
	for (i = 0; i < ARRAY_SIZE(at); i++)
		check(pwrite(fd, data + i * 262144, 262144, at[i]) == 262144);
	check(fstat(fd, &st) == 0 && close(fd) == 0);
	if (st.st_blocks > 8192) {
		gone("big"); /* no holes on this file system */
		return;
	}
	check(cp("big", "t") == 0 && got.bytes <= 2 << 20);
	st = stat_of("t");
	check(st.st_size == size && st.st_blocks <= 8192);
	fd = open("t", O_RDONLY | O_CLOEXEC);
	check(fd >= 0);
	for (i = 0; i < ARRAY_SIZE(at); i++) {
		check(pread(fd, back, 262144, at[i]) == 262144);
		check(!memcmp(back, data + i * 262144, 262144));
		check(pread(fd, back, 4096, at[i] + 262144) == 4096);
		check(!back[0] && !memcmp(back, back + 1, 4095));
	}
	check(close(fd) == 0);
	gone("big");
	gone("t");
}

/* Sizes around every border of a buffer, with holes at the start, in the middle and at the end. */
static void all_sizes(void)
{
	static const size_t sizes[] = { 0,     1,     4095,   4096,   65523,  65524,   65535,
					65536, 65537, 131071, 131072, 131073, 1048576, 3000001 };
	_free_ char *data = malloc(3000001);
	_free_ char *back = NULL;
	char path[32];
	size_t i, n;
	int fd;

	check(data);
	make("z");
	for (i = 0; i < 3000001; i++)
		data[i] = (char)(i * 2654435761U >> 23);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		check(snprintf(path, sizeof(path), "z/%zu", sizes[i]) > 0);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		check(fd >= 0 && fd_write_all(fd, data, sizes[i]) == 0 && close(fd) == 0);
		check(snprintf(path, sizeof(path), "z/h%zu", sizes[i]) > 0);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		check(fd >= 0 && ftruncate(fd, (off_t)sizes[i]) == 0);
		if (sizes[i] > 2)
			check(pwrite(fd, "x", 1, (off_t)sizes[i] / 2) == 1);
		check(close(fd) == 0);
	}
	check(cp("z", "t") == 0);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		check(snprintf(path, sizeof(path), "t/%zu", sizes[i]) > 0);
		free(take_ptr(back));
		check(fd_read_file(AT_FDCWD, path, SIZE_MAX, &back, &n) == 0 && n == sizes[i]);
		check(!memcmp(back, data, n));
		check(snprintf(path, sizeof(path), "t/h%zu", sizes[i]) > 0);
		free(take_ptr(back));
		check(fd_read_file(AT_FDCWD, path, SIZE_MAX, &back, &n) == 0 && n == sizes[i]);
		if (n > 2) {
			check(back[n / 2] == 'x');
			back[n / 2] = '\0';
		}
		check(!n || (!back[0] && !memcmp(back, back + 1, n - 1)));
	}
	gone("z");
	gone("t");
}

/* A tree of folders "d", with a file "f" in the last. */
static void dig(int depth)
{
	int i, fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), next;

	for (i = 0; i < depth; i++) {
		check(fd >= 0 && mkdirat(fd, "d", 0750) == 0);
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		check(close(fd) == 0);
		fd = next;
		check(symlinkat("x", fd, "after") == 0); /* visited after "d": we must come back */
		if (i == depth - 1) {
			next = openat(fd, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
			check(next >= 0 && fd_write_all(next, "deep", 4) == 0 && close(next) == 0);
		}
	}
	check(close(fd) == 0);
}

static int depth_of(const char *path)
{
	int n = 0, fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), next;
	struct stat st;

	for (; fd >= 0; fd = next, n++) {
		check(fstatat(fd, "after", &st, AT_SYMLINK_NOFOLLOW) == 0);
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (next < 0)
			check(fstatat(fd, "f", &st, 0) == 0 && st.st_size == 4);
		check(close(fd) == 0);
	}
	return n;
}

static void deep(void)
{
	static const char dest[] =
		"a-destination-whose-own-name-is-not-short/so-that-together-they-are-too-long";
	int depth = (WIRE_PATH_MAX + 1 - 6) / 2; /* "d/d/.../after" and no byte more */
	struct rlimit files = { 0 }, few;

	check(getrlimit(RLIMIT_NOFILE, &files) == 0);
	few = files;
	few.rlim_cur = 256;
	dig(depth + 1);
	check(setrlimit(RLIMIT_NOFILE, &few) == 0);
	check(cp("d", dest) == -EREMOTEIO && strstr(err.msg, "its path is too long"));
	check(setrlimit(RLIMIT_NOFILE, &files) == 0);
	gone("a-destination-whose-own-name-is-not-short");
	gone("d");
	dig(depth);
	check(setrlimit(RLIMIT_NOFILE, &few) == 0);
	check(cp("d", dest) == 0);
	check(setrlimit(RLIMIT_NOFILE, &files) == 0);
	check(depth_of(dest) == depth && got.dirs == (uint64_t)depth);
	gone("a-destination-whose-own-name-is-not-short");
	gone("d");
}

static void special_files(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX, .sun_path = "s/socket" };
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	make("s");
	check(s >= 0 && bind(s, (struct sockaddr *)&sa, sizeof(sa)) == 0 && close(s) == 0);
	check(mkfifo("s/fifo", 0600) == 0);
	put("s/f", "x", 0600);
	check(cp("s", "t") == 0 && sent.skipped == 2 && entries("t") == 1);
	/* and where they are in the way */
	put("fifo", "x", 0600);
	check(cp("fifo", "s/fifo") == -EEXIST && S_ISFIFO(stat_of("s/fifo").st_mode));
	check(strstr(err.msg, "it stays as it is"));
	gone("fifo");
	gone("s");
	gone("t");
	/* files that do not tell their size */
	check(cp("/proc/self/status", "t") == 0 && stat_of("t").st_size > 100);
	gone("t");
	if (access("/proc/kallsyms", R_OK) == 0 && cp("/proc/kallsyms", "t") < 0)
		check(strstr(err.msg, "does not tell its size") && missing("t"));
	gone("t");
}

/* Many folders: what they shall be at the end does not fit into memory. */
static void many_dirs(void)
{
	char path[300], name[200];
	int i;

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	make("w");
	for (i = 0; i < 1500; i++) {
		check(snprintf(path, sizeof(path), "w/%s%d", name, i) > 0);
		check(mkdir(path, 0700) == 0 && chmod(path, 0500 | (unsigned)(i % 64)) == 0);
		set_time(path, i, i);
	}
	set_time("w", 99, 0);
	check(cp("w", "t") == 0 && entries("t") == 1500);
	for (i = 0; i < 1500; i++) {
		check(snprintf(path, sizeof(path), "t/%s%d", name, i) > 0);
		check((stat_of(path).st_mode & 07777) == (0500 | (unsigned)(i % 64)));
		check(stat_of(path).st_mtim.tv_sec == i && stat_of(path).st_mtim.tv_nsec == i);
	}
	check(stat_of("t").st_mtim.tv_sec == 99);
	gone("w");
	gone("t");
}

/* ---- onto what is there ---- */

static void merging(void)
{
	struct stat before;

	make("s");
	make("s/sub");
	put("s/f", "new", 0755);
	put("s/sub/g", "new", 0600);
	check(symlink("new", "s/l") == 0);
	make("t");
	make("t/s");
	make("t/s/sub");
	check(chmod("t/s/sub", 0711) == 0);
	set_time("t/s/sub", 5, 5);
	put("t/s/f", "old", 0600);
	put("t/s/kept", "kept", 0600);
	put("t/s/l", "old", 0600);
	before = stat_of("t/s/f");
	check(cp("s", "t") == 0);
	check(holds("t/s/f", "new") && stat_of("t/s/f").st_ino != before.st_ino);
	check((stat_of("t/s/f").st_mode & 07777) == 0755);
	check(holds("t/s/kept", "kept") && holds("t/s/sub/g", "new") && is_link("t/s/l", "new"));
	check((stat_of("t/s/sub").st_mode & 07777) == 0711); /* theirs, as it was */
	check(entries("t/s") == 4);

	/* a link where a file goes is replaced, not followed */
	gone("t/s/f");
	put("victim", "safe", 0600);
	check(symlink("../../victim", "t/s/f") == 0);
	check(cp("s", "t") == 0 && holds("t/s/f", "new") && holds("victim", "safe"));

	/* a directory where a file goes, a file or a link where a directory goes */
	gone("t/s/f");
	make("t/s/f");
	check(cp("s", "t") == -EISDIR && is_dir("t/s/f"));
	check(streq(err.msg, "'t/s/f' is a directory; remove it, or copy to another place"));
	gone("t/s/f");
	gone("t/s/sub");
	put("t/s/sub", "file", 0600);
	check(cp("s", "t") == -ENOTDIR && holds("t/s/sub", "file"));
	check(starts_with(err.msg, "'t/s/sub' exists and is not a directory"));
	gone("t/s/sub");
	make("aside");
	check(symlink("../../aside", "t/s/sub") == 0);
	check(cp("s", "t") == -ENOTDIR && entries("aside") == 0);
	gone("t");
	gone("s");
	gone("aside");
	gone("victim");
}

static void owners(void)
{
	struct tree_recv_opts ro = { .set_owner = true, .uid = 12345, .gid = 54321 };
	struct stat st;

	if (geteuid() != 0)
		return;
	make("s");
	put("s/f", "x", 0644);
	put("s/old", "new", 0644);
	check(symlink("f", "s/l") == 0 && link("s/f", "s/h") == 0);
	make("there");
	make("there/s");
	put("there/s/old", "old", 0600);
	check(chown("there/s/old", 7, 8) == 0);
	check(copy("s", &plain_send, "made/of/new", &ro) == 0);
	for (const char *const *p =
		     (const char *const[]) { "made", "made/of", "made/of/new", "made/of/new/f",
					     "made/of/new/l", "made/of/new/h", NULL };
	     *p; p++) {
		st = stat_of(*p);
		check(st.st_uid == 12345 && st.st_gid == 54321);
	}
	check(copy("s", &plain_send, "there", &ro) == 0 && holds("there/s/old", "new"));
	st = stat_of("there/s/old");
	check(st.st_uid == 7 && st.st_gid == 8); /* who had it keeps it */
	check(stat_of("there/s").st_uid == 0 && stat_of("there/s/f").st_uid == 12345);
	gone("s");
	gone("made");
	gone("there");
}

/* ---- when it goes wrong ---- */

/* Run in a child as an ordinary user, whoever we are. */
static void as_nobody(void (*fn)(void))
{
	int status;
	pid_t pid = fork();

	check(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0)
			check(setgid(65534) == 0 && setuid(65534) == 0);
		fn();
		_exit(0);
	}
	check(waitpid(pid, &status, 0) == pid && status == 0);
}

static void unreadable(void)
{
	check(cp("u/s", "u/t") == -EREMOTEIO && sender_err.code == -EACCES);
	check(streq(err.msg, "cannot open 'u/s/b': Permission denied"));
	/* what came before is whole, what failed is not there */
	check(missing("u/t/a") || holds("u/t/a", "fine"));
	check(missing("u/t/b") && entries("u/t") <= 1);
	gone("u/t");
	check(cp("u/closed", "u/t") == -EREMOTEIO && sender_err.code == -EACCES);
	check(cp("u/closed/x", "u/t") == -EREMOTEIO && missing("u/t"));
	check(cp("u/s/a", "u/closed/x") == -EACCES &&
	      streq(err.msg, "cannot open 'u/closed/x': Permission denied"));
	check(cp("u/s/a", "u/mine/x") == 0 && holds("u/mine/x", "fine"));
	check(cp("u/s/a", "u/readonly/x") == -EACCES && cp("u/s/a", "u/readonly/new/x") == -EACCES);
}

static void permissions(void)
{
	make("u");
	check(chmod("u", 0777) == 0 && chmod(".", 0755) == 0);
	make("u/s");
	put("u/s/a", "fine", 0644);
	put("u/s/b", "secret", 0);
	make("u/mine");
	check(chmod("u/mine", 0777) == 0);
	make("u/readonly");
	check(chmod("u/readonly", 0555) == 0);
	check(mkdir("u/closed", 0) == 0);
	as_nobody(unreadable);
	gone("u");
}

static int bytes_in(int fd)
{
	int n = 0;

	check(ioctl(fd, FIONREAD, &n) == 0);
	return n;
}

/* A sender whose pipe is full: it has read the start of src and waits. */
static pid_t stuck_sender(const char *src, int *ret_fd)
{
	int p[2];
	pid_t pid;

	check(pipe2(p, O_CLOEXEC) == 0 && fcntl(p[0], F_SETPIPE_SZ, 65536) >= 65536);
	pid = fork();
	check(pid >= 0);
	if (pid == 0) {
		(void)close(p[0]);
		_exit(tree_send(p[1], src, &plain_send, NULL, &err) == 0 ? 0 : 1);
	}
	check(close(p[1]) == 0);
	while (bytes_in(p[0]) < 65536)
		check(usleep(1000) == 0);
	*ret_fd = p[0];
	return pid;
}

static void fill_file(const char *path, size_t size)
{
	_close_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char block[65536];
	size_t n;

	check(fd >= 0);
	memset(block, 'b', sizeof(block));
	for (n = 0; n < size; n += sizeof(block))
		check(fd_write_all(fd, block, sizeof(block)) == 0);
}

static void shrinking(void)
{
	int fd, status;
	pid_t pid;

	fill_file("s", 4 << 20);
	put("t", "old", 0600);
	pid = stuck_sender("s", &fd);
	check(truncate("s", 65536) == 0);
	check(tree_recv(fd, "t", &plain_recv, &got, &err) == -EREMOTEIO);
	check(streq(err.msg, "'s' became shorter while it was read; copy it again"));
	check(holds("t", "old") && close(fd) == 0);
	check(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 1);
	gone("s");
	gone("t");
}

static void sender_killed(void)
{
	int fd, status;
	pid_t pid;

	make("d");
	fill_file("s", 4 << 20);
	put("d/t", "old", 0600);
	pid = stuck_sender("s", &fd);
	check(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
	check(tree_recv(fd, "d/t", &plain_recv, &got, &err) == -ENODATA);
	check(streq(err.msg, "the copy is not complete: the sender stopped"));
	check(holds("d/t", "old") && entries("d") == 1 && close(fd) == 0);
	gone("s");
	gone("d");
}

static void receiver_killed(void)
{
	int p[2], status, i;
	pid_t pid;
	struct buf b = BUF_INIT(1 << 20);

	make("d");
	put("d/t", "old", 0600);
	test_record(&b, (struct copy_record) { .kind = COPY_FILE, .path = "s", .size = 100 });
	test_extent(&b, 0, "half", 4);
	check(pipe2(p, O_CLOEXEC) == 0);
	pid = fork();
	check(pid >= 0);
	if (pid == 0) {
		(void)close(p[1]);
		_exit(tree_recv(p[0], "d/t", &plain_recv, NULL, &err) == 0 ? 0 : 1);
	}
	check(close(p[0]) == 0 && fd_write_all(p[1], b.p, b.n) == 0);
	for (i = 0; i < 100; i++)
		check(usleep(1000) == 0); /* it has taken these and waits for more */
	check(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
	check(holds("d/t", "old") && close(p[1]) == 0);
	buf_done(&b);
	gone("d");
}

static void receiver_gone(void)
{
	int p[2];

	put("s", "x", 0600);
	check(pipe2(p, O_CLOEXEC) == 0 && close(p[0]) == 0);
	check(tree_send(p[1], "s", &plain_send, &sent, &err) == -EPIPE && err.msg[0]);
	check(close(p[1]) == 0);
	gone("s");
}

/* ---- on a small disk, in a namespace of our own ---- */

static void small_disk(void)
{
	make("disk");
	if (mount("tmpfs", "disk", "tmpfs", 0, "size=1m,mode=755") < 0)
		_exit(77);
	put("disk/t", "old", 0600);
	fill_file("s", 4 << 20);
	check(cp("s", "disk/t") == -ENOSPC && holds("disk/t", "old") && entries("disk") == 1);
	check(streq(err.msg, "cannot write 'disk/t': No space left on device"));
	make("many");
	put("many/a", "small", 0600);
	fill_file("many/b", 4 << 20);
	check(cp("many", "disk") == -ENOSPC && missing("disk/many/b") && entries("disk/many") == 1);
	check(holds("disk/many/a", "small"));
	gone("disk/many");
	/* a hole needs no room; and without /proc there are names from the start */
	check(truncate("s", 0) == 0 && truncate("s", (off_t)1 << 30) == 0);
	check(cp("s", "disk/hole") == 0 && stat_of("disk/hole").st_size == (off_t)1 << 30);
	check(unlink("disk/hole") == 0);
}

static void without_proc(void)
{
	if (mount("tmpfs", "/proc", "tmpfs", 0, NULL) < 0)
		_exit(77);
	fill_file("s", 4 << 20);
	check(cp("s", "disk/t") == -ENOSPC && holds("disk/t", "old") && entries("disk") == 1);
	check(truncate("s", 100000) == 0);
	check(cp("s", "disk/t") == 0 && stat_of("disk/t").st_size == 100000 &&
	      entries("disk") == 1);
	check(cp("s", "disk/new") == 0 && entries("disk") == 2);
	make("disk/dir");
	check(mkdir("mine", 0700) == 0 && rename("s", "mine/dir") == 0);
	check(cp("mine/dir", "disk") == -EISDIR && entries("disk") == 3);
	many_dirs();
}

static bool write_to(const char *path, const char *text)
{
	_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0;
}

/* A mount namespace; without root in a user namespace, where we are root. */
static bool enter_namespace(void)
{
	unsigned uid = geteuid(), gid = getegid();
	char map[32];

	if (!uid)
		return unshare(CLONE_NEWNS) == 0;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || !write_to("/proc/self/setgroups", "deny"))
		return false;
	check(snprintf(map, sizeof(map), "0 %u 1", uid) > 0);
	if (!write_to("/proc/self/uid_map", map))
		return false;
	check(snprintf(map, sizeof(map), "0 %u 1", gid) > 0);
	return write_to("/proc/self/gid_map", map);
}

static void in_namespace(void)
{
	int status;
	pid_t pid = fork();

	check(pid >= 0);
	if (pid == 0) {
		if (!enter_namespace())
			_exit(77);
		if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(77);
		small_disk();
		without_proc();
		check(umount("disk") == 0);
		_exit(0);
	}
	check(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		printf("not tested here: a full disk (no mount namespace)\n");
	else
		check(status == 0);
	for (const char *const *p = (const char *const[]) { "disk", "s", "many", "mine", NULL }; *p;
	     p++)
		gone(*p);
}

int main(void)
{
	char top[64];
	int dir;

	(void)umask(077); /* modes come from the stream */
	check(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	dir = test_top(top, "test-tree");
	check(fchdir(dir) == 0 && close(dir) == 0);
	all_places();
	names_are_the_receivers();
	source_faults();
	gone("src");
	modes_and_times();
	any_names();
	hard_links();
	sparse();
	all_sizes();
	deep();
	special_files();
	many_dirs();
	merging();
	owners();
	permissions();
	shrinking();
	sender_killed();
	receiver_killed();
	receiver_gone();
	in_namespace();
	check(entries(".") == 0 && chdir("/") == 0 && rmdir(top) == 0);
	return 0;
}
