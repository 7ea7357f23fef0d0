/* Everything that can be known of a tree, a line for each name, for a comparison: type, mode, owner, group, size (of files), time
 * to the nanosecond, device, the first name of a file with several, target of a link, extended attributes, sum of the bytes. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

struct seen {
	dev_t dev;
	ino_t ino;
	char *name;
};

static struct seen seen[65536];
static size_t n_seen;
static size_t skip; /* of each path: the top */

static const char *first_name(const struct stat *st, const char *path)
{
	size_t i;

	for (i = 0; i < n_seen; i++)
		if (seen[i].dev == st->st_dev && seen[i].ino == st->st_ino)
			return seen[i].name;
	if (n_seen < sizeof(seen) / sizeof(*seen))
		seen[n_seen++] = (struct seen) { st->st_dev, st->st_ino, strdup(path + skip) };
	return path + skip;
}

static uint64_t sum_of(const char *path)
{
	uint64_t h = 0xcbf29ce484222325;
	int fd = open(path, O_RDONLY);
	static unsigned char buf[65536];
	ssize_t n;

	while (fd >= 0 && (n = read(fd, buf, sizeof(buf))) > 0)
		for (ssize_t i = 0; i < n; i++)
			h = (h ^ buf[i]) * 0x100000001b3;
	if (fd >= 0)
		close(fd);
	return h;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void attributes(const char *path)
{
	static char names[65536];
	static unsigned char value[65536];
	char *list[256];
	size_t k = 0;
	ssize_t n = llistxattr(path, names, sizeof(names)), m;

	for (char *p = names; n > 0 && p < names + n && k < 256; p += strlen(p) + 1)
		list[k++] = p;
	qsort(list, k, sizeof(*list), by_name);
	for (size_t i = 0; i < k; i++) {
		m = lgetxattr(path, list[i], value, sizeof(value));
		printf(" %s=", list[i]);
		for (ssize_t j = 0; j < m; j++)
			printf("%02x", value[j]);
	}
}

static void show(const char *path, const struct stat *st)
{
	char to[4096] = "";
	const char *name = path[skip] ? path + skip : "/";

	printf("%s %06o %u %u %lld.%09ld", name, st->st_mode, st->st_uid, st->st_gid,
	       (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
	if (S_ISREG(st->st_mode))
		printf(" %lld %016llx %s", (long long)st->st_size, (unsigned long long)sum_of(path),
		       first_name(st, path));
	if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode))
		printf(" %u:%u", major(st->st_rdev), minor(st->st_rdev));
	if (S_ISLNK(st->st_mode)) {
		ssize_t n = readlink(path, to, sizeof(to) - 1);

		to[n > 0 ? n : 0] = '\0';
		printf(" -> %s", to);
	}
	attributes(path);
	printf("\n");
}

static void walk(const char *path)
{
	char *list[8192], more[8192];
	struct dirent *e;
	struct stat st;
	size_t n = 0;
	DIR *d;

	if (lstat(path, &st) < 0)
		return;
	show(path, &st);
	d = S_ISDIR(st.st_mode) ? opendir(path) : NULL;
	while (d && (e = readdir(d)) && n < 8192)
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			list[n++] = strdup(e->d_name);
	if (d)
		closedir(d);
	qsort(list, n, sizeof(*list), by_name);
	for (size_t i = 0; i < n; i++) {
		snprintf(more, sizeof(more), "%s/%s", path, list[i]);
		walk(more);
	}
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	skip = strlen(argv[1]);
	walk(argv[1]);
	return 0;
}
