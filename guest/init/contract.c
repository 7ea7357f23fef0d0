/* Every path is opened below the root, which by then is the root of all: links of the image lead nowhere else. A file that is no
 * regular file counts as absent, and nothing is opened that could wait (a FIFO in the place of /etc/passwd). */
#include "guest/init/contract.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/init/account.h"
#include "guest/init/die.h"
#include "guest/init/template.h"
#include "io/fd.h"

#define HOME       "home/agent"
#define PERSISTENT "etc/sandbox-persistent.sh"
#define CA_BUNDLE  "etc/ssl/certs/ca-certificates.crt"

enum { SMALL_MAX = 256 * 1024, BUNDLE_MAX = 4 * 1024 * 1024, SKEL_MAX = 64, SHELL_MAX = 64 };

struct contract {
	int root, base;
	uint32_t gid; /* of agent */
	char shell[SHELL_MAX];
};

/* ---- files ---- */

static int read_below(int dir, const char *path, size_t max, char **ret, size_t *ret_n)
{
	_close_ int fd = openat(dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	_free_ char *text = NULL;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > max)
		return -EINVAL;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	n = fd_read_all(fd, text, (size_t)st.st_size);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	*ret = take_ptr(text);
	*ret_n = (size_t)n;
	return 0;
}

/* Whole or not at all. owner: its user and group, -1 for root's. */
static int write_below(int root, const char *path, mode_t mode, int64_t uid, int64_t gid,
		       const void *p, size_t n)
{
	char tmp[128];
	_close_ int fd = -1;
	int r;

	(void)snprintf(tmp, sizeof(tmp), "%s.bac-new", path);
	(void)unlinkat(root, tmp, 0);
	fd = openat(root, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, p, n);
	if (r == 0 && (fchown(fd, (uid_t)MAX(uid, 0), (gid_t)MAX(gid, 0)) < 0 ||
		       fchmod(fd, mode) < 0 || renameat(root, tmp, root, path) < 0))
		r = -errno;
	if (r < 0)
		(void)unlinkat(root, tmp, 0);
	return r;
}

static void put(const struct contract *c, const char *path, mode_t mode, const void *p, size_t n)
{
	int r = write_below(c->root, path, mode, -1, -1, p, n);

	if (r < 0)
		die_note("/%s: %s", path, err_text(r));
}

/* A file that is changed keeps its mode and owner. */
static void change(const struct contract *c, const char *path, mode_t mode, const struct buf *b)
{
	struct stat st = { .st_mode = mode };
	int r;

	(void)!fstatat(c->root, path, &st, 0);
	r = write_below(c->root, path, st.st_mode & 07777, st.st_uid, st.st_gid, buf_data(b), b->n);
	if (r < 0)
		die_note("/%s: %s", path, err_text(r));
}

static bool is_there(const struct contract *c, const char *path)
{
	return faccessat(c->root, path, F_OK, 0) == 0;
}

/* The first of a list that can be run, or NULL. */
static const char *program(const struct contract *c, const char *const *list)
{
	struct stat st;

	for (; *list; list++)
		if (fstatat(c->root, *list, &st, 0) == 0 && S_ISREG(st.st_mode) &&
		    st.st_mode & 0111)
			return *list;
	return NULL;
}

/* Absolute links lead through the root of all, which a test's root is not: they are there, and that is enough. */
static bool has_program(const struct contract *c, const char *const *list)
{
	struct stat st;

	if (program(c, list))
		return true;
	for (; *list; list++)
		if (fstatat(c->root, *list, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) &&
		    is_there(c, *list))
			return true;
	return false;
}

/* ---- the user ---- */

static void accounts(struct contract *c)
{
	static const char fresh[] = "root:x:0:0:root:/root:/bin/sh\n";
	_free_ char *passwd = NULL, *group = NULL, *shadow = NULL;
	size_t n_passwd = 0, n_group = 0, n_shadow = 0;
	struct buf out = BUF_INIT(2UL * ACCOUNT_FILE_MAX);
	int r;

	(void)mkdirat(c->root, "etc", 0755);
	(void)!read_below(c->root, "etc/group", ACCOUNT_FILE_MAX, &group, &n_group);
	(void)!read_below(c->root, "etc/shadow", ACCOUNT_FILE_MAX, &shadow, &n_shadow);
	if (read_below(c->root, "etc/passwd", ACCOUNT_FILE_MAX, &passwd, &n_passwd) < 0) {
		passwd = strdup(fresh);
		n_passwd = passwd ? strlen(passwd) : 0;
	}
	r = account_group(&out, group ? group : "root:x:0:\n", group ? n_group : 10, &c->gid);
	if (r == 0)
		change(c, "etc/group", 0644, &out);
	buf_consume(&out, out.n);
	r = account_passwd(&out, passwd ? passwd : "", n_passwd, c->gid, c->shell, shadow);
	if (r == 0)
		change(c, "etc/passwd", 0644, &out);
	buf_consume(&out, out.n);
	if (shadow && account_shadow(&out, shadow, n_shadow) == 0)
		change(c, "etc/shadow", 0600, &out);
	buf_done(&out);
}

/* What a new user's home begins with: the plain files of /etc/skel. */
static void skeleton(const struct contract *c)
{
	_close_ int dir = openat(c->root, "etc/skel", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int copy = dir < 0 ? -1 : fcntl(dir, F_DUPFD_CLOEXEC, 3);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	unsigned left = SKEL_MAX;
	struct dirent *de;

	while (d && left-- && (de = readdir(d))) {
		_free_ char *text = NULL;
		char to[320];
		size_t n = 0;

		if (strlen(de->d_name) > 64 ||
		    read_below(dir, de->d_name, SMALL_MAX, &text, &n) < 0)
			continue;
		(void)snprintf(to, sizeof(to), HOME "/%s", de->d_name);
		(void)!write_below(c->root, to, 0644, ACCOUNT_ID, c->gid, text, n);
	}
	if (d)
		(void)closedir(d);
}

static void home(const struct contract *c)
{
	(void)mkdirat(c->root, "home", 0755);
	if (mkdirat(c->root, HOME, 0755) < 0)
		return;
	if (fchownat(c->root, HOME, ACCOUNT_ID, c->gid, AT_SYMLINK_NOFOLLOW) < 0)
		die_note("/" HOME ": %s", err_text(errno));
	skeleton(c);
}

/* Without a password; also where sudo is yet to come. */
static void sudo(const struct contract *c)
{
	struct buf out = BUF_INIT(2UL * SMALL_MAX);
	_free_ char *text = NULL;
	size_t n = 0;
	int r;

	(void)mkdirat(c->root, "etc/sudoers.d", 0750);
	put(c, "etc/sudoers.d/agent", 0440, sudoers, sizeof(sudoers) - 1);
	r = read_below(c->root, "etc/sudoers", SMALL_MAX, &text, &n);
	if (r < 0 || !text || strstr(text, "includedir /etc/sudoers.d"))
		return;
	r = buf_printf(&out, "%s%s#includedir /etc/sudoers.d\n", text,
		       n && text[n - 1] == '\n' ? "" : "\n");
	if (r == 0)
		change(c, "etc/sudoers", 0440, &out);
	buf_done(&out);
}

/* ---- files of ours ---- */

/* Every bash reads it. */
static void bash_files(const struct contract *c)
{
	static const char file[] = "etc/bash.bashrc";
	struct buf out = BUF_INIT(2UL * SMALL_MAX);
	_free_ char *text = NULL;
	size_t n = 0;

	/* data/template/persistent, and bashrc, as in our own template */
	if (!is_there(c, PERSISTENT))
		(void)!write_below(c->root, PERSISTENT, 0644, ACCOUNT_ID, c->gid, persistent,
				   sizeof(persistent) - 1);
	if (is_there(c, "etc/profile.d"))
		put(c, "etc/profile.d/sandbox-persistent.sh", 0644, bashrc, sizeof(bashrc) - 1);
	if (read_below(c->root, file, SMALL_MAX, &text, &n) == 0 && text &&
	    !strstr(text, "sandbox_persistent_read") && buf_printf(&out, "%s%s", text, bashrc) == 0)
		change(c, file, 0644, &out);
	buf_done(&out);
}

static const char *const bundles[] = {
	CA_BUNDLE,
	"etc/pki/tls/certs/ca-bundle.crt",
	"etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	"etc/ssl/ca-bundle.pem",
	"etc/ssl/cert.pem",
};

/* False if there are none, and none to be had. */
static bool certificates(const struct contract *c)
{
	_free_ char *text = NULL;
	size_t i, n = 0;

	for (i = 0; i < ARRAY_SIZE(bundles); i++)
		if (is_there(c, bundles[i]))
			return true;
	if (c->base < 0 || read_below(c->base, CA_BUNDLE, BUNDLE_MAX, &text, &n) < 0)
		return false;
	(void)mkdirat(c->root, "etc/ssl", 0755);
	(void)mkdirat(c->root, "etc/ssl/certs", 0755);
	put(c, CA_BUNDLE, 0644, text, n);
	(void)!symlinkat("certs/ca-certificates.crt", c->root, "etc/ssl/cert.pem");
	if (is_there(c, "etc/pki/tls/certs"))
		(void)!symlinkat("/" CA_BUNDLE, c->root, bundles[1]);
	return true;
}

/* ---- all of it ---- */

static const char *const shells[] = { "bin/bash", "usr/bin/bash", "usr/local/bin/bash", NULL };
static const char *const sudos[] = { "usr/bin/sudo", "bin/sudo", "usr/local/bin/sudo", NULL };
static const char *const gits[] = { "usr/bin/git", "bin/git", "usr/local/bin/git", NULL };

/* How packages are added, by the program that does it. */
static const struct {
	const char *path, *before, *after;
} managers[] = {
	{ "usr/bin/apt-get", "sh -c 'apt-get update; apt-get install -y", "'" },
	{ "sbin/apk", "apk add", "" },
	{ "usr/bin/apk", "apk add", "" },
	{ "usr/bin/dnf", "dnf install -y", "" },
	{ "usr/bin/microdnf", "microdnf install -y", "" },
	{ "usr/bin/zypper", "zypper install -y", "" },
	{ "usr/bin/pacman", "pacman -Sy --noconfirm", "" },
};

static void write_note(const struct contract *c, const char *name, bool ca,
		       char note[CONTRACT_NOTE_MAX])
{
	const struct {
		bool there;
		const char *what, *package;
	} list[] = { { has_program(c, sudos), "sudo", "sudo" },
		     { has_program(c, shells), "bash", "bash" },
		     { has_program(c, gits), "git", "git" },
		     { ca, "CA certificates", "ca-certificates" } };
	char what[64] = "", packages[64] = "";
	size_t i, m = 0;

	for (i = 0; i < ARRAY_SIZE(list); i++) {
		size_t a = strlen(what), b = strlen(packages);

		if (list[i].there)
			continue;
		(void)snprintf(what + a, sizeof(what) - a, "%s%s", a ? ", " : "", list[i].what);
		(void)snprintf(packages + b, sizeof(packages) - b, " %s", list[i].package);
	}
	note[0] = '\0';
	if (!*what)
		return;
	while (m < ARRAY_SIZE(managers) && !is_there(c, managers[m].path))
		m++;
	if (m < ARRAY_SIZE(managers))
		(void)snprintf(note, CONTRACT_NOTE_MAX,
			       "the image has no %s; to add: bac exec -u root %s %s%s%s", what,
			       name, managers[m].before, packages, managers[m].after);
	else
		(void)snprintf(note, CONTRACT_NOTE_MAX,
			       "the image has no %s; what you need of it belongs into the image",
			       what);
}

int contract_make(int root, int base, const char *name, char note[CONTRACT_NOTE_MAX], struct err *e)
{
	struct contract c = { .root = root, .base = base, .gid = ACCOUNT_ID };
	static const char *const sh[] = { "bin/sh", NULL };
	const char *shell;

	if (!has_program(&c, sh))
		return err_set(e, -ENOEXEC,
			       "the image has no shell (/bin/sh), so nothing can be set up in it; "
			       "make one FROM a distribution (debian, alpine), or with a static "
			       "busybox as /bin/sh");
	shell = program(&c, shells);
	(void)snprintf(c.shell, sizeof(c.shell), "/%s", shell ? shell : sh[0]);
	accounts(&c);
	home(&c);
	sudo(&c);
	bash_files(&c);
	write_note(&c, name, certificates(&c), note);
	return 0;
}
