/* From a kit's reference to its files, by way of the cache.
 *
 * A kit is made in cache/kits/.new-XXXXXX: work/ and raw/ are the fetchers', kit/ is the copy of what kit_tree_take() let through. kit/ then gets the name of its
 * digest; if that name is there already, from another reference or another command at the same moment, it is the same kit and ours is thrown away. */
#include "cli/kit-source.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"
#include "cli/kit-fetch.h"
#include "cli/registry.h"
#include "io/fd.h"

enum { STAGE_OLD_S = 3600 };
static const char stage_prefix[] = ".new-";

struct get {
	struct ctx *c;
	struct kit_ref ref;
	char *kits;  /* cache/kits */
	char *stage; /* cache/kits/.new-XXXXXX, or NULL */
	struct kit_source s;
};

void kit_source_done(struct kit_source *s)
{
	free(s->ref);
	free(s->dir);
	kit_tree_done(&s->tree);
	*s = (struct kit_source) { 0 };
}

bool kit_source_builtin(const struct ctx *c, const char *name)
{
	_free_ char *path = NULL;

	if (strchr(name, '/') || name[0] == '.' ||
	    asprintf(&path, "%s/kits/%s/spec.yaml", c->dirs.data, name) < 0)
		return false;
	return access(path, R_OK) == 0;
}

/* ---- may it be used? ---- */

static int check_allowed(struct get *g, struct err *e)
{
	_free_ char *list = NULL;
	uint64_t local = 1;
	int r;

	if (g->ref.kind == KIT_REF_NAME)
		return 0;
	if (g->ref.local) {
		r = setting_number(g->c->state, "kit.allowLocalKits", &local, e);
		if (r == 0 && !local)
			r = err_set(
				e, -EPERM,
				"resolve kits: kit \"%.200s\" cannot be installed — kits of this "
				"machine are off (setting kit.allowLocalKits)",
				g->ref.text);
		return r;
	}
	r = setting_get(g->c->state, "kit.allowedSources", &list, NULL, e);
	if (r < 0 || kit_ref_allowed(&g->ref, list))
		return r;
	return err_set(
		e, -EPERM,
		"resolve kits: kit \"%.200s\" cannot be installed — its source is not in your "
		"allowlist (setting kit.allowedSources: %.100s)",
		g->ref.text, list);
}

/* ---- the cache ---- */

/* What commands that were killed left behind; what resists is tried again the next time. */
static void sweep(const char *kits)
{
	DIR *d = opendir(kits);
	struct dirent *n;
	struct stat st;

	while (d && (n = readdir(d)))
		if (starts_with(n->d_name, stage_prefix) &&
		    fstatat(dirfd(d), n->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    st.st_mtime < (time_t)(fd_real_ns() / 1000000000) - STAGE_OLD_S)
			(void)dirs_remove(dirfd(d), n->d_name);
	if (d)
		(void)closedir(d);
}

static int make_stage(struct get *g, struct err *e)
{
	static const char *const subs[] = { "work", "raw", "kit" };
	_free_ char *refs = dirs_join(g->kits, "refs");

	sweep(g->kits);
	if (!refs || dirs_make(refs) < 0 ||
	    asprintf(&g->stage, "%s/%sXXXXXX", g->kits, stage_prefix) < 0) {
		g->stage = NULL;
		return err_errno(e, -ENOMEM, "cannot make '%.200s'", g->kits);
	}
	if (!mkdtemp(g->stage)) {
		g->stage[0] = '\0';
		return err_errno(e, -errno, "cannot write to '%.200s'", g->kits);
	}
	for (size_t i = 0; i < ARRAY_SIZE(subs); i++) {
		_free_ char *path = dirs_join(g->stage, subs[i]);

		if (!path || mkdir(path, 0700) < 0)
			return err_errno(e, path ? -errno : -ENOMEM, "cannot write to '%.200s'",
					 g->kits);
	}
	return 0;
}

static int open_dir(const char *dir, const char *name, int *ret, struct err *e)
{
	_free_ char *path = name ? dirs_join(dir, name) : strdup(dir);

	if (!path)
		return err_errno(e, -ENOMEM, "cannot read '%.200s'", dir);
	*ret = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret < 0 ? err_errno(e, -errno, "cannot read '%.200s'", path) : 0;
}

/* cache/kits/DIGEST if it is there and still has that content: 1; 0: it is not, and what was damaged is gone. */
static int find_cached(struct get *g, const char *digest, struct err *e)
{
	_free_ char *dir = dirs_join(g->kits, digest);
	_close_ int fd = -1;
	struct kit_tree t;
	struct err why = { 0 };

	if (!dir)
		return err_errno(e, -ENOMEM, "cannot read the cache");
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (kit_tree_take(fd, -1, &t, &why) == 0) {
		if (streq(t.digest, digest)) {
			kit_tree_done(&g->s.tree);
			g->s.tree = t;
			free(g->s.dir);
			g->s.dir = take_ptr(dir);
			return 1;
		}
		kit_tree_done(&t);
	}
	say("the copy of a kit in '%s' was changed; it is made anew", dir);
	return dirs_remove(-1, dir) < 0 ? err_set(e, -EIO, "cannot remove '%.200s'", dir) : 0;
}

/* The kit below src becomes one of the cache. */
static int keep(struct get *g, int src, struct err *e)
{
	_free_ char *from = NULL, *to = NULL;
	_close_ int fd = -1;
	struct kit_tree t;
	char **ignored;
	size_t n;
	int r = open_dir(g->stage, "kit", &fd, e);

	if (r < 0)
		return r;
	r = kit_tree_take(src, fd, &t, e);
	if (r < 0)
		return r;
	from = dirs_join(g->stage, "kit");
	to = dirs_join(g->kits, t.digest);
	if (!from || !to)
		r = err_errno(e, -ENOMEM, "cannot copy it");
	else if (rename(from, to) < 0 && errno != EEXIST && errno != ENOTEMPTY)
		r = err_errno(e, -errno, "cannot write to '%.200s'", g->kits);
	if (r == 0)
		r = find_cached(g, t.digest, e);
	if (r == 0 && rename(from, to) < 0) /* the one that was there was damaged */
		r = err_errno(e, -errno, "cannot write to '%.200s'", g->kits);
	else if (r == 0)
		r = find_cached(g, t.digest, e);
	if (r == 0)
		r = err_set(e, -EIO, "cannot keep it in '%.200s'", g->kits);
	if (r == 1) { /* the cache has no more than is used; what else was there is to be told */
		ignored = g->s.tree.ignored;
		n = g->s.tree.n_ignored;
		g->s.tree.ignored = t.ignored;
		g->s.tree.n_ignored = t.n_ignored;
		t.ignored = ignored;
		t.n_ignored = n;
	}
	kit_tree_done(&t);
	return r < 0 ? r : 0;
}

/* cache/kits/refs/SHA-256 of the reference has the digest of its content. */
static char *index_path(const struct get *g, const char *text)
{
	char name[65] = "";
	uint8_t sum[SHA256_SIZE];
	struct sha256 s;
	char *path = NULL;

	sha256_init(&s);
	sha256_add(&s, text, strlen(text));
	sha256_end(&s, sum);
	for (size_t i = 0; i < sizeof(sum); i++)
		(void)snprintf(name + 2 * i, 3, "%02x", sum[i]);
	return asprintf(&path, "%s/refs/%s", g->kits, name) < 0 ? NULL : path;
}

static int find_indexed(struct get *g, const char *text, struct err *e)
{
	_free_ char *path = index_path(g, text), *digest = NULL;
	size_t n;

	if (!path || fd_read_file(AT_FDCWD, path, 64, &digest, &n) < 0)
		return 0;
	if (n != 64 || strspn(digest, "0123456789abcdef") != 64)
		return 0;
	return find_cached(g, digest, e);
}

static void note_index(const struct get *g)
{
	_free_ char *path = index_path(g, g->s.ref);

	/* without it the kit is fetched again, that is all */
	if (path && fd_replace_file(AT_FDCWD, path, 0600, g->s.tree.digest, 64) < 0)
		return;
}

/* ---- where it comes from ---- */

static int from_dir(struct get *g, const char *path, struct err *e)
{
	_close_ int fd = -1;
	int r = open_dir(path, NULL, &fd, e);

	return r == 0 ? keep(g, fd, e) : r;
}

static int from_name(struct get *g, struct err *e)
{
	_free_ char *path = NULL;

	g->s.builtin = kit_source_builtin(g->c, g->ref.where);
	if (!g->s.builtin)
		return err_set(e, -ENOENT,
			       "there is no built-in agent '%.80s' (a folder is written ./%.80s)",
			       g->ref.where, g->ref.where);
	if (asprintf(&path, "%s/kits/%s", g->c->dirs.data, g->ref.where) < 0)
		return err_errno(e, -ENOMEM, "cannot read it");
	return from_dir(g, path, e);
}

static int from_raw(struct get *g, struct err *e)
{
	_close_ int fd = -1;
	int r = open_dir(g->stage, "raw", &fd, e);

	return r == 0 ? keep(g, fd, e) : r;
}

static int from_zip(struct get *g, struct err *e)
{
	_free_ char *raw = dirs_join(g->stage, "raw");
	_close_ int fd = open(g->ref.where, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, -errno, "cannot read '%.200s'", g->ref.where);
	if (!raw || !S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "it is not a file");
	r = kit_fetch_zip(fd, raw, e);
	if (r == 0)
		r = from_raw(g, e);
	return r == -ENOENT ? err_set(e, r, "the ZIP has no spec.yaml at its top") : r;
}

static int from_afar(struct get *g, struct err *e)
{
	_free_ char *work = dirs_join(g->stage, "work"), *raw = dirs_join(g->stage, "raw"),
		    *text = NULL;
	struct kit_fetch f = { .ref = &g->ref, .work = work, .raw = raw, .raw_fd = -1 };
	struct registry way;
	int r;

	if (!work || !raw)
		return err_errno(e, -ENOMEM, "cannot fetch it");
	if (g->ref.commit || g->ref.digest) {
		r = find_indexed(g, g->ref.text, e);
		if (r != 0) {
			free(g->s.ref);
			g->s.ref = strdup(g->ref.text);
			return r < 0 ? r : g->s.ref ? 0 : -ENOMEM;
		}
	}
	r = registry_way(g->c, &way, e);
	f.env = (const char *const *)way.env;
	f.ca = way.ca;
	if (r == 0)
		r = open_dir(raw, NULL, &f.raw_fd, e);
	if (r == 0)
		r = g->ref.kind == KIT_REF_GIT ? kit_fetch_git(&f, &text, e)
					       : kit_fetch_oci(&f, &text, e);
	(void)fd_close(f.raw_fd);
	registry_done(&way);
	if (r == 0)
		r = from_raw(g, e);
	if (r == 0) {
		free(g->s.ref);
		g->s.ref = take_ptr(text);
		note_index(g);
	}
	return r;
}

/* What it is called from now on. */
static int name_it(struct get *g, struct err *e)
{
	char path[PATH_MAX];

	if ((g->ref.kind == KIT_REF_DIR || g->ref.kind == KIT_REF_ZIP)) {
		if (!realpath(g->ref.where, path))
			return err_errno(e, -errno, "cannot read it");
		g->s.ref = strdup(path);
	} else {
		g->s.ref = strdup(g->ref.text);
	}
	g->s.local = g->ref.local;
	return g->s.ref ? 0 : err_errno(e, -ENOMEM, "cannot read it");
}

static int get(struct get *g, struct err *e)
{
	int r = check_allowed(g, e);

	if (r < 0)
		return r;
	g->kits = dirs_join(g->c->dirs.cache, "kits");
	r = g->kits ? name_it(g, e) : err_errno(e, -ENOMEM, "cannot read it");
	if (r == 0)
		r = make_stage(g, e);
	if (r == 0) {
		switch ((enum kit_ref_kind)g->ref.kind) {
		case KIT_REF_NAME:
			r = from_name(g, e);
			break;
		case KIT_REF_DIR:
			r = from_dir(g, g->ref.where, e);
			break;
		case KIT_REF_ZIP:
			r = from_zip(g, e);
			break;
		case KIT_REF_GIT:
		case KIT_REF_OCI:
			r = from_afar(g, e);
			break;
		}
	}
	return r < 0 ? err_ctx(e, "kit '%.150s'", g->ref.text) : 0;
}

int kit_source_get(struct ctx *c, const char *ref, struct kit_source *ret, struct err *e)
{
	struct get g = { .c = c };
	int r = kit_ref_parse(ref, &g.ref, e);

	if (r < 0)
		return r;
	r = get(&g, e);
	if (g.stage && g.stage[0])
		(void)dirs_remove(-1, g.stage);
	free(g.stage);
	free(g.kits);
	kit_ref_done(&g.ref);
	if (r < 0)
		kit_source_done(&g.s);
	else
		*ret = g.s;
	return r;
}
