#include "cli/kit-install.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/sha256.h"
#include "base/text.h"
#include "cli/disk.h"
#include "cli/guest.h"
#include "cli/halt.h"
#include "cli/kit-apply.h"
#include "image/image.h"
#include "io/fd.h"

enum { TAIL_MAX = 4096, TAIL_LINES = 15, LOGS_KEPT = 10 };

/* ---- the key ---- */
static void add(struct sha256 *h, const char *s)
{
	sha256_add(h, s ? s : "", s ? strlen(s) + 1 : 1);
}

static void key_of(const struct sandbox *b, const struct kit_box *k, uint64_t docker, char ret[65])
{
	uint8_t sum[SHA256_SIZE];
	struct sha256 h;
	char size[48];

	sha256_init(&h);
	add(&h, "bac-kit-install 1");
	add(&h, b->tmpl);
	(void)snprintf(size, sizeof(size), "%llu %llu", (unsigned long long)b->disk,
		       (unsigned long long)docker);
	add(&h, size);
	add(&h, b->no_network ? "none" : "policy");
	for (size_t i = 0; i < k->n; i++) {
		const struct kit_args *a = &k->v[i].kit.args;

		add(&h, k->v[i].digest);
		for (size_t m = 0; m < a->n; m++) {
			add(&h, a->v[m].name);
			add(&h, a->v[m].value);
		}
	}
	for (size_t i = 0; i < k->env.n; i++)
		add(&h, k->env.v[i]);
	sha256_end(&h, sum);
	for (size_t i = 0; i < sizeof(sum); i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", sum[i]);
}

/* ---- what is kept ---- */
static char *kept_root(const struct ctx *c)
{
	return dirs_join(c->dirs.cache, "kits-installed");
}

static char *kept_disk(const struct ctx *c, const char *key)
{
	char *path;

	return asprintf(&path, "%s/kits-installed/%s/disk.img", c->dirs.cache, key) < 0 ? NULL
											: path;
}

/* 0: the disk is there. 1: nothing is kept under this key. */
static int take_kept(struct ctx *c, const char *key, const char *disk, struct err *e)
{
	_free_ char *from = kept_disk(c, key);
	int r;

	if (!from)
		return err_errno(e, -ENOMEM, "cannot make the disk");
	r = disk_copy(from, disk, e);
	if (r == -ENOENT)
		return 1;
	if (r == 0)
		(void)utimensat(AT_FDCWD, from, NULL, 0); /* it was used */
	return r;
}

struct kept {
	char name[65];
	uint64_t size;
	int64_t used;
};

static int older(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return x->used < y->used ? -1 : x->used > y->used;
}

static bool is_key(const char *name)
{
	return strlen(name) == 64 && strspn(name, "0123456789abcdef") == 64;
}

/* Those that were used longest ago go, until the rest fits. Best effort: the next one tries again. */
static void prune(int root, uint64_t most)
{
	struct kept v[256];
	int copy = fcntl(root, F_DUPFD_CLOEXEC, 3);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	uint64_t sum = 0;
	struct dirent *one;
	size_t n = 0;

	while (d && (one = readdir(d)) && n < ARRAY_SIZE(v)) {
		char path[96];
		struct stat st;

		(void)snprintf(path, sizeof(path), "%.64s/disk.img", one->d_name);
		if (!is_key(one->d_name) || fstatat(root, path, &st, 0) < 0)
			continue;
		(void)snprintf(v[n].name, sizeof(v[n].name), "%.64s", one->d_name);
		v[n].size = (uint64_t)st.st_blocks * 512;
		v[n].used = st.st_mtime;
		sum += v[n++].size;
	}
	if (d)
		(void)closedir(d);
	qsort(v, n, sizeof(*v), older);
	for (size_t i = 0; i < n && sum > most; i++) {
		(void)dirs_remove(root, v[i].name);
		sum -= v[i].size;
	}
}

static int store(int root, const char *key, const char *disk, struct err *e)
{
	_free_ char *to = NULL;
	char tmp[80];
	int r = 0;

	(void)snprintf(tmp, sizeof(tmp), ".tmp-%.16s-%d", key, (int)getpid());
	(void)dirs_remove(root, tmp);
	if (mkdirat(root, tmp, 0700) < 0 ||
	    asprintf(&to, "/proc/self/fd/%d/%s/disk.img", root, tmp) < 0)
		return err_errno(e, -errno, "kits-installed");
	r = disk_copy(disk, to, e);
	if (r == 0) {
		(void)dirs_remove(root, key);
		if (renameat(root, tmp, root, key) < 0 && errno != EEXIST && errno != ENOTEMPTY)
			r = err_errno(e, -errno, "kits-installed");
	}
	(void)dirs_remove(root, tmp); /* somebody else was faster, or it failed */
	return r;
}

/* For the next one. What fails is said, and is no failure of this sandbox. */
static void keep(struct ctx *c, const char *key, const char *disk)
{
	_free_ char *path = kept_root(c);
	_close_ int root = -1;
	struct err e = { 0 };
	uint64_t most = 0;
	int r = path ? setting_number(c->state, "kit.cacheSize", &most, &e) : -ENOMEM;

	if (r == 0 && !most)
		return;
	if (r == 0 &&
	    (dirs_make(path) < 0 || (root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0))
		r = err_errno(&e, -errno, "%s", path);
	if (r == 0)
		r = store(root, key, disk, &e);
	if (r < 0)
		say("what was installed is not kept for the next sandbox: %s", e.msg);
	else
		prune(root, most);
}

/* ---- the log ---- */
struct log {
	char *path;
	int fd;
};

static int log_open(struct ctx *c, const struct sandbox *b, struct log *ret, struct err *e)
{
	_free_ char *dir = state_dir(c->state, b->id);
	char *path = dir ? dirs_join(dir, "install.log") : NULL;
	int fd = path ? open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;

	if (fd < 0) {
		int r = path ? -errno : -ENOMEM;

		free(path);
		return err_errno(e, r, "cannot write the log of the installation");
	}
	*ret = (struct log) { path, fd };
	return 0;
}

static void log_close(struct log *l)
{
	free(l->path);
	l->fd = fd_close(l->fd);
}

/* What a program of the kit wrote, as far as a terminal can bear it. */
static void say_tail(const struct log *l, off_t from)
{
	char text[TAIL_MAX + 1];
	off_t end = lseek(l->fd, 0, SEEK_END);
	ssize_t n;
	char *p, *line, *rest = NULL;
	unsigned lines = 0;

	n = pread(l->fd, text, TAIL_MAX, MAX(from, end - TAIL_MAX));
	if (n <= 0)
		return;
	text[n] = '\0';
	for (ssize_t i = 0; i < n; i++)
		if (text[i] != '\n' && text[i] != '\t' && ((uint8_t)text[i] < 32 || text[i] == 127))
			text[i] = text[i] == '\r' ? '\n' : '?';
	for (p = text + n; p > text && lines <= TAIL_LINES; p--)
		lines += p[-1] == '\n' && p < text + n;
	for (line = strtok_r(p, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		say("| %s", line);
}

static int newest_last(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* The sandbox goes, its log stays: the path, on the heap. */
static char *keep_log(struct ctx *c, const struct sandbox *b, const struct log *l)
{
	_free_ char *dir = dirs_join(c->dirs.state, "kit-logs");
	struct dirent **names = NULL;
	char *to = NULL, when[32];
	time_t now = time(NULL);
	struct tm tm;
	int n;

	if (!dir || dirs_make(dir) < 0)
		return NULL;
	(void)strftime(when, sizeof(when), "%Y%m%d-%H%M%S", gmtime_r(&now, &tm));
	if (asprintf(&to, "%s/%s-%s.log", dir, when, b->name) < 0)
		return NULL;
	if (rename(l->path, to) < 0) {
		free(to);
		return NULL;
	}
	n = scandir(dir, &names, NULL, newest_last);
	for (int i = 0; i < n; i++) {
		_free_ char *old = dirs_join(dir, names[i]->d_name);

		if (old && names[i]->d_name[0] != '.' && i + LOGS_KEPT < n)
			(void)unlink(old);
		free(names[i]);
	}
	free(names);
	return to;
}

/* "...; the log is PATH", behind what is there already. */
static void name_log(struct err *e, const char *path)
{
	const struct err was = *e;

	(void)err_set(e, was.code, "%s; the log is %s", was.msg, path);
}

/* ---- the steps ---- */
static const char *title(const struct kit_step *s)
{
	return s->description && *s->description ? s->description : s->argv[s->argc - 1];
}

/* Where steps run: nothing of the user's is there. On the heap, or NULL. */
static char *image_workdir(struct ctx *c, const struct sandbox *b)
{
	struct image_template t = { 0 };
	struct err none = { 0 };
	char *dir = NULL;

	if (image_template_find(c->dirs.cache, b->tmpl, &t, &none) == 0 && t.workdir)
		dir = strdup(t.workdir);
	image_template_done(&t);
	return dir ? dir : strdup("/home/agent");
}

static int step(struct ctx *c, const struct sandbox *b, const struct kit_box *k, size_t i,
		const struct log *l, bool quiet, struct err *e)
{
	_free_ char *cwd = image_workdir(c, b);
	const struct kit_step *s = &k->kit.install[i];
	const struct guest_cmd g = { .user = s->user && *s->user ? s->user : "0",
				     .cwd = cwd,
				     .argv = (const char *const *)s->argv,
				     .out = l->fd };
	off_t from = lseek(l->fd, 0, SEEK_END);
	struct err why = { 0 };
	char name[72];
	int r;

	(void)snprintf(name, sizeof(name), "%.60s", title(s));
	name[strcspn(name, "\r\n")] = '\0';
	if (!quiet)
		say("%s: installing (%zu of %zu): %s", s->kit, i + 1, k->kit.n_install, name);
	(void)dprintf(l->fd, "## %s: setup.install[%zu]: %s\n", s->kit, i, s->argv[s->argc - 1]);
	r = guest_run(c, b, &g, &why);
	if (r == 0)
		return 0;
	say_tail(l, from);
	if (r < 0)
		return err_set(e, r, "the kit '%s': setup.install, step %zu: %s", s->kit, i + 1,
			       why.msg);
	return err_set(e, -EIO, "the kit '%s': setup.install, step %zu (%s), ended with %d%s%.60s",
		       s->kit, i + 1, name, r, why.msg[0] ? ": " : "", why.msg);
}

int kit_install_steps(struct ctx *c, const struct sandbox *b, const struct kit_box *k, size_t from,
		      bool quiet, struct err *e)
{
	struct log l = { .fd = -1 };
	int r = log_open(c, b, &l, e);

	for (size_t i = from; r == 0 && i < k->kit.n_install; i++)
		r = step(c, b, k, i, &l, quiet, e);
	if (r < 0 && l.fd >= 0)
		name_log(e, l.path);
	log_close(&l);
	return r;
}

/* ---- the machine of the installation ---- */
/* Whatever boot wrote that is this sandbox's own: the next boot makes it anew. */
static const char scrub[] = ": >/etc/machine-id; rm -f /var/lib/dbus/machine-id; sync";

static int in_machine(struct ctx *c, const struct sandbox *m, const struct kit_box *k,
		      const struct kit_install *o, const struct log *l, struct err *e)
{
	static const char *const argv[] = { "/bin/sh", "-c", scrub, NULL };
	const struct guest_cmd clean = { .user = "0", .cwd = "/", .argv = argv, .out = l->fd };
	int r = kit_apply_home(c, m, k, e);

	for (size_t i = 0; r == 0 && i < k->kit.n_install; i++)
		r = step(c, m, k, i, l, o->quiet, e);
	if (r == 0) {
		r = guest_run(c, m, &clean, e);
		if (r > 0)
			r = err_set(e, -EIO, "cannot clean up after the installation");
	}
	return r;
}

/* Boot, install, stop. *ret_clean: the disk was unmounted in order, and has nothing of this sandbox. */
static int make(struct ctx *c, const struct sandbox *b, const struct kit_box *k,
		const struct kit_install *o, const struct log *l, bool *ret_clean, struct err *e)
{
	_free_ char *workdir = image_workdir(c, b);
	struct start_opts so = *o->start;
	struct sandbox m = *b; /* its texts are borrowed */
	struct last_run last;
	struct err stop = { 0 };
	char path[STATE_ID_MAX + 24];
	struct door d;
	int r, s;

	m.shares = (struct box_shares) { 0 };
	m.workdir = workdir;
	so.maker = true;
	r = start_locked(c, &m, &so, fcntl(o->lock, F_DUPFD_CLOEXEC, 3), &d, e);
	if (r < 0)
		return r;
	door_done(&d);
	o->start->quiet = true;
	r = in_machine(c, &m, k, o, l, e);
	s = halt_and_wait(c, &m, r < 0, &stop);
	if (r == 0 && s < 0)
		return err_set(e, s, "%s", stop.msg);
	last_run_read(c, b->id, &last);
	(void)snprintf(path, sizeof(path), "%s/placeholders.json", b->id);
	/* a placeholder of this sandbox's own may be in any file */
	*ret_clean = last.known && last.clean &&
		     faccessat(state_sandboxes_fd(c->state), path, F_OK, 0) < 0;
	return r;
}

static int install(struct ctx *c, const struct sandbox *b, const struct kit_box *k,
		   const struct kit_install *o, const char *key, const char *disk, struct err *e)
{
	struct log l = { .fd = -1 };
	bool clean = false;
	int r = log_open(c, b, &l, e);

	if (r == 0)
		r = make(c, b, k, o, &l, &clean, e);
	if (r < 0 && l.fd >= 0) {
		_free_ char *path = keep_log(c, b, &l);

		if (path)
			name_log(e, path);
	}
	if (r == 0 && clean)
		keep(c, key, disk);
	log_close(&l);
	return r;
}

int kit_install_disk(struct ctx *c, const struct sandbox *b, const struct kit_box *k,
		     const struct kit_install *o, bool *ret_installed, struct err *e)
{
	_free_ char *dir = state_dir(c->state, b->id);
	_free_ char *disk = dir ? dirs_join(dir, "disk.img") : NULL;
	char key[65];
	int r = 1;

	if (!disk)
		return err_errno(e, -ENOMEM, "cannot create '%s'", b->name);
	*ret_installed = k->kit.n_install > 0;
	if (!k->kit.n_install)
		return disk_make(disk, b->disk, o->docker, e);
	key_of(b, k, o->docker, key);
	if (!o->no_cache)
		r = take_kept(c, key, disk, e);
	if (r <= 0)
		return r;
	r = disk_make(disk, b->disk, o->docker, e);
	return r == 0 ? install(c, b, k, o, key, disk, e) : r;
}
