/* What QEMU runs from, so that its root can hold that and no more.
 *
 * Libraries: the program's own loader is asked (ld.so --list), which prints what it would map. Modules
 * and firmware: QEMU looks for them beside itself, at places that differ between distributions; of those
 * we take the few names that our machines need. Paths are put in order by their text alone ("/usr/bin/../
 * share" is "/usr/share"), since in the cage every directory is a real one. */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/fd.h"
#include "sys/spawn.h"
#include "vm/vm.h"

enum { FILES_MAX = 512, ASK_MS = 10000, ASK_OUT_MAX = 256 * 1024, INTERP_MAX = 256 };

/* Opened by "microvm" and "q35" with a kernel given by -kernel; which ones differs between versions. */
static const char *const firmware[] = {
	"bios-microvm.bin", "qboot.rom",         "bios-256k.bin", "kvmvapic.bin",
	"linuxboot.bin",    "linuxboot_dma.bin", "pvh.bin",
};

static const char *const modules[] = { "accel-tcg-x86_64.so" };

static const char *const module_dirs[] = { "../lib/x86_64-linux-gnu/qemu", "../lib64/qemu",
					   "../lib/qemu", "../libexec/qemu" };

struct list {
	char **v; /* NULL-terminated */
	size_t n;
};

char **vm_files_free(char **files)
{
	for (char **f = files; f && *f; f++)
		free(*f);
	free(files);
	return NULL;
}

static void list_done(struct list *l)
{
	l->v = vm_files_free(l->v);
}

/* Add a path unless it is there. */
static int add(struct list *l, const char *path)
{
	char **more;

	for (size_t i = 0; i < l->n; i++)
		if (streq(l->v[i], path))
			return 0;
	if (l->n >= FILES_MAX)
		return -E2BIG;
	more = realloc(l->v, (l->n + 2) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	l->v = more;
	more[l->n + 1] = NULL;
	more[l->n] = strdup(path);
	return more[l->n] ? (l->n++, 0) : -ENOMEM;
}

/* Take "." and ".." out of an absolute path, in place. */
static void tidy(char *path)
{
	char *to = path;

	for (const char *p = path; *p;) {
		size_t n;

		while (*p == '/')
			p++;
		n = strcspn(p, "/");
		if (n == 2 && p[0] == '.' && p[1] == '.') {
			while (to > path && *--to != '/')
				;
		} else if (n > 0 && !(n == 1 && p[0] == '.')) {
			*to++ = '/';
			memmove(to, p, n);
			to += n;
		}
		p += n;
	}
	if (to == path)
		*to++ = '/';
	*to = '\0';
}

/* dir/name, tidied: 1 and on the list if it is a file, 0 if not, or -errno. */
static int add_if_there(struct list *l, const char *dir, const char *name)
{
	char path[4096];
	struct stat st;
	int n = snprintf(path, sizeof(path), "%s/%s", dir, name), r;

	if (n < 0 || (size_t)n >= sizeof(path))
		return 0;
	tidy(path);
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	r = add(l, path);
	return r < 0 ? r : 1;
}

/* The loader that an ELF program names (PT_INTERP); "" if it needs none. 0, or -ENOEXEC. */
static int find_loader(const char *path, char *ret, size_t max)
{
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr h;
	Elf64_Phdr p;

	if (fd < 0)
		return -errno;
	if (pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) ||
	    memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64)
		return -ENOEXEC;
	for (unsigned i = 0; i < h.e_phnum; i++) {
		off_t at = (off_t)(h.e_phoff + (uint64_t)i * sizeof(p));

		if (pread(fd, &p, sizeof(p), at) != (ssize_t)sizeof(p))
			return -ENOEXEC;
		if (p.p_type != PT_INTERP)
			continue;
		if (p.p_filesz < 2 || p.p_filesz > max ||
		    pread(fd, ret, p.p_filesz, (off_t)p.p_offset) != (ssize_t)p.p_filesz)
			return -ENOEXEC;
		ret[p.p_filesz - 1] = '\0';
		return ret[0] == '/' ? 0 : -ENOEXEC;
	}
	ret[0] = '\0';
	return 0;
}

/* Run a program with nothing in its environment and keep what it prints. */
static int ask(const char *const *argv, struct buf *out, struct err *e)
{
	static const char *const none[] = { NULL };
	int r = sys_run(
		&(struct sys_cmd) {
			.argv = argv, .env = none, .dir = "/", .out = out, .deadline_ms = ASK_MS },
		e);

	return r > 0 ? -EIO : r;
}

/* One line of ld.so --list: "\tlibz.so.1 => /lib/x/libz.so.1 (0x7f...)", "\t/lib64/ld.so (0x...)",
 * "\tlinux-vdso.so.1 (0x...)". 0, or -ENOENT for "=> not found". */
static int read_listed(struct list *l, char *line)
{
	char *arrow = strstr(line, " => "), *path = arrow ? arrow + 4 : line, *end;

	path += strspn(path, " \t");
	if (starts_with(path, "not found"))
		return -ENOENT;
	end = strstr(path, " (0x");
	if (path[0] != '/' || !end)
		return 0;
	*end = '\0';
	tidy(path);
	return add(l, path);
}

/* The libraries of a program or module. */
static int add_libraries(struct list *l, const char *loader, const char *path, struct err *e)
{
	const char *argv[] = { loader, "--list", path, NULL };
	struct buf out = BUF_INIT(ASK_OUT_MAX);
	char *line, *next;
	int r;

	r = ask(argv, &out, e);
	if (r == 0 && !buf_str(&out))
		r = err_set(e, -ENOMEM, "out of memory");
	for (line = (char *)buf_data(&out); r == 0 && line && *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		r = read_listed(l, line);
		if (r < 0)
			(void)err_errno(e, r, "cannot find a library of %s (%s)", path,
					line + strspn(line, " \t"));
	}
	buf_done(&out);
	return r;
}

static int add_modules(struct list *l, const char *loader, const char *bin_dir, struct err *e)
{
	for (size_t d = 0; d < ARRAY_SIZE(module_dirs); d++) {
		for (size_t i = 0; i < ARRAY_SIZE(modules); i++) {
			size_t before = l->n;
			char dir[4096];
			int r, n = snprintf(dir, sizeof(dir), "%s/%s", bin_dir, module_dirs[d]);

			if (n < 0 || (size_t)n >= sizeof(dir))
				continue;
			r = add_if_there(l, dir, modules[i]);
			if (r > 0 && l->n > before)
				r = add_libraries(l, loader, l->v[before], e);
			else if (r < 0)
				(void)err_errno(e, r, "cannot list QEMU's modules");
			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* Ask QEMU for its data directories ("-L help"), and look there. */
static int add_firmware(struct list *l, const char *qemu, struct err *e)
{
	const char *argv[] = { qemu, "-L", "help", NULL };
	struct buf out = BUF_INIT(ASK_OUT_MAX);
	size_t before = l->n;
	char *dir, *next;
	int r;

	r = ask(argv, &out, e);
	if (r == 0 && !buf_str(&out))
		r = err_set(e, -ENOMEM, "out of memory");
	for (dir = (char *)buf_data(&out); r == 0 && dir && *dir; dir = next) {
		next = dir + strcspn(dir, "\n");
		if (*next)
			*next++ = '\0';
		for (size_t i = 0; dir[0] == '/' && i < ARRAY_SIZE(firmware) && r >= 0; i++)
			r = add_if_there(l, dir, firmware[i]);
		r = MIN(r, 0);
	}
	buf_done(&out);
	if (r == 0 && l->n == before)
		r = err_set(
			e, -ENOENT,
			"QEMU has no firmware (bios-microvm.bin, bios-256k.bin): sudo apt install "
			"qemu-system-data seabios");
	return r;
}

static int add_all(struct list *l, const char *qemu, struct err *e)
{
	char loader[INTERP_MAX] = "", dir[4096];
	int r;

	if (strlen(qemu) >= sizeof(dir))
		return err_set(e, -ENAMETOOLONG, "the path of QEMU is too long");
	r = find_loader(qemu, loader, sizeof(loader));
	if (r == -ENOEXEC)
		return err_set(e, r,
			       "%s is not a 64-bit ELF program; if it is a wrapper, name the real "
			       "one in the setting vm.qemu",
			       qemu);
	if (r < 0)
		return err_errno(e, r, "cannot read %s", qemu);
	memcpy(dir, qemu, strlen(qemu) + 1);
	*strrchr(dir, '/') = '\0';
	r = add(l, qemu);
	if (r == 0 && loader[0])
		r = add(l, loader);
	if (r == 0)
		r = MIN(add_if_there(l, "/etc", "ld.so.cache"), 0);
	if (r < 0)
		return err_errno(e, r, "cannot list QEMU's files");
	if (loader[0])
		r = add_libraries(l, loader, qemu, e);
	if (r == 0 && loader[0])
		r = add_modules(l, loader, dir, e);
	return r < 0 ? r : add_firmware(l, qemu, e);
}

int vm_files(const char *qemu, char ***ret, size_t *ret_n, struct err *e)
{
	_free_ char *real = realpath(qemu, NULL);
	struct list l = { 0 };
	int r;

	if (!real)
		return err_errno(e, -errno, "cannot find QEMU (%s)", qemu);
	r = add_all(&l, real, e);
	if (r < 0) {
		list_done(&l);
		return r;
	}
	*ret = l.v;
	*ret_n = l.n;
	return 0;
}

int vm_find_qemu(const char *setting, char **ret, struct err *e)
{
	const char *name = setting && *setting ? setting : "qemu-system-x86_64";
	_free_ char *found = NULL;
	char *real;
	int r;

	r = sys_find(name, &found, e);
	if (r < 0)
		return setting && *setting ? err_ctx(e, "the setting vm.qemu") : r;
	real = realpath(found, NULL);
	if (!real)
		return err_errno(e, -errno, "cannot find QEMU (%s)", found);
	*ret = real;
	return 0;
}
