/* The host's folders.
 *
 * The file server has one root, in which each share is an entry by its number. It is mounted where only root
 * comes by (what root does there, the server refuses or allows as anywhere else), and each entry is bound to
 * the path that the folder has on the host. What is missing above is made; what was made for a mount
 * and is empty is taken away with it. */
#include "guest/init/share.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/init/boot.h"
#include "guest/init/die.h"
#include "io/fd.h"

struct share_job {
	struct share_job *next;
	struct shares *s;
	struct watch done; /* the child's answer */
	uint8_t type;
	struct wire_mount m; /* its texts are ours */
	char path[WIRE_PATH_MAX + 1], alias[WIRE_PATH_MAX + 1];
};

/* What the child says. */
struct answer {
	int code;
	char text[ERR_MSG_MAX];
};

void shares_init(struct shares *s, struct loop *l, struct port *p)
{
	*s = (struct shares) { .loop = l, .port = p };
}

static int mount_root(struct err *e)
{
	struct stat a, b;

	if (boot_make_dirs(SHARES_ROOT, 0700) < 0 || stat(SHARES_ROOT, &a) < 0 ||
	    stat("/run/bac", &b) < 0)
		return err_errno(e, -errno, "cannot make " SHARES_ROOT);
	if (a.st_dev != b.st_dev)
		return 0;
	if (mount("bac", SHARES_ROOT, "virtiofs", MS_NOSUID | MS_NODEV, "") < 0)
		return err_errno(e, -errno, "cannot mount the host's folders (virtiofs)");
	return 0;
}

/* The place of a mount: a folder, or an empty file. */
static int make_place(const char *path, bool file)
{
	char above[WIRE_PATH_MAX + 1];
	_close_ int fd = -1;
	struct stat st;
	int r;

	if (!file)
		return boot_make_dirs(path, 0755);
	(void)snprintf(above, sizeof(above), "%s", path);
	r = boot_make_dirs(dirname(above), 0755);
	if (r < 0 || stat(path, &st) == 0)
		return r;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	return fd < 0 ? -errno : 0;
}

/* The folders above, as far as they are the guest's own, let everybody pass: with a folder of the host's root the way
 * leads through /root, which is closed to the agent in every image. */
static int open_way(const char *path)
{
	char part[WIRE_PATH_MAX + 1];
	struct stat root, st;
	size_t i;

	if (stat("/", &root) < 0)
		return -errno;
	for (i = 1; i < sizeof(part) && path[i]; i++) {
		if (path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (lstat(part, &st) < 0)
			return -errno;
		if (st.st_dev == root.st_dev && S_ISDIR(st.st_mode) &&
		    (st.st_mode & 0111) != 0111 && chmod(part, (st.st_mode & 07777) | 0111) < 0)
			return -errno;
	}
	return 0;
}

/* The other name. One that is there already is left alone: it is the guest's. */
static void make_alias(const struct wire_mount *m)
{
	char above[WIRE_PATH_MAX + 1];

	if (!m->alias[0])
		return;
	(void)snprintf(above, sizeof(above), "%s", m->alias);
	if (boot_make_dirs(dirname(above), 0755) < 0 || symlink(m->path, m->alias) < 0 ||
	    open_way(m->alias) < 0)
		die_note("%s does not become another name of %s: %s", m->alias, m->path,
			 err_text(errno));
}

static int do_mount(const struct wire_mount *m, struct err *e)
{
	char from[64];
	int r = mount_root(e);

	if (r < 0)
		return r;
	r = make_place(m->path, m->flags & MOUNT_FILE);
	if (r < 0)
		return err_errno(e, r, "cannot make %s in the sandbox", m->path);
	r = open_way(m->path);
	if (r < 0)
		return err_errno(e, r, "cannot open the way to %s in the sandbox", m->path);
	(void)snprintf(from, sizeof(from), SHARES_ROOT "/%u", m->id);
	if (mount(from, m->path, NULL, MS_BIND, NULL) < 0)
		return err_errno(e, -errno, "cannot mount %s in the sandbox", m->path);
	/* a courtesy, so that programs see it in the table of mounts: the host holds it */
	if (m->flags & MOUNT_RO)
		(void)mount(NULL, m->path, NULL,
			    MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL);
	make_alias(m);
	return 0;
}

static int do_umount(const struct wire_mount *m, struct err *e)
{
	char to[WIRE_PATH_MAX + 1];
	ssize_t n;

	if (umount2(m->path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL)
		return err_errno(e, -errno, "cannot unmount %s in the sandbox", m->path);
	if (rmdir(m->path) < 0 && errno == ENOTDIR && (m->flags & MOUNT_FILE)) {
		struct stat st;

		if (lstat(m->path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
			(void)unlink(m->path);
	}
	n = m->alias[0] ? readlink(m->alias, to, sizeof(to) - 1) : -1;
	if (n > 0) {
		to[n] = '\0';
		if (streq(to, m->path))
			(void)unlink(m->alias);
	}
	return 0;
}

static void reply(struct shares *s, uint32_t id, int code, const char *text)
{
	struct wire_mounted a = { .id = id, .code = (uint32_t)-code, .text = text };

	die_check(wire_mounted_add(&s->port->ctl, &a));
	port_flush(s->port);
}

void shares_boot(struct shares *s, const struct wire_mount *m)
{
	struct err e = { 0 };
	int r = do_mount(m, &e);

	reply(s, m->id, r, e.msg);
}

/* ---- after the boot: one child at a time ---- */

static void work(struct shares *s);

static void on_done(struct watch *w, uint32_t events)
{
	struct share_job *j = container_of(w, struct share_job, done);
	struct shares *s = j->s;
	struct answer a = { .code = -EIO, .text = "the sandbox could not do it" };
	struct answer got;

	(void)events;
	if (read(w->fd, &got, sizeof(got)) == sizeof(got))
		a = got;
	a.text[sizeof(a.text) - 1] = '\0';
	loop_unwatch(s->loop, w);
	(void)fd_close(w->fd);
	reply(s, j->m.id, a.code, a.text);
	s->first = j->next;
	if (!s->first)
		s->last = NULL;
	free(j);
	work(s);
}

static void _noreturn_ child(const struct share_job *j, int fd)
{
	struct answer a = { 0 };
	struct err e = { 0 };

	a.code = j->type == WIRE_MOUNT ? do_mount(&j->m, &e) : do_umount(&j->m, &e);
	(void)snprintf(a.text, sizeof(a.text), "%s", e.msg);
	(void)!write(fd, &a, sizeof(a));
	_exit(0);
}

/* Let the first job begin. */
static void work(struct shares *s)
{
	struct share_job *j = s->first;
	int p[2];
	pid_t pid;

	if (!j)
		return;
	if (pipe2(p, O_CLOEXEC) < 0)
		die("init cannot go on: %s", err_text(errno));
	pid = fork();
	if (pid == 0)
		child(j, p[1]);
	(void)close(p[1]);
	j->done.fd = p[0];
	j->done.fn = on_done;
	/* a child that could not be made is a pipe that ends at once */
	die_check(loop_watch(s->loop, &j->done, EPOLLIN));
}

void shares_change(struct shares *s, uint8_t type, const struct wire_mount *m)
{
	struct share_job *j = calloc(1, sizeof(*j));

	if (!j) {
		reply(s, m->id, -ENOMEM, "the sandbox has no memory left");
		return;
	}
	j->s = s;
	j->type = type;
	(void)snprintf(j->path, sizeof(j->path), "%s", m->path);
	(void)snprintf(j->alias, sizeof(j->alias), "%s", m->alias);
	j->m = *m;
	j->m.path = j->path;
	j->m.alias = j->alias;
	if (s->last)
		s->last->next = j;
	else
		s->first = j;
	s->last = j;
	if (s->first == j)
		work(s);
}
