/* Parsers of the image room, the archive writer, and the cache's directories. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "image/apt.h"
#include "image/cpio.h"
#include "image/digest.h"
#include "image/kernel.h"
#include "image/modules.h"
#include "image/store.h"
#include "io/fd.h"
#include "sys/dirs.h"

static char cache[64];

/* ---- apt ---- */

struct apt_row {
	bool deb822;
	const char *text, *mirror, *security;
};

static const struct apt_row apt_rows[] = {
	{ false, "deb http://m.example/debian bookworm main contrib\n", "http://m.example/debian",
	  "" },
	{ false, "deb [arch=amd64 signed-by=/k] http://m.example/debian/ bookworm main",
	  "http://m.example/debian/", "" },
	{ false, "# deb http://m.example/debian bookworm main\n", "", "" },
	{ false, "deb-src http://m.example/debian bookworm main\n", "", "" },
	{ false, "deb http://m.example/debian bookworm contrib\n", "", "" },
	{ false, "deb http://m.example/debian trixie main\n", "", "" },
	{ false, "deb [broken http://m.example/debian bookworm main\n", "", "" },
	{ false, "deb https://third.example/debian/12/prod bookworm main\n", "", "" },
	{ false, "deb https://third.example/linux/debian bookworm stable\n", "", "" },
	{ false, "deb file:/srv/debian bookworm main\n", "", "" },
	{ false,
	  "deb http://a.example/debian bookworm main\ndeb http://b.example/debian bookworm main\n",
	  "http://a.example/debian", "" },
	{ false,
	  "deb http://m.example/debian bookworm main # note\n"
	  "deb http://m.example/debian-security bookworm-security main\n",
	  "http://m.example/debian", "http://m.example/debian-security" },
	{ false, "deb http://s.example/archive/debian/20260101T000000Z bookworm main\n",
	  "http://s.example/archive/debian/20260101T000000Z", "" },
	{ true,
	  "Types: deb\nURIs: http://m.example/debian\nSuites: bookworm bookworm-updates\n"
	  "Components: main\n\nTypes: deb deb-src\nURIs: http://m.example/debian-security\n"
	  "Suites: bookworm-security\nComponents: main\n",
	  "http://m.example/debian", "http://m.example/debian-security" },
	{ true,
	  "types: deb\nuris:\n http://m.example/debian\n# a note\nsuites: bookworm\n"
	  "Components: main\n",
	  "http://m.example/debian", "" },
	{ true,
	  "Enabled: no\nTypes: deb\nURIs: http://m.example/debian\nSuites: bookworm\n"
	  "Components: main\n",
	  "", "" },
	{ true,
	  "Types: deb\nURIs: mirror+file:///etc/apt/mirrors/debian.list\nSuites: bookworm\n"
	  "Components: main\n",
	  "mirror+file:///etc/apt/mirrors/debian.list", "" },
	{ true, " stray\nTypes deb\nURIs\n", "", "" },
	{ true, "", "", "" },
};

static void test_apt(void)
{
	char name[16];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(apt_rows); i++) {
		struct image_apt a = { 0 };

		image_apt_read(&a, apt_rows[i].text, apt_rows[i].deb822, "bookworm");
		if (!streq(a.mirror, apt_rows[i].mirror) ||
		    !streq(a.security, apt_rows[i].security))
			fprintf(stderr, "row %zu: '%s' '%s'\n", i, a.mirror, a.security);
		check(streq(a.mirror, apt_rows[i].mirror));
		check(streq(a.security, apt_rows[i].security));
	}
	check(image_apt_is_uri("https://m.example/debian"));
	check(!image_apt_is_uri("ftp://m.example/debian"));
	check(!image_apt_is_uri("http://m.example/x y"));
	check(!image_apt_is_uri("http://m.example/]"));
	check(image_apt_codename("NAME=x\nID=debian\nVERSION_CODENAME=\"trixie\"\n", name, 16));
	check(streq(name, "trixie"));
	check(!image_apt_codename("ID=ubuntu\nVERSION_CODENAME=noble\n", name, 16));
	check(!image_apt_codename("ID=debian\nVERSION_CODENAME=a-very-long-code-name\n", name, 16));
}

/* ---- modules ---- */

static const char dep[] = "kernel/fs/erofs/erofs.ko.xz: kernel/lib/libcrc32c.ko.xz\n"
			  "kernel/lib/libcrc32c.ko.xz:\n"
			  "kernel/drivers/virtio/virtio_pci.ko.xz: kernel/v/legacy.ko.xz "
			  "kernel/v/modern.ko.xz kernel/v/virtio_ring.ko.xz kernel/v/virtio.ko.xz\n"
			  "kernel/drivers/block/virtio_blk.ko.xz: kernel/v/virtio_ring.ko.xz "
			  "kernel/v/virtio.ko.xz\n"
			  "kernel/odd/up.ko: ../../etc/passwd.ko\n";
static const char builtin[] = "kernel/fs/ext4/ext4.ko\nkernel/drivers/char/virtio_console.ko\n";

static void test_modules(void)
{
	static const char *const want[] = {
		"kernel/v/virtio.ko.xz",
		"kernel/v/virtio_ring.ko.xz",
		"kernel/drivers/block/virtio_blk.ko.xz",
		"kernel/v/modern.ko.xz",
		"kernel/v/legacy.ko.xz",
		"kernel/drivers/virtio/virtio_pci.ko.xz",
		"kernel/lib/libcrc32c.ko.xz",
		"kernel/fs/erofs/erofs.ko.xz",
	};
	struct image_modules m = { .n = 0 };
	char name[64];
	struct err e;
	size_t i;

	check(image_modules("# list\nvirtio-blk virtio_pci # all\n\next4\nerofs\nvirtio_console",
			    dep, builtin, &m, &e) == 0);
	check(m.n == ARRAY_SIZE(want));
	for (i = 0; i < m.n; i++)
		check(streq(m.v[i], want[i]));
	image_modules_done(&m);
	check(image_modules("nosuch", dep, builtin, &m, &e) == -ENOENT);
	check(strstr(e.msg, "nosuch"));
	check(image_modules("up", dep, builtin, &m, &e) == -EINVAL);
	check(image_modules("", dep, builtin, &m, &e) == 0 && m.n == 0);
	check(image_modules_name("kernel/a/b-c.ko.xz", name, sizeof(name)) == 0);
	check(streq(name, "b-c.ko"));
	check(image_modules_name("kernel/a/b-c.ko.xz", name, 6) == -ENAMETOOLONG);
}

/* ---- cpio ---- */

static void test_cpio(void)
{
	struct image_cpio c;
	const char *p;

	image_cpio_init(&c, 1 << 16);
	image_cpio_dir(&c, "d");
	image_cpio_file(&c, "d/f", 0644, "abc", 3);
	check(image_cpio_end(&c) == 0);
	check(c.out.n % 512 == 0);
	p = (const char *)buf_data(&c.out);
	check(memcmp(p, "07070100000001000041ed", 22) == 0);
	check(memcmp(p + 110, "d\0", 2) == 0);
	check(memcmp(p + 112, "07070100000002000081a4", 22) == 0); /* 110 + 2, already whole */
	check(memcmp(p + 112 + 54, "00000003", 8) == 0);
	check(memcmp(p + 112 + 110, "d/f\0\0\0abc\0", 10) == 0);
	check(memmem(p, c.out.n, "TRAILER!!!", 10));
	image_cpio_done(&c);

	image_cpio_init(&c, 200);
	image_cpio_file(&c, "f", 0644, "abc", 3);
	image_cpio_file(&c, "g", 0644, "abc", 3);
	check(image_cpio_end(&c) == -ENOBUFS);
	image_cpio_done(&c);
}

/* ---- digests ---- */

static void digest_of(const char *a, const char *b, char hex[IMAGE_DIGEST_MAX + 1])
{
	struct image_digest d;

	image_digest_init(&d);
	image_digest_text(&d, a);
	image_digest_text(&d, b);
	check(image_digest_end(&d, hex) == 0);
}

static void test_digest(void)
{
	char x[IMAGE_DIGEST_MAX + 1], y[IMAGE_DIGEST_MAX + 1];
	struct image_digest d;

	digest_of("ab", "c", x);
	digest_of("a", "bc", y);
	check(strlen(x) == IMAGE_DIGEST_MAX && !streq(x, y));
	digest_of("a", "", x);
	digest_of("a", NULL, y);
	check(!streq(x, y));
	image_digest_init(&d);
	image_digest_file(&d, AT_FDCWD, "/nonexistent");
	check(image_digest_end(&d, x) == -ENOENT);
}

/* ---- the cache ---- */

static void put_template(const char *digest, const char *inputs, const char *tag,
			 const char *kernel, int created)
{
	char tmp[IMAGE_TMP_MAX], path[128];
	_close_ int dir = -1, f = -1;
	struct err e;

	check(image_store_open(cache, IMAGE_TEMPLATES, &dir, &e) == 0);
	check(image_store_tmp(dir, tmp, &e) == 0);
	(void)snprintf(path, sizeof(path), "%s/root.erofs", tmp);
	f = openat(dir, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	check(f >= 0 && fd_write_all(f, "root", 4) == 0);
	check(image_store_json(dir, tmp, "template.json",
			       json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i}", "inputs", inputs,
					 "tag", tag, "kernel", kernel, "source", "debian x", "user",
					 "agent", "workdir", "/w", "created", created),
			       &e) == 0);
	check(image_store_commit(dir, tmp, dir, digest, "template.json", &e) == 0);
}

static void fill_digest(char hex[IMAGE_DIGEST_MAX + 1], char c)
{
	memset(hex, c, IMAGE_DIGEST_MAX);
	hex[IMAGE_DIGEST_MAX] = '\0';
}

static void test_templates(void)
{
	char a[IMAGE_DIGEST_MAX + 1], b[IMAGE_DIGEST_MAX + 1], k[IMAGE_DIGEST_MAX + 1];
	struct image_template t = { 0 }, *v;
	_close_ int root = -1;
	struct err e;
	size_t n;

	fill_digest(a, 'a');
	fill_digest(b, 'b');
	fill_digest(k, '0');
	check(image_template_find(cache, "default", &t, &e) == -ENOENT);
	check(strstr(e.msg, "bac template build"));
	put_template(a, a, "default", k, 100);
	put_template(b, a, "default", k, 200);
	check(image_template_ls(cache, &v, &n, &e) == 0 && n == 2);
	check(streq(v[0].digest, b) && streq(v[0].tag, "default") && v[0].size > 0);
	check(streq(v[1].digest, a) && streq(v[1].tag, ""));
	while (n)
		image_template_done(&v[--n]);
	free(v);
	check(image_template_find(cache, "default", &t, &e) == 0 && streq(t.digest, b));
	image_template_done(&t);
	check(image_template_find(cache, "sha256:aaaaaa", &t, &e) == 0 && streq(t.digest, a));
	root = open(t.root, O_RDONLY | O_CLOEXEC);
	image_template_done(&t);
	check(image_template_find(cache, "aaaaa", &t, &e) == -ENOENT);
	check(image_template_made_from(cache, a, &t, &e) == 0 && streq(t.digest, b));
	image_template_done(&t);
	check(image_template_made_from(cache, k, &t, &e) == 1);

	check(root >= 0 && flock(root, LOCK_SH) == 0);
	check(image_template_rm(cache, a, &e) == -EBUSY);
	root = fd_close(root);
	check(image_template_rm(cache, a, &e) == 0);
	check(image_template_rm(cache, a, &e) == -ENOENT);
	check(image_template_find(cache, "aaaaaa", &t, &e) == -ENOENT);
}

/* What a killed build left, and a directory whose description is damaged. */
static void test_repair(void)
{
	char c[IMAGE_DIGEST_MAX + 1], tmp[IMAGE_TMP_MAX], path[128];
	struct image_template t = { 0 };
	_close_ int dir = -1, lock = -1;
	struct err e;

	fill_digest(c, 'c');
	check(image_store_open(cache, IMAGE_TEMPLATES, &dir, &e) == 0);
	check(image_store_tmp(dir, tmp, &e) == 0);
	(void)snprintf(path, sizeof(path), "%s/x", tmp);
	check(mkdirat(dir, path, 0700) == 0);
	lock = openat(dir, ".lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	check(lock >= 0 && flock(lock, LOCK_EX) == 0);
	image_sweep(cache); /* a build is under way: hands off */
	check(faccessat(dir, tmp, F_OK, 0) == 0);
	lock = fd_close(lock);
	image_sweep(cache);
	check(faccessat(dir, tmp, F_OK, 0) < 0);

	check(mkdirat(dir, c, 0700) == 0);
	(void)snprintf(path, sizeof(path), "%s/template.json", c);
	check(fd_replace_file(dir, path, 0600, "{\"ta", 4) == 0);
	check(image_template_find(cache, c, &t, &e) == -ENOENT);
	put_template(c, c, "default", c, 300);
	check(image_template_find(cache, c, &t, &e) == 0);
	image_template_done(&t);
}

static void test_kernels(void)
{
	struct image_kernel_parts p = {
		.vmlinux = "elf",
		.n_vmlinux = 3,
		.modules = "",
		.release = "6.1-x",
		.kind = "debian",
		.inputs = "",
	};
	char debian[IMAGE_DIGEST_MAX + 1], minimal[IMAGE_DIGEST_MAX + 1], path[256], first[256];
	char *text = NULL;
	struct image_kernel k = { 0 };
	struct err e;

	(void)snprintf(path, sizeof(path), "%s/init", cache);
	check(fd_replace_file(AT_FDCWD, path, 0700, "init one", 8) == 0);
	check(image_kernel_find(cache, path, NULL, NULL, &k, &e) == -ENOENT);
	check(image_kernel_install(cache, &p, debian, &e) == 0);
	check(image_kernel_install(cache, &p, debian, &e) == 0); /* again: nothing happens */
	check(image_kernel_find(cache, path, NULL, NULL, &k, &e) == 0);
	check(streq(k.digest, debian) && access(k.initrd, R_OK) == 0);
	(void)snprintf(first, sizeof(first), "%s", k.initrd);
	image_kernel_done(&k);

	check(fd_replace_file(AT_FDCWD, path, 0700, "init two", 8) == 0);
	check(image_kernel_find(cache, path, "debian", NULL, &k, &e) == 0);
	check(!streq(k.initrd, first) && access(first, R_OK) == 0);
	image_kernel_done(&k);

	p.kind = "minimal";
	p.release = "6.1-bac";
	check(image_kernel_install(cache, &p, minimal, &e) == 0);
	check(image_kernel_find(cache, path, NULL, debian, &k, &e) == 0);
	check(streq(k.digest, minimal));
	image_kernel_done(&k);

	/* one by an older bac is there for who asks for it, and taken by nobody else */
	(void)snprintf(path, sizeof(path), "%s/kernels/%s/kernel.json", cache, minimal);
	check(fd_read_file(AT_FDCWD, path, 4096, &text, NULL) == 0);
	check(strstr(text, "\"version\": 2"));
	strstr(text, "\"version\": 2")[11] = '1';
	check(fd_replace_file(AT_FDCWD, path, 0600, text, strlen(text)) == 0);
	free(text);
	(void)snprintf(path, sizeof(path), "%s/init", cache);
	check(image_kernel_find(cache, path, NULL, debian, &k, &e) == 0);
	check(streq(k.digest, debian));
	image_kernel_done(&k);
	check(image_kernel_find(cache, path, "minimal", NULL, &k, &e) == -ENOENT);
	check(image_kernel_find(cache, path, minimal, NULL, &k, &e) == 0);
	check(streq(k.kind, "outdated"));
	image_kernel_done(&k);
	check(image_kernel_find(cache, path, "6.1-x", NULL, &k, &e) == 0);
	check(streq(k.digest, debian));
	image_kernel_done(&k);
	check(image_kernel_find(cache, path, "nosuch", NULL, &k, &e) == -ENOENT);
}

int main(void)
{
	test_apt();
	test_modules();
	test_cpio();
	test_digest();
	(void)snprintf(cache, sizeof(cache), "/tmp/test-image-XXXXXX");
	check(mkdtemp(cache));
	test_templates();
	test_repair();
	test_kernels();
	check(dirs_remove(AT_FDCWD, cache) == 0);
	return 0;
}
