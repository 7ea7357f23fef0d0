/* A copy stream to tar and back says the same; and tars that others make are understood. */
#include "archive/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#include <signal.h>
#include <sys/wait.h>

#include "io/tree-in.h"
#include "io/tree-test.h"

static struct err err;
static struct tree_count count;

static int memory(void)
{
	int fd = memfd_create("test-tar", MFD_CLOEXEC);

	check(fd >= 0);
	return fd;
}

static int again(int fd)
{
	check(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static off_t size_of(int fd)
{
	struct stat st;

	check(fstat(fd, &st) == 0);
	return st.st_size;
}

/* ---- what a stream says, as text: a line for each record ---- */

static void say_file(struct buf *b, struct tree_in *in, uint64_t size)
{
	uint64_t sum = 0, n = 0;
	struct tree_data d;
	size_t i;

	while (tree_in_data(in, &d, &err) > 0) {
		for (i = 0; i < d.n; i++)
			if (d.p[i])
				sum = sum * 31 + d.p[i] * (1 + d.offset + i);
		n += d.n;
	}
	check(n <= size);
	check(buf_printf(b, " size=%llu sum=%llx", (unsigned long long)size,
			 (unsigned long long)sum) == 0);
}

/* 0 and the text in b, or what tree_in_next() says. */
static int describe(struct buf *b, int fd)
{
	struct copy_record m;
	struct tree_in in;
	int r;

	tree_in_init(&in, again(fd));
	while ((r = tree_in_next(&in, &m, &err)) > 0) {
		uint64_t size = m.size;

		if (in.records == 1 && m.kind == COPY_DIR)
			continue; /* the top is the receiver's */
		check(buf_printf(b, "%c %s %o %lld.%u %s", " dflh"[m.kind], m.path, m.mode,
				 (long long)m.mtime, m.mtime_ns, m.target) == 0);
		if (m.kind == COPY_FILE)
			say_file(b, &in, size);
		check(buf_printf(b, "\n") == 0);
	}
	tree_in_done(&in);
	return r;
}

static void same(int a, int b)
{
	struct buf x = BUF_INIT(1 << 20), y = BUF_INIT(1 << 20);

	check(describe(&x, a) == 0 && describe(&y, b) == 0);
	if (!streq(buf_str(&x), buf_str(&y)))
		fprintf(stderr, "--- sent\n%s--- came\n%s", buf_str(&x), buf_str(&y));
	check(streq(buf_str(&x), buf_str(&y)));
	buf_done(&x);
	buf_done(&y);
}

/* ---- there and back ---- */

static int stream(void)
{
	static char large[300000], name[256], path[600], target[1200];
	struct buf b = BUF_INIT(4 << 20);
	int fd;
	size_t i;

	for (i = 0; i < sizeof(large); i++)
		large[i] = (char)(1 + i % 250);
	memset(name, 'n', 255);
	test_dir(&b, "", 0755);
	test_file(&b, "empty", "");
	test_file(&b, "small", "hello\n");
	test_record(&b, (struct copy_record) { .kind = COPY_FILE,
					       .path = "large",
					       .mode = 0751,
					       .mtime = -5,
					       .mtime_ns = 999999999,
					       .size = 5000000 });
	test_extent(&b, 10, large, 100000); /* holes before, between and behind */
	test_extent(&b, 2000000, large, sizeof(large));
	test_extent(&b, 5000000, NULL, 0);
	test_dir(&b, "dir", 0700);
	test_file(&b, "dir/\303\274\342\202\254", "utf8");
	test_file(&b, "dir/\377\376 \n\t\\'\"*", "no text at all");
	test_file(&b, "-rf", "an option");
	test_record(&b, (struct copy_record) { .kind = COPY_LINK,
					       .path = "link",
					       .target = "../else where/\377",
					       .mtime = 77,
					       .mtime_ns = 5 });
	check(snprintf(path, sizeof(path), "dir/%s", name) > 0);
	test_file(&b, path, "long name");
	check(snprintf(path, sizeof(path), "dir/deep/%s/x", name) > 0);
	test_file(&b, path, "long path");
	memset(target, 't', sizeof(target) - 1);
	test_record(&b,
		    (struct copy_record) { .kind = COPY_LINK, .path = "far", .target = target });
	test_link(&b, COPY_HARD, "dir/hard", "small");
	test_link(&b, COPY_HARD, "hard2", "dir/\377\376 \n\t\\'\"*");
	test_end(&b, 14);
	fd = test_input(b.p, b.n);
	buf_done(&b);
	return fd;
}

static void there_and_back(void)
{
	int in = stream(), tar = memory(), back = memory();
	struct tree_count out;

	check(tar_from_copy(again(in), tar, &out, &err) == 0);
	check(out.files == 8 && out.dirs == 2 && out.links == 4);
	check(size_of(tar) > 5000000 && size_of(tar) % 512 == 0);
	check(tar_to_copy(again(tar), back, &count, &err) == 0);
	check(count.files == 8 && count.dirs == 1 && count.links == 4 && count.skipped == 0);
	same(in, back);
	check(close(in) == 0 && close(tar) == 0 && close(back) == 0);
}

/* With a name: everything is below it. */
static void named(void)
{
	struct buf b = BUF_INIT(1 << 20), said = BUF_INIT(1 << 20);
	int in, tar = memory(), back = memory();

	test_dir(&b, "src", 0755);
	test_file(&b, "src/a", "1");
	test_link(&b, COPY_HARD, "src/b", "src/a");
	test_end(&b, 3);
	in = test_input(b.p, b.n);
	buf_done(&b);
	check(tar_from_copy(in, tar, NULL, &err) == 0);
	check(tar_to_copy(again(tar), back, NULL, &err) == 0 && describe(&said, back) == 0);
	check(streq(buf_str(&said),
		    "d src 755 7.0 \nf src/a 644 8.0  size=1 sum=31\nh src/b 0 0.0 src/a\n"));
	buf_done(&said);
	check(close(in) == 0 && close(tar) == 0 && close(back) == 0);

	tar = memory();
	test_file(&b, "just-a-file", "1");
	test_end(&b, 1);
	in = test_input(b.p, b.n);
	buf_done(&b);
	check(tar_from_copy(in, tar, &count, &err) == 0 && count.files == 1);
	check(close(in) == 0 && close(tar) == 0);
}

/* A stream that fails leaves an archive that cannot be taken for a whole one. */
static void failing_stream(void)
{
	struct buf b = BUF_INIT(1 << 20);
	char tail[1024] = { 0 }, zeros[1024] = { 0 };
	int in, tar = memory();

	test_dir(&b, "", 0755);
	test_file(&b, "a", "1");
	test_record(&b, (struct copy_record) { .kind = COPY_FILE, .path = "b", .size = 100000 });
	test_extent(&b, 0, "half", 4);
	in = test_input(b.p, b.n);
	check(tar_from_copy(in, tar, NULL, &err) == -ENODATA);
	check(size_of(tar) < 2 * 1024 || (pread(tar, tail, 1024, size_of(tar) - 1024) == 1024 &&
					  memcmp(tail, zeros, 1024) != 0));
	check(close(in) == 0 && close(tar) == 0);
	test_extent(&b, 100000, NULL, 0);
	test_link(&b, COPY_ERROR, "", "disk on fire");
	in = test_input(b.p, b.n);
	check(tar_from_copy(in, -1, NULL, &err) < 0);
	check(close(in) == 0);
	buf_done(&b);
	in = stream();
	check(tar_from_copy(in, -1, NULL, &err) == -EBADF);
	check(strstr(err.msg, "cannot write the archive: Bad file descriptor"));
	check(close(in) == 0);
}

/* ---- other people's archives ---- */

struct writer {
	struct archive *a;
	int fd;
};

static struct writer begin(int (*format)(struct archive *), int (*filter)(struct archive *))
{
	struct writer w = { .a = archive_write_new(), .fd = memory() };

	check(w.a && format(w.a) == ARCHIVE_OK && (!filter || filter(w.a) >= ARCHIVE_WARN));
	check(archive_write_open_fd(w.a, w.fd) == ARCHIVE_OK);
	return w;
}

static void add(struct writer *w, mode_t type, const char *name, const char *link, const char *text)
{
	struct archive_entry *e = archive_entry_new();

	archive_entry_copy_pathname(e, name);
	archive_entry_set_filetype(e, type);
	archive_entry_set_perm(e, 06755);
	archive_entry_set_mtime(e, 1000, 0);
	archive_entry_set_size(e, text ? (la_int64_t)strlen(text) : 0);
	if (link && type == S_IFLNK)
		archive_entry_copy_symlink(e, link);
	else if (link)
		archive_entry_copy_hardlink(e, link);
	check(archive_write_header(w->a, e) >= ARCHIVE_WARN);
	if (text)
		check(archive_write_data(w->a, text, strlen(text)) == (la_ssize_t)strlen(text));
	archive_entry_free(e);
}

static int finish(struct writer *w)
{
	check(archive_write_free(w->a) == ARCHIVE_OK);
	return again(w->fd);
}

/* The stream that the archive becomes, described; the archive is closed. */
static int read_archive(int tar, struct buf *said)
{
	int back = memory(), r;

	err = (struct err) { 0 };
	r = tar_to_copy(tar, back, &count, &err);
	if (r == 0)
		check(describe(said, back) == 0);
	else
		check(describe(said, back) == -EREMOTEIO && err.msg[0]);
	check(close(tar) == 0 && close(back) == 0);
	return r;
}

static void formats(void)
{
	int (*const kinds[])(struct archive *) = { archive_write_set_format_gnutar,
						   archive_write_set_format_ustar,
						   archive_write_set_format_pax,
						   archive_write_set_format_v7tar };
	int (*const filters[])(struct archive *) = { NULL,
						     archive_write_add_filter_gzip,
						     archive_write_add_filter_bzip2,
						     archive_write_add_filter_xz,
						     archive_write_add_filter_zstd,
						     archive_write_add_filter_lz4 };
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		for (k = 0; k < ARRAY_SIZE(filters); k++) {
			struct buf said = BUF_INIT(1 << 16);
			struct writer w = begin(kinds[i], filters[k]);

			add(&w, S_IFDIR, "./", NULL, NULL);
			add(&w, S_IFDIR, "./d", NULL, NULL);
			add(&w, S_IFREG, ".//d/./f", NULL, "text");
			add(&w, S_IFREG, "/abs", NULL, "x");
			add(&w, S_IFLNK, "l", "/etc/passwd", NULL);
			add(&w, S_IFREG, "h", "./d/f", NULL);
			check(read_archive(finish(&w), &said) == 0);
			check(starts_with(buf_str(&said),
					  "d d 755 1000.0 \nf d/f 755 1000.0  size=4 sum="));
			check(strstr(buf_str(&said),
				     "\nf abs 755 1000.0  size=1 sum=78\n"
				     "l l 0 1000.0 /etc/passwd\nh h 755 1000.0 d/f\n"));
			buf_done(&said);
		}
}

static void odd_archives(void)
{
	struct buf said = BUF_INIT(1 << 16);
	struct writer w = begin(archive_write_set_format_pax, NULL);
	char junk[2048];
	int fd;

	add(&w, S_IFIFO, "fifo", NULL, NULL);
	add(&w, S_IFCHR, "null", NULL, NULL);
	add(&w, S_IFREG, "f", NULL, "x");
	check(read_archive(finish(&w), &said) == 0 && count.skipped == 2 && count.files == 1);
	buf_done(&said);

	w = begin(archive_write_set_format_pax, NULL);
	check(read_archive(finish(&w), &said) == 0 && said.n == 0); /* nothing in it */
	w = begin(archive_write_set_format_pax, NULL);
	add(&w, S_IFREG, "a/../../evil", NULL, "x");
	check(read_archive(finish(&w), &said) == -EINVAL && strstr(err.msg, "disk") == NULL);
	buf_done(&said);
	w = begin(archive_write_set_format_pax, NULL);
	add(&w, S_IFREG, "f", NULL, "x");
	add(&w, S_IFREG, "h", "../f", NULL);
	check(read_archive(finish(&w), &said) == -EINVAL);
	buf_done(&said);

	/* cut within a file, and no archive at all */
	w = begin(archive_write_set_format_pax, NULL);
	add(&w, S_IFREG, "f", NULL, "a text that is cut");
	fd = finish(&w);
	check(ftruncate(fd, 520) == 0);
	check(read_archive(fd, &said) < 0 && starts_with(err.msg, "Truncated") == false);
	buf_done(&said);
	memset(junk, 'j', sizeof(junk));
	check(read_archive(test_input(junk, sizeof(junk)), &said) < 0);
	buf_done(&said);
	check(read_archive(test_input("", 0), &said) == 0 || err.code < 0);
	buf_done(&said);
	check(tar_to_copy(-1, -1, NULL, &err) < 0);
}

/* Paths up to the stream's limit, and beyond. */
static void long_paths(void)
{
	char path[WIRE_PATH_MAX + 2];
	struct buf said = BUF_INIT(1 << 16);
	struct writer w;
	size_t i;

	for (i = 0; i <= WIRE_PATH_MAX; i++)
		path[i] = i % 200 == 199 ? '/' : 'p';
	path[WIRE_PATH_MAX] = '\0';
	w = begin(archive_write_set_format_pax, NULL);
	add(&w, S_IFREG, path, NULL, "x");
	check(read_archive(finish(&w), &said) == 0 && count.files == 1);
	buf_done(&said);
	path[WIRE_PATH_MAX] = 'p';
	path[WIRE_PATH_MAX + 1] = '\0';
	w = begin(archive_write_set_format_pax, NULL);
	add(&w, S_IFREG, path, NULL, "x");
	check(read_archive(finish(&w), &said) == -ENAMETOOLONG);
	buf_done(&said);
	memset(path, 'n', 256);
	path[256] = '\0';
	w = begin(archive_write_set_format_pax, NULL);
	add(&w, S_IFREG, path, NULL, "x");
	check(read_archive(finish(&w), &said) < 0);
	buf_done(&said);
}

/* A reader that goes away is an error, not the end of us. */
static void gone_reader(void)
{
	int p[2], in = stream();

	check(pipe2(p, O_CLOEXEC) == 0 && close(p[0]) == 0);
	check(tar_from_copy(again(in), p[1], NULL, &err) == -EPIPE);
	check(close(p[1]) == 0 && close(in) == 0);
}

int main(void)
{
	check(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	for (const char *const *l = (const char *const[]) { "C", "C.UTF-8", NULL }; *l; l++) {
		if (!setlocale(LC_ALL, *l))
			continue;
		there_and_back();
		named();
		formats();
	}
	failing_stream();
	odd_archives();
	long_paths();
	gone_reader();
	return 0;
}
