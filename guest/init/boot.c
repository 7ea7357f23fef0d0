/* Mounts.
 *
 * The initramfs stays as the root of the mount tree, empty but for two mounts: lower/ (the template,
 * read-only) and disk/ (this sandbox's ext4); beside an image that bac did not build, base/ is our own template. The overlay of both is moved over "/", which takes their
 * names out of sight; old_root keeps the way back for the shutdown, which has to take the mounts apart
 * in the right order. The root must really be moved: a mere chroot would forbid user namespaces. */
#include "guest/init/boot.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "guest/init/die.h"
#include "guest/init/loop.h"
#include "guest/init/net.h"
#include "guest/init/user.h"
#include "io/fd.h"
#include "wire/proxy.h"

#ifndef GRND_INSECURE
#define GRND_INSECURE 0x0004
#endif

#define MODPROBE "/proc/sys/kernel/modprobe"

enum {
	DISK_WAIT_MS = 30 * 1000,
	SMALL_FILE_MAX = 64 * 1024,
	FILES_SOFT = 65536,
	FILES_HARD = 1048576,
};

void boot_first_mounts(void)
{
	int fd;

	(void)mkdir("/dev", 0755);
	(void)mkdir("/proc", 0755);
	(void)mkdir("/sys", 0755);
	(void)mount("dev", "/dev", "devtmpfs", MS_NOSUID, "mode=0755");
	(void)mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
	(void)mount("sys", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");

	fd = open("/dev/console", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)dup2(fd, 0);
	(void)dup2(fd, 1);
	(void)dup2(fd, 2);
	if (fd > 2)
		(void)close(fd);
}

bool boot_has_word(const char *word)
{
	_free_ char *line = NULL;
	char *w, *rest = NULL;

	if (fd_read_file(AT_FDCWD, "/proc/cmdline", SMALL_FILE_MAX, &line, NULL) < 0)
		return false;
	for (w = strtok_r(line, " \n", &rest); w; w = strtok_r(NULL, " \n", &rest))
		if (streq(w, word))
			return true;
	return false;
}

/* ---- disks ---- */

/* The block device with this serial number; the fallback if no device has any serial number. */
static bool find_disk(const char *serial, const char *fallback, char *dst, size_t max)
{
	DIR *d = opendir("/sys/block");
	bool found = false, any = false, second = false;
	struct dirent *e;

	while (d && !found && (e = readdir(d))) {
		char path[320], text[32] = "";
		_close_ int fd = -1;

		second |= streq(e->d_name, fallback);
		(void)snprintf(path, sizeof(path), "%s/serial", e->d_name);
		fd = openat(dirfd(d), path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || fd_read_all(fd, text, sizeof(text) - 1) <= 0)
			continue;
		text[strcspn(text, "\n")] = '\0';
		any |= *text != '\0';
		found = streq(text, serial);
		if (found)
			(void)snprintf(dst, max, "%.31s", e->d_name);
	}
	if (d)
		(void)closedir(d);
	if (!found && !any && second) {
		(void)snprintf(dst, max, "%s", fallback);
		return true;
	}
	return found;
}

static int wait_disk(const char *serial, const char *fallback, char dst[32], struct err *e)
{
	uint64_t end = loop_now() + (uint64_t)DISK_WAIT_MS * 1000000;
	struct timespec ts = { .tv_nsec = 1000000 };
	char path[64];

	for (;;) {
		if (find_disk(serial, fallback, dst, 32)) {
			(void)snprintf(path, sizeof(path), "/dev/%s", dst);
			if (access(path, F_OK) == 0)
				return 0;
		}
		if (loop_now() > end)
			return err_set(e, -ENODEV, "no disk with the serial number '%s' appeared",
				       serial);
		(void)nanosleep(&ts, NULL);
		ts.tv_nsec = MIN(ts.tv_nsec * 2, 20000000L);
	}
}

static int mount_dev(const char *dev, const char *dir, const char *type, unsigned long flags,
		     const char *options, struct err *e)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/dev/%s", dev);
	(void)mkdir(dir, 0755);
	if (mount(path, dir, type, flags, options) < 0)
		return err_errno(e, -errno, "cannot mount %s (%s)", path, type);
	return 0;
}

static int mount_base(struct boot *b, struct err *e)
{
	char dev[32];
	int r = wait_disk("base", "vdc", dev, e);

	if (r == 0)
		r = mount_dev(dev, "/base", "erofs", MS_RDONLY | MS_NOATIME, "", e);
	if (r == 0)
		b->base = open("/base", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return r;
}

int boot_disks(struct boot *b, struct err *e)
{
	char root[32];
	int r = wait_disk("root", "vda", root, e);

	if (r == 0)
		r = wait_disk("disk", "vdb", b->disk_dev, e);
	if (r == 0)
		r = mount_dev(root, "/lower", "erofs", MS_RDONLY | MS_NOATIME, "", e);
	/* Zeroing inode tables ahead of time would fill a sparse disk on the host. */
	if (r == 0)
		r = mount_dev(b->disk_dev, "/disk", "ext4", MS_NOATIME, "discard,noinit_itable", e);
	if (r == 0 && boot_has_word("bac.base"))
		r = mount_base(b, e);
	if (r < 0)
		return r;
	(void)mkdir("/disk/upper", 0755);
	(void)mkdir("/disk/work", 0755);
	(void)mkdir("/disk/docker", 0711);
	(void)mkdir("/new", 0755);
	if (mount("overlay", "/new", "overlay", MS_NOATIME,
		  "lowerdir=/lower,upperdir=/disk/upper,workdir=/disk/work,redirect_dir=on") < 0)
		return err_errno(e, -errno, "cannot join the template and the disk");
	return 0;
}

/* ---- the running root ---- */

/* mkdir -p; what is made gets this mode and owner. */
static int make_dirs(const char *path, mode_t mode, uid_t uid, gid_t gid)
{
	char part[4096];
	size_t i;

	for (i = 1; path[i - 1]; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		if (i >= sizeof(part))
			return -ENAMETOOLONG;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, mode) == 0) {
			if (chown(part, uid, gid) < 0 || chmod(part, mode) < 0)
				return -errno;
		} else if (errno != EEXIST) {
			return -errno;
		}
	}
	return 0;
}

int boot_make_dirs(const char *path, mode_t mode)
{
	return make_dirs(path, mode, 0, 0);
}

static const struct {
	const char *type, *dir, *options;
	unsigned long flags;
	bool optional;
} mounts[] = {
	{ "devpts", "/dev/pts", "gid=5,mode=0620,ptmxmode=0666", MS_NOSUID | MS_NOEXEC },
	{ "tmpfs", "/dev/shm", "mode=1777", MS_NOSUID | MS_NODEV },
	{ "mqueue", "/dev/mqueue", "", MS_NOSUID | MS_NODEV | MS_NOEXEC, true },
	{ "tmpfs", "/run", "mode=0755", MS_NOSUID | MS_NODEV },
	{ "cgroup2", "/sys/fs/cgroup", "nsdelegate,memory_recursiveprot",
	  MS_NOSUID | MS_NODEV | MS_NOEXEC, true },
};

static int move_mounts(struct err *e)
{
	static const char *const dirs[] = { "/dev", "/proc", "/sys" };
	char to[16];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(dirs); i++) {
		(void)snprintf(to, sizeof(to), "/new%s", dirs[i]);
		(void)mkdir(to, 0755);
		if (mount(dirs[i], to, NULL, MS_MOVE, NULL) < 0)
			return err_errno(e, -errno, "cannot move %s into the root", dirs[i]);
	}
	if (chdir("/new") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 ||
	    chdir("/") < 0)
		return err_errno(e, -errno, "cannot change to the sandbox's root");
	return 0;
}

/* The archive's files are in memory: give it back. */
static void empty_initramfs(int old_root)
{
	_close_ int dir = openat(old_root, "modules", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int copy = dir < 0 ? -1 : fcntl(dir, F_DUPFD_CLOEXEC, 3);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;

	while (d && (e = readdir(d)))
		(void)unlinkat(dir, e->d_name, 0);
	if (d)
		(void)closedir(d);
	(void)unlinkat(old_root, "modules", AT_REMOVEDIR);
	(void)unlinkat(old_root, "init", 0);
}

static void put_text(const char *path, const char *text)
{
	_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)!write(fd, text, strlen(text));
}

/* The kernel would start modprobe to look for what it may preload into bpf's file system: an eighth of an emulated
 * boot, for nothing. */
static void mount_bpf(void)
{
	_free_ char *modprobe = NULL;
	int r = fd_read_file(AT_FDCWD, MODPROBE, SMALL_FILE_MAX, &modprobe, NULL);

	put_text(MODPROBE, "\n");
	(void)make_dirs("/sys/fs/bpf", 0755, 0, 0);
	(void)mount("bpf", "/sys/fs/bpf", "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700");
	if (r == 0)
		put_text(MODPROBE, modprobe);
}

static int mount_rest(struct err *e)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(mounts); i++) {
		(void)make_dirs(mounts[i].dir, 0755, 0, 0);
		if (mount(mounts[i].type, mounts[i].dir, mounts[i].type, mounts[i].flags,
			  mounts[i].options) == 0)
			continue;
		if (!mounts[i].optional)
			return err_errno(e, -errno, "cannot mount %s", mounts[i].dir);
		die_note("%s is not mounted: %s", mounts[i].dir, err_text(errno));
	}
	mount_bpf();
	return 0;
}

static void enable_controllers(void)
{
	_free_ char *list = NULL;
	char *name, *rest = NULL;
	_close_ int fd = -1;

	if (fd_read_file(AT_FDCWD, "/sys/fs/cgroup/cgroup.controllers", SMALL_FILE_MAX, &list,
			 NULL) < 0)
		return;
	fd = open("/sys/fs/cgroup/cgroup.subtree_control", O_WRONLY | O_CLOEXEC);
	for (name = strtok_r(list, " \n", &rest); fd >= 0 && name;
	     name = strtok_r(NULL, " \n", &rest))
		(void)dprintf(fd, "+%s", name);
}

static void device_links(void)
{
	(void)!symlink("/proc/self/fd", "/dev/fd");
	(void)!symlink("/proc/self/fd/0", "/dev/stdin");
	(void)!symlink("/proc/self/fd/1", "/dev/stdout");
	(void)!symlink("/proc/self/fd/2", "/dev/stderr");
	(void)!symlink("/proc/kcore", "/dev/core");
	/* elsewhere udev opens these to everybody */
	(void)chmod("/dev/fuse", 0666);
	(void)chmod("/dev/net/tun", 0666);
}

static void mount_docker(struct boot *b)
{
	char from[64];

	(void)make_dirs("/var/lib/docker", 0711, 0, 0);
	/* the magic link leads to where the name of the disk is out of sight */
	(void)snprintf(from, sizeof(from), "/proc/self/fd/%d/disk/docker", b->old_root);
	if (mount(from, "/var/lib/docker", NULL, MS_BIND, NULL) < 0)
		die_note("/var/lib/docker is not on the disk itself: %s", err_text(errno));
}

static void directories(void)
{
	(void)make_dirs("/run/bac", 0755, 0, 0);
	(void)make_dirs("/run/lock", 0755, 0, 0);
	(void)chmod("/run/lock", 01777);
	(void)make_dirs("/tmp", 0755, 0, 0);
	(void)chmod("/tmp", 01777);
}

/* True on QEMU's emulator. */
static bool emulated(void)
{
#if defined(__x86_64__)
	uint32_t sig[3], eax;

	__cpuid(0x40000000, eax, sig[0], sig[1], sig[2]);
	(void)eax;
	return !memcmp(sig, "TCGTCGTCGTCG", sizeof(sig));
#else
	return false;
#endif
}

static void settings(void)
{
	struct rlimit files = { .rlim_cur = FILES_SOFT, .rlim_max = FILES_HARD };

	(void)setrlimit(RLIMIT_NOFILE, &files);
	put_text("/proc/sys/fs/inotify/max_user_watches", "524288");
	put_text("/proc/sys/fs/inotify/max_user_instances", "1024");
	/* The emulator translates code for the address at which it runs. With random addresses it
	 * translates libc and the loader again for every command, 2,400 blocks for /bin/true, which
	 * takes two thirds of its time. */
	if (emulated())
		put_text("/proc/sys/kernel/randomize_va_space", "0");
}

int boot_switch(struct boot *b, struct err *e)
{
	int r;

	b->old_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (b->old_root < 0)
		return err_errno(e, -errno, "cannot open the first root");
	r = move_mounts(e);
	if (r < 0)
		return r;
	empty_initramfs(b->old_root);
	(void)mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL); /* what container tools expect */
	r = mount_rest(e);
	if (r < 0)
		return r;
	enable_controllers();
	device_links();
	directories();
	mount_docker(b);
	settings();

	b->dev_fd = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	b->proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	b->pts_fd = open("/dev/pts", O_PATH | O_DIRECTORY | O_CLOEXEC);
	b->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (b->dev_fd < 0 || b->proc_fd < 0 || b->pts_fd < 0 || b->null_fd < 0)
		return err_errno(e, -errno, "cannot open the root's devices");
	return 0;
}

/* ---- identity ---- */

/* As fd_replace_file(), but without waiting for the disk: these files can be made again, and each wait is a
 * part of every first start. */
static int replace_file(const char *path, mode_t mode, const void *p, size_t n)
{
	char tmp[64];
	_close_ int fd = -1;
	int r;

	(void)snprintf(tmp, sizeof(tmp), "%s.bac-new", path);
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, p, n);
	if (r == 0 && rename(tmp, path) < 0)
		r = -errno;
	if (r < 0)
		(void)unlink(tmp);
	return r;
}

/* True if a line of the hosts file has this name. */
static bool hosts_has(const char *text, const char *name)
{
	size_t len = strlen(name);
	const char *p = text;

	while ((p = strstr(p, name))) {
		bool starts = p > text && (p[-1] == ' ' || p[-1] == '\t');
		const char *bol = p;

		while (bol > text && bol[-1] != '\n')
			bol--;
		if (starts && *bol != '#' && strchr(" \t\n", p[len])) /* or the end */
			return true;
		p += len;
	}
	return false;
}

static void write_hosts(const char *name)
{
	static const char fresh[] =
		"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n";
	_free_ char *text = NULL;
	struct buf out = BUF_INIT(2UL * SMALL_FILE_MAX);
	size_t len = 0;
	int r = fd_read_file(AT_FDCWD, "/etc/hosts", SMALL_FILE_MAX, &text, &len);

	if (r < 0 && r != -ENOENT)
		return;
	if (text && hosts_has(text, name))
		return;
	if (text && len)
		r = buf_printf(&out, "%s%s", text, text[len - 1] == '\n' ? "" : "\n");
	else
		r = buf_add(&out, fresh, sizeof(fresh) - 1);
	if (r == 0)
		r = buf_printf(&out, "127.0.1.1\t%s\n", name);
	if (r == 0)
		r = replace_file("/etc/hosts", 0644, buf_data(&out), out.n);
	if (r < 0)
		die_note("/etc/hosts: %s", err_text(r));
	buf_done(&out);
}

/* The gateway answers every question. It is near, so patience is for one case: a proxy that hangs is replaced within four
 * seconds, and the third question is for the next. What the template or a program put there has
 * no meaning here. */
static void write_resolver(void)
{
	static const char want[] =
		"nameserver " NET_GATEWAY_TEXT "\noptions timeout:2 attempts:3\n";
	_free_ char *text = NULL;
	int r = 0;

	(void)!fd_read_file(AT_FDCWD, "/etc/resolv.conf", SMALL_FILE_MAX, &text, NULL);
	if (!(text && streq(text, want)))
		r = replace_file("/etc/resolv.conf", 0644, want, sizeof(want) - 1);
	if (r < 0)
		die_note("/etc/resolv.conf: %s", err_text(r));
}

static void write_hostname(const char *name)
{
	_free_ char *text = NULL;
	char line[80];
	int n = snprintf(line, sizeof(line), "%s\n", name);

	(void)!fd_read_file(AT_FDCWD, "/etc/hostname", SMALL_FILE_MAX, &text, NULL);
	if (n > 0 && !(text && streq(text, line)))
		(void)replace_file("/etc/hostname", 0644, line, (size_t)n);
}

static void write_machine_id(void)
{
	_free_ char *text = NULL;
	uint8_t raw[16];
	char line[40];
	size_t len = 0, i;

	(void)!fd_read_file(AT_FDCWD, "/etc/machine-id", SMALL_FILE_MAX, &text, &len);
	if (len >= 32)
		return;
	if (getrandom(raw, sizeof(raw), GRND_INSECURE) != sizeof(raw))
		return;
	raw[6] = (uint8_t)((raw[6] & 0x0f) | 0x40);
	raw[8] = (uint8_t)((raw[8] & 0x3f) | 0x80);
	for (i = 0; i < sizeof(raw); i++)
		(void)snprintf(line + 2 * i, 4, "%02x\n", raw[i]);
	(void)replace_file("/etc/machine-id", 0444, line, 33);
}

static void make_workdir(struct boot *b, const char *workdir)
{
	static char passwd[USER_FILE_MAX];
	struct user_files f = { .passwd = passwd };
	struct user u;
	struct err e;
	int r;

	f.passwd_len = user_read("/etc/passwd", passwd, sizeof(passwd));
	if (user_find(&u, &f, "", &e) < 0) {
		die_note("%s", e.msg);
		u = (struct user) { .home = "/" };
	}
	(void)snprintf(b->workdir, sizeof(b->workdir), "%s", *workdir == '/' ? workdir : u.home);
	r = make_dirs(b->workdir, 0755, u.uid, u.gid);
	if (r < 0)
		die_note("cannot make %s: %s", b->workdir, err_text(r));
}

void boot_identity(struct boot *b, const char *hostname, const char *workdir)
{
	if (*hostname && sethostname(hostname, strlen(hostname)) < 0)
		die_note("host name: %s", err_text(errno));
	if (net_up())
		write_resolver();
	if (*hostname) {
		write_hostname(hostname);
		write_hosts(hostname);
	}
	write_machine_id();
	make_workdir(b, workdir);
}
