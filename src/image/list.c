/* What is in the cache: lists, look-ups, removal. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/store.h"
#include "io/fd.h"

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

/* 0, 1 if what is there is not a template, or -ENOMEM. */
static int load_template(const char *cache, int dir, const char *digest, struct image_template *ret)
{
	const char *tag, *kernel, *source, *user, *workdir, *inputs;
	json_t *j = image_store_meta(dir, digest, "template.json");
	struct image_template t = { .size = usage(dir, digest) };
	json_int_t created;

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
	json_decref(j);
	if (!t.tag || !t.kernel || !t.source || !t.user || !t.workdir || !t.root) {
		image_template_done(&t);
		return -ENOMEM;
	}
	*ret = t;
	return 0;
}

static int load_kernel(const char *cache, int dir, const char *digest, struct image_kernel *ret)
{
	json_t *j = image_store_meta(dir, digest, "kernel.json");
	struct image_kernel k = { .size = usage(dir, digest) };
	const char *release, *kind, *inputs;
	json_int_t created;

	if (!j ||
	    json_unpack(j, "{s:s, s:s, s:s, s:I}", "release", &release, "kind", &kind, "inputs",
			&inputs, "created", &created) < 0 ||
	    (*inputs && !is_digest(inputs))) {
		json_decref(j);
		return 1;
	}
	memcpy(k.digest, digest, sizeof(k.digest));
	memcpy(k.inputs, inputs, strlen(inputs) + 1);
	k.created = created;
	k.release = strdup(release);
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

/* A tag belongs to the newest that has it. */
static void keep_newest_tags(struct image_template *v, size_t n)
{
	size_t i, k;

	for (i = 0; i < n; i++)
		for (k = i + 1; k < n; k++)
			if (v[i].tag[0] && streq(v[i].tag, v[k].tag))
				v[k].tag[0] = '\0';
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
	if (r < 0) {
		while (n)
			image_template_done(&v[--n]);
		free(v);
		return err_errno(e, r, "cannot list the templates");
	}
	qsort(v, n, sizeof(*v), newer_template);
	keep_newest_tags(v, n);
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
	size_t i, found = n;

	for (i = 0; i < n; i++)
		if (v[i].tag[0] && streq(v[i].tag, ref))
			return i;
	for (i = 0; i < n; i++) {
		if (!has_prefix(v[i].digest, bare(ref)))
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
		for (j = 0; j < nt && !streq(t[j].kernel, k[i].digest); j++)
			;
		if (j == nt && streq(k[i].kind, "debian"))
			(void)image_store_remove(cache, IMAGE_KERNELS, k[i].digest);
	}
	pick_template(t, nt, nt, NULL);
	pick_kernel(k, nk, nk, NULL);
}

int image_template_rm(const char *cache, const char *digest, struct err *e)
{
	char path[IMAGE_DIGEST_MAX + 32], aside[IMAGE_TMP_MAX];
	_close_ int dir = -1, root = -1;
	int r = image_store_open(cache, IMAGE_TEMPLATES, &dir, e);

	if (r < 0)
		return r;
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
	return r < 0 ? err_errno(e, r, "cannot remove all of template %.12s", digest) : 0;
}
