#pragma once
/* For tests and fuzzers of trees only: a stream made by hand, and the removal of whatever it made. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "io/fd.h"
#include "wire/copy.h"

/* Remove name in dir with all that is below it, whatever its modes. */
static inline void test_remove(int dir, const char *name)
{
	struct dirent *d;
	DIR *list;
	int fd;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return;
	(void)fchmodat(dir, name, 0700, 0);
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	check(fd >= 0);
	list = fdopendir(fd);
	check(list);
	while ((d = readdir(list)))
		if (!streq(d->d_name, ".") && !streq(d->d_name, ".."))
			test_remove(fd, d->d_name);
	check(closedir(list) == 0);
	check(unlinkat(dir, name, AT_REMOVEDIR) == 0);
}

/* Make a folder for a test and open it: in memory if there is such a place, where many small files
 * are made ten times as fast. */
static inline int test_top(char dst[64], const char *name)
{
	const char *where = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	struct rlimit files;
	int fd;

	/* for test_remove(), which is simple */
	check(getrlimit(RLIMIT_NOFILE, &files) == 0);
	files.rlim_cur = files.rlim_max;
	check(setrlimit(RLIMIT_NOFILE, &files) == 0);
	check(snprintf(dst, 64, "%s/%s-XXXXXX", where, name) < 64 && mkdtemp(dst));
	fd = open(dst, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(fd >= 0);
	return fd;
}

/* Append a record; texts that are not given are empty. */
static inline void test_record(struct buf *b, struct copy_record m)
{
	uint8_t bytes[COPY_RECORD_MAX];
	size_t len;

	m.path = m.path ? m.path : "";
	m.target = m.target ? m.target : "";
	check(copy_record_put(bytes, &len, &m) == 0);
	check(buf_add(b, bytes, len) == 0);
}

/* Append an extent; without bytes it ends the file. */
static inline void test_extent(struct buf *b, uint64_t offset, const void *p, size_t n)
{
	uint8_t head[COPY_EXTENT_HEAD];

	copy_extent_put(head, (struct copy_extent) { offset, (uint32_t)n });
	check(buf_add(b, head, sizeof(head)) == 0 && buf_add(b, p, n) == 0);
}

static inline void test_dir(struct buf *b, const char *path, uint32_t mode)
{
	test_record(b, (struct copy_record) {
			       .kind = COPY_DIR, .path = path, .mode = mode, .mtime = 7 });
}

static inline void test_file(struct buf *b, const char *path, const char *text)
{
	size_t n = strlen(text);

	test_record(b,
		    (struct copy_record) {
			    .kind = COPY_FILE, .path = path, .mode = 0644, .mtime = 8, .size = n });
	if (n)
		test_extent(b, 0, text, n);
	test_extent(b, n, NULL, 0);
}

static inline void test_link(struct buf *b, enum copy_kind kind, const char *path,
			     const char *target)
{
	test_record(b,
		    (struct copy_record) { .kind = (uint8_t)kind, .path = path, .target = target });
}

static inline void test_end(struct buf *b, uint64_t records)
{
	test_record(b, (struct copy_record) { .kind = COPY_END, .size = records });
}

/* A descriptor from which these bytes can be read. */
static inline int test_input(const void *p, size_t n)
{
	int fd = memfd_create("input", MFD_CLOEXEC);

	check(fd >= 0);
	check(fd_write_all(fd, p, n) == 0 && lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}
