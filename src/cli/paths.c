/* Which folders may be shared.
 *
 * A sandbox sees a folder at the path that it has on the host. So besides what would hand out the user's own
 * secrets (home, bac's state) there is what would cover the guest's own system: its /usr, its /proc. */
#include "cli/paths.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

void path_done(struct box_share *p)
{
	free(p->path);
	free(p->alias);
	*p = (struct box_share) { 0 };
}

/* a is dir, or lies below it. */
static bool within(const char *a, const char *dir)
{
	size_t n = strlen(dir);

	return n && strncmp(a, dir, n) == 0 && (a[n] == '\0' || a[n] == '/' || dir[n - 1] == '/');
}

/* The absolute path of a word as the user wrote it, without ".", ".." and double slashes; "" where ".."
 * makes that meaningless. */
static void spelled(char dst[PATH_MAX], const char *word)
{
	const char *pwd = getenv("PWD");
	char cwd[PATH_MAX], raw[2 * PATH_MAX], *part, *rest = NULL;
	struct stat a, b;
	size_t n = 0;

	dst[0] = '\0';
	if (!getcwd(cwd, sizeof(cwd)))
		return;
	/* the shell's idea of where we are, if it is where we are */
	if (pwd && pwd[0] == '/' && strlen(pwd) < sizeof(cwd) && stat(pwd, &a) == 0 &&
	    stat(".", &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
		(void)snprintf(cwd, sizeof(cwd), "%s", pwd);
	(void)snprintf(raw, sizeof(raw), "%s/%s", word[0] == '/' ? "" : cwd, word);
	for (part = strtok_r(raw, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
		size_t len = strlen(part);

		if (streq(part, "."))
			continue;
		if (streq(part, "..") || n + len + 2 > PATH_MAX) {
			dst[0] = '\0';
			return;
		}
		dst[n++] = '/';
		memcpy(dst + n, part, len + 1);
		n += len;
	}
}

/* Folders of the guest's own that a share may not cover; with all: nor lie in. */
static const struct {
	const char *dir;
	bool all;
} system_dirs[] = {
	{ "/bin", true },        { "/boot", true },     { "/dev", true },
	{ "/etc", true },        { "/lib", true },      { "/lib32", true },
	{ "/lib64", true },      { "/libx32", true },   { "/proc", true },
	{ "/run", true },        { "/sbin", true },     { "/sys", true },
	{ "/usr", false },       { "/usr/bin", true },  { "/usr/lib", true },
	{ "/usr/local", false }, { "/usr/sbin", true }, { "/usr/share", false },
	{ "/var", false },       { "/var/lib", false }, { "/var/lib/docker", true },
	{ "/tmp", false },       { "/home", false },    { "/home/agent", false },
	{ "/var/tmp", false },
};

static int check_system(const char *path, const char *word, struct err *e)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(system_dirs); i++) {
		const char *dir = system_dirs[i].dir;

		if (streq(path, dir) || (system_dirs[i].all && within(path, dir)))
			return err_set(e, -EPERM,
				       "cannot share '%s': it would take the place of %s in the "
				       "sandbox; share a folder elsewhere",
				       word, path);
	}
	return 0;
}

static int check_home(const char *home, const char *path, const char *word, struct err *e)
{
	char real[PATH_MAX];

	if (!home || home[0] != '/' || !realpath(home, real) || streq(real, "/"))
		return 0;
	if (streq(real, path))
		return err_set(
			e, -EPERM,
			"cannot share '%s': it is your home directory, with your keys in it; "
			"name a folder below it",
			word);
	if (within(real, path))
		return err_set(e, -EPERM,
			       "cannot share '%s': your home directory lies in it; name a folder "
			       "below it",
			       word);
	return 0;
}

static int check_own(const struct ctx *c, const char *path, const char *word, struct err *e)
{
	const char *const own[] = { c->dirs.state, c->dirs.cache, c->dirs.run, c->dirs.config };
	char real[PATH_MAX];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(own); i++) {
		if (!realpath(own[i], real))
			continue;
		if (within(path, real) || within(real, path))
			return err_set(e, -EPERM,
				       "cannot share '%s': bac keeps its own data in %s; name "
				       "another folder",
				       word, real);
	}
	return 0;
}

static int check_kind(const char *path, const char *word, bool *ret_file, struct err *e)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return err_errno(e, -errno, "cannot share '%s'", word);
	if (S_ISSOCK(st.st_mode))
		return err_set(e, -EPERM,
			       "cannot share '%s': it is a socket, which would be a way out of the "
			       "sandbox",
			       word);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "cannot share '%s': it is neither a folder nor a file",
			       word);
	*ret_file = S_ISREG(st.st_mode);
	return 0;
}

static int check(const struct ctx *c, const char *path, const char *word, struct err *e)
{
	struct passwd *pw = getpwuid(geteuid());
	int r;

	if (streq(path, "/"))
		return err_set(e, -EPERM,
			       "cannot share '/': it is the whole machine; name a folder");
	if (strlen(path) > 4095 || strpbrk(path, "\n\r"))
		return err_set(e, -EINVAL,
			       "cannot share '%s': its path is too long or has a line break", word);
	r = check_home(getenv("HOME"), path, word, e);
	if (r == 0)
		r = check_home(pw ? pw->pw_dir : NULL, path, word, e);
	if (r == 0)
		r = check_own(c, path, word, e);
	return r == 0 ? check_system(path, word, e) : r;
}

/* The word without its suffix. */
static void strip(char dst[PATH_MAX], const char *word, bool *ret_ro)
{
	size_t n = strlen(word);

	*ret_ro = n > 3 && streq(word + n - 3, ":ro");
	if (*ret_ro || (n > 3 && streq(word + n - 3, ":rw")))
		n -= 3;
	n = MIN(n, (size_t)PATH_MAX - 1);
	memcpy(dst, word, n);
	dst[n] = '\0';
}

int path_take(const struct ctx *c, const char *word, struct box_share *ret, struct err *e)
{
	char name[PATH_MAX], real[PATH_MAX], alias[PATH_MAX];
	struct box_share p = { 0 };
	const char *label;
	int r;

	strip(name, word, &p.read_only);
	if (!realpath(name, real))
		return err_errno(e, -errno, "cannot share '%s'", name);
	label = streq(name, ".") ? real : name;
	r = check(c, real, label, e);
	if (r == 0)
		r = check_kind(real, label, &p.file, e);
	if (r < 0)
		return r;
	spelled(alias, name);
	p.path = strdup(real);
	p.alias = strdup(streq(alias, real) ? "" : alias);
	if (!p.path || !p.alias) {
		path_done(&p);
		return err_errno(e, -ENOMEM, "cannot share '%s'", name);
	}
	*ret = p;
	return 0;
}

ssize_t path_find(const struct box_shares *s, const char *word)
{
	char name[PATH_MAX], real[PATH_MAX], as_said[PATH_MAX];
	bool ro;
	size_t i;

	strip(name, word, &ro);
	if (!realpath(name, real))
		real[0] = '\0';
	spelled(as_said, name);
	for (i = 0; i < s->n; i++) {
		const struct box_share *v = &s->v[i];

		if (streq(v->path, real) || streq(v->path, as_said) ||
		    (v->alias[0] && streq(v->alias, as_said)))
			return (ssize_t)i;
	}
	return -1;
}

int path_add(struct box_shares *s, const struct box_share *p, struct err *e)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (streq(s->v[i].path, p->path))
			return err_set(e, -EEXIST, "'%s' is shared already", p->path);
	if (s->n >= SHARES_MAX)
		return err_set(e, -ENOSPC, "a sandbox has at most %d shares", SHARES_MAX);
	return shares_add(s, p) < 0 ? err_errno(e, -ENOMEM, "cannot share '%s'", p->path) : 0;
}
