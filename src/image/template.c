/* Building the default template.
 *
 *	mmdebstrap	a Debian root in cache/templates/.tmp-x/root, as root of a namespace, with the
 *			kernel's files beside it (data/template/customize.sh)
 *	ourselves	the kernel out of it, into cache/kernels
 *	mkfs.erofs	root.erofs, in the same kind of namespace, so that it sees owners and capabilities
 *			as the template has them
 *	rename		.tmp-x becomes the digest of what we started from
 *
 * The digest is computed before anything runs; so a second build ends there. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "image/kernel.h"
#include "image/work.h"
#include "io/fd.h"

#define KEYRING "/usr/share/keyrings/debian-archive-keyring.gpg"

enum { ARGS_MAX = 40, LIST_MAX = 64 * 1024 };

static const uint64_t space_needed = (uint64_t)2600 << 20;

static int check_host(struct err *e)
{
	static const char *const programs[] = { "unshare", "mmdebstrap", "apt-get", "mkfs.erofs",
						NULL };
	int r = image_work_programs(programs, e);

	if (r < 0)
		return r;
	if (access(KEYRING, R_OK) < 0)
		return err_set(e, -ENOENT,
			       "the keys of Debian's archive are not installed: sudo apt install "
			       "debian-archive-keyring");
	return image_run_check(e);
}

/* ---- the root ---- */

static int debootstrap(struct image_work *w, const struct image_recipe *rc, struct err *e)
{
	_free_ char *root = image_work_path(w, "root"), *include = NULL, *dpkg = NULL, *apt = NULL;
	const char *argv[ARGS_MAX];
	size_t n = 0, i;

	if (!root || asprintf(&include, "--include=%s", rc->include) < 0 ||
	    asprintf(&dpkg, "--dpkgopt=%s/dpkg.cfg", rc->dir) < 0 ||
	    asprintf(&apt, "--aptopt=%s/apt.conf", rc->dir) < 0)
		return err_errno(e, -ENOMEM, "cannot build the template");
	argv[n++] = "mmdebstrap";
	argv[n++] = "--mode=root";
	argv[n++] = "--variant=minbase";
	argv[n++] = "--format=directory";
	argv[n++] = include;
	argv[n++] = dpkg;
	argv[n++] = apt;
	argv[n++] = "--dpkgopt=force-unsafe-io"; /* customize.sh takes it out again */
	argv[n++] = "--customize-hook=sh \"$BAC_RECIPE/customize.sh\" \"$1\"";
	argv[n++] = rc->suite;
	argv[n++] = root;
	for (i = 0; i < rc->n_sources; i++)
		argv[n++] = rc->sources[i];
	argv[n] = NULL;
	return image_work_run(w, "preparing", argv, (const char *const *)rc->env, e);
}

static int take_kernel(struct image_work *w, int root, char digest[IMAGE_DIGEST_MAX + 1],
		       struct err *e)
{
	_free_ char *path = NULL, *wanted = NULL;
	int r;

	image_work_say(w, "unpacking the kernel");
	if (asprintf(&path, "%s/kernel/modules", w->b->data) < 0)
		return err_errno(e, -ENOMEM, "cannot unpack the kernel");
	r = fd_read_file(AT_FDCWD, path, LIST_MAX, &wanted, NULL);
	if (r < 0)
		return err_errno(e, r, "cannot read %s", path);
	r = image_kernel_from_root(w->b->cache, root, wanted, digest, e);
	return r < 0 ? err_ctx(e, "cannot take the kernel from the template") : 0;
}

/* ---- the image ---- */

/* A UUID out of the digest of the inputs, so that the same inputs make the same image. */
static void uuid_of(const char *hex, char dst[64])
{
	(void)snprintf(dst, 64, "-U%.8s-%.4s-4%.3s-8%.3s-%.12s", hex, hex + 8, hex + 12, hex + 15,
		       hex + 18);
}

/* No file of the image is younger than the package lists: customize.sh wrote down their date. */
static int epoch_of(int root, char dst[64])
{
	_free_ char *text = NULL;
	int r = fd_read_file(root, "boot/date", 32, &text, NULL);

	if (r < 0)
		return r;
	text[strcspn(text, "\n")] = '\0';
	if (!*text || strspn(text, "0123456789") != strlen(text))
		return -EINVAL;
	(void)snprintf(dst, 64, "SOURCE_DATE_EPOCH=%.20s", text);
	return 0;
}

static int make_image(struct image_work *w, const struct image_recipe *rc, int root, struct err *e)
{
	_free_ char *from = image_work_path(w, "root"), *to = image_work_path(w, "root.erofs");
	char uuid[64], epoch[64];
	/* lz4 in clusters of 16 KiB: half the size of the plain files, and no slower to read than
	 * they are. What boot mounts over is empty. */
	const char *const argv[] = {
		"mkfs.erofs", "--quiet", "-zlz4",
		"-C16384",    uuid,      "--exclude-regex=^(boot|dev|proc|run|sys|tmp)/.*",
		to,           from,      NULL
	};
	const char *const env[] = { rc->env[0], epoch, NULL };
	int r;

	if (!from || !to)
		return err_errno(e, -ENOMEM, "cannot make the image");
	uuid_of(rc->inputs, uuid);
	r = epoch_of(root, epoch);
	if (r < 0)
		return err_errno(e, r, "cannot tell the date of the package lists");
	r = image_work_run(w, "making the image", argv, env, e);
	if (r == 0 && chmod(to, 0400) < 0)
		r = err_errno(e, -errno, "cannot make the image");
	return r;
}

/* ---- all of it ---- */

/* The first build is named after its inputs; a further one of the same inputs also after its time. */
static int choose_digest(struct image_work *w, const struct image_recipe *rc,
			 char digest[IMAGE_DIGEST_MAX + 1], struct err *e)
{
	struct image_digest d;
	json_t *there = image_store_meta(w->dir, rc->inputs, "template.json");
	int r;

	memcpy(digest, rc->inputs, sizeof(rc->inputs));
	if (!there)
		return 0;
	json_decref(there);
	image_digest_init(&d);
	image_digest_text(&d, rc->inputs);
	image_digest_text(&d, w->tmp);
	r = image_digest_end(&d, digest);
	return r < 0 ? err_errno(e, r, "cannot compute a digest") : 0;
}

static int commit(struct image_work *w, const struct image_recipe *rc, const char *kernel,
		  struct err *e)
{
	char digest[IMAGE_DIGEST_MAX + 1];
	_free_ char *source = NULL, *inside = NULL;
	int r = choose_digest(w, rc, digest, e);

	if (r < 0)
		return r;
	if (asprintf(&source, "debian %s", rc->suite) < 0 ||
	    asprintf(&inside, "%s/root", w->tmp) < 0)
		return err_errno(e, -ENOMEM, "cannot keep the template");
	image_work_say(w, "keeping the template");
	r = image_store_remove(w->b->cache, w->kind, inside);
	if (r < 0)
		return err_errno(e, r, "cannot remove the build's files");
	free(inside);
	if (asprintf(&inside, "%s/tmp", w->tmp) < 0)
		return err_errno(e, -ENOMEM, "cannot keep the template");
	(void)image_store_remove(w->b->cache, w->kind, inside);
	r = image_store_json(w->dir, w->tmp, "template.json",
			     json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:I}", "version", 1,
				       "inputs", rc->inputs, "tag", "default", "kernel", kernel,
				       "source", source, "user", "agent", "workdir",
				       "/home/agent/workspace", "created", (json_int_t)time(NULL)),
			     e);
	if (r == 0)
		r = image_work_check(w, e);
	if (r == 0 && chmod(w->tmp_path, 0700) < 0)
		r = err_errno(e, -errno, "cannot keep the template");
	return r < 0 ? r : image_store_commit(w->dir, w->tmp, w->dir, digest, "template.json", e);
}

static int build(struct image_work *w, struct image_recipe *rc, struct err *e)
{
	char kernel[IMAGE_DIGEST_MAX + 1];
	_free_ char *path = NULL;
	_close_ int root = -1;
	int r = check_host(e);

	if (r == 0)
		r = image_work_start(w, space_needed, e);
	if (r == 0)
		r = image_recipe_env(rc, w->tmpdir, true, e);
	if (r == 0)
		r = debootstrap(w, rc, e);
	if (r < 0)
		return r;
	path = image_work_path(w, "root");
	root = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (root < 0)
		return err_errno(e, -errno, "cannot open the new root");
	r = take_kernel(w, root, kernel, e);
	if (r == 0)
		r = image_work_check(w, e);
	if (r == 0)
		r = make_image(w, rc, root, e);
	return r < 0 ? r : commit(w, rc, kernel, e);
}

/* Under the lock: what another build made meanwhile is as good. */
static int build_locked(const struct image_build *b, struct image_recipe *rc,
			struct image_template *ret, bool *ret_made, struct err *e)
{
	struct image_work w;
	int r = image_work_begin(&w, b, IMAGE_TEMPLATES, e);

	if (r == 0)
		r = b->fresh ? 1 : image_template_made_from(b->cache, rc->inputs, ret, e);
	if (r == 1) {
		r = build(&w, rc, e);
		if (r == 0)
			*ret_made = true;
		if (r == 0)
			r = image_template_made_from(b->cache, rc->inputs, ret, e);
		if (r == 1)
			r = err_set(e, -EIO, "the template that was built is not there");
	}
	image_work_end(&w);
	return r;
}

/* The initrd now, so that the first sandbox does not wait for it. */
static int make_initrd(const struct image_build *b, const struct image_template *t, struct err *e)
{
	struct image_kernel k = { 0 };
	int r = image_kernel_find(b->cache, b->init, t->kernel, NULL, &k, e);

	image_kernel_done(&k);
	return r;
}

int image_template_build(const struct image_build *b, struct image_template *ret, bool *ret_made,
			 struct err *e)
{
	struct image_template t = { 0 };
	struct image_recipe rc = { 0 };
	bool made = false;
	int r = image_recipe_template(b, &rc, e);

	if (r == 0)
		r = b->fresh ? 1 : image_template_made_from(b->cache, rc.inputs, &t, e);
	if (r == 1)
		r = build_locked(b, &rc, &t, &made, e);
	if (r == 0)
		r = make_initrd(b, &t, e);
	image_recipe_done(&rc);
	if (r < 0) {
		image_template_done(&t);
		return r;
	}
	*ret = t;
	*ret_made = made;
	return 0;
}
