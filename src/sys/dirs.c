/* The user's directories. */
#include "sys/dirs.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "config.h"
#include "io/fd.h"

char *dirs_join(const char *dir, const char *name)
{
	char *s;

	return asprintf(&s, "%s/%s", dir, name) < 0 ? NULL : s;
}

int dirs_make(const char *path)
{
	char buf[PATH_MAX];
	char *p;
	int r;

	r = text_copy(buf, sizeof(buf), path);
	if (r < 0)
		return r;
	for (p = buf + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(buf, 0700) < 0 && errno != EEXIST && access(buf, F_OK) < 0)
			return -errno;
		*p = '/';
	}
	return mkdir(buf, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* What an XDG variable says, or home/fallback. The specification wants absolute paths; others are
 * ignored. */
static char *xdg(const char *var, const char *home, const char *fallback)
{
	const char *v = getenv(var);
	char *s;

	if (v && v[0] == '/')
		return dirs_join(v, "bac");
	return asprintf(&s, "%s/%s/bac", home, fallback) < 0 ? NULL : s;
}

static bool is_ours(const char *path)
{
	struct stat st;

	return path && lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

static int runtime(char **ret, struct err *e)
{
	const char *v = getenv("XDG_RUNTIME_DIR");
	char base[64];
	struct stat st;

	if (v && v[0] == '/') {
		*ret = dirs_join(v, "bac");
		return *ret ? 0 : err_errno(e, -ENOMEM, "cannot name the run directory");
	}
	(void)snprintf(base, sizeof(base), "/run/user/%u", (unsigned)geteuid());
	if (is_ours(base)) {
		*ret = dirs_join(base, "bac");
		return *ret ? 0 : err_errno(e, -ENOMEM, "cannot name the run directory");
	}
	(void)snprintf(base, sizeof(base), "/tmp/bac-%u", (unsigned)geteuid());
	if (mkdir(base, 0700) < 0 && errno != EEXIST)
		return err_errno(e, -errno, "cannot make %s", base);
	if (!is_ours(base) || lstat(base, &st) < 0 || (st.st_mode & 077))
		return err_set(e, -EPERM,
			       "%s belongs to somebody else or is open to others; remove it or set "
			       "XDG_RUNTIME_DIR",
			       base);
	*ret = dirs_join(base, "run");
	return *ret ? 0 : err_errno(e, -ENOMEM, "cannot name the run directory");
}

static int make(const char *path, struct err *e)
{
	int r = dirs_make(path);

	if (r < 0)
		return err_errno(e, r, "cannot make the directory %s", path);
	if (!is_ours(path))
		return err_set(e, -EPERM,
			       "%s belongs to another user; remove it or set the XDG variables "
			       "to a place of your own",
			       path);
	return 0;
}

/* dir/name on the heap if it is there, else the fallback. */
static char *there(const char *dir, const char *name, const char *fallback)
{
	char *path = dirs_join(dir, name);

	if (!path || access(path, X_OK) == 0)
		return path;
	free(path);
	return strdup(fallback);
}

static bool has(const char *dir, const char *name)
{
	_free_ char *path = dirs_join(dir, name);

	return path && access(path, X_OK) == 0;
}

/* Programs and data lie beside the command in a build tree, else where they were installed, else
 * relative to the program (a moved prefix): that is bin/bac, or one in libexec/bac. */
static int programs(struct dirs *d)
{
	char exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n < 0)
		return -errno;
	exe[n] = '\0';
	*strrchr(exe, '/') = '\0';
	if (!has(exe, "bac-supervisor")) {
		d->libexec = there(exe, "../libexec/bac", BAC_LIBEXECDIR);
		d->data = there(exe, "../share/bac", BAC_DATADIR);
	} else {
		d->libexec = strdup(exe);
		d->data = has(exe, "bac") ? strdup(BAC_SOURCE_DIR "/data")
					  : there(exe, "../../share/bac", BAC_DATADIR);
	}
	return d->libexec && d->data ? 0 : -ENOMEM;
}

char *dirs_program(const char *name)
{
	struct dirs d = { 0 };
	char *path = programs(&d) < 0 ? NULL : dirs_join(d.libexec, name);

	dirs_done(&d);
	return path;
}

static int name_all(struct dirs *d, const char *home, struct err *e)
{

	d->config = xdg("XDG_CONFIG_HOME", home, ".config");
	d->state = xdg("XDG_STATE_HOME", home, ".local/state");
	d->cache = xdg("XDG_CACHE_HOME", home, ".cache");
	if (!d->config || !d->state || !d->cache)
		return err_errno(e, -ENOMEM, "cannot name the directories");
	return runtime(&d->run, e);
}

static int make_all(const struct dirs *d, struct err *e)
{
	int r = make(d->state, e);

	if (r == 0)
		r = make(d->cache, e);
	if (r == 0)
		r = make(d->run, e);
	return r;
}

int dirs_get(struct dirs *ret, struct err *e)
{
	const char *home = getenv("HOME");
	struct dirs d = { 0 };
	int r;

	if (!home || home[0] != '/')
		return err_set(e, -EINVAL, "HOME is not set; set it to your home directory");
	r = programs(&d);
	if (r < 0)
		r = err_errno(e, r, "cannot find bac's own programs");
	if (r == 0)
		r = name_all(&d, home, e);
	if (r == 0)
		r = make_all(&d, e);
	if (r < 0) {
		dirs_done(&d);
		return r;
	}
	*ret = d;
	return 0;
}

int dirs_peek(struct dirs *ret)
{
	const char *home = getenv("HOME");
	struct err none = { 0 };
	struct dirs d = { 0 };
	int r;

	if (!home || home[0] != '/')
		return -EINVAL;
	r = name_all(&d, home, &none);
	if (r == 0 && (!is_ours(d.state) || !is_ours(d.run)))
		r = -EPERM;
	if (r < 0) {
		dirs_done(&d);
		return r;
	}
	*ret = d;
	return 0;
}

void dirs_done(struct dirs *d)
{
	free(d->config);
	free(d->state);
	free(d->cache);
	free(d->run);
	free(d->libexec);
	free(d->data);
	*d = (struct dirs) { 0 };
}

static int remove_content(int fd, dev_t dev);

/* NOLINTNEXTLINE(misc-no-recursion): each level holds a descriptor, so their limit is the depth's */
static int remove_one(int at, const char *name, dev_t dev)
{
	_close_ int fd = -1;
	int r, k;

	if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = remove_content(fd, dev);
	k = unlinkat(at, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
	return r < 0 ? r : k;
}

/* NOLINTNEXTLINE(misc-no-recursion): as above */
static int remove_content(int fd, dev_t dev)
{
	struct stat st;
	struct dirent *de;
	int first = 0, r, copy;
	DIR *d;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != dev)
		return -EXDEV;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	d = copy < 0 ? NULL : fdopendir(copy);
	if (!d) {
		r = -errno;
		(void)fd_close(copy);
		return r;
	}
	while ((de = readdir(d))) {
		if (streq(de->d_name, ".") || streq(de->d_name, ".."))
			continue;
		r = remove_one(fd, de->d_name, dev);
		if (r < 0 && !first)
			first = r;
	}
	(void)closedir(d);
	return first;
}

int dirs_remove(int at, const char *name)
{
	struct stat st;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return remove_one(at, name, st.st_dev);
}
