/* Layers of images. */
#include "image/layer.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/layer-run.h"
#include "image/work.h"
#include "io/fd.h"
#include "sys/dirs.h"
#include "sys/lock.h"

enum { MODE = 0400, DIGEST_SHOWN = 12, FIRST = 3, SECOND = 4 };

static bool is_digest(const char *s)
{
	return strlen(s) == IMAGE_DIGEST_MAX && strspn(s, "0123456789abcdef") == IMAGE_DIGEST_MAX;
}

/* ---- what is there ---- */

static uint64_t number(const json_t *j, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(j, key));

	return n > 0 ? (uint64_t)n : 0;
}

static bool has_size(int dir, const char *diff, const char *name, uint64_t size)
{
	char path[IMAGE_DIGEST_MAX + 16];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%.*s/%s", IMAGE_DIGEST_MAX, diff, name);
	return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size == size;
}

static int get(int dir, const char *diff, struct image_layer *ret)
{
	struct image_layer l = { 0 };
	const char *digest;
	json_t *j = is_digest(diff) ? image_store_meta(dir, diff, "layer.json") : NULL;
	bool whole;

	if (!j)
		return 1;
	digest = json_string_value(json_object_get(j, "digest"));
	l.blob = number(j, "blob");
	l.tree = number(j, "tree");
	l.entries = number(j, "entries");
	l.dropped = number(j, "dropped");
	(void)snprintf(l.diff, sizeof(l.diff), "%s", diff);
	(void)snprintf(l.digest, sizeof(l.digest), "%s", digest ? digest : "");
	json_decref(j);
	whole = has_size(dir, diff, "blob", l.blob) && has_size(dir, diff, "tree", l.tree);
	if (whole)
		*ret = l;
	return whole ? 0 : 1;
}

int image_layer_get(const char *cache, const char *diff, struct image_layer *ret)
{
	_close_ int dir = -1;
	struct err e;
	int r = image_store_open(cache, IMAGE_LAYERS, &dir, &e);

	return r < 0 ? r : get(dir, diff, ret);
}

char *image_layer_path(const char *cache, const char *diff, const char *name)
{
	char *path;

	return asprintf(&path, "%s/" IMAGE_LAYERS "/%s/%s", cache, diff, name) < 0 ? NULL : path;
}

/* ---- list ---- */

void image_members_free(struct image_member *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].name);
		free(v[i].target);
	}
	free(v);
}

static int take_member(struct image_member *to, const struct layer_member *m)
{
	to->name = strdup(m->name);
	to->target = m->type == 'l' ? strdup(m->target) : NULL;
	to->offset = m->offset;
	to->size = m->size;
	to->type = m->type;
	return to->name && (to->target || m->type != 'l') ? 0 : -ENOMEM;
}

/* n members and the end; places must lie within size bytes. */
static int parse_members(const uint8_t *p, size_t len, uint64_t n, uint64_t size,
			 struct image_member *v)
{
	struct layer_member m;
	size_t used = 0;
	int r;

	for (uint64_t i = 0; i <= n; i++) {
		if (layer_member_parse(&m, &used, p, len) != WIRE_OK || !m.type != (i == n))
			return -EPROTO;
		p += used;
		len -= used;
		if (i == n)
			return len || m.offset != n ? -EPROTO : 0;
		if (m.offset > size || m.size > size - m.offset)
			return -EPROTO;
		r = take_member(&v[i], &m);
		if (r < 0)
			return r;
	}
	return -EPROTO;
}

static int read_members(int fd, uint64_t n, uint64_t size, struct image_member **ret)
{
	struct image_member *v;
	struct stat st;
	void *p;
	int r;

	if (n > LAYER_MEMBERS_MAX || fstat(fd, &st) < 0 || st.st_size <= 0)
		return -EPROTO;
	v = calloc(n + 1, sizeof(*v));
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (!v || p == MAP_FAILED) {
		free(v);
		return -ENOMEM;
	}
	r = parse_members(p, (size_t)st.st_size, n, size, v);
	(void)munmap(p, (size_t)st.st_size);
	if (r < 0)
		image_members_free(v, n);
	else
		*ret = v;
	return r;
}

static uint64_t size_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

int image_layer_list(const struct image_build *b, int fd, struct image_member **ret, size_t *ret_n,
		     int *ret_fd, struct err *e)
{
	char limits[LAYER_LIMITS_TEXT];
	const char *const args[] = { "list", image_layer_limits(limits, b), NULL };
	struct sys_fd fds[] = { { fd, STDIN_FILENO }, { -1, FIRST }, { -1, SECOND } };
	struct image_layer_run run = {
		.b = b, .args = args, .fds = fds, .n_fds = ARRAY_SIZE(fds), .total = size_of(fd)
	};
	_close_ int dir = -1, list = -1, plain = -1;
	struct layer_line l;
	int r = image_store_open(b->cache, IMAGE_LAYERS, &dir, e);

	if (r < 0)
		return r;
	fds[1].from = list = memfd_create("members", MFD_CLOEXEC);
	fds[2].from = plain = openat(dir, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (list < 0 || plain < 0)
		return err_errno(e, -errno, "cannot make a file in the cache");
	run.step = "reading the archive";
	r = image_layer_run(&run, 3, &l, e);
	if (r < 0)
		return r;
	r = read_members(list, l.v[1], l.v[0] ? size_of(plain) : size_of(fd), ret);
	if (r < 0)
		return err_errno(e, r, "cannot list the archive");
	*ret_n = (size_t)l.v[1];
	*ret_fd = l.v[0] ? take_fd(&plain) : fd;
	return 0;
}

/* ---- apply ---- */

static int make_file(const struct image_work *w, const char *name, int *ret, struct err *e)
{
	char path[IMAGE_TMP_MAX + 16];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", w->tmp, name);
	fd = openat(w->dir, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, MODE);
	if (fd < 0)
		return err_errno(e, -errno, "cannot make a file in the cache");
	*ret = fd;
	return 0;
}

static int check_digest(const char *what, const char *want, const char *is, struct err *e)
{
	if (!want || streq(want, is))
		return 0;
	return err_set(e, -EBADMSG, "%s is sha256:%s and should be sha256:%s: it is damaged", what,
		       is, want);
}

static int keep(struct image_work *w, const struct layer_line *l, struct err *e)
{
	int r = image_store_json(w->dir, w->tmp, "layer.json",
				 json_pack("{s:i, s:s, s:I, s:I, s:I, s:I}", "version", 1, "digest",
					   l->digest, "blob", (json_int_t)l->v[1], "tree",
					   (json_int_t)l->v[2], "entries", (json_int_t)l->v[3],
					   "dropped", (json_int_t)l->v[4]),
				 e);

	if (r == 0)
		r = image_work_check(w, e);
	return r < 0 ? r : image_store_commit(w->dir, w->tmp, w->dir, l->diff, "layer.json", e);
}

struct wanted {
	int fd;
	uint64_t offset, size;
	const char *digest, *diff;
};

static int run_apply(struct image_work *w, const struct wanted *x, int blob, int tree,
		     struct layer_line *ret, struct err *e)
{
	char limits[LAYER_LIMITS_TEXT], offset[32], size[32], step[64];
	const char *const args[] = { "apply", image_layer_limits(limits, w->b), offset, size,
				     NULL };
	const struct sys_fd fds[] = { { x->fd, STDIN_FILENO }, { blob, FIRST }, { tree, SECOND } };
	struct image_layer_run run = {
		.b = w->b, .args = args, .fds = fds, .n_fds = ARRAY_SIZE(fds), .step = step
	};
	const char *name = x->digest ? x->digest : x->diff;

	(void)snprintf(offset, sizeof(offset), "%llu", (unsigned long long)x->offset);
	(void)snprintf(size, sizeof(size), "%llu", (unsigned long long)x->size);
	(void)snprintf(step, sizeof(step), "unpacking layer %.*s", DIGEST_SHOWN, name ? name : "");
	run.total = x->size != UINT64_MAX ? x->size : size_of(x->fd);
	return image_layer_run(&run, 5, ret, e);
}

static int apply(struct image_work *w, const struct wanted *x, struct image_layer *ret,
		 struct err *e)
{
	_close_ int blob = -1, tree = -1;
	struct layer_line l;
	int r = image_store_tmp(w->dir, w->tmp, e);

	if (r < 0) {
		w->tmp[0] = '\0';
		return r;
	}
	r = make_file(w, "blob", &blob, e);
	if (r == 0)
		r = make_file(w, "tree", &tree, e);
	if (r == 0)
		r = run_apply(w, x, blob, tree, &l, e);
	if (r == 0)
		r = check_digest("the layer", x->digest, l.digest, e);
	if (r == 0)
		r = check_digest("the layer's content", x->diff, l.diff, e);
	if (r == 0 && (!l.diff[0] || l.v[1] != size_of(blob) || l.v[2] != size_of(tree)))
		r = err_set(e, -EPROTO, "bac-layer failed");
	if (r == 0)
		r = keep(w, &l, e);
	if (r == 0 && get(w->dir, l.diff, ret) != 0)
		r = err_set(e, -EIO, "the layer that was made is not there");
	return r;
}

int image_layer_apply(const struct image_build *b, int fd, uint64_t offset, uint64_t size,
		      const char *digest, const char *diff, struct image_layer *ret, struct err *e)
{
	const struct wanted x = {
		.fd = fd, .offset = offset, .size = size, .digest = digest, .diff = diff
	};
	struct image_work w;
	int r;

	if ((digest && !is_digest(digest)) || (diff && !is_digest(diff)))
		return err_set(e, -EINVAL, "'%.80s' is no SHA-256 digest",
			       digest && !is_digest(digest) ? digest : diff);
	if (diff && image_layer_get(b->cache, diff, ret) == 0)
		return 0;
	r = image_work_begin(&w, b, IMAGE_LAYERS, e);
	if (r == 0 && !(diff && get(w.dir, diff, ret) == 0))
		r = apply(&w, &x, ret, e);
	image_work_end(&w);
	return r;
}

/* ---- merge ---- */

static int open_trees(const char *cache, const char *const *diffs, size_t n, int *fds,
		      struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		_free_ char *path =
			is_digest(diffs[i]) ? image_layer_path(cache, diffs[i], "tree") : NULL;

		fds[i] = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
		if (fds[i] < 0)
			return err_errno(e, path ? -errno : -ENOENT, "layer %.12s cannot be opened",
					 diffs[i]);
	}
	return 0;
}

static int run_merge(const struct image_build *b, const int *trees, size_t n, int out,
		     struct err *e)
{
	struct sys_fd fds[IMAGE_LAYERS_MAX + 1];
	char count[32];
	const char *const args[] = { "merge", count, NULL };
	struct image_layer_run run = { .b = b,
				       .args = args,
				       .fds = fds,
				       .n_fds = n + 1,
				       .step = "putting the layers together" };
	struct layer_line l;
	int r;

	(void)snprintf(count, sizeof(count), "%zu", n);
	fds[0] = (struct sys_fd) { .from = out, .to = FIRST };
	for (size_t i = 0; i < n; i++)
		fds[i + 1] = (struct sys_fd) { .from = trees[i], .to = SECOND + (int)i };
	r = image_layer_run(&run, 2, &l, e);
	if (r == 0 && (l.v[0] != size_of(out) || !l.v[0] || l.v[0] % LAYER_BLOCK))
		r = err_set(e, -EPROTO, "bac-layer failed");
	return r;
}

int image_layer_merge(const struct image_build *b, const char *const *diffs, size_t n, int out,
		      struct err *e)
{
	int trees[IMAGE_LAYERS_MAX], r;

	if (!n || n > IMAGE_LAYERS_MAX)
		return err_set(e, -E2BIG, "the image has %zu layers; 1 to %d are possible", n,
			       IMAGE_LAYERS_MAX);
	memset(trees, -1, sizeof(trees));
	r = open_trees(b->cache, diffs, n, trees, e);
	if (r == 0)
		r = run_merge(b, trees, n, out, e);
	for (size_t i = 0; i < n; i++)
		(void)fd_close(trees[i]);
	return r;
}

/* ---- prune ---- */

static bool is_kept(const char *name, const char *const *keep, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (streq(keep[i], name))
			return true;
	return false;
}

static uint64_t on_disk(int dir, const char *diff)
{
	static const char *const names[] = { "blob", "tree", "layer.json" };
	uint64_t sum = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char path[IMAGE_DIGEST_MAX + 16];
		struct stat st;

		(void)snprintf(path, sizeof(path), "%.*s/%s", IMAGE_DIGEST_MAX, diff, names[i]);
		if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
			sum += (uint64_t)st.st_blocks * 512;
	}
	return sum;
}

/* In one step out of sight, then at leisure. */
static int remove_layer(const char *cache, int dir, const char *diff, struct err *e)
{
	char aside[IMAGE_TMP_MAX];
	int r = image_store_tmp(dir, aside, e);

	if (r < 0)
		return r;
	r = renameat(dir, diff, dir, aside) < 0 ? -errno : 0;
	if (r == 0)
		r = image_store_remove(cache, IMAGE_LAYERS, aside);
	else
		(void)unlinkat(dir, aside, AT_REMOVEDIR);
	return r < 0 ? err_errno(e, r, "cannot remove layer %.12s", diff) : 0;
}

int image_layer_prune(const char *cache, const char *const *keep, size_t n, uint64_t *ret_freed,
		      struct err *e)
{
	_close_ int dir = -1, lock = -1;
	struct dirent **v = NULL;
	uint64_t freed = 0;
	int count, r = image_store_open(cache, IMAGE_LAYERS, &dir, e);

	if (r < 0)
		return r;
	r = lock_take(dir, ".lock", false, true, &lock);
	if (r < 0)
		return err_errno(e, r, "cannot lock the cache");
	count = scandirat(dir, ".", &v, NULL, NULL);
	for (int i = 0; i < count; i++) {
		uint64_t size;

		if (r == 0 && is_digest(v[i]->d_name) && !is_kept(v[i]->d_name, keep, n)) {
			size = on_disk(dir, v[i]->d_name);
			r = remove_layer(cache, dir, v[i]->d_name, e);
			freed += r == 0 ? size : 0;
		}
		free(v[i]);
	}
	free(v);
	if (ret_freed)
		*ret_freed = freed;
	return r;
}
