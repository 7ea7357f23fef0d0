/* The cage, in stages. Their order is the argument, so it stands in two places only: cage_spawn() for
 * our side, child_stages() for the child's.
 *
 * Who the program is. An ordinary user may map exactly one id into a user namespace, its own; the
 * program then runs as that user, with the same number inside and outside, and can reach only what is
 * in its cage. Root must not do that: whoever breaks out of the program would be root on the host. So
 * root's cage maps one id that nobody has (0x70000000 + pid, above what systemd gives to containers),
 * and the program becomes it: in the whole system it owns nothing. Root itself has no number in that
 * namespace, so even the capabilities of the namespace do not reach root's files. Two things follow:
 * files that only root can read are copied into the cage rather than mounted (a kernel image of mode
 * 0600), and a device that belongs to a group brings this group along (/dev/kvm).
 *
 * Files are taken as detached mounts (open_tree) before the identity changes and put in place after
 * it: whoever may name a file takes it, whoever owns the new root builds it. Root takes them before
 * the clone, since a root without capabilities cannot pass through other people's directories.
 *
 * The new root needs no directory on the host: a tmpfs is laid over "/" of the new mount namespace,
 * filled, and pivoted to. Everything here is in the namespaces and goes with the process. */
#include "sys/cage.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/fd.h"

/* What makes root more than the owner of its own files, and nothing besides. */
#define USER_POWERS (1UL << CAP_DAC_OVERRIDE | 1UL << CAP_FOWNER)

enum { START_MS = 10000, UID_BASE = 0x70000000, UID_NOBODY = 65534 };

enum {
	NAMESPACES = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
		     CLONE_NEWUTS | CLONE_NEWCGROUP
};

/* What was going on, for the message. */
#define STAGES(X) \
	X(CLONE, "make namespaces") \
	X(MAP, "map the user") \
	X(TAKE, "take a file") \
	X(SELF, "open /proc/self/fd") \
	X(BECOME, "change the user") \
	X(ROOT, "make a root") \
	X(PUT, "place a file") \
	X(PIVOT, "enter the new root") \
	X(LIMIT, "set limits") \
	X(DROP, "drop privileges") \
	X(TIE, "tie it to its parent") \
	X(EXEC, "execute the program")

#define X(name, text) STAGE_##name,
enum stage { STAGES(X) };
#undef X

#define X(name, text) [STAGE_##name] = (text),
static const char *const stage_text[] = { STAGES(X) };
#undef X

/* A file on its way into the cage. */
struct piece {
	int tree;    /* detached mount, or -1 */
	int content; /* open for reading, to be copied instead; or -1 */
};

struct cage {
	const struct cage_spec *s;
	struct piece *pieces; /* n_binds */
	bool foreign;         /* the program runs as somebody else than we do */
	char *uids, *gids;    /* root's program with root's id: the maps of all ids; or NULL */
	uid_t uid;            /* the same number inside and outside */
	gid_t gid;
	int parent; /* pidfd of ours: tells the child whether we still live */
	int ours;   /* socket: we say "go", the child reports; it closes at exec */
	int theirs;
	pid_t pid;
	int pidfd;
};

/* What the child says when a stage fails. */
struct report {
	int code;
	enum stage stage;
	size_t bind; /* for TAKE and PUT */
};

/* --- whom and what: our side, before the clone --- */

static bool map_has(const char *map, uint64_t id)
{
	unsigned long long in, out, n;

	while (sscanf(map, "%llu %llu %llu", &in, &out, &n) == 3) {
		if (id >= in && id - in < n)
			return true;
		map = strchr(map, '\n');
		if (!map)
			return false;
		map++;
	}
	return false;
}

uid_t cage_pick_uid(const char *map, pid_t pid)
{
	uint64_t want = (uint64_t)UID_BASE + (uint64_t)pid;

	if (map_has(map, want))
		return (uid_t)want;
	return map_has(map, UID_NOBODY) ? UID_NOBODY : (uid_t)-1;
}

/* The group that opens a device to somebody who is not root: kvm. Root's own group never is. */
static void pick_device_group(struct cage *c)
{
	struct stat st;

	for (size_t i = 0; i < c->s->n_binds; i++) {
		const struct cage_bind *b = &c->s->binds[i];

		if (!(b->flags & CAGE_DEVICE) || stat(b->from, &st) < 0)
			continue;
		if ((st.st_mode & 0006) != 0006 && (st.st_mode & 0060) == 0060 && st.st_gid != 0)
			c->gid = st.st_gid;
	}
}

/* Every id that exists here, onto itself, as the text of a map; from our own map. NULL: no memory, no /proc. */
static char *map_onto_itself(const char *file)
{
	unsigned long long in, out, n;
	_free_ char *ours = NULL;
	const char *map = "";
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (fd_read_file(AT_FDCWD, file, 65536, &ours, NULL) == 0)
		map = ours;
	while (f && sscanf(map, "%llu %llu %llu", &in, &out, &n) == 3) {
		(void)fprintf(f, "%llu %llu %llu\n", in, in, n);
		map = strchr(map, '\n');
		if (!map)
			break;
		map++;
	}
	if (f && fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static int pick_identity(struct cage *c)
{
	_free_ char *map = NULL;
	uid_t id;
	int r;

	c->uid = geteuid();
	c->gid = getegid();
	if (c->uid != 0)
		return 0;
	if (c->s->as_user) {
		c->uids = map_onto_itself("/proc/self/uid_map");
		c->gids = map_onto_itself("/proc/self/gid_map");
		return c->uids && c->gids ? 0 : -ENOMEM;
	}
	r = fd_read_file(AT_FDCWD, "/proc/self/uid_map", 65536, &map, NULL);
	if (r < 0)
		return r;
	id = cage_pick_uid(map, getpid());
	if (id == (uid_t)-1)
		return 0; /* a namespace with one id: root by name only */
	c->foreign = true;
	c->uid = id;
	c->gid = id;
	pick_device_group(c);
	return 0;
}

/* True if the program could not read this file once it is somebody else. */
static bool must_copy(const struct cage *c, const struct cage_bind *b)
{
	struct stat st;

	return c->foreign && !(b->flags & CAGE_DEVICE) && stat(b->from, &st) == 0 &&
	       S_ISREG(st.st_mode) && !(st.st_mode & 0004);
}

/* Stage TAKE. Take hold of every file while we are still somebody who may name it.
 * Must not change anything that others see. */
static int take_piece(const struct cage_bind *b, struct piece *p)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID };
	struct stat st;

	if (stat(b->from, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR; /* a directory would bring along what lies in it */
	p->tree = open_tree(AT_FDCWD, b->from, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (p->tree < 0)
		return -errno;
	if (!(b->flags & CAGE_DEVICE))
		attr.attr_set |= MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV;
	if (!(b->flags & CAGE_EXEC))
		attr.attr_set |= MOUNT_ATTR_NOEXEC;
	return mount_setattr(p->tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

static int take_all(const struct cage *c, size_t *ret_bind)
{
	for (size_t i = 0; i < c->s->n_binds; i++) {
		struct piece *p = &c->pieces[i];
		int r;

		*ret_bind = i;
		if (p->content >= 0 || p->tree >= 0)
			continue;
		r = take_piece(&c->s->binds[i], p);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Our side of TAKE: what root alone may reach. A root without the power to mount leaves the mounts
 * to the child, as an ordinary user does. */
static int take_as_root(struct cage *c, size_t *ret_bind)
{
	int r;

	for (size_t i = 0; c->foreign && i < c->s->n_binds; i++) {
		const struct cage_bind *b = &c->s->binds[i];

		*ret_bind = i;
		if (!must_copy(c, b))
			continue;
		c->pieces[i].content = open(b->from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (c->pieces[i].content < 0)
			return -errno;
	}
	if (!c->foreign)
		return 0;
	r = take_all(c, ret_bind);
	return r == -EPERM ? 0 : r;
}

/* --- the child's stages --- */

/* Stage BECOME. From here on we are who the program will be; the capabilities of the namespace stay
 * until DROP. */
static int become(const struct cage *c)
{
	if (c->foreign && syscall(SYS_setgroups, 0, NULL) < 0)
		return -errno;
	/* the raw calls: glibc's would try to tell threads that this copy does not have */
	if (syscall(SYS_setresgid, c->gid, c->gid, c->gid) < 0)
		return -errno;
	if (syscall(SYS_setresuid, c->uid, c->uid, c->uid) < 0)
		return -errno;
	(void)umask(022); /* for the directories of the root */
	return 0;
}

/* Part of ROOT, while there is a /proc: no user namespace below ours, and with it no capability in a
 * new one. Where /proc/sys is read-only (in containers) it stays possible, and is worth little: the
 * program's own filter of system calls has to do. */
static void forbid_nesting(void)
{
	_close_ int fd = open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)!write(fd, "0", 1);
}

/* Stage ROOT. A tmpfs over "/" of our own mount namespace; paths still lead to the old root. Must
 * not propagate anything to where we come from. */
static int make_root(int *ret)
{
	_close_ int fs = -1, mnt = -1;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	forbid_nesting();
	fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	if (fs < 0)
		return -errno;
	if (fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0755", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	mnt = fsmount(fs, FSMOUNT_CLOEXEC,
		      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (mnt < 0)
		return -errno;
	if (move_mount(mnt, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	*ret = take_fd(&mnt);
	return 0;
}

/* Make the directories above path (relative, modified and restored), and the file itself. */
static int make_place(int root, char *path, int *ret_fd)
{
	int fd;

	for (char *p = path; (p = strchr(p, '/')); p++) {
		*p = '\0';
		if (mkdirat(root, path, 0755) < 0 && errno != EEXIST) {
			*p = '/';
			return -errno;
		}
		*p = '/';
	}
	fd = openat(root, path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0444);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static int copy_content(int from, int to)
{
	ssize_t n;

	while ((n = sendfile(to, from, NULL, 0x7ffff000)) > 0)
		;
	return n < 0 ? -errno : 0;
}

/* Stage PUT. Each file at its place. The root is ours alone, so no link can lead us astray. */
static int put_piece(int root, const struct cage_bind *b, const struct piece *p)
{
	char path[4096];
	_close_ int fd = -1;
	size_t n = strlen(b->to);
	int r;

	if (b->to[0] != '/' || n >= sizeof(path))
		return -EINVAL;
	memcpy(path, b->to + 1, n);
	r = make_place(root, path, &fd);
	if (r < 0)
		return r;
	if (p->content >= 0)
		return copy_content(p->content, fd);
	return move_mount(p->tree, "", root, path, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}

static int put_all(const struct cage *c, int root, size_t *ret_bind)
{
	for (size_t i = 0; i < c->s->n_binds; i++) {
		int r;

		*ret_bind = i;
		r = put_piece(root, &c->s->binds[i], &c->pieces[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Stage PIVOT. The new root becomes "/", the old one is let go, and nothing can be written any more.
 * Must leave no path, working directory or mount that leads back. */
static int enter_root(int root)
{
	struct mount_attr ro = { .attr_set = MOUNT_ATTR_RDONLY };

	if (fchdir(root) < 0)
		return -errno;
	/* the old root comes to lie on top of the new one, and is taken off */
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return -errno;
	if (umount2(".", MNT_DETACH) < 0)
		return -errno;
	if (chdir("/") < 0)
		return -errno;
	return mount_setattr(root, "", AT_EMPTY_PATH, &ro, sizeof(ro)) < 0 ? -errno : 0;
}

/* Stage LIMIT. Resource limits, a name that tells nothing about the host, no terminal, no keys. */
static int set_limits(const struct cage_spec *s)
{
	for (size_t i = 0; i < s->n_limits; i++) {
		int what = s->limits[i].resource;
		struct rlimit was, lim = { s->limits[i].value, s->limits[i].value };

		if (getrlimit((__rlimit_resource_t)what, &was) < 0)
			return -errno;
		lim.rlim_max = MIN(lim.rlim_max, was.rlim_max);
		lim.rlim_cur = lim.rlim_max;
		if (setrlimit((__rlimit_resource_t)what, &lim) < 0)
			return -errno;
	}
	if (sethostname("cage", 4) < 0)
		return -errno;
	(void)setsid();
	/* the session keyring of whoever started us; missing in some kernels */
	(void)syscall(SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, NULL);
	(void)umask(077);
	return 0;
}

/* Let these capabilities pass the exec: they become inheritable and ambient. */
static int keep_capabilities(unsigned long caps)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &h, d) < 0)
		return -errno;
	d[0].inheritable = (uint32_t)caps;
	if (syscall(SYS_capset, &h, d) < 0)
		return -errno;
	for (unsigned long cap = 0; cap < 32; cap++)
		if (caps & 1UL << cap && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
			return -errno;
	return 0;
}

/* Stage DROP. No capability in any set but those of keep (bits), and none can come back: not by exec, not
 * by a user id, not by a file. */
static int drop_privileges(unsigned long keep)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct left[_LINUX_CAPABILITY_U32S_3] = {
		{ (uint32_t)keep, (uint32_t)keep, (uint32_t)keep }
	};
	unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
			     SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
			     SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (!(cap < 32 && keep & 1UL << cap) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -errno;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	if (keep) {
		int r = keep_capabilities(keep);

		if (r < 0)
			return r;
	}
	if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
		return -errno;
	if (syscall(SYS_capset, &h, left) < 0)
		return -errno;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

/* Stage TIE. Die with the parent. After the last change of identity, which would undo it. If the
 * parent died before, its pidfd says so. (getppid() is 0 here: the parent is in another namespace.) */
static int tie_to_parent(int parent)
{
	struct pollfd p = { .fd = parent, .events = POLLIN };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	return poll(&p, 1, 0) == 0 ? 0 : -ESRCH;
}

/* Stage EXEC. Exactly the descriptors that were given; signals as a fresh program expects them. */
static int execute(const struct cage_spec *s, int self)
{
	struct sys_fd fds[SYS_FDS_MAX];
	size_t n = s->n_fds;
	int r;

	if (n) /* else s->fds may be NULL */
		memcpy(fds, s->fds, n * sizeof(*fds));
	if (self >= 0)
		fds[n++] = (struct sys_fd) { self, s->self_fd };
	r = sys_child_fds(fds, n);

	if (r < 0)
		return r;
	sys_child_signals();
	(void)execve(s->argv[0], (char *const *)s->argv, (char *const *)s->env);
	return -errno;
}

static void child_stages(const struct cage *c, struct report *rep)
{
	int root = -1, self = -1;
	char go;

#define STAGE(name, call) \
	do { \
		rep->stage = STAGE_##name; \
		rep->code = (call); \
		if (rep->code < 0) \
			return; \
	} while (0)

	STAGE(MAP, read(c->theirs, &go, 1) == 1 ? 0 : -EPIPE);
	STAGE(TAKE, take_all(c, &rep->bind));
	if (c->s->self_fd)
		STAGE(SELF, (self = open("/proc/self/fd", O_PATH | O_CLOEXEC)) < 0 ? -errno : 0);
	STAGE(BECOME, become(c));
	STAGE(ROOT, make_root(&root));
	STAGE(PUT, put_all(c, root, &rep->bind));
	STAGE(PIVOT, enter_root(root));
	STAGE(LIMIT, set_limits(c->s));
	STAGE(DROP, drop_privileges(c->uids ? USER_POWERS : 0));
	STAGE(TIE, tie_to_parent(c->parent));
	STAGE(EXEC, execute(c->s, self));
#undef STAGE
}

static _noreturn_ void child_main(const struct cage *c)
{
	struct report rep = { 0 };

	(void)close(c->ours); /* else we would not see it close */
	child_stages(c, &rep);
	(void)!write(c->theirs, &rep, sizeof(rep));
	_exit(127);
}

/* --- our side, from the clone on --- */

/* A socket pair whose other end no descriptor map can hit. */
static int make_wire(struct cage *c)
{
	_close_ int a = -1, b = -1;
	int p[2], above = 3;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p) < 0)
		return -errno;
	a = p[0];
	b = p[1];
	for (size_t i = 0; i < c->s->n_fds; i++)
		above = MAX(above, c->s->fds[i].to + 1);
	c->theirs = fcntl(b, F_DUPFD_CLOEXEC, above);
	if (c->theirs < 0)
		return -errno;
	c->ours = take_fd(&a);
	return 0;
}

static int write_map(pid_t pid, const char *file, const char *text)
{
	char path[64];
	_close_ int fd = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* Stage MAP. Exactly one user and one group exist in the namespace, unless root works as itself. */
static int map_ids(const struct cage *c)
{
	char uid[64], gid[64];
	int r = 0;

	(void)snprintf(uid, sizeof(uid), "%u %u 1", c->uid, c->uid);
	(void)snprintf(gid, sizeof(gid), "%u %u 1", c->gid, c->gid);
	/* An ordinary user may map its group only if groups can no longer be dropped; root's child
	 * drops them all in BECOME. */
	if (!c->foreign && !c->uids)
		r = write_map(c->pid, "setgroups", "deny");
	if (r == 0)
		r = write_map(c->pid, "uid_map", c->uids ? c->uids : uid);
	if (r == 0)
		r = write_map(c->pid, "gid_map", c->gids ? c->gids : gid);
	return r;
}

/* Stage CLONE. As fork(), into the namespaces. */
static int clone_child(struct cage *c)
{
	unsigned long flags = NAMESPACES | CLONE_PIDFD | SIGCHLD;
	long pid;

	if (c->s->host_net)
		flags &= ~(unsigned long)CLONE_NEWNET;

	/* clone() rather than clone3(), which containers often forbid; the raw call, since glibc's
	 * wants a stack. On x86-64: flags, stack, place of the pidfd, child's tid, tls. */
	pid = syscall(SYS_clone, flags, NULL, &c->pidfd, NULL, 0);
	if (pid < 0)
		return -errno;
	if (pid == 0)
		child_main(c);
	c->pid = (pid_t)pid;
	c->theirs = fd_close(c->theirs);
	return 0;
}

/* The child's report, or code 0 when its end closes: it has been executed. */
static int await_exec(const struct cage *c, struct report *rep)
{
	struct pollfd p = { .fd = c->ours, .events = POLLIN };
	uint64_t end = fd_now_ns() + (uint64_t)START_MS * 1000000;
	ssize_t n;
	int k;

	do {
		k = poll(&p, 1, START_MS);
	} while (k < 0 && errno == EINTR && fd_now_ns() < end);
	if (k <= 0)
		return -ETIMEDOUT;
	n = fd_read_all(c->ours, rep, sizeof(*rep));
	if (n < 0)
		return (int)n;
	if (n == 0)
		rep->code = 0;
	else if (n != (ssize_t)sizeof(*rep))
		return -EPROTO;
	return 0;
}

static bool switch_is(const char *proc_sys, const char *name, char value)
{
	_free_ char *text = NULL;
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s", proc_sys, name);
	return fd_read_file(AT_FDCWD, path, 64, &text, NULL) == 0 && text[0] == value &&
	       (text[1] == '\n' || text[1] == '\0');
}

int cage_explain(struct err *e, int code, const char *what, const char *proc_sys)
{
	const char *advice = NULL;

	if (code == -ENOSYS)
		advice = "Linux 5.12 or later is needed";
	else if (code == -ENOSPC || code == -EUSERS)
		advice = switch_is(proc_sys, "user/max_user_namespaces", '0')
				 ? "user namespaces are switched off: sudo sysctl "
				   "user.max_user_namespaces=15000"
				 : "there are too many namespaces (see sysctl "
				   "user.max_user_namespaces, "
				   "user.max_net_namespaces)";
	else if (code != -EPERM && code != -EACCES)
		return err_errno(e, code, "cannot %s for the cage", what);
	else if (switch_is(proc_sys, "kernel/unprivileged_userns_clone", '0'))
		advice = "user namespaces are switched off for ordinary users: sudo sysctl "
			 "kernel.unprivileged_userns_clone=1";
	else if (switch_is(proc_sys, "kernel/apparmor_restrict_unprivileged_userns", '1'))
		advice = "AppArmor denies user namespaces to ordinary users: sudo sysctl "
			 "kernel.apparmor_restrict_unprivileged_userns=0";
	else
		advice = "user namespaces are not permitted (in a container: start it with "
			 "--privileged or a seccomp profile that permits them)";
	return err_set(e, code, "cannot %s for the cage: %s: %s", what, err_text(code), advice);
}

/* The message for a stage that failed. */
static int say_why(const struct cage *c, const struct report *rep, struct err *e)
{
	const char *name = rep->bind < c->s->n_binds ? c->s->binds[rep->bind].from : "?";

	switch (rep->stage) {
	case STAGE_EXEC:
		return err_errno(e, rep->code, "cannot execute %s in its cage", c->s->argv[0]);
	case STAGE_TAKE:
	case STAGE_PUT:
		if (rep->code != -EPERM && rep->code != -ENOSYS)
			return err_errno(e, rep->code, "cannot put %s into the cage", name);
		break;
	default:
		break;
	}
	return cage_explain(e, rep->code, stage_text[rep->stage], "/proc/sys");
}

static int start(struct cage *c, struct report *rep)
{
	int r;

#define STAGE(name, call) \
	do { \
		rep->stage = STAGE_##name; \
		r = (call); \
		if (r < 0) \
			return r; \
	} while (0)

	STAGE(TAKE, take_as_root(c, &rep->bind));
	STAGE(TIE, (c->parent = pidfd_open(getpid(), 0)) < 0 ? -errno : 0);
	STAGE(CLONE, make_wire(c));
	STAGE(CLONE, clone_child(c));
	STAGE(MAP, map_ids(c));
	STAGE(MAP, send(c->ours, "g", 1, MSG_NOSIGNAL) == 1 ? 0 : -EPIPE);
	STAGE(EXEC, await_exec(c, rep));
#undef STAGE
	return rep->code;
}

static void cage_done(struct cage *c)
{
	for (size_t i = 0; c->pieces && i < c->s->n_binds; i++) {
		(void)fd_close(c->pieces[i].tree);
		(void)fd_close(c->pieces[i].content);
	}
	free(c->pieces);
	free(c->uids);
	free(c->gids);
	c->parent = fd_close(c->parent);
	c->ours = fd_close(c->ours);
	c->theirs = fd_close(c->theirs);
	c->pidfd = fd_close(c->pidfd);
}

int cage_spawn(const struct cage_spec *s, pid_t *ret_pid, int *ret_pidfd, struct err *e)
{
	struct cage c = { .s = s, .parent = -1, .ours = -1, .theirs = -1, .pid = -1, .pidfd = -1 };
	struct report rep = { 0 };
	int r;

	if (s->n_binds > CAGE_BINDS_MAX || s->n_fds >= SYS_FDS_MAX)
		return err_set(e, -E2BIG, "too many files for a cage");
	c.pieces = malloc((s->n_binds + 1) * sizeof(*c.pieces));
	if (!c.pieces)
		return err_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < s->n_binds; i++)
		c.pieces[i] = (struct piece) { .tree = -1, .content = -1 };
	r = pick_identity(&c);
	if (r == 0)
		r = start(&c, &rep);
	if (r == 0) {
		*ret_pid = c.pid;
		*ret_pidfd = take_fd(&c.pidfd);
	} else {
		rep.code = r;
		(void)say_why(&c, &rep, e);
		if (c.pid > 0)
			sys_kill(c.pid);
	}
	cage_done(&c);
	return r;
}
