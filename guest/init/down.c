/* Shutdown.
 *
 * A service goes first: the Docker Engine ends its containers, each as it wants to be ended. Then all others are asked. While processes end, the event loop goes on, so that their last output and their EXIT still reach the
 * host. When none is left, the mounts are taken apart from the top: what the guest mounted, then the
 * overlay, then the disk. A mount that is still busy is detached; whether the disk's file system is really
 * closed is asked of the disk itself, and if it is not, it is frozen, which leaves it clean as well. */
#include "guest/init/down.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guest/init/die.h"
#include "io/fd.h"

enum {
	MOUNTINFO_MAX = 4 * 1024 * 1024,
	LEAST_MS = 200,   /* for the part behind the processes, in any case */
	BUSY_TRIES = 100, /* of 10 ms, for a file system that is still closing */
	FLUSH_MS = 2000,
};

enum { NOT_BEGUN, SERVICES, ASKED, KILLED, FINISHING };

static void nap_ms(long ms)
{
	struct timespec ts = { .tv_nsec = ms * 1000000 };

	(void)nanosleep(&ts, NULL);
}

/* sync() by a child, so that a dead file server cannot hold us. */
static void sync_all(const struct down *d)
{
	pid_t pid = fork();

	if (pid == 0) {
		sync();
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, NULL, WNOHANG) == 0) {
		if (loop_now() > d->deadline) {
			die_note("sync did not end in time");
			return;
		}
		nap_ms(1);
	}
}

/* ---- mounts ---- */

/* "\040" and the like, in place. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[3] >= '0') {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/* A line of mountinfo: "36 35 98:0 /root /mount/point options ... - type source options" */
static void unmount_line(char *line)
{
	char *type = strstr(line, " - "), *rest = NULL, *at = NULL, *word;
	bool fuse;
	int i;

	if (!type)
		return;
	*type = '\0';
	type += 3;
	fuse = starts_with(type, "fuse") || starts_with(type, "virtiofs");
	word = strtok_r(line, " ", &rest);
	for (i = 0; word && i < 5; i++, word = strtok_r(NULL, " ", &rest))
		at = i == 4 ? word : NULL;
	if (!at)
		return;
	unescape(at);
	if (streq(at, "/"))
		return;
	if (fuse)
		(void)umount2(at, MNT_FORCE | MNT_DETACH | UMOUNT_NOFOLLOW);
	else if (umount2(at, UMOUNT_NOFOLLOW) < 0)
		(void)umount2(at, MNT_DETACH | UMOUNT_NOFOLLOW);
}

/* All mounts but the root, the latest first. */
static void unmount_guest(const struct boot *b)
{
	_free_ char *text = NULL;
	char *p;

	if (fd_read_file(b->proc_fd, "self/mountinfo", MOUNTINFO_MAX, &text, NULL) < 0)
		return;
	while ((p = strrchr(text, '\n'))) {
		*p = '\0';
		p = strrchr(text, '\n');
		unmount_line(p ? p + 1 : text);
		if (!p)
			break;
		p[1] = '\0';
	}
}

static void swap_off(const struct boot *b)
{
	_free_ char *text = NULL;
	char *line, *rest = NULL;

	if (fd_read_file(b->proc_fd, "swaps", MOUNTINFO_MAX, &text, NULL) < 0)
		return;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		line[strcspn(line, " \t")] = '\0';
		unescape(line);
		if (*line == '/')
			(void)swapoff(line);
	}
}

static void loops_off(const struct boot *b)
{
	int copy = openat(b->dev_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		_close_ int fd = -1;

		if (!starts_with(e->d_name, "loop") || streq(e->d_name, "loop-control"))
			continue;
		fd = openat(b->dev_fd, e->d_name, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			(void)ioctl(fd, LOOP_CLR_FD, 0);
	}
	if (d)
		(void)closedir(d);
}

/* True once no file system holds the disk. */
static bool disk_is_free(const struct boot *b)
{
	int i;

	for (i = 0; i < BUSY_TRIES; i++) {
		_close_ int fd = openat(b->dev_fd, b->disk_dev, O_RDONLY | O_EXCL | O_CLOEXEC);

		if (fd >= 0)
			return true;
		if (errno != EBUSY)
			return false;
		nap_ms(10);
	}
	return false;
}

/* Its file system is held by something: a swap file, a device mapping. */
static void freeze_disk(const struct boot *b)
{
	_close_ int disk = -1;
	char dev[64];

	die_note("the disk is still in use; freezing it");
	(void)snprintf(dev, sizeof(dev), "/dev/%s", b->disk_dev);
	(void)mount(dev, "/disk", "ext4", 0, ""); /* it may be hidden */
	disk = open("/disk", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (disk < 0 || ioctl(disk, FIFREEZE, 0) < 0)
		die_note("cannot freeze the disk: %s", err_text(errno));
}

static void unmount_all(const struct boot *b)
{
	_close_ int disk = openat(b->old_root, "disk", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	unmount_guest(b);
	swap_off(b);
	loops_off(b);
	if (disk >= 0)
		(void)syncfs(disk);
	disk = fd_close(disk);
	if (fchdir(b->old_root) < 0 || chroot(".") < 0) {
		die_note("cannot return to the first root: %s", err_text(errno));
		return;
	}
	(void)mount("dev", "/dev", "devtmpfs", 0, "");
	/* the root itself is reached as the parent of the root it covers */
	if (umount2("/..", 0) < 0 && umount2("/..", MNT_DETACH) < 0)
		die_note("cannot unmount the root: %s", err_text(errno));
	if (umount2("/disk", 0) < 0 || !disk_is_free(b))
		freeze_disk(b);
}

static void _noreturn_ finish(struct down *d)
{
	uint64_t least = loop_now() + (uint64_t)LEAST_MS * 1000000;

	loop_cancel(d->loop, &d->t);
	d->step = FINISHING;
	d->deadline = MAX(d->deadline, least);
	(void)port_drain(d->port, FLUSH_MS);
	sync_all(d);
	unmount_all(d->boot);
	if (wire_empty_add(&d->port->out, 0, WIRE_BYE) == 0)
		(void)port_drain(d->port, FLUSH_MS);
	die_power_off();
}

/* ---- processes ---- */

static uint64_t ms_left(const struct down *d)
{
	uint64_t now = loop_now();

	return d->deadline > now ? (d->deadline - now) / 1000000 : 0;
}

static void ask_all(struct down *d);

static void on_time(struct timer *t)
{
	struct down *d = container_of(t, struct down, t);

	if (d->step == SERVICES) {
		ask_all(d);
		return;
	}
	if (d->step == ASKED) {
		d->step = KILLED;
		(void)kill(-1, SIGKILL);
		loop_after(d->loop, &d->t, MAX(ms_left(d) / 2, (uint64_t)LEAST_MS));
		return;
	}
	die_note("some processes cannot be ended");
	finish(d);
}

static void ask_all(struct down *d)
{
	siginfo_t si;

	d->step = ASKED;
	(void)kill(-1, SIGTERM);
	(void)kill(-1, SIGCONT);
	if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD) {
		finish(d);
		return;
	}
	loop_after(d->loop, &d->t, ms_left(d) / 2);
}

void down_begin(struct down *d, uint32_t deadline_ms)
{
	if (d->step != NOT_BEGUN)
		return;
	d->deadline = loop_now() + (uint64_t)deadline_ms * 1000000;
	d->t.fn = on_time;
	sessions_close(d->sessions);
	sockets_stop(d->sockets);
	if (sockets_idle(d->sockets)) {
		ask_all(d);
		return;
	}
	d->step = SERVICES;
	loop_after(d->loop, &d->t, deadline_ms / 2);
}

void down_services_gone(struct down *d)
{
	if (d->step == SERVICES)
		ask_all(d);
}

void down_all_gone(struct down *d)
{
	if (d->step == ASKED || d->step == KILLED)
		finish(d);
}
