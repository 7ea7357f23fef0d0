/* Streams that no honest sender makes: nothing beside the destination changes, and what was there
 * is neither opened through a link nor given another name. */
#include <signal.h>

#include "io/tree-test.h"
#include "io/tree.h"

static struct buf s = BUF_INIT(8 << 20);
static uint64_t records;
static struct err err;
static int top_fd;

/* ---- streams ---- */

static void rec(enum copy_kind kind, const char *path, const char *target)
{
	test_link(&s, kind, path, target);
	records++;
}

static void dir(const char *path)
{
	test_dir(&s, path, 0755);
	records++;
}

static void file(const char *path, const char *text)
{
	test_file(&s, path, text);
	records++;
}

static void file_head(const char *path, uint64_t size)
{
	test_record(&s, (struct copy_record) { .kind = COPY_FILE, .path = path, .size = size });
	records++;
}

static void end(void)
{
	test_end(&s, records);
}

/* A record that copy_record_put() would not make: be32 lengths and texts by hand. */
static void raw(uint8_t kind, uint32_t mode, const char *path, const char *target)
{
	uint8_t b[COPY_RECORD_MAX];
	struct wr w = wr_init(b, sizeof(b));

	wr_u8(&w, kind);
	wr_u8(&w, 0);
	wr_be16(&w, 0);
	wr_be32(&w, mode);
	wr_be64(&w, 0);
	wr_be32(&w, 0);
	wr_be64(&w, 0);
	wr_str(&w, path);
	wr_str(&w, target);
	check(wr_ok(&w) && buf_add(&s, b, w.n) == 0);
	if (kind == COPY_FILE)
		test_extent(&s, 0, NULL, 0);
	records++;
}

/* ---- the place: dest/, and a canary beside it ---- */

static void put(int at, const char *name, const char *text)
{
	_close_ int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	check(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
}

static bool holds(const char *path, const char *text)
{
	_free_ char *have = NULL;

	return fd_read_file(top_fd, path, 4096, &have, NULL) == 0 && streq(have, text);
}

static bool missing(const char *path)
{
	return faccessat(top_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

static size_t entries(const char *path)
{
	int fd = openat(top_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fdopendir(fd);
	size_t n = 0;

	check(d);
	while (readdir(d))
		n++;
	check(closedir(d) == 0);
	return n - 2;
}

static void place(void)
{
	test_remove(top_fd, "dest");
	test_remove(top_fd, "aside");
	check(mkdirat(top_fd, "dest", 0755) == 0 && mkdirat(top_fd, "aside", 0755) == 0);
	put(top_fd, "dest/there", "old");
	put(top_fd, "aside/canary", "canary");
	check(symlinkat("../aside", top_fd, "dest/way") == 0);
	check(symlinkat("../aside/canary", top_fd, "dest/to-canary") == 0);
}

/* Receive what was made into a fresh place; a new stream begins. */
static int receive_with(const struct tree_recv_opts *o)
{
	_close_ int in = test_input(buf_data(&s), s.n);
	struct stat st;
	int r;

	place();
	err = (struct err) { 0 };
	r = tree_recv(in, "dest", o, NULL, &err);
	check(r == 0 || (err.code == r && err.msg[0]));
	buf_consume(&s, s.n);
	records = 0;
	check(holds("aside/canary", "canary") && entries("aside") == 1 && entries(".") == 2);
	check(fstatat(top_fd, "aside/canary", &st, 0) == 0 && st.st_nlink == 1);
	check((st.st_mode & 07777) == 0600);
	return r;
}

static int receive(void)
{
	return receive_with(&(struct tree_recv_opts) { .content = true });
}

/* ---- ways out ---- */

static void through_links(void)
{
	static const char *const targets[] = { "..", "../aside", "/tmp", "/", ".", "there" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(targets); i++) {
		dir("");
		rec(COPY_LINK, "out", targets[i]);
		file("out/evil", "evil");
		end();
		check(receive() == -ENOTDIR);
		check(streq(err.msg, "'dest/out' is not a directory; nothing is put into it"));
		dir("");
		rec(COPY_LINK, "out", targets[i]);
		dir("out/evil");
		end();
		check(receive() == -ENOTDIR);
		dir("");
		rec(COPY_LINK, "out", targets[i]);
		rec(COPY_LINK, "out/evil", "x");
		end();
		check(receive() == -ENOTDIR);
		dir("");
		rec(COPY_LINK, "out", targets[i]);
		dir("out");
		end();
		check(receive() == -ENOTDIR && !missing("dest/out"));
	}
	/* a link that was there before us */
	dir("");
	file("way/evil", "evil");
	end();
	check(receive() == -ENOTDIR);
	/* a link in place of a file is replaced, also one that leads to a file */
	dir("");
	file("to-canary", "mine");
	end();
	check(receive() == 0 && holds("dest/to-canary", "mine"));
}

/* The directory into which we have just written becomes a link. */
static void swapped(void)
{
	dir("");
	dir("d");
	file("d/f", "1");
	rec(COPY_LINK, "d", "../aside");
	file("d/g", "evil");
	end();
	check(receive() == -EISDIR && holds("dest/d/f", "1") && missing("dest/d/g"));
	dir("");
	file("x", "1");
	rec(COPY_LINK, "x", "../aside");
	dir("x/y");
	end();
	check(receive() == -ENOTDIR);
}

static void foreign_hard_links(void)
{
	struct stat st;

	dir("");
	rec(COPY_HARD, "h", "there"); /* in the destination, but not of this copy */
	end();
	check(receive() == -EPROTO && missing("dest/h"));
	check(streq(err.msg, "'dest/h' was sent as a link to a file outside the copy"));
	check(fstatat(top_fd, "dest/there", &st, 0) == 0 && st.st_nlink == 1 &&
	      entries("dest") == 3);
	dir("");
	rec(COPY_LINK, "l", "../aside/canary");
	rec(COPY_HARD, "h", "l");
	end();
	check(receive() == -EPROTO && missing("dest/h") && entries("dest") == 4);
	dir("");
	rec(COPY_HARD, "h", "way/canary");
	end();
	check(receive() == -ENOTDIR || err.code == -ELOOP);
	dir("");
	rec(COPY_HARD, "h", "none");
	end();
	check(receive() == -ENOENT);
	dir("");
	dir("d");
	rec(COPY_HARD, "h", "d");
	end();
	check(receive() < 0 && missing("dest/h"));
	/* a file of ours that was replaced is not ours any more, but the new one is */
	dir("");
	file("a", "1");
	file("a", "22");
	rec(COPY_HARD, "b", "a");
	rec(COPY_HARD, "b", "a");
	rec(COPY_HARD, "a", "b");
	end();
	check(receive() == 0 && holds("dest/a", "22") && holds("dest/b", "22") &&
	      entries("dest") == 5);
	check(fstatat(top_fd, "dest/a", &st, 0) == 0 && st.st_nlink == 2);
}

static void bad_paths(void)
{
	static const char *const bad[] = { "/evil", "../evil", "a/../../evil", ".",
					   "..",    "a//b",    "a/",           "./a" };
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		for (k = COPY_DIR; k <= COPY_HARD; k++) {
			dir("");
			raw((uint8_t)k, 0, bad[i], k == COPY_LINK || k == COPY_HARD ? "x" : "");
			end();
			check(receive() == -EPROTO && entries("dest") == 3);
		}
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		dir("");
		raw(COPY_HARD, 0, "h", bad[i]);
		end();
		check(receive() == -EPROTO);
	}
	dir("");
	raw(COPY_FILE, 04755, "setuid", "");
	end();
	check(receive() == -EPROTO && missing("dest/setuid"));
}

/* ---- the order of things ---- */

static void tops(void)
{
	const struct tree_recv_opts named = { .name = "mine" };

	/* nothing but what was asked for, whatever it calls itself */
	file(".bashrc", "evil");
	end();
	check(receive_with(&named) == 0 && holds("dest/mine", "evil") && missing("dest/.bashrc"));
	dir(".ssh");
	file(".ssh/authorized_keys", "evil");
	end();
	check(receive_with(&named) == 0 && holds("dest/mine/authorized_keys", "evil"));
	check(missing("dest/.ssh"));
	dir("");
	file(".bashrc", "evil");
	end();
	check(receive_with(&named) == -EPROTO && entries("dest") == 3);
	file("f", "x");
	end();
	check(receive() == -EPROTO && entries("dest") == 3);

	dir("a/b"); /* a top is one name */
	end();
	check(receive_with(&named) == -EPROTO);
	dir("a");
	file("b/c", "beside the top");
	end();
	check(receive_with(&named) == -EPROTO);
	dir("a");
	file("ab", "beside the top");
	end();
	check(receive_with(&named) == -EPROTO && missing("dest/ab"));
	dir("a");
	dir("a");
	end();
	check(receive_with(&named) == -EPROTO);
	file("a", "1");
	file("b", "2");
	end();
	check(receive_with(&named) == -EPROTO && missing("dest/b"));
	dir("a");
	rec(COPY_HARD, "a/h", "b");
	end();
	check(receive_with(&named) == -EPROTO);
	rec(COPY_HARD, "a", "b");
	end();
	check(receive_with(&named) == -EPROTO);
	dir("");
	dir("");
	end();
	check(receive() == -EPROTO);
}

static void ends(void)
{
	end();
	check(receive() == -EPROTO);
	check(receive() == -ENODATA); /* nothing at all */
	dir("");
	check(receive() == -ENODATA);
	dir("");
	file("a", "1"); /* complete, but nobody says that it is */
	check(receive() == -ENODATA && missing("dest/a"));
	dir("");
	file("a", "1");
	records++;
	end();
	check(receive() == -EPROTO && missing("dest/a"));
	dir("");
	file("a", "1");
	rec(COPY_ERROR, "", "disk on fire\033[2J");
	check(receive() == -EREMOTEIO && missing("dest/a"));
	check(streq(err.msg, "disk on fire?[2J"));
	dir("");
	file("a", "1");
	file("b", "2");
	rec(COPY_ERROR, "", "disk on fire");
	check(receive() == -EREMOTEIO && holds("dest/a", "1") && missing("dest/b"));
	dir("");
	file("a", "1");
	end();
	check(buf_add(&s, "and more", 8) == 0);
	check(receive() == 0 && holds("dest/a", "1"));
}

static void extents(void)
{
	dir("");
	file_head("a", 10);
	test_extent(&s, 5, "12345", 5);
	test_extent(&s, 4, "1", 1); /* back */
	check(receive() == -EPROTO && missing("dest/a"));
	dir("");
	file_head("a", 10);
	test_extent(&s, 5, "123456", 6); /* beyond */
	check(receive() == -EPROTO && entries("dest") == 3);
	dir("");
	file_head("a", INT64_MAX); /* no file system holds it, or it is all hole */
	test_extent(&s, INT64_MAX, NULL, 0);
	end();
	check(receive() == 0 || err.code == -EFBIG || err.code == -EINVAL);
	dir("");
	file_head("there", 10);
	test_extent(&s, 0, "half", 4);
	check(receive() == -ENODATA && holds("dest/there", "old") && entries("dest") == 3);
	dir("");
	file_head("a", 3);
	test_extent(&s, 1, "x", 1);
	test_extent(&s, 2, NULL, 0);
	end();
	check(receive() == 0);
}

/* Implied folders, and more of them than anybody needs. */
static void shapes(void)
{
	char path[WIRE_PATH_MAX + 1];
	size_t i;

	dir("");
	file("p/q/r", "x");
	end();
	check(receive() == 0 && holds("dest/p/q/r", "x"));
	dir("");
	file("there/x", "x");
	end();
	check(receive() == -ENOTDIR && holds("dest/there", "old"));
	dir("");
	dir("there");
	end();
	check(receive() == -ENOTDIR);
	for (i = 0; i < WIRE_PATH_MAX; i++)
		path[i] = i % 2 ? '/' : 'd';
	path[i] = '\0';
	dir("");
	file(path, "deep");
	end();
	check(receive() == 0);
	path[WIRE_PATH_MAX - 2] = '\0'; /* ...d/d and then no file in it, and back up */
	dir("");
	dir(path);
	test_dir(&s, "d", 0);
	records++;
	end();
	check(receive() == 0); /* made for the first one: its mode is not set by the second */
}

int main(void)
{
	char top[64];

	top_fd = test_top(top, "test-tree-hostile");
	check(fchdir(top_fd) == 0 && signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	through_links();
	swapped();
	foreign_hard_links();
	bad_paths();
	tops();
	ends();
	extents();
	shapes();
	buf_done(&s);
	check(close(top_fd) == 0 && chdir("/") == 0);
	test_remove(AT_FDCWD, top);
	return 0;
}
