/* QEMU in its cage: which files it sees, which descriptors it has, how much it may use. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "io/fd.h"
#include "sys/cage.h"
#include "vm/args.h"
#include "vm/vm.h"

enum {
	THREADS = 96,       /* of QEMU beside the CPUs: its main loop, RCU, 64 for files */
	DESCRIPTORS = 1024, /* KVM has one for each CPU and for each queue's doorbell */
	MEMORY_MIN = 16,    /* MiB */
	LOCK_AT =
		0x7fffff00 /* our lock: a byte that neither QEMU's locks nor anybody's data are at */
};

struct files {
	int null, root, disk, base, extents;
	int blobs[VM_BLOBS_MAX];
	size_t n_blobs;
};

static void files_done(struct files *f)
{
	f->null = fd_close(f->null);
	f->root = fd_close(f->root);
	f->disk = fd_close(f->disk);
	f->base = fd_close(f->base);
	f->extents = fd_close(f->extents);
	while (f->n_blobs)
		(void)fd_close(f->blobs[--f->n_blobs]);
}

/* Two machines on one disk would ruin it. The lock belongs to the open file, which QEMU inherits: it
 * is free when QEMU is gone, however it went. (QEMU's own locks are on too, but it would tell us only
 * after it has started.) */
static int lock_disk(int fd)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_AT, .l_len = 1
	};

	if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return 0;
	return errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;
}

static int open_regular(const char *path, int flags, int *ret, struct err *e)
{
	_close_ int fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, -errno, "cannot open the disk %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "the disk %s is not a file", path);
	if (fd_nonblock(fd, false) < 0)
		return err_errno(e, -errno, "cannot open the disk %s", path);
	*ret = take_fd(&fd);
	return 0;
}

/* Whoever uses a template holds a shared lock on its image (image/image.h); QEMU inherits this one. */
static int open_image(const char *path, int *ret, struct err *e)
{
	int r = open_regular(path, O_RDONLY, ret, e);

	if (r < 0 || flock(*ret, LOCK_SH | LOCK_NB) == 0)
		return r;
	if (errno == EWOULDBLOCK)
		return err_set(e, -EBUSY, "the image %s is being removed", path);
	return err_errno(e, -errno, "cannot lock the image %s", path);
}

static int open_blobs(const struct vm_spec *s, struct files *f, struct err *e)
{
	const char *const *b;
	int r = 0;

	for (b = s->root_blobs; b && *b && r == 0; b++) {
		int fd = -1;

		if (f->n_blobs == VM_BLOBS_MAX)
			return err_set(e, -E2BIG, "the image %s has too many layers (%d at most)",
				       s->root_image, VM_BLOBS_MAX);
		r = open_image(*b, &fd, e);
		if (fd >= 0)
			f->blobs[f->n_blobs++] = fd;
	}
	return r;
}

static int size_of(int fd, uint64_t *ret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret = (uint64_t)st.st_size;
	return 0;
}

/* A memory file for reading: QEMU takes no descriptor that can do more than it asks for. */
static int text_file(const struct buf *text, int *ret)
{
	_close_ int fd = memfd_create("bac-root", MFD_CLOEXEC), again = -1;
	char path[32];
	int r = fd < 0 ? -errno : fd_write_all(fd, buf_data(text), text->n);

	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY | O_CLOEXEC);
	if (again < 0)
		return -errno;
	*ret = take_fd(&again);
	return 0;
}

/* What VM_FD_EXTENTS says, in a memory file. */
static int describe(const struct vm_spec *s, struct files *f, struct err *e)
{
	_free_ uint64_t *sizes = calloc(f->n_blobs + 1, sizeof(*sizes));
	struct buf out = BUF_INIT(128UL * (VM_BLOBS_MAX + 8));
	size_t i;
	int r = sizes ? size_of(f->root, &sizes[0]) : -ENOMEM;

	for (i = 0; i < f->n_blobs && r == 0; i++)
		r = size_of(f->blobs[i], &sizes[i + 1]);
	if (r == 0)
		r = vm_args_extents(&out, sizes, f->n_blobs + 1);
	if (r == 0)
		r = text_file(&out, &f->extents);
	buf_done(&out);
	if (r == -EINVAL)
		return err_set(e, r, "the image %s or one of its layers is damaged", s->root_image);
	return r < 0 ? err_errno(e, r, "cannot describe the image %s", s->root_image) : 0;
}

static int open_images(const struct vm_spec *s, struct files *f, struct err *e)
{
	int r = 0;

	if (s->root_image)
		r = open_image(s->root_image, &f->root, e);
	if (r == 0 && s->root_image)
		r = open_blobs(s, f, e);
	if (r == 0 && f->n_blobs)
		r = describe(s, f, e);
	if (r == 0 && s->base_image)
		r = open_image(s->base_image, &f->base, e);
	return r;
}

static int open_files(const struct vm_spec *s, struct files *f, struct err *e)
{
	int r;

	f->null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (f->null < 0)
		return err_errno(e, -errno, "cannot open /dev/null");
	r = open_images(s, f, e);
	if (r == 0 && s->disk_image)
		r = open_regular(s->disk_image, O_RDWR, &f->disk, e);
	if (r < 0 || f->disk < 0)
		return r;
	r = lock_disk(f->disk);
	if (r == -EBUSY)
		return err_set(e, r, "another machine runs on the disk %s", s->disk_image);
	return r < 0 ? err_errno(e, r, "cannot lock the disk %s", s->disk_image) : 0;
}

static size_t map_fds(const struct vm_spec *s, const struct files *f, struct sys_fd *map)
{
	size_t n = 0, i;

	map[n++] = (struct sys_fd) { f->null, VM_FD_NULL };
	map[n++] = (struct sys_fd) { s->console_fd, VM_FD_OUT };
	map[n++] = (struct sys_fd) { s->console_fd, VM_FD_ERR };
	map[n++] = (struct sys_fd) { s->ctl_fd, VM_FD_CTL };
	map[n++] = (struct sys_fd) { s->qmp_fd, VM_FD_QMP };
	if (s->share_fd)
		map[n++] = (struct sys_fd) { s->share_fd, VM_FD_SHARE };
	if (s->tap_fd)
		map[n++] = (struct sys_fd) { s->tap_fd, VM_FD_TAP };
	if (f->root >= 0)
		map[n++] = (struct sys_fd) { f->root, VM_FD_ROOT };
	if (f->disk >= 0)
		map[n++] = (struct sys_fd) { f->disk, VM_FD_DISK };
	if (f->base >= 0)
		map[n++] = (struct sys_fd) { f->base, VM_FD_BASE };
	if (f->extents >= 0)
		map[n++] = (struct sys_fd) { f->extents, VM_FD_EXTENTS };
	for (i = 0; i < f->n_blobs; i++)
		map[n++] = (struct sys_fd) { f->blobs[i], VM_FD_BLOBS + (int)i };
	return n;
}

/* Programs and libraries may be executed; firmware and tables are data. */
static unsigned bind_flags(const char *path)
{
	return strstr(path, "/share/") || starts_with(path, "/etc/") ? 0 : CAGE_EXEC;
}

static int add_bind(struct cage_bind *b, size_t *n, const char *from, const char *to,
		    unsigned flags)
{
	if (*n >= CAGE_BINDS_MAX)
		return -E2BIG;
	b[(*n)++] = (struct cage_bind) { from, to, flags };
	return 0;
}

static int list_binds(const struct vm_spec *s, struct cage_bind *b, size_t *n)
{
	bool qemu = false;
	int r = 0;

	for (const char *const *f = s->qemu_files; f && *f && r == 0; f++) {
		r = add_bind(b, n, *f, *f, bind_flags(*f));
		qemu |= streq(*f, s->qemu);
	}
	if (r == 0 && !qemu)
		r = add_bind(b, n, s->qemu, s->qemu, CAGE_EXEC);
	if (r == 0)
		r = add_bind(b, n, s->kernel, VM_KERNEL, 0);
	if (r == 0)
		r = add_bind(b, n, s->initrd, VM_INITRD, 0);
	if (r == 0)
		r = add_bind(b, n, "/dev/null", "/dev/null", CAGE_DEVICE);
	if (r == 0 && s->kvm)
		r = add_bind(b, n, "/dev/kvm", "/dev/kvm", CAGE_DEVICE);
	return r;
}

/* Since 5.14 processes are counted by user namespace; before, a limit would count all that the user
 * runs, and QEMU would fail for reasons of somebody else. */
static bool counts_by_namespace(void)
{
	unsigned major = 0, minor = 0;
	struct utsname u;

	if (uname(&u) < 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		return false;
	return major > 5 || (major == 5 && minor >= 14);
}

/* No limit on address space: the guest's memory, the translation buffer and what libraries reserve
 * make a number that says nothing. Memory is the cgroup's to limit. The guest's memory is a file
 * (memfd), so it counts for the size of files. */
static size_t list_limits(const struct vm_spec *s, struct cage_limit *l)
{
	size_t n = 0;

	l[n++] = (struct cage_limit) { RLIMIT_CORE, 0 };
	l[n++] = (struct cage_limit) { RLIMIT_MEMLOCK, 0 };
	l[n++] = (struct cage_limit) { RLIMIT_MSGQUEUE, 0 };
	l[n++] = (struct cage_limit) { RLIMIT_RTPRIO, 0 };
	l[n++] = (struct cage_limit) { RLIMIT_NOFILE, DESCRIPTORS };
	l[n++] = (struct cage_limit) { RLIMIT_FSIZE, MAX(s->disk_size, s->memory) };
	if (counts_by_namespace())
		l[n++] = (struct cage_limit) { RLIMIT_NPROC, THREADS + s->cpus };
	return n;
}

static int check_spec(const struct vm_spec *s, struct err *e)
{
	if (s->cpus < 1 || s->cpus > 255)
		return err_set(e, -EINVAL, "a machine has 1 to 255 CPUs, not %u", s->cpus);
	if (s->memory >> 20 < MEMORY_MIN)
		return err_set(e, -EINVAL, "a machine needs at least %d MiB of memory", MEMORY_MIN);
	return 0;
}

static int spawn(const struct vm_spec *s, const struct files *f, struct cage_bind *binds,
		 struct vm_args *args, pid_t *ret_pid, int *ret_pidfd, struct err *e)
{
	static const char *const env[] = { "LC_ALL=C", NULL };
	struct cage_limit limits[8];
	struct sys_fd fds[VM_FD_N];
	struct cage_spec c = {
		.binds = binds, .argv = args->v, .env = env, .fds = fds, .limits = limits
	};
	int r;

	r = vm_args_make(s, args);
	if (r == -EINVAL)
		return err_set(e, r, "there is no machine '%s' (microvm, q35)", s->machine);
	if (r < 0)
		return err_set(e, r, "the kernel command line is too long");
	r = list_binds(s, binds, &c.n_binds);
	if (r < 0)
		return err_set(e, r, "QEMU needs too many files");
	c.n_fds = map_fds(s, f, fds);
	c.n_limits = list_limits(s, limits);
	return cage_spawn(&c, ret_pid, ret_pidfd, e);
}

int vm_spawn(const struct vm_spec *s, pid_t *ret_pid, int *ret_pidfd, struct err *e)
{
	_cleanup_(files_done) struct files f = {
		.null = -1, .root = -1, .disk = -1, .base = -1, .extents = -1
	};
	_free_ struct cage_bind *binds = NULL;
	_free_ struct vm_args *args = NULL;
	int r;

	binds = malloc(CAGE_BINDS_MAX * sizeof(*binds));
	args = malloc(sizeof(*args));
	if (!binds || !args)
		return err_set(e, -ENOMEM, "cannot start QEMU: out of memory");
	r = check_spec(s, e);
	if (r == 0)
		r = open_files(s, &f, e);
	if (r == 0)
		r = spawn(s, &f, binds, args, ret_pid, ret_pidfd, e);
	return r < 0 ? err_ctx(e, "cannot start QEMU") : 0;
}
