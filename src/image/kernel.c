/* Kernels in the cache, and the initrd that goes with the init program of this bac.
 *
 * An initrd is two cpio archives, one behind the other, as the kernel allows: the modules (made once,
 * with the kernel) and the init program. It is named after the init's digest, so that two versions of bac
 * at the same cache do not disturb each other, and appears by rename, so that twenty processes may make
 * it at once. One that nobody used for a day goes when another is made. */
#include "image/kernel.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "image/cpio.h"
#include "image/digest.h"
#include "image/modules.h"
#include "image/store.h"
#include "image/unpack.h"
#include "image/vmlinux.h"
#include "io/fd.h"

/* Changes when the same init would make another initrd. */
#define INITRD_FORMAT "bac initrd 1"

enum {
	MODULE_MAX = 64 << 20,
	CPIO_MAX = 256 << 20,
	INIT_MAX = 64 << 20,
	RELEASE_MAX = 128,
	TOUCH_S = 3600,
	UNUSED_S = 24 * 3600,
};

/* ---- installing ---- */

static int write_file(int dir, const char *tmp, const char *name, const void *p, size_t n)
{
	char path[IMAGE_TMP_MAX + 32];
	_close_ int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/%s", tmp, name);
	fd = openat(dir, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd_write_all(fd, p, n);
}

static int digest_parts(const struct image_kernel_parts *p, char digest[IMAGE_DIGEST_MAX + 1])
{
	struct image_digest d;

	image_digest_init(&d);
	image_digest_text(&d, p->kind);
	image_digest_text(&d, p->release);
	image_digest_text(&d, p->inputs);
	image_digest_bytes(&d, p->vmlinux, p->n_vmlinux);
	image_digest_bytes(&d, p->modules, p->n_modules);
	return image_digest_end(&d, digest);
}

static int fill(int dir, const char *tmp, const struct image_kernel_parts *p, struct err *e)
{
	int r = write_file(dir, tmp, "vmlinux", p->vmlinux, p->n_vmlinux);

	if (r == 0)
		r = write_file(dir, tmp, "modules.cpio", p->modules, p->n_modules);
	if (r < 0)
		return err_errno(e, r, "cannot write the kernel to the cache");
	return image_store_json(dir, tmp, "kernel.json",
				json_pack("{s:i, s:s, s:s, s:s, s:I}", "version",
					  IMAGE_KERNEL_VERSION, "release", p->release, "kind",
					  p->kind, "inputs", p->inputs, "created",
					  (json_int_t)time(NULL)),
				e);
}

int image_kernel_install(const char *cache, const struct image_kernel_parts *p,
			 char digest[IMAGE_DIGEST_MAX + 1], struct err *e)
{
	char tmp[IMAGE_TMP_MAX];
	_close_ int dir = -1;
	json_t *there;
	int r = digest_parts(p, digest);

	if (r < 0)
		return err_errno(e, r, "cannot compute a digest");
	r = image_store_open(cache, IMAGE_KERNELS, &dir, e);
	if (r < 0)
		return r;
	there = image_store_meta(dir, digest, "kernel.json");
	json_decref(there);
	if (there)
		return 0;
	r = image_store_tmp(dir, tmp, e);
	if (r < 0)
		return r;
	r = fill(dir, tmp, p, e);
	if (r == 0)
		r = image_store_commit(dir, tmp, dir, digest, "kernel.json", e);
	(void)image_store_remove(cache, IMAGE_KERNELS, tmp);
	return r;
}

/* ---- out of a Debian root ---- */

/* A file of the root; its links lead nowhere else. */
static int read_in_root(int root, const char *path, size_t max, char **ret, size_t *ret_n,
			struct err *e)
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	_close_ int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	char self[32];
	int r;

	if (fd < 0)
		return err_errno(e, -errno, "cannot open the root's %s", path);
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	r = fd_read_file(AT_FDCWD, self, max, ret, ret_n);
	return r == 0 ? 0 : err_errno(e, r, "cannot read the root's %s", path);
}

static int read_release(int root, char release[RELEASE_MAX], struct err *e)
{
	_free_ char *text = NULL;
	int r = read_in_root(root, "boot/release", RELEASE_MAX, &text, NULL, e);

	if (r < 0)
		return r;
	text[strcspn(text, "\n")] = '\0';
	if (!*text || strlen(text) >= RELEASE_MAX || strchr(text, '/') || text[0] == '.')
		return err_set(e, -EINVAL, "'%.40s' is not a kernel's release", text);
	memcpy(release, text, strlen(text) + 1);
	return 0;
}

static int read_vmlinux(int root, struct buf *out, struct err *e)
{
	_free_ char *image = NULL;
	size_t n;
	int r = read_in_root(root, "boot/vmlinuz", IMAGE_BZIMAGE_MAX, &image, &n, e);

	return r < 0 ? r : image_vmlinux(image, n, out, e);
}

static int read_module(int root, const char *release, const char *path, struct image_cpio *c,
		       struct buf *order, struct err *e)
{
	struct buf plain = BUF_INIT(MODULE_MAX);
	char full[512], name[300], inside[320];
	_free_ char *raw = NULL;
	size_t n;
	int r;

	(void)snprintf(full, sizeof(full), "usr/lib/modules/%s/%s", release, path);
	r = image_modules_name(path, name, sizeof(name));
	if (r < 0)
		return err_errno(e, r, "cannot read the module %s", path);
	r = read_in_root(root, full, MODULE_MAX, &raw, &n, e);
	if (r < 0)
		return r;
	r = image_unpack(raw, n, &plain, e);
	if (r < 0) {
		buf_done(&plain);
		return err_ctx(e, "the module %s", path);
	}
	(void)snprintf(inside, sizeof(inside), "modules/%s", name);
	image_cpio_file(c, inside, 0444, buf_data(&plain), plain.n);
	buf_done(&plain);
	r = buf_printf(order, "%s\n", name);
	return r < 0 ? err_errno(e, r, "cannot list the modules") : 0;
}

static int pack_modules(int root, const char *release, const struct image_modules *m,
			struct image_cpio *c, struct err *e)
{
	struct buf order = BUF_INIT(300UL * IMAGE_MODULES_MAX);
	size_t i;
	int r = 0;

	image_cpio_dir(c, "modules");
	for (i = 0; r == 0 && i < m->n; i++)
		r = read_module(root, release, m->v[i], c, &order, e);
	if (r == 0) {
		image_cpio_file(c, "modules/order", 0444, buf_data(&order), order.n);
		r = image_cpio_end(c);
		if (r < 0)
			r = err_errno(e, r, "cannot pack the modules");
	}
	buf_done(&order);
	return r;
}

static int find_modules(int root, const char *release, const char *wanted, struct image_modules *m,
			struct err *e)
{
	_free_ char *dep = NULL, *builtin = NULL;
	char path[RELEASE_MAX + 64];
	int r;

	(void)snprintf(path, sizeof(path), "usr/lib/modules/%s/modules.dep", release);
	r = read_in_root(root, path, IMAGE_MODULES_FILE_MAX, &dep, NULL, e);
	(void)snprintf(path, sizeof(path), "usr/lib/modules/%s/modules.builtin", release);
	if (r == 0)
		r = read_in_root(root, path, IMAGE_MODULES_FILE_MAX, &builtin, NULL, e);
	return r < 0 ? r : image_modules(wanted, dep, builtin, m, e);
}

int image_kernel_from_root(const char *cache, int root, const char *wanted,
			   char digest[IMAGE_DIGEST_MAX + 1], struct err *e)
{
	struct buf vmlinux = BUF_INIT(IMAGE_VMLINUX_MAX);
	struct image_modules m = { .n = 0 };
	char release[RELEASE_MAX];
	struct image_cpio c;
	int r;

	image_cpio_init(&c, CPIO_MAX);
	r = read_release(root, release, e);
	if (r == 0)
		r = read_vmlinux(root, &vmlinux, e);
	if (r == 0)
		r = find_modules(root, release, wanted, &m, e);
	if (r == 0)
		r = pack_modules(root, release, &m, &c, e);
	if (r == 0) {
		struct image_kernel_parts p = {
			.vmlinux = buf_data(&vmlinux),
			.n_vmlinux = vmlinux.n,
			.modules = buf_data(&c.out),
			.n_modules = c.out.n,
			.release = release,
			.kind = "debian",
			.inputs = "",
		};

		r = image_kernel_install(cache, &p, digest, e);
	}
	image_modules_done(&m);
	image_cpio_done(&c);
	buf_done(&vmlinux);
	return r;
}

int image_kernel_no_modules(struct buf *out)
{
	struct image_cpio c;
	int r;

	image_cpio_init(&c, CPIO_MAX);
	r = image_cpio_end(&c);
	if (r == 0)
		r = buf_add(out, buf_data(&c.out), c.out.n);
	image_cpio_done(&c);
	return r;
}

/* ---- the initrd ---- */

static int pack_init(const char *init, size_t n, struct image_cpio *c)
{
	static const char *const dirs[] = { "dev", "proc", "sys", "root" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(dirs); i++)
		image_cpio_dir(c, dirs[i]);
	image_cpio_file(c, "init", 0755, init, n);
	return image_cpio_end(c);
}

/* Initrds of other inits that nobody has used for a day. */
static void remove_unused(int dir, const char *digest)
{
	_close_ int fd = openat(dir, digest, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	time_t now = time(NULL);
	struct dirent *de;
	struct stat st;

	if (!d) {
		(void)fd_close(copy);
		return;
	}
	while ((de = readdir(d)))
		if (starts_with(de->d_name, "initrd-") &&
		    fstatat(fd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    now - st.st_mtime > UNUSED_S)
			(void)unlinkat(fd, de->d_name, 0);
	(void)closedir(d);
}

/* Two archives, one file. */
static int make_initrd(int dir, const char *digest, const char *name, const char *init, size_t n)
{
	char path[IMAGE_DIGEST_MAX + 64];
	_free_ char *modules = NULL;
	struct image_cpio c;
	size_t n_modules;
	int r;

	(void)snprintf(path, sizeof(path), "%s/modules.cpio", digest);
	r = fd_read_file(dir, path, CPIO_MAX, &modules, &n_modules);
	if (r < 0)
		return r;
	image_cpio_init(&c, CPIO_MAX + INIT_MAX);
	r = buf_add(&c.out, modules, n_modules);
	if (r == 0)
		r = pack_init(init, n, &c);
	(void)snprintf(path, sizeof(path), "%s/%s", digest, name);
	if (r == 0)
		r = fd_replace_file(dir, path, 0600, buf_data(&c.out), c.out.n);
	image_cpio_done(&c);
	remove_unused(dir, digest);
	return r;
}

static int name_initrd(const char *init, size_t n, char *dst, size_t max)
{
	char hex[IMAGE_DIGEST_MAX + 1];
	struct image_digest d;
	int r;

	image_digest_init(&d);
	image_digest_text(&d, INITRD_FORMAT);
	image_digest_bytes(&d, init, n);
	r = image_digest_end(&d, hex);
	if (r == 0)
		(void)snprintf(dst, max, "initrd-%.16s", hex);
	return r;
}

/* True if it is there; noted as used. */
static bool use_initrd(int dir, const char *path)
{
	struct stat st;

	if (fstatat(dir, path, &st, 0) < 0)
		return false;
	if (time(NULL) - st.st_mtime > TOUCH_S)
		(void)utimensat(dir, path, NULL, 0);
	return true;
}

static int add_initrd(const char *cache, const char *init, struct image_kernel *k, struct err *e)
{
	char name[32], path[IMAGE_DIGEST_MAX + 64];
	_free_ char *program = NULL;
	_close_ int dir = -1;
	size_t n;
	int r = fd_read_file(AT_FDCWD, init, INIT_MAX, &program, &n);

	if (r == 0)
		r = name_initrd(program, n, name, sizeof(name));
	if (r < 0)
		return err_errno(e, r, "cannot read the guest's init %s", init);
	r = image_store_open(cache, IMAGE_KERNELS, &dir, e);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "%s/%s", k->digest, name);
	if (!use_initrd(dir, path)) {
		r = make_initrd(dir, k->digest, name, program, n);
		if (r < 0)
			return err_errno(e, r, "cannot make the initrd of kernel %.12s", k->digest);
	}
	if (asprintf(&k->initrd, "%s/%s/%s", cache, IMAGE_KERNELS, path) < 0) {
		k->initrd = NULL;
		return err_errno(e, -ENOMEM, "cannot name the initrd");
	}
	return 0;
}

int image_kernel_find(const char *cache, const char *init, const char *want, const char *paired,
		      struct image_kernel *ret, struct err *e)
{
	struct image_kernel k = { 0 };
	int r = image_kernel_pick(cache, want, paired, &k, e);

	if (r == 0)
		r = add_initrd(cache, init, &k, e);
	if (r < 0)
		image_kernel_done(&k);
	else
		*ret = k;
	return r;
}
