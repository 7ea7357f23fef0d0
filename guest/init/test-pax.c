/* Archives of ours, read by libarchive: what was said comes back. */
#include "guest/init/pax.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "io/fd.h"

#define TEN  "0123456789"
#define LONG TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static struct archive *read_back(int fd)
{
	struct archive *a = archive_read_new();

	check(a && lseek(fd, 0, SEEK_SET) == 0);
	check(archive_read_support_format_tar(a) == ARCHIVE_OK);
	check(archive_read_open_fd(a, fd, 4096) == ARCHIVE_OK);
	return a;
}

static struct archive_entry *next(struct archive *a)
{
	struct archive_entry *e;

	check(archive_read_next_header(a, &e) == ARCHIVE_OK);
	return e;
}

static void the_end(struct archive *a)
{
	struct archive_entry *e;

	check(archive_read_next_header(a, &e) == ARCHIVE_EOF);
	(void)archive_read_free(a);
}

static int memory(void)
{
	int fd = memfd_create("pax", MFD_CLOEXEC);

	check(fd >= 0);
	return fd;
}

static void test_kinds(void)
{
	const struct pax_entry v[] = {
		{ "d", PAX_DIR, 01777, 1, 2, 3, 0 },
		{ "d/" LONG, PAX_FILE, 04755, 2097152, 4294967294U, 1, 5, 3 },
		{ "l", PAX_LINK, 0777, 0, 0, 0, 0, 0, LONG LONG },
		{ "h", PAX_HARD, 0644, 0, 0, 0, 0, 0, "d/" LONG },
		{ "c", PAX_CHAR, 0600, 0, 0, 0, 0, 0, NULL, 5, 300 },
		{ "b", PAX_BLOCK, 0600, 0, 0, 0, 0, 0, NULL, 8, 1 },
		{ "p", PAX_FIFO, 0600, 0, 0, 0, 0 },
		{ "n\377" LONG, PAX_FILE, 0, 0, 0, 0, 0, 0 },
		{ "old", PAX_FILE, 0, 0, 0, -2, 500000000, 0 },
		{ "new", PAX_FILE, 0, 0, 0, 99999999999, 0, 0 },
	};
	_close_ int fd = memory();
	struct archive_entry *e;
	struct archive *a;
	char text[8];
	struct pax x;
	size_t i;

	check(pax_init(&x, fd) == 0);
	for (i = 0; i < ARRAY_SIZE(v); i++) {
		pax_entry(&x, &v[i]);
		pax_data(&x, "abcdef", 6); /* more than was announced */
	}
	check(pax_end(&x) == 0);
	pax_done(&x);

	a = read_back(fd);
	e = next(a);
	check(streq(archive_entry_pathname(e), "d/") && archive_entry_filetype(e) == AE_IFDIR);
	check(archive_entry_perm(e) == 01777 && archive_entry_uid(e) == 1 &&
	      archive_entry_gid(e) == 2);
	check(archive_entry_mtime(e) == 3);
	e = next(a);
	check(streq(archive_entry_pathname(e), "d/" LONG) && archive_entry_size(e) == 3);
	check(archive_entry_uid(e) == 2097152 && archive_entry_gid(e) == 4294967294LL);
	check(archive_entry_mtime(e) == 1 && archive_entry_mtime_nsec(e) == 5);
	check(archive_entry_perm(e) == 04755);
	check(archive_read_data(a, text, sizeof(text)) == 3 && memcmp(text, "abc", 3) == 0);
	check(streq(archive_entry_symlink(next(a)), LONG LONG));
	check(streq(archive_entry_hardlink(next(a)), "d/" LONG));
	e = next(a);
	check(archive_entry_filetype(e) == AE_IFCHR && archive_entry_rdevmajor(e) == 5 &&
	      archive_entry_rdevminor(e) == 300);
	check(archive_entry_filetype(next(a)) == AE_IFBLK);
	check(archive_entry_filetype(next(a)) == AE_IFIFO);
	check(streq(archive_entry_pathname(next(a)), "n\377" LONG));
	e = next(a);
	check(archive_entry_mtime(e) == -1 ||
	      archive_entry_mtime(e) == -2); /* libarchive: -1 and -0.5 */
	check(archive_entry_mtime(next(a)) == 99999999999);
	the_end(a);
}

static void test_xattrs(void)
{
	static const char value[] = "a\0b=\n";
	const struct pax_entry v = { "f", PAX_FILE, 0644, 0, 0, 0, 0, 0 };
	_close_ int fd = memory();
	static char big[60000];
	struct archive_entry *e;
	struct archive *a;
	const char *name;
	const void *p;
	struct pax x;
	size_t n, i;

	check(pax_init(&x, fd) == 0);
	pax_xattr(&x, "user.a", value, sizeof(value));
	pax_xattr(&x, "security.capability", "\1\2", 2);
	pax_entry(&x, &v);
	pax_entry(&x, &v); /* has none */
	check(pax_end(&x) == 0);
	pax_done(&x);
	a = read_back(fd);
	e = next(a);
	check(archive_entry_xattr_reset(e) == 2);
	for (i = 0; i < 2; i++) {
		check(archive_entry_xattr_next(e, &name, &p, &n) == ARCHIVE_OK);
		check(streq(name, "user.a") ? n == sizeof(value) && memcmp(p, value, n) == 0
					    : streq(name, "security.capability") && n == 2);
	}
	check(archive_entry_xattr_reset(next(a)) == 0);
	the_end(a);

	check(pax_init(&x, fd) == 0);
	for (i = 0; i < 40; i++)
		pax_xattr(&x, "user.b", big, sizeof(big));
	pax_entry(&x, &v);
	check(pax_end(&x) == -E2BIG);
	pax_done(&x);
}

static void test_holes(void)
{
	const struct pax_extent v[] = { { 4096, 3 }, { 1 << 20, 2 } };
	struct pax_entry s = { "sparse/" LONG, PAX_FILE, 0600, 0, 0, 0, 0, (3 << 20) };
	_close_ int fd = memory();
	struct archive_entry *e;
	struct archive *a;
	static char back[3 << 20];
	struct pax x;

	check(pax_init(&x, fd) == 0);
	pax_sparse(&x, &s, v, 2);
	pax_data(&x, "abc", 3);
	pax_data(&x, "de", 2);
	pax_sparse(&x, &s, v, 0);
	pax_sparse(&x, &s, v, 2); /* becomes shorter */
	pax_data(&x, "a", 1);
	pax_fill(&x);
	check(pax_end(&x) == 0);
	pax_done(&x);
	check(lseek(fd, 0, SEEK_END) < 20000);
	a = read_back(fd);
	e = next(a);
	check(streq(archive_entry_pathname(e), "sparse/" LONG) && archive_entry_size(e) == 3 << 20);
	check(archive_read_data(a, back, sizeof(back)) ==
	      (1 << 20) + 2); /* a hole at the end is not read */
	check(memcmp(back + 4096, "abc", 4) == 0 && memcmp(back + (1 << 20), "de", 3) == 0);
	e = next(a);
	check(archive_entry_size(e) == 3 << 20);
	e = next(a);
	check(archive_read_data(a, back, sizeof(back)) ==
	      (1 << 20) + 2); /* a hole at the end is not read */
	check(memcmp(back + 4096, "a\0", 3) == 0);
	the_end(a);
}

static void test_no_room(void)
{
	const struct pax_entry v = { "f", PAX_FILE, 0644, 0, 0, 0, 0, 0 };
	_close_ int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct pax x;

	if (fd < 0)
		return;
	check(pax_init(&x, fd) == 0);
	pax_entry(&x, &v);
	check(pax_end(&x) == -ENOSPC);
	pax_done(&x);
}

int main(void)
{
	test_kinds();
	test_xattrs();
	test_holes();
	test_no_room();
	return 0;
}
