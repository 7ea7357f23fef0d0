/* An image out of a registry.
 *
 *	ask	the manifest (through an index: the one for the platform) and the configuration, each checked by its digest
 *	stage	cache/pulls/<manifest's digest>, with an empty file for every layer that is in the store already
 *	fetch	`skopeo copy` into it as an OCI layout: it passes over what is there
 *	write	manifest and configuration as the registry has them; skopeo writes its own, which is not the same where the
 *		image is in Docker's format */
#include "image/pull.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/sha256.h"
#include "base/text.h"
#include "image/layer.h"
#include "image/pull-priv.h"
#include "image/store.h"
#include "io/fd.h"
#include "sys/dirs.h"

#define PULLS "pulls"
#define BLOBS "blobs/sha256"

enum { TMP_AGE_S = 3600, BLOB_PATH_MAX = 128, CA_MAX = 4 << 20 };

struct puller {
	struct pull_talk talk;
	const struct image_pull *p;
	const char *cache;
	struct image_signals signals;
	int pulls; /* cache/pulls */
	char tmp[IMAGE_TMP_MAX];
	int tmp_lock;
	char *home, *certs; /* in tmp */
	struct image_remote m;
	char outer[IMAGE_DIGEST_MAX + 1], inner[IMAGE_DIGEST_MAX + 1];
	struct buf manifest, config;
	char *stage; /* path */
	int dir;     /* the stage, locked */
	uint64_t all, missing;
};

static void say(const struct puller *pl, const char *what, int percent)
{
	const struct image_progress *p = pl->p->progress;
	char line[160];

	(void)snprintf(line, sizeof(line), "%s %.100s", what, pl->p->ref->domain);
	if (p)
		p->say(p->user, line, percent);
}

static void digest_of(const struct buf *b, char hex[IMAGE_DIGEST_MAX + 1])
{
	uint8_t sum[SHA256_SIZE];
	struct sha256 s;
	size_t i;

	sha256_init(&s);
	sha256_add(&s, buf_data(b), b->n);
	sha256_end(&s, sum);
	for (i = 0; i < sizeof(sum); i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", sum[i]);
}

static void blob_path(char dst[BLOB_PATH_MAX], const char *digest)
{
	(void)snprintf(dst, BLOB_PATH_MAX, BLOBS "/%.64s", digest);
}

/* ---- sweeping ---- */

/* If it is old enough, and nobody works in it. Locked until it is gone: who waits for the lock looks again (take_stage()). */
static void sweep_one(int dir, const char *name, unsigned age_s)
{
	_close_ int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_mtime + (time_t)age_s <= time(NULL) &&
	    flock(fd, LOCK_EX | LOCK_NB) == 0)
		(void)dirs_remove(dir, name);
}

void image_pull_sweep(const char *cache, unsigned age_s)
{
	_close_ int dir = -1, copy = -1;
	struct dirent *de;
	struct err e;
	DIR *d;

	if (image_store_open(cache, PULLS, &dir, &e) < 0)
		return;
	copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = copy < 0 ? NULL : fdopendir(copy);
	if (!d)
		return;
	(void)take_fd(&copy);
	while ((de = readdir(d))) {
		bool tmp = starts_with(de->d_name, ".tmp-");

		if (tmp || de->d_name[0] != '.')
			sweep_one(dir, de->d_name, tmp ? TMP_AGE_S : age_s);
	}
	(void)closedir(d);
}

/* ---- begin and end ---- */

static int copy_ca(int dir, const char *from, size_t i, struct err *e)
{
	_free_ char *text = NULL;
	char name[64];
	size_t n;
	int r = fd_read_file(AT_FDCWD, from, CA_MAX, &text, &n);

	if (r < 0)
		return err_errno(e, r, "tls.extraCa: cannot read %s", from);
	(void)snprintf(name, sizeof(name), "certs/%zu.crt", i);
	r = fd_replace_file(dir, name, 0600, text, n);
	return r < 0 ? err_errno(e, r, "cannot write to the cache") : 0;
}

/* What skopeo has for a home, and the authorities. */
static int make_tmp(struct puller *pl, struct err *e)
{
	const char *const *ca = pl->p->ca;
	size_t i;
	int r = image_store_tmp(pl->pulls, pl->tmp, e);

	if (r < 0) {
		pl->tmp[0] = '\0';
		return r;
	}
	pl->tmp_lock = openat(pl->pulls, pl->tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (pl->tmp_lock < 0 || flock(pl->tmp_lock, LOCK_EX | LOCK_NB) < 0 ||
	    mkdirat(pl->tmp_lock, "home", 0700) < 0 || mkdirat(pl->tmp_lock, "certs", 0700) < 0)
		return err_errno(e, -errno, "cannot make a directory in the cache");
	if (asprintf(&pl->home, "%s/" PULLS "/%s/home", pl->cache, pl->tmp) < 0 ||
	    asprintf(&pl->certs, "%s/" PULLS "/%s/certs", pl->cache, pl->tmp) < 0)
		return err_errno(e, -ENOMEM, "cannot pull");
	for (i = 0; ca && ca[i]; i++) {
		r = copy_ca(pl->tmp_lock, ca[i], i, e);
		if (r < 0)
			return r;
	}
	pl->talk.s.home = pl->home;
	pl->talk.s.certs = i ? pl->certs : NULL; /* its own certs.d is taken otherwise */
	return 0;
}

static int begin(struct puller *pl, struct err *e)
{
	int r = image_store_open(pl->cache, PULLS, &pl->pulls, e);

	if (r < 0)
		return r;
	image_pull_sweep(pl->cache, IMAGE_PULL_AGE_S);
	r = image_signals_hold(&pl->signals);
	if (r < 0)
		return err_errno(e, r, "cannot pull");
	pl->talk.s.signals = pl->signals.fd;
	r = pull_auth(pl->p, &pl->talk.auth, e);
	return r == 0 ? make_tmp(pl, e) : r;
}

static void end(struct puller *pl)
{
	if (pl->tmp[0])
		(void)dirs_remove(pl->pulls, pl->tmp);
	(void)fd_close(pl->tmp_lock);
	(void)fd_close(pl->pulls);
	(void)fd_close(pl->dir);
	(void)fd_close(pl->talk.auth);
	free(pl->home);
	free(pl->certs);
	free(pl->stage);
	buf_done(&pl->manifest);
	buf_done(&pl->config);
	if (pl->signals.fd >= 0)
		image_signals_release(&pl->signals);
}

/* ---- ask ---- */

/* One text of the registry, by digest, or (NULL) by what the reference says. */
static int inspect(struct puller *pl, const char *digest, bool config, struct buf *out,
		   struct err *e)
{
	_free_ char *name = pull_name(pl->p->ref, digest);
	const char *const args[] = { "inspect", "--raw", name, config ? "--config" : NULL, NULL };

	buf_consume(out, out->n);
	return name ? pull_ask(&pl->talk, args, out, e) : err_errno(e, -ENOMEM, "cannot pull");
}

static int check_digest(struct puller *pl, const struct buf *b, const char *want, const char *what,
			struct err *e)
{
	char hex[IMAGE_DIGEST_MAX + 1];

	digest_of(b, hex);
	if (streq(hex, want))
		return 0;
	(void)err_set(e, -EBADMSG, "its %s is damaged: wanted sha256:%s, got sha256:%s", what, want,
		      hex);
	return pull_about(pl->p, e);
}

/* The manifest for the platform. */
static int ask_manifest(struct puller *pl, struct err *e)
{
	const char *pinned = pl->p->ref->digest;
	struct image_blob child;
	int r = inspect(pl, NULL, false, &pl->manifest, e);

	if (r == 0 && pinned[0])
		r = check_digest(pl, &pl->manifest, pinned, "manifest", e);
	if (r < 0)
		return r;
	digest_of(&pl->manifest, pl->outer);
	memcpy(pl->inner, pl->outer, sizeof(pl->inner));
	r = image_remote_manifest(buf_data(&pl->manifest), pl->manifest.n, pl->p->platform, &pl->m,
				  &child, e);
	if (r < 0)
		return pull_about(pl->p, e);
	if (r == 0)
		return 0;
	r = inspect(pl, child.digest, false, &pl->manifest, e);
	if (r == 0)
		r = check_digest(pl, &pl->manifest, child.digest, "manifest", e);
	if (r < 0)
		return r;
	memcpy(pl->inner, child.digest, sizeof(pl->inner));
	r = image_remote_manifest(buf_data(&pl->manifest), pl->manifest.n, pl->p->platform, &pl->m,
				  &child, e);
	if (r == 1)
		r = err_set(e, -EBADMSG, "its index leads to another index");
	return r < 0 ? pull_about(pl->p, e) : 0;
}

static int ask(struct puller *pl, struct err *e)
{
	int r;

	say(pl, "asking", -1);
	r = ask_manifest(pl, e);
	if (r == 0)
		r = inspect(pl, pl->inner, true, &pl->config, e);
	if (r == 0)
		r = check_digest(pl, &pl->config, pl->m.config.digest, "configuration", e);
	if (r < 0)
		return r;
	r = image_remote_config(buf_data(&pl->config), pl->config.n, pl->p->platform, &pl->m, e);
	return r < 0 ? pull_about(pl->p, e) : 0;
}

/* ---- stage ---- */

/* The layer's file, if it is whole; what only stands for one of the store has the time 0. */
static bool is_whole(int dir, const struct image_blob *b)
{
	char path[BLOB_PATH_MAX];
	struct stat st;

	blob_path(path, b->digest);
	return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size == b->size;
}

static bool is_empty_stand_in(int dir, const char *path)
{
	struct stat st;

	return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_mtime == 0;
}

static int stand_in(int dir, const struct image_blob *b)
{
	const struct timespec never[2] = { { 0 }, { 0 } };
	char path[BLOB_PATH_MAX];
	_close_ int fd = -1;

	blob_path(path, b->digest);
	fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 || ftruncate(fd, (off_t)b->size) < 0 || futimens(fd, never) < 0 ? -errno : 0;
}

static bool in_store(const struct puller *pl, const char *diff)
{
	struct image_layer l;

	return image_layer_get(pl->cache, diff, &l) == 0;
}

/* What a skopeo that was killed left beside the blobs. */
static void remove_halves(int dir)
{
	_close_ int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *de;

	if (!d)
		return;
	(void)take_fd(&copy);
	while ((de = readdir(d)))
		if (starts_with(de->d_name, "oci-put-blob"))
			(void)unlinkat(dir, de->d_name, 0);
	(void)closedir(d);
}

/* Each layer is there as a stand-in, whole from a pull before, or not at all. */
static int prepare(struct puller *pl, struct err *e)
{
	size_t i;

	pl->all = pl->missing = 0;
	for (i = 0; i < pl->m.n; i++) {
		const struct image_blob *b = &pl->m.layers[i];
		bool have = in_store(pl, pl->m.diffs[i]);
		char path[BLOB_PATH_MAX];
		int r;

		blob_path(path, b->digest);
		pl->all += b->size;
		if (!have && is_whole(pl->dir, b) && !is_empty_stand_in(pl->dir, path))
			continue;
		(void)unlinkat(pl->dir, path, 0);
		r = have ? stand_in(pl->dir, b) : 0;
		if (r < 0)
			return err_errno(e, r, "cannot write to the cache");
		pl->missing += have ? 0 : b->size;
	}
	return 0;
}

static int check_space(const struct puller *pl, struct err *e)
{
	char a[32], b[32];
	struct statvfs st;
	uint64_t have;

	if (fstatvfs(pl->dir, &st) < 0)
		return 0;
	have = (uint64_t)st.f_bavail * st.f_frsize;
	if (have >= pl->missing)
		return 0;
	(void)err_set(e, -ENOSPC,
		      "too little space in %.200s: %s free, %s to fetch; free some, or set "
		      "XDG_CACHE_HOME to another disk",
		      pl->cache, text_from_size(a, sizeof(a), have),
		      text_from_size(b, sizeof(b), pl->missing));
	return pull_about(pl->p, e);
}

/* Open and lock it. It may be removed between the two, by who found it old. */
static int take_stage(struct puller *pl)
{
	for (;;) {
		struct stat st, there;

		if (mkdirat(pl->pulls, pl->inner, 0700) < 0 && errno != EEXIST)
			return -errno;
		pl->dir = openat(pl->pulls, pl->inner, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (pl->dir < 0)
			return -errno;
		if (flock(pl->dir, LOCK_EX | LOCK_NB) < 0) {
			say(pl, "waiting for another pull of this image from", -1);
			if (flock(pl->dir, LOCK_EX) < 0)
				return -errno;
		}
		if (fstat(pl->dir, &st) == 0 && fstatat(pl->pulls, pl->inner, &there, 0) == 0 &&
		    st.st_ino == there.st_ino)
			return 0;
		pl->dir = fd_close(pl->dir);
	}
}

static int stage(struct puller *pl, struct err *e)
{
	int r = 0;

	if (asprintf(&pl->stage, "%s/" PULLS "/%s", pl->cache, pl->inner) < 0)
		return err_errno(e, -ENOMEM, "cannot pull");
	r = take_stage(pl);
	if (r == 0 &&
	    ((mkdirat(pl->dir, "blobs", 0700) < 0 && errno != EEXIST) ||
	     (mkdirat(pl->dir, BLOBS, 0700) < 0 && errno != EEXIST) || futimens(pl->dir, NULL) < 0))
		r = -errno;
	if (r < 0)
		return err_errno(e, r, "cannot make %s", pl->stage);
	remove_halves(pl->dir);
	r = prepare(pl, e);
	return r == 0 ? check_space(pl, e) : r;
}

/* ---- fetch ---- */

static uint64_t sum_files(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	uint64_t sum = 0;
	struct dirent *de;
	struct stat st;

	if (!d) {
		(void)fd_close(fd);
		return 0;
	}
	while ((de = readdir(d)))
		if (fstatat(fd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
			sum += (uint64_t)st.st_size;
	(void)closedir(d);
	return sum;
}

static void on_tick(void *user)
{
	const struct pull_talk *t = user;
	const struct puller *pl = (const void *)((const char *)t - offsetof(struct puller, talk));
	uint64_t there = sum_files(pl->dir, BLOBS) + sum_files(pl->dir, ".");
	uint64_t before = pl->all - pl->missing;
	uint64_t done = there > before ? MIN(there - before, pl->missing) : 0;

	say(pl, "pulling from", pl->missing ? (int)(done * 100 / pl->missing) : 100);
}

static int fetch(struct puller *pl, struct err *e)
{
	_free_ char *from = pull_name(pl->p->ref, pl->inner), *to = NULL;
	const char *const args[] = { "copy", "--quiet", "--dest-oci-accept-uncompressed-layers",
				     from,   NULL,      NULL };
	const char *v[ARRAY_SIZE(args)];
	size_t i;
	int r;

	if (!from || asprintf(&to, "oci:%s:pulled", pl->stage) < 0)
		return err_errno(e, -ENOMEM, "cannot pull");
	memcpy(v, args, sizeof(v));
	v[4] = to;
	say(pl, "pulling from", -1);
	pl->talk.s.tick = on_tick;
	r = pull_ask(&pl->talk, v, NULL, e);
	pl->talk.s.tick = NULL;
	if (r < 0)
		return r;
	for (i = 0; i < pl->m.n; i++)
		if (!is_whole(pl->dir, &pl->m.layers[i])) {
			char path[BLOB_PATH_MAX];

			blob_path(path, pl->m.layers[i].digest);
			(void)unlinkat(pl->dir, path, 0);
			(void)err_set(e, -EBADMSG, "layer %zu is not as long as its manifest says",
				      i + 1);
			return pull_about(pl->p, e);
		}
	return 0;
}

/* ---- write ---- */

static int put(int dir, const char *path, const void *p, size_t n, struct err *e)
{
	int r = fd_replace_file(dir, path, 0600, p, n);

	return r < 0 ? err_errno(e, r, "cannot write to the cache") : 0;
}

static int write_layout(struct puller *pl, struct err *e)
{
	static const char version[] = "{\"imageLayoutVersion\":\"1.0.0\"}";
	struct buf index = BUF_INIT(8192);
	char path[BLOB_PATH_MAX], ref[IMAGE_REF_MAX + 1];
	int r;

	blob_path(path, pl->inner);
	r = put(pl->dir, path, buf_data(&pl->manifest), pl->manifest.n, e);
	blob_path(path, pl->m.config.digest);
	if (r == 0)
		r = put(pl->dir, path, buf_data(&pl->config), pl->config.n, e);
	if (r == 0 &&
	    buf_printf(&index,
		       "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"%s\",\"digest\":"
		       "\"sha256:%s\",\"size\":%zu,\"annotations\":{\"org.opencontainers.image.ref."
		       "name\":\"%s\"}}]}",
		       pl->m.type, pl->inner, pl->manifest.n, image_ref_text(pl->p->ref, ref)) < 0)
		r = err_errno(e, -ENOMEM, "cannot pull");
	if (r == 0)
		r = put(pl->dir, "oci-layout", version, strlen(version), e);
	if (r == 0)
		r = put(pl->dir, "index.json", buf_data(&index), index.n, e);
	buf_done(&index);
	return r;
}

/* ---- the whole ---- */

int image_pull(const char *cache, const struct image_pull *p, struct image_pulled *ret,
	       struct err *e)
{
	static struct puller pl; /* too big for the stack */
	int r;

	pl = (struct puller) {
		.talk = { .p = p, .s = { .env = p->env, .auth = -1, .signals = -1 }, .auth = -1 },
		.p = p,
		.cache = cache,
		.signals = { .fd = -1 },
		.pulls = -1,
		.tmp_lock = -1,
		.dir = -1,
		.manifest = BUF_INIT(IMAGE_MANIFEST_MAX),
		.config = BUF_INIT(IMAGE_CONFIG_MAX),
	};
	r = begin(&pl, e);
	if (r == 0)
		r = ask(&pl, e);
	if (r == 0)
		r = stage(&pl, e);
	if (r == 0 && pl.missing)
		r = fetch(&pl, e);
	if (r == 0)
		r = write_layout(&pl, e);
	if (r == 0) {
		*ret = (struct image_pulled) { .plain = pl.talk.s.plain,
					       .reused = pl.missing == 0,
					       .lock = take_fd(&pl.dir) };
		ret->layout = take_ptr(pl.stage);
		memcpy(ret->digest, pl.outer, sizeof(ret->digest));
	}
	if (r == -EINTR)
		(void)err_set(e, r, "interrupted; what came whole is kept for the next pull");
	end(&pl);
	return r;
}

void image_pulled_done(struct image_pulled *p, bool keep)
{
	if (p->layout && !keep)
		(void)dirs_remove(-1, p->layout);
	(void)fd_close(p->lock);
	free(p->layout);
	*p = (struct image_pulled) { .lock = -1 };
}
