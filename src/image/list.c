/* What is in the cache: lists, look-ups, removal. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/kernel.h"
#include "image/layer.h"
#include "image/store.h"
#include "io/fd.h"
#include "sys/lock.h"

enum { PREFIX_MIN = 6 };

static bool is_digest(const char *s)
{
	return strlen(s) == IMAGE_DIGEST_MAX && strspn(s, "0123456789abcdef") == IMAGE_DIGEST_MAX;
}

static uint64_t usage(int dir, const char *name)
{
	_close_ int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t sum = 0;
	struct dirent *de;
	struct stat st;
	int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);

	if (!d) {
		(void)fd_close(copy);
		return 0;
	}
	while ((de = readdir(d)))
		if (fstatat(fd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
			sum += (uint64_t)st.st_blocks * 512;
	(void)closedir(d);
	return sum;
}

static char *inside(const char *cache, const char *kind, const char *digest, const char *file)
{
	char *s;

	return asprintf(&s, "%s/%s/%s/%s", cache, kind, digest, file) < 0 ? NULL : s;
}

/* ---- lists of texts in template.json ---- */

static char **list_free(char **v)
{
	for (char **p = v; p && *p; p++)
		free(*p);
	free(v);
	return NULL;
}

/* NULL-terminated, of the strings that an array has; empty where there is none. NULL: no memory. */
static char **list_of(const json_t *array)
{
	size_t n = json_array_size(array), i, k = 0;
	char **v = calloc(n + 1, sizeof(*v));

	for (i = 0; v && i < n; i++) {
		const char *s = json_string_value(json_array_get(array, i));

		if (!s)
			continue;
		v[k] = strdup(s);
		if (!v[k++])
			v = list_free(v);
	}
	return v;
}

static char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return strdup(s ? s : "");
}

void image_config_done(struct image_config *c)
{
	(void)list_free(c->env);
	(void)list_free(c->entrypoint);
	(void)list_free(c->cmd);
	(void)list_free(c->labels);
	free(c->user);
	free(c->workdir);
	free(c->arch);
	*c = (struct image_config) { 0 };
}

static int load_config(const json_t *o, struct image_config *c)
{
	c->env = list_of(json_object_get(o, "env"));
	c->entrypoint = list_of(json_object_get(o, "entrypoint"));
	c->cmd = list_of(json_object_get(o, "cmd"));
	c->labels = list_of(json_object_get(o, "labels"));
	c->user = text_of(o, "user");
	c->workdir = text_of(o, "workdir");
	c->arch = text_of(o, "arch");
	return c->env && c->entrypoint && c->cmd && c->labels && c->user && c->workdir && c->arch
		       ? 0
		       : -ENOMEM;
}

/* What only a template of layers has. 0, 1 (no template) or -ENOMEM. */
static int load_layers(const char *cache, const json_t *j, struct image_template *t)
{
	size_t i, n;

	t->layers = list_of(json_object_get(j, "layers"));
	if (!t->layers)
		return -ENOMEM;
	for (n = 0; t->layers[n]; n++)
		if (!is_digest(t->layers[n]))
			return 1;
	t->blobs = calloc(n + 1, sizeof(*t->blobs));
	if (!t->blobs || n == 0)
		return n ? -ENOMEM : 1;
	for (i = 0; i < n; i++) {
		struct stat st;
		_free_ char *tree = image_layer_path(cache, t->layers[i], "tree");

		t->blobs[i] = image_layer_path(cache, t->layers[i], "blob");
		if (!t->blobs[i] || !tree)
			return -ENOMEM;
		if (stat(t->blobs[i], &st) == 0)
			t->size += (uint64_t)st.st_blocks * 512;
		if (stat(tree, &st) == 0)
			t->size += (uint64_t)st.st_blocks * 512;
	}
	return load_config(json_object_get(j, "config"), &t->config);
}

/* Tags and origin. */
static int load_names(const json_t *j, const char *tag, struct image_template *t)
{
	const char *reference = json_string_value(json_object_get(j, "reference"));
	const char *manifest = json_string_value(json_object_get(j, "manifest"));
	const json_t *tags = json_object_get(j, "tags");

	t->reference = reference ? strdup(reference) : NULL;
	t->manifest = manifest ? strdup(manifest) : NULL;
	t->tags = tags ? list_of(tags) : calloc(2, sizeof(*t->tags));
	if (!t->tags || (reference && !t->reference) || (manifest && !t->manifest))
		return -ENOMEM;
	if (!tags && *tag) {
		t->tags[0] = strdup(tag);
		if (!t->tags[0])
			return -ENOMEM;
	}
	return 0;
}

static int64_t used_at(int dir, const char *digest)
{
	char path[IMAGE_DIGEST_MAX + 32];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/template.json", digest);
	return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mtime : 0;
}

/* 0, 1 if what is there is not a template, or -ENOMEM. */
static int load_template(const char *cache, int dir, const char *digest, struct image_template *ret)
{
	const char *tag, *kernel, *source, *user, *workdir, *inputs;
	json_t *j = image_store_meta(dir, digest, "template.json");
	struct image_template t = { .size = usage(dir, digest) };
	json_int_t created;
	int r;

	if (!j ||
	    json_unpack(j, "{s:s, s:s, s:s, s:s, s:s, s:s, s:I}", "tag", &tag, "kernel", &kernel,
			"source", &source, "user", &user, "workdir", &workdir, "inputs", &inputs,
			"created", &created) < 0 ||
	    !is_digest(inputs)) {
		json_decref(j);
		return 1;
	}
	memcpy(t.digest, digest, sizeof(t.digest));
	memcpy(t.inputs, inputs, sizeof(t.inputs));
	t.created = created;
	t.tag = strdup(tag);
	t.kernel = strdup(kernel);
	t.source = strdup(source);
	t.user = strdup(user);
	t.workdir = strdup(workdir);
	t.root = inside(cache, IMAGE_TEMPLATES, digest, "root.erofs");
	t.used = used_at(dir, digest);
	r = load_names(j, tag, &t);
	if (r == 0 && json_object_get(j, "layers"))
		r = load_layers(cache, j, &t);
	json_decref(j);
	if (!t.tag || !t.kernel || !t.source || !t.user || !t.workdir || !t.root)
		r = -ENOMEM;
	if (r != 0)
		image_template_done(&t);
	else
		*ret = t;
	return r;
}

static int load_kernel(const char *cache, int dir, const char *digest, struct image_kernel *ret)
{
	json_t *j = image_store_meta(dir, digest, "kernel.json");
	struct image_kernel k = { .size = usage(dir, digest) };
	const char *release, *kind, *inputs;
	json_int_t created, version;

	if (!j ||
	    json_unpack(j, "{s:I, s:s, s:s, s:s, s:I}", "version", &version, "release", &release,
			"kind", &kind, "inputs", &inputs, "created", &created) < 0 ||
	    (*inputs && !is_digest(inputs))) {
		json_decref(j);
		return 1;
	}
	memcpy(k.digest, digest, sizeof(k.digest));
	memcpy(k.inputs, inputs, strlen(inputs) + 1);
	k.created = created;
	k.release = strdup(release);
	if (streq(kind, "minimal") && version < IMAGE_KERNEL_VERSION)
		kind = "outdated";
	k.kind = strdup(kind);
	k.vmlinux = inside(cache, IMAGE_KERNELS, digest, "vmlinux");
	json_decref(j);
	if (!k.release || !k.kind || !k.vmlinux) {
		image_kernel_done(&k);
		return -ENOMEM;
	}
	*ret = k;
	return 0;
}

void image_template_done(struct image_template *t)
{
	free(t->tag);
	(void)list_free(t->tags);
	(void)list_free(t->layers);
	(void)list_free(t->blobs);
	free(t->reference);
	free(t->manifest);
	image_config_done(&t->config);
	free(t->root);
	free(t->kernel);
	free(t->source);
	free(t->user);
	free(t->workdir);
	*t = (struct image_template) { 0 };
}

void image_kernel_done(struct image_kernel *k)
{
	free(k->vmlinux);
	free(k->initrd);
	free(k->release);
	free(k->kind);
	*k = (struct image_kernel) { 0 };
}

/* Newest first; the digest decides between two of one second. */
static int newer_template(const void *a, const void *b)
{
	const struct image_template *x = a, *y = b;

	return x->created != y->created ? (x->created < y->created ? 1 : -1)
					: strcmp(x->digest, y->digest);
}

static int newer_kernel(const void *a, const void *b)
{
	const struct image_kernel *x = a, *y = b;

	return x->created != y->created ? (x->created < y->created ? 1 : -1)
					: strcmp(x->digest, y->digest);
}

/* Take a tag from one that has it. */
static void lose_tag(struct image_template *t, const char *tag)
{
	size_t i = 0, k;

	while (t->tags[i] && !streq(t->tags[i], tag))
		i++;
	if (!t->tags[i])
		return;
	free(t->tags[i]);
	for (k = i; t->tags[k]; k++)
		t->tags[k] = t->tags[k + 1];
}

/* A tag belongs to the newest that has it. The first of the list is the one to show. */
static int keep_newest_tags(struct image_template *v, size_t n)
{
	size_t i, k;
	char **t;

	for (i = 0; i < n; i++) {
		for (k = i + 1; k < n; k++)
			for (t = v[i].tags; *t; t++)
				lose_tag(&v[k], *t);
		free(v[i].tag);
		v[i].tag = strdup(v[i].tags[0] ? v[i].tags[0] : "");
		if (!v[i].tag)
			return -ENOMEM;
	}
	return 0;
}

/* The digests that stand in a directory. */
struct names {
	char (*v)[IMAGE_DIGEST_MAX + 1];
	size_t n;
};

static int list_names(int dir, struct names *ret)
{
	_close_ int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct names s = { 0 };
	struct dirent *de;
	DIR *d;
	int r = 0;

	d = copy < 0 ? NULL : fdopendir(copy);
	if (!d)
		return -errno;
	(void)take_fd(&copy);
	while (r == 0 && (de = readdir(d))) {
		void *more;

		if (!is_digest(de->d_name))
			continue;
		more = reallocarray(s.v, s.n + 1, sizeof(*s.v));
		if (more) {
			s.v = more;
			memcpy(s.v[s.n++], de->d_name, sizeof(*s.v));
		} else {
			r = -ENOMEM;
		}
	}
	(void)closedir(d);
	if (r < 0)
		free(s.v);
	else
		*ret = s;
	return r;
}

static int open_and_list(const char *cache, const char *kind, int *ret_dir, struct names *names,
			 struct err *e)
{
	int r = image_store_open(cache, kind, ret_dir, e);

	if (r < 0)
		return r;
	r = list_names(*ret_dir, names);
	return r < 0 ? err_errno(e, r, "cannot list the %s", kind) : 0;
}

int image_template_ls(const char *cache, struct image_template **ret, size_t *ret_n, struct err *e)
{
	struct image_template *v = NULL;
	struct names names = { 0 };
	_close_ int dir = -1;
	size_t i, n = 0;
	int r = open_and_list(cache, IMAGE_TEMPLATES, &dir, &names, e);

	if (r < 0)
		return r;
	v = calloc(names.n + 1, sizeof(*v));
	r = v ? 0 : -ENOMEM;
	for (i = 0; r >= 0 && i < names.n; i++) {
		r = load_template(cache, dir, names.v[i], &v[n]);
		n += r == 0;
	}
	free(names.v);
	if (n > 1)
		qsort(v, n, sizeof(*v), newer_template);
	if (r >= 0)
		r = keep_newest_tags(v, n);
	if (r < 0) {
		while (n)
			image_template_done(&v[--n]);
		free(v);
		return err_errno(e, r, "cannot list the templates");
	}
	*ret = v;
	*ret_n = n;
	return 0;
}

int image_kernel_ls(const char *cache, struct image_kernel **ret, size_t *ret_n, struct err *e)
{
	struct image_kernel *v = NULL;
	struct names names = { 0 };
	_close_ int dir = -1;
	size_t i, n = 0;
	int r = open_and_list(cache, IMAGE_KERNELS, &dir, &names, e);

	if (r < 0)
		return r;
	v = calloc(names.n + 1, sizeof(*v));
	r = v ? 0 : -ENOMEM;
	for (i = 0; r >= 0 && i < names.n; i++) {
		r = load_kernel(cache, dir, names.v[i], &v[n]);
		n += r == 0;
	}
	free(names.v);
	if (r < 0) {
		while (n)
			image_kernel_done(&v[--n]);
		free(v);
		return err_errno(e, r, "cannot list the kernels");
	}
	qsort(v, n, sizeof(*v), newer_kernel);
	*ret = v;
	*ret_n = n;
	return 0;
}

uint64_t image_store_size(const char *cache)
{
	static const char *const kinds[] = { IMAGE_TEMPLATES, IMAGE_LAYERS };
	uint64_t sum = 0;
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct names names = { 0 };
		_close_ int dir = -1;
		struct err e;

		if (open_and_list(cache, kinds[i], &dir, &names, &e) < 0)
			continue;
		for (k = 0; k < names.n; k++)
			sum += usage(dir, names.v[k]);
		free(names.v);
	}
	return sum;
}

/* ---- look-ups ---- */

/* Keep element i of a list of templates, free the rest and the list. ret may be NULL where i is n: none. */
static void pick_template(struct image_template *v, size_t n, size_t i, struct image_template *ret)
{
	size_t k;

	for (k = 0; k < n; k++)
		if (k != i)
			image_template_done(&v[k]);
	if (i < n && ret)
		*ret = v[i];
	free(v);
}

static void pick_kernel(struct image_kernel *v, size_t n, size_t i, struct image_kernel *ret)
{
	size_t k;

	for (k = 0; k < n; k++)
		if (k != i)
			image_kernel_done(&v[k]);
	if (i < n && ret)
		*ret = v[i];
	free(v);
}

static bool has_prefix(const char *digest, const char *ref)
{
	return strlen(ref) >= PREFIX_MIN && starts_with(digest, ref);
}

static const char *bare(const char *ref)
{
	return starts_with(ref, "sha256:") ? ref + 7 : ref;
}

/* The index of the template that ref names; n if there is none, n + 1 if there are several. */
static size_t index_of(const struct image_template *v, size_t n, const char *ref)
{
	char plain[IMAGE_TAG_MAX + 1] = "";
	size_t i, found = n;
	struct err none;
	char **tag;

	(void)!image_tag_plain(ref, plain, &none);
	for (i = 0; i < n; i++)
		for (tag = v[i].tags; *tag; tag++)
			if (streq(*tag, plain) || streq(*tag, ref))
				return i;
	for (i = 0; i < n; i++) {
		if (!has_prefix(v[i].digest, bare(ref)) && !streq(v[i].manifest, ref))
			continue;
		if (found < n)
			return n + 1;
		found = i;
	}
	return found;
}

int image_template_find(const char *cache, const char *ref, struct image_template *ret,
			struct err *e)
{
	struct image_template *v;
	size_t n, i;
	int r = image_template_ls(cache, &v, &n, e);

	if (r < 0)
		return r;
	i = index_of(v, n, ref);
	pick_template(v, n, i, ret);
	if (i < n)
		return 0;
	if (i > n)
		return err_set(e, -ENOENT, "several templates begin with %s; give more digits",
			       ref);
	if (streq(ref, "default"))
		return err_set(e, -ENOENT, "there is no template yet; make it: bac template build");
	return err_set(e, -ENOENT, "there is no template '%.80s'; see: bac template ls", ref);
}

int image_template_base(const char *cache, const char *kernel, char **ret, struct err *e)
{
	struct image_template *v;
	size_t n, i, any;
	int r = image_template_ls(cache, &v, &n, e);

	if (r < 0)
		return r;
	for (any = 0; any < n && v[any].layers; any++)
		;
	for (i = 0; i < n && (v[i].layers || !streq(v[i].kernel, kernel)); i++)
		;
	i = i < n ? i : any;
	if (i < n)
		*ret = take_ptr(v[i].root);
	pick_template(v, n, n, NULL);
	return i < n ? 0 : 1;
}

int image_template_made_from(const char *cache, const char *inputs, struct image_template *ret,
			     struct err *e)
{
	struct image_template *v;
	size_t n, i = 0;
	int r = image_template_ls(cache, &v, &n, e);

	if (r < 0)
		return r;
	while (i < n && !streq(v[i].inputs, inputs))
		i++;
	pick_template(v, n, i, ret);
	return i < n ? 0 : 1;
}

int image_kernel_made_from(const char *cache, const char *inputs, struct image_kernel *ret,
			   struct err *e)
{
	struct image_kernel *v;
	size_t n, i = 0;
	int r = image_kernel_ls(cache, &v, &n, e);

	if (r < 0)
		return r;
	while (i < n && !streq(v[i].inputs, inputs))
		i++;
	pick_kernel(v, n, i, ret);
	return i < n ? 0 : 1;
}

/* The newest that a word names. */
static size_t kernel_named(const struct image_kernel *v, size_t n, const char *want)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (streq(v[i].kind, want) || streq(v[i].release, want) ||
		    has_prefix(v[i].digest, bare(want)))
			return i;
	return n;
}

int image_kernel_pick(const char *cache, const char *want, const char *paired,
		      struct image_kernel *ret, struct err *e)
{
	struct image_kernel *v;
	size_t n, i;
	int r = image_kernel_ls(cache, &v, &n, e);

	if (r < 0)
		return r;
	i = kernel_named(v, n, want ? want : "minimal");
	if (!want && i == n && paired)
		i = kernel_named(v, n, paired);
	if (!want && i == n && n)
		i = 0;
	pick_kernel(v, n, i, ret);
	if (i < n)
		return 0;
	if (!want)
		return err_set(e, -ENOENT, "there is no kernel yet; make it: bac template build");
	return err_set(e, -ENOENT, "there is no kernel '%.80s'%s; see: bac kernel ls", want,
		       streq(want, "minimal") ? " (make it: bac kernel build)" : "");
}

/* ---- removal ---- */

/* Debian kernels that came with no template that is there. */
static void remove_orphans(const char *cache)
{
	struct image_template *t;
	struct image_kernel *k = NULL;
	size_t nt, nk = 0, i, j;
	struct err e;

	if (image_template_ls(cache, &t, &nt, &e) != 0)
		return;
	if (image_kernel_ls(cache, &k, &nk, &e) < 0)
		nk = 0; /* and k is NULL still */
	for (i = 0; i < nk; i++) {
		bool newest = i == 0; /* which images run with, should they be all that is left */

		for (j = 0; j < nt && !streq(t[j].kernel, k[i].digest); j++)
			newest = newest && t[j].layers;
		if (j == nt && !(newest && nt) && streq(k[i].kind, "debian"))
			(void)image_store_remove(cache, IMAGE_KERNELS, k[i].digest);
	}
	pick_template(t, nt, nt, NULL);
	pick_kernel(k, nk, nk, NULL);
}

int image_layers_orphaned(const char *cache, uint64_t *ret_freed, struct err *e)
{
	_free_ const char **keep = NULL;
	struct image_template *v;
	size_t n, i, k = 0, most = 1;
	char **l;
	int r = image_template_ls(cache, &v, &n, e);

	if (r < 0)
		return r;
	for (i = 0; i < n; i++)
		for (l = v[i].layers; l && *l; l++)
			most++;
	keep = calloc(most, sizeof(*keep));
	for (i = 0; keep && i < n; i++)
		for (l = v[i].layers; l && *l; l++)
			keep[k++] = *l;
	r = keep ? image_layer_prune(cache, keep, k, ret_freed, e)
		 : err_errno(e, -ENOMEM, "cannot list the layers");
	pick_template(v, n, n, NULL);
	return r;
}

int image_template_prune_layers(const char *cache, uint64_t *ret_freed, struct err *e)
{
	_close_ int dir = -1, lock = -1;
	int r = image_store_open(cache, IMAGE_TEMPLATES, &dir, e);

	if (r == 0) {
		r = lock_take(dir, ".lock", false, true, &lock);
		if (r < 0)
			r = err_errno(e, r, "cannot lock the templates");
	}
	return r < 0 ? r : image_layers_orphaned(cache, ret_freed, e);
}

int image_template_rm(const char *cache, const char *digest, struct err *e)
{
	char path[IMAGE_DIGEST_MAX + 32], aside[IMAGE_TMP_MAX];
	_close_ int dir = -1, lock = -1, root = -1;
	uint64_t freed = 0;
	int r = image_store_open(cache, IMAGE_TEMPLATES, &dir, e);

	if (r < 0)
		return r;
	/* A load that is under way counts on the layers that it found: they stay, for the next to clear away. */
	r = lock_take(dir, ".lock", false, false, &lock);
	if (r < 0 && r != -EBUSY)
		return err_errno(e, r, "cannot lock the templates");
	(void)snprintf(path, sizeof(path), "%.*s/root.erofs", IMAGE_DIGEST_MAX, digest);
	root = openat(dir, path, O_RDONLY | O_CLOEXEC);
	if (root < 0 && errno != ENOENT)
		return err_errno(e, -errno, "cannot open %s", path);
	if (root >= 0 && flock(root, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? err_set(e, -EBUSY, "template %.12s is in use by a running sandbox",
					 digest)
			       : err_errno(e, -errno, "cannot lock %s", path);
	/* In one step out of sight, then at leisure. */
	r = image_store_tmp(dir, aside, e);
	if (r < 0)
		return r;
	if (renameat(dir, digest, dir, aside) < 0) {
		r = -errno;
		(void)unlinkat(dir, aside, AT_REMOVEDIR);
		return err_errno(e, r, "cannot remove template %.12s", digest);
	}
	r = image_store_remove(cache, IMAGE_TEMPLATES, aside);
	remove_orphans(cache);
	if (r < 0)
		return err_errno(e, r, "cannot remove all of template %.12s", digest);
	return lock >= 0 ? image_layers_orphaned(cache, &freed, e) : 0;
}
