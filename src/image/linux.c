/* Building a minimal kernel.
 *
 * The source is Debian's linux-source, fetched and checked by apt inside mmdebstrap --variant=extract
 * (which unpacks packages and installs none); the configuration is a fragment over allnoconfig, so what
 * it does not name is off. All is built in: there are no modules. */
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/kernel.h"
#include "image/vmlinux.h"
#include "image/work.h"
#include "io/fd.h"

/* Changes when the same inputs would come out differently. */
#define BUILDER "bac kernel 2"

enum { ARGS_MAX = 16, RELEASE_MAX = 128 };

static const uint64_t space_needed = (uint64_t)4 << 30;

static int check_host(struct err *e)
{
	static const char *const programs[] = { "unshare", "mmdebstrap", "apt-get", "gcc",  "make",
						"flex",    "bison",      "bc",      "perl", "tar",
						"xz",      "objcopy",    NULL };
	int r = image_work_programs(programs, e);

	if (r < 0)
		return r;
	if (access("/usr/include/libelf.h", R_OK) < 0)
		return err_set(e, -ENOENT,
			       "libelf.h is not installed: sudo apt install libelf-dev");
	return image_run_check(e);
}

static int digest_of(const struct image_recipe *rc, const char *config,
		     char inputs[IMAGE_DIGEST_MAX + 1], struct err *e)
{
	struct image_digest d;
	size_t i;
	int r;

	image_digest_init(&d);
	image_digest_text(&d, BUILDER);
	image_digest_text(&d, rc->suite);
	for (i = 0; i < rc->n_sources; i++)
		image_digest_text(&d, rc->sources[i]);
	image_digest_file(&d, AT_FDCWD, config);
	r = image_digest_end(&d, inputs);
	return r < 0 ? err_errno(e, r, "cannot read the kernel's configuration %s", config) : 0;
}

static int fetch(struct image_work *w, const struct image_recipe *rc, struct err *e)
{
	_free_ char *root = image_work_path(w, "root");
	const char *argv[ARGS_MAX];
	size_t n = 0, i;

	if (!root)
		return err_errno(e, -ENOMEM, "cannot build the kernel");
	argv[n++] = "mmdebstrap";
	argv[n++] = "--mode=root";
	argv[n++] = "--variant=extract";
	argv[n++] = "--format=directory";
	argv[n++] = "--include=linux-source";
	argv[n++] = rc->suite;
	argv[n++] = root;
	for (i = 0; i < rc->n_sources; i++)
		argv[n++] = rc->sources[i];
	argv[n] = NULL;
	return image_work_run(w, "fetching the kernel's source", argv, (const char *const *)rc->env,
			      e);
}

static int unpack(struct image_work *w, const struct image_recipe *rc, struct err *e)
{
	_free_ char *pattern = image_work_path(w, "root/usr/src/linux-source-*.tar.xz");
	_free_ char *to = image_work_path(w, "linux"), *file = NULL;
	glob_t g;

	if (!pattern || !to || mkdir(to, 0755) < 0)
		return err_errno(e, -ENOMEM, "cannot build the kernel");
	if (glob(pattern, 0, NULL, &g) == 0) {
		file = strdup(g.gl_pathv[0]);
		globfree(&g);
	}
	if (!file)
		return err_set(e, -ENOENT, "the package linux-source of %s has no source in it",
			       rc->suite);
	const char *const argv[] = {
		"tar", "--no-same-owner", "--strip-components=1", "-xJf", file, "-C", to, NULL
	};

	return image_work_run(w, "unpacking the kernel's source", argv,
			      (const char *const *)rc->env, e);
}

static int make(struct image_work *w, const struct image_recipe *rc, const char *step,
		const char *target, const char *more, struct err *e)
{
	_free_ char *dir = image_work_path(w, "linux");
	char jobs[16];
	/* The same source and configuration make the same kernel. */
	const char *const argv[] = { "nice",
				     "make",
				     jobs,
				     "-C",
				     dir,
				     target,
				     "KBUILD_BUILD_TIMESTAMP=1970-01-01",
				     "KBUILD_BUILD_USER=bac",
				     "KBUILD_BUILD_HOST=bac",
				     "KBUILD_BUILD_VERSION=1",
				     more,
				     NULL };

	if (!dir)
		return err_errno(e, -ENOMEM, "cannot build the kernel");
	(void)snprintf(jobs, sizeof(jobs), "-j%ld", sysconf(_SC_NPROCESSORS_ONLN));
	return image_work_run(w, step, argv, (const char *const *)rc->env, e);
}

static int compile(struct image_work *w, const struct image_recipe *rc, const char *config,
		   struct err *e)
{
	_free_ char *from = image_work_path(w, "linux/vmlinux");
	_free_ char *to = image_work_path(w, "vmlinux"), *with = NULL, *full = NULL;
	int r;

	full = realpath(config, NULL);
	if (!full)
		return err_errno(e, -errno, "cannot read the kernel's configuration %s", config);
	if (!from || !to || asprintf(&with, "KCONFIG_ALLCONFIG=%s", full) < 0)
		return err_errno(e, -ENOMEM, "cannot build the kernel");
	const char *const strip[] = { "objcopy", "-R", ".comment", "-S", from, to, NULL };

	r = make(w, rc, "configuring", "allnoconfig", with, e);
	if (r == 0)
		r = make(w, rc, "compiling the kernel", "vmlinux", NULL, e);
	if (r == 0)
		r = image_work_run(w, "stripping the kernel", strip, NULL, e);
	return r;
}

static int keep(struct image_work *w, const char *inputs, struct err *e)
{
	_free_ char *vmlinux = NULL, *release = NULL, *path = image_work_path(w, "vmlinux");
	_free_ char *name = image_work_path(w, "linux/include/config/kernel.release");
	struct buf modules = BUF_INIT(4096);
	struct image_kernel_parts p = { .kind = "minimal", .inputs = inputs };
	char digest[IMAGE_DIGEST_MAX + 1];
	int r = path && name ? 0 : -ENOMEM;

	if (r == 0)
		r = fd_read_file(AT_FDCWD, path, IMAGE_VMLINUX_MAX, &vmlinux, &p.n_vmlinux);
	if (r == 0)
		r = fd_read_file(AT_FDCWD, name, RELEASE_MAX, &release, NULL);
	if (r == 0)
		r = image_kernel_no_modules(&modules);
	if (r != 0) {
		buf_done(&modules);
		return err_errno(e, r, "cannot read the new kernel");
	}
	release[strcspn(release, "\n")] = '\0';
	p.vmlinux = vmlinux;
	p.release = release;
	p.modules = buf_data(&modules);
	p.n_modules = modules.n;
	r = image_work_check(w, e);
	if (r == 0)
		r = image_kernel_install(w->b->cache, &p, digest, e);
	buf_done(&modules);
	return r;
}

static int build(struct image_work *w, struct image_recipe *rc, const char *config,
		 const char *inputs, struct err *e)
{
	int r = check_host(e);

	if (r == 0)
		r = image_work_start(w, space_needed, e);
	if (r == 0)
		r = image_recipe_env(rc, w->tmpdir, false, e);
	if (r == 0)
		r = fetch(w, rc, e);
	if (r == 0)
		r = unpack(w, rc, e);
	if (r == 0)
		r = compile(w, rc, config, e);
	return r < 0 ? r : keep(w, inputs, e);
}

static int build_locked(const struct image_build *b, struct image_recipe *rc, const char *config,
			const char *inputs, struct image_kernel *ret, bool *ret_made, struct err *e)
{
	struct image_work w;
	int r = image_work_begin(&w, b, IMAGE_KERNELS, e);

	if (r == 0)
		r = b->fresh ? 1 : image_kernel_made_from(b->cache, inputs, ret, e);
	if (r == 1) {
		r = build(&w, rc, config, inputs, e);
		if (r == 0)
			*ret_made = true;
		if (r == 0)
			r = image_kernel_made_from(b->cache, inputs, ret, e);
		if (r == 1)
			r = err_set(e, -EIO, "the kernel that was built is not there");
	}
	image_work_end(&w);
	return r;
}

int image_kernel_build(const struct image_build *b, const char *config, struct image_kernel *ret,
		       bool *ret_made, struct err *e)
{
	char inputs[IMAGE_DIGEST_MAX + 1];
	struct image_recipe rc = { 0 };
	struct image_kernel k = { 0 };
	bool made = false;
	int r = image_recipe_sources(b, &rc, e);

	if (r == 0)
		r = digest_of(&rc, config, inputs, e);
	if (r == 0)
		r = b->fresh ? 1 : image_kernel_made_from(b->cache, inputs, &k, e);
	if (r == 1)
		r = build_locked(b, &rc, config, inputs, &k, &made, e);
	image_recipe_done(&rc);
	if (r == 0) {
		char digest[IMAGE_DIGEST_MAX + 1];

		memcpy(digest, k.digest, sizeof(digest));
		image_kernel_done(&k);
		r = image_kernel_find(b->cache, b->init, digest, NULL, &k, e);
	}
	if (r < 0) {
		image_kernel_done(&k);
		return r;
	}
	*ret = k;
	*ret_made = made;
	return 0;
}
