/* The cache's directories. */
#include "image/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/layer.h"
#include "image/run.h"
#include "io/fd.h"
#include "sys/dirs.h"
#include "sys/lock.h"

enum { META_MAX = 64 * 1024 };

int image_store_open(const char *cache, const char *kind, int *ret_dir, struct err *e)
{
	_free_ char *path = dirs_join(cache, kind);
	int r, fd;

	if (!path)
		return err_errno(e, -ENOMEM, "cannot open the cache");
	r = dirs_make(path);
	if (r < 0)
		return err_errno(e, r, "cannot make %s", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(e, -errno, "cannot open %s", path);
	*ret_dir = fd;
	return 0;
}

int image_store_tmp(int dir, char name[IMAGE_TMP_MAX], struct err *e)
{
	uint64_t x;

	do {
		if (getrandom(&x, sizeof(x), 0) != sizeof(x))
			return err_errno(e, -EIO, "cannot get random bytes");
		(void)snprintf(name, IMAGE_TMP_MAX, ".tmp-%016llx", (unsigned long long)x);
		if (mkdirat(dir, name, 0700) == 0)
			return 0;
	} while (errno == EEXIST);
	return err_errno(e, -errno, "cannot make a directory in the cache");
}

int image_store_json(int dir, const char *name, const char *file, json_t *j, struct err *e)
{
	_free_ char *text = j ? json_dumps(j, JSON_INDENT(1)) : NULL;
	char path[IMAGE_DIGEST_MAX + 64];
	int r = -ENOMEM;

	json_decref(j);
	(void)snprintf(path, sizeof(path), "%s/%s", name, file);
	if (text)
		r = fd_replace_file(dir, path, 0600, text, strlen(text));
	return r < 0 ? err_errno(e, r, "cannot write %s", file) : 0;
}

/* Sync each file of a flat directory, then the directory. */
static int sync_files(int dir, const char *name)
{
	_close_ int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *de;
	int r = 0, copy;
	DIR *d;

	if (fd < 0)
		return -errno;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	d = copy < 0 ? NULL : fdopendir(copy);
	if (!d) {
		r = -errno;
		(void)fd_close(copy);
		return r;
	}
	while (r == 0 && (de = readdir(d))) {
		_close_ int f = -1;

		if (de->d_name[0] == '.')
			continue;
		f = openat(fd, de->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (f < 0 || fsync(f) < 0)
			r = -errno;
	}
	(void)closedir(d);
	return r == 0 && fsync(fd) < 0 ? -errno : r;
}

json_t *image_store_meta(int dir, const char *name, const char *meta)
{
	_free_ char *text = NULL;
	char path[IMAGE_DIGEST_MAX + 64];
	size_t len;

	(void)snprintf(path, sizeof(path), "%s/%s", name, meta);
	if (fd_read_file(dir, path, META_MAX, &text, &len) < 0)
		return NULL;
	return json_loadb(text, len, 0, NULL);
}

int image_store_commit(int from, const char *tmp, int to, const char *digest, const char *meta,
		       struct err *e)
{
	char aside[IMAGE_TMP_MAX];
	json_t *there;
	int r = sync_files(from, tmp);

	if (r < 0)
		return err_errno(e, r, "cannot write to the cache");
	if (renameat2(from, tmp, to, digest, RENAME_NOREPLACE) == 0)
		return fsync(to) < 0 ? err_errno(e, -errno, "cannot write to the cache") : 0;
	if (errno != EEXIST)
		return err_errno(e, -errno, "cannot write to the cache");
	there = image_store_meta(to, digest, meta);
	json_decref(there);
	if (there)
		return 0;
	r = image_store_tmp(to, aside, e);
	if (r < 0)
		return r;
	if (renameat(to, digest, to, aside) < 0 ||
	    renameat2(from, tmp, to, digest, RENAME_NOREPLACE) < 0)
		return err_errno(e, -errno, "cannot replace a damaged directory in the cache");
	return 0;
}

int image_store_remove(const char *cache, const char *kind, const char *name)
{
	_free_ char *path = NULL;
	_close_ int dir = -1;
	struct err e;
	int r;

	if (image_store_open(cache, kind, &dir, &e) < 0)
		return e.code;
	r = dirs_remove(dir, name);
	if (r != -EACCES && r != -EPERM)
		return r;
	/* Files of a root made in a user namespace: only its root may remove them. */
	if (asprintf(&path, "%s/%s/%s", cache, kind, name) < 0)
		return -ENOMEM;
	return image_run_remove(path);
}

void image_store_clear(const char *cache, const char *kind)
{
	_close_ int dir = -1, copy = -1;
	struct dirent *de;
	struct err e;
	DIR *d;

	if (image_store_open(cache, kind, &dir, &e) < 0)
		return;
	copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = copy < 0 ? NULL : fdopendir(copy);
	if (!d)
		return;
	(void)take_fd(&copy);
	while ((de = readdir(d)))
		if (starts_with(de->d_name, ".tmp-"))
			(void)image_store_remove(cache, kind, de->d_name);
	(void)closedir(d);
}

void image_sweep(const char *cache)
{
	static const char *const kinds[] = { IMAGE_TEMPLATES, IMAGE_KERNELS, IMAGE_LAYERS };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		_close_ int dir = -1, lock = -1;
		struct err e;

		if (image_store_open(cache, kinds[i], &dir, &e) < 0 ||
		    lock_take(dir, ".lock", false, false, &lock) < 0)
			continue;
		image_store_clear(cache, kinds[i]);
	}
}
