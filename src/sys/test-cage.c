/* The cage, seen from inside (by cage-look, the first argument) and from outside. As root everything
 * runs twice: as root, and as an ordinary user. */
#include "sys/cage.h"

#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "io/fd.h"
#include "sys/share.h"

static char dir[] = "/tmp/test-cage-XXXXXX"; /* ours, 0755 */
static char look[64], data[64];
static bool foreign; /* the share has a file of somebody else */

static const struct cage_limit limits[] = {
	{ RLIMIT_CORE, 0 },    { RLIMIT_NOFILE, 64 }, { RLIMIT_FSIZE, 1 << 20 },
	{ RLIMIT_MEMLOCK, 0 }, { RLIMIT_NPROC, 20 },
};

/* cage-look with one argument; its stdout into a pipe whose read end is *ret_out. */
static int start(const char *what, int *ret_out, pid_t *ret_pid, int *ret_pidfd, struct err *e)
{
	const char *argv[] = { "/bin/look", what, NULL };
	static const char *const env[] = { "A=b", NULL };
	struct cage_bind binds[] = {
		{ look, "/bin/look", CAGE_EXEC },
		{ "/dev/null", "/dev/null", CAGE_DEVICE },
		{ data, "/vm/data", 0 },
	};
	_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC), ours = -1, theirs = -1;
	struct sys_fd fds[4];
	struct cage_spec s = { .binds = binds,
			       .n_binds = ARRAY_SIZE(binds),
			       .argv = argv,
			       .env = env,
			       .fds = fds,
			       .n_fds = 4,
			       .limits = limits,
			       .n_limits = ARRAY_SIZE(limits) };
	int p[2], r;

	check(null >= 0 && pipe2(p, O_CLOEXEC) == 0);
	ours = p[0];
	theirs = p[1];
	fds[0] = (struct sys_fd) { null, 0 };
	fds[1] = (struct sys_fd) { theirs, 1 };
	fds[2] = (struct sys_fd) { 2, 2 };
	fds[3] = (struct sys_fd) { null, 7 };
	r = cage_spawn(&s, ret_pid, ret_pidfd, e);
	if (r == 0)
		*ret_out = take_fd(&ours);
	return r;
}

/* What cage-look said, and its status. */
static char *see(const char *what, int *ret_status)
{
	_free_ char *text = malloc(1 << 20);
	_close_ int out = -1, pidfd = -1;
	struct err e = { 0 };
	ssize_t n;
	pid_t pid;

	check(text);
	if (start(what, &out, &pid, &pidfd, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		check(false);
	}
	n = fd_read_all(out, text, (1 << 20) - 1);
	check(n >= 0);
	text[n] = '\0';
	check(sys_wait(pid, pidfd, fd_now_ns() + 20000000000u, ret_status) == 0);
	return take_ptr(text);
}

static bool has(const char *text, const char *line)
{
	size_t n = strlen(line);

	for (const char *p = text; (p = strstr(p, line)); p += n)
		if ((p == text || p[-1] == '\n') && p[n] == '\n')
			return true;
	fprintf(stderr, "missing '%s' in:\n%s", line, text);
	return false;
}

static unsigned count(const char *text, const char *word)
{
	unsigned n = 0;

	for (const char *p = text; (p = strstr(p, word)); p += strlen(word))
		n += p == text || p[-1] == '\n';
	return n;
}

static void inside(void)
{
	int status = -1;
	_free_ char *t = see("all", &status);
	uid_t uid = geteuid() ? geteuid() : 0x70000000 + (uid_t)getpid();
	char id[64];

	check(status == 0 && has(t, "end"));
	check(has(t, "path /bin") && has(t, "path /bin/look") && has(t, "path /vm"));
	check(has(t, "path /vm/data") && has(t, "path /dev") && has(t, "path /dev/null"));
	check(count(t, "path ") == 6);
	check(has(t, "fd 0") && has(t, "fd 1") && has(t, "fd 2") && has(t, "fd 7"));
	check(count(t, "fd ") == 4);
	check(has(t, "net lo") && count(t, "net ") == 1);
	check(count(t, "wrote ") == 0);
	check(count(t, "sees ") == 0);
	check(has(t, "host cage") && has(t, "pid 1") && has(t, "ppid 0") && has(t, "sid 1"));
	check(has(t, "caps 0 0 0 0") && has(t, "nnp 1") && has(t, "securebits ef"));
	check(has(t, "root no") && has(t, "userns no"));
	check(snprintf(id, sizeof(id), "uid %u %u", uid, uid) > 0);
	check(has(t, id));
	if (geteuid() == 0)
		check(has(t, "groups 0"));
	check(count(t, "signal ") == 0);
	check(has(t, "env A=b") && count(t, "env ") == 1);
	check(has(t, "null works") && has(t, "data secret") && has(t, "flags 1 1 1"));
	check(has(t, "limit core 0 0") && has(t, "limit nofile 64 64"));
	check(has(t, "limit fsize 1048576 1048576") && has(t, "limit memlock 0 0"));
}

static void ends(void)
{
	int status = 0;
	_free_ char *said = NULL;

	free(see("abort", &status));
	/* process 1 ignores SIGABRT from itself; the instruction behind it still kills */
	check(status == 128 + SIGSEGV || status == 128 + SIGABRT);
	said = see("threads", &status);
	check(status == 0 && has(said, "threads 20"));
}

/* A program that does the user's work on a share. */
static char *see_work(bool read_only, int *ret_status)
{
	static const char *const argv[] = { "/bin/look", "work", NULL };
	static const char *const env[] = { NULL };
	struct cage_bind bind = { look, "/bin/look", CAGE_EXEC };
	_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC), tree = -1, pidfd = -1, out = -1;
	char share[64], *text = calloc(1, 1 << 16);
	struct err e = { 0 };
	struct sys_fd fds[4];
	struct cage_spec s = { .binds = &bind,
			       .n_binds = 1,
			       .argv = argv,
			       .env = env,
			       .fds = fds,
			       .n_fds = ARRAY_SIZE(fds),
			       .as_user = true,
			       .self_fd = 9 };
	int p[2];
	pid_t pid;

	check(text && null >= 0 && pipe2(p, O_CLOEXEC) == 0);
	out = p[0];
	check(snprintf(share, sizeof(share), "%s/share", dir) > 0);
	if (share_take(share, read_only, &tree, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		check(false);
	}
	fds[0] = (struct sys_fd) { null, 0 };
	fds[1] = (struct sys_fd) { p[1], 1 };
	fds[2] = (struct sys_fd) { 2, 2 };
	fds[3] = (struct sys_fd) { tree, 8 };
	if (cage_spawn(&s, &pid, &pidfd, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		check(false);
	}
	check(close(p[1]) == 0);
	check(fd_read_all(out, text, (1 << 16) - 1) > 0);
	check(sys_wait(pid, pidfd, fd_now_ns() + 20000000000u, ret_status) == 0);
	return text;
}

/* The file that the program made: whose it is. */
static void made_by(uid_t uid)
{
	struct stat st;
	char path[80];

	check(snprintf(path, sizeof(path), "%s/share/made", dir) > 0);
	check(stat(path, &st) == 0 && st.st_uid == uid && unlink(path) == 0);
}

static void works(void)
{
	bool root = geteuid() == 0;
	char id[64];
	int status = -1;
	_free_ char *t = see_work(false, &status), *ro = NULL;

	check(status == 0 && has(t, "made yes") && has(t, "again yes"));
	check(has(t, "above nothing") && has(t, "escape no") && has(t, "chown no"));
	check(snprintf(id, sizeof(id), "uid %u %u", geteuid(), geteuid()) > 0 && has(t, id));
	check(has(t, "host cage") && has(t, "pid 1") && count(t, "sees ") == 0);
	check(has(t, root ? "caps a a a 2" : "caps 0 0 0 0") && has(t, "nnp 1"));
	check(has(t, "securebits ef") && has(t, "userns no"));
	/* as an ordinary user alone we have no file of somebody else */
	check(has(t, root || !foreign ? "foreign yes" : "foreign no"));
	check(snprintf(id, sizeof(id), "owner %u", foreign ? root ? 4711 : 65534 : geteuid()) > 0);
	check(has(t, id));
	made_by(geteuid());
	ro = see_work(true, &status);
	check(status == 0 && has(ro, "made Read-only file system") && has(ro, "again yes"));
}

static bool bind_listen(int fd, const struct sockaddr_in *a)
{
	return bind(fd, (const struct sockaddr *)a, sizeof(*a)) == 0 && listen(fd, 1) == 0;
}

/* A program of that cage is asked to connect to a listener of ours. */
static char *see_dial(bool host_net, int *ret_status)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	_close_ int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), pidfd = -1, out = -1;
	char port[16], *text = calloc(1, 1 << 16);
	const char *const argv[] = { "/bin/look", "dial", port, NULL }, *const env[] = { NULL };
	struct cage_bind bind = { look, "/bin/look", CAGE_EXEC };
	struct cage_spec s = { &bind, 1, argv, env, .n_fds = 2, .host_net = host_net };
	socklen_t len = sizeof(a);
	struct err e = { 0 };
	int p[2];
	pid_t pid;

	check(text && pipe2(p, O_CLOEXEC) == 0);
	out = p[0];
	check(bind_listen(listener, &a) && getsockname(listener, (struct sockaddr *)&a, &len) == 0);
	check(snprintf(port, sizeof(port), "%u", ntohs(a.sin_port)) > 0);
	s.fds = (struct sys_fd[]) { { p[1], 1 }, { 2, 2 } };
	if (cage_spawn(&s, &pid, &pidfd, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		check(false);
	}
	check(close(p[1]) == 0);
	check(fd_read_all(out, text, (1 << 16) - 1) > 0);
	check(sys_wait(pid, pidfd, fd_now_ns() + 20000000000u, ret_status) == 0);
	return text;
}

/* The host's network is there to be used, as anybody may; nothing else of the cage is different. */
static void dials(void)
{
	int status = -1;
	_free_ char *t = see_dial(true, &status), *closed = NULL;
	char id[64];
	uid_t uid = geteuid() ? geteuid() : 0x70000000 + (uid_t)getpid();

	check(status == 0 && has(t, "dial yes") && has(t, "change no") && has(t, "raw no"));
	check(snprintf(id, sizeof(id), "uid %u %u", uid, uid) > 0 && has(t, id));
	check(has(t, "host cage") && has(t, "pid 1") && count(t, "sees ") == 0);
	check(has(t, "caps 0 0 0 0") && has(t, "nnp 1") && has(t, "userns no"));
	closed = see_dial(false, &status);
	check(status == 0 && has(closed, "dial no"));
}

static void shares(void)
{
	char link[64], share[64];
	struct err e = { 0 };
	int fd = -1;

	check(snprintf(share, sizeof(share), "%s/share", dir) > 0);
	check(snprintf(link, sizeof(link), "%s/link", dir) > 0);
	check(share_take("/none/such", false, &fd, &e) == -ENOENT);
	check(streq(e.msg, "cannot share /none/such: No such file or directory"));
	check(share_take(link, false, &fd, &e) == -ELOOP && fd == -1);
}

static void await(int fd, const char *word)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char b[512] = "";
	size_t n = 0;

	while (!strstr(b, word)) {
		check(poll(&p, 1, 10000) == 1);
		check(read(fd, b + n, 1) == 1 && ++n < sizeof(b) - 1);
	}
}

static void outside(void)
{
	_close_ int out = -1, pidfd = -1;
	_free_ char *status = NULL;
	char path[64], line[128];
	struct err e = { 0 };
	int st = 0;
	pid_t pid;
	uid_t uid;

	check(start("sleep", &out, &pid, &pidfd, &e) == 0);
	await(out, "ready\n");
	uid = geteuid() ? geteuid() : 0x70000000 + (uid_t)getpid();
	check(snprintf(path, sizeof(path), "/proc/%d/status", pid) > 0);
	check(fd_read_file(AT_FDCWD, path, 65536, &status, NULL) == 0);
	check(snprintf(line, sizeof(line), "Uid:\t%u\t%u\t%u\t%u", uid, uid, uid, uid) > 0);
	check(has(status, line) && has(status, "CapBnd:\t0000000000000000"));
	check(has(status, "CapEff:\t0000000000000000") && has(status, "NoNewPrivs:\t1"));
	/* it is ours to stop, continue and kill, though it is process 1 in there */
	check(kill(pid, SIGSTOP) == 0);
	check(waitpid(pid, &st, WUNTRACED) == pid && WIFSTOPPED(st));
	check(kill(pid, SIGCONT) == 0);
	check(waitpid(pid, &st, WCONTINUED) == pid && WIFCONTINUED(st));
	check(kill(pid, SIGKILL) == 0);
	check(sys_wait(pid, pidfd, fd_now_ns() + 5000000000u, &st) == 0 && st == 137);
}

/* Whoever kills the parent kills the caged program too. */
static void orphan(void)
{
	struct pollfd p = { .events = POLLIN };
	pid_t middle;
	int pass[2];
	char c;

	/* the write end goes to the caged program only, and to the middle process, as stderr */
	check(pipe2(pass, O_CLOEXEC) == 0);
	middle = fork();
	check(middle >= 0);
	if (middle == 0) {
		struct err e;
		int out, fd;
		pid_t pid;

		check(dup2(pass[1], 2) == 2);
		check(start("sleep", &out, &pid, &fd, &e) == 0);
		await(out, "ready\n");
		check(write(pass[1], "r", 1) == 1);
		(void)pause();
	}
	check(close(pass[1]) == 0);
	check(read(pass[0], &c, 1) == 1 && c == 'r');
	sys_kill(middle);
	p.fd = pass[0];
	check(poll(&p, 1, 5000) == 1);
	check(read(pass[0], &c, 1) == 0);
	check(close(pass[0]) == 0);
}

static void failures(void)
{
	const char *argv[] = { "/bin/none", NULL };
	const char *const env[] = { NULL };
	struct cage_bind b = { data, "/vm/data", 0 };
	struct cage_spec s = { .binds = &b, .n_binds = 1, .argv = argv, .env = env };
	struct err e = { 0 };
	int fd = -1;
	pid_t pid;

	check(cage_spawn(&s, &pid, &fd, &e) == -ENOENT);
	check(streq(e.msg, "cannot execute /bin/none in its cage: No such file or directory"));
	b.from = "/none";
	check(cage_spawn(&s, &pid, &fd, &e) == -ENOENT);
	check(streq(e.msg, "cannot put /none into the cage: No such file or directory"));
	b.from = "/etc";
	check(cage_spawn(&s, &pid, &fd, &e) == -EISDIR);
	check(fd == -1);
	check(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static void put_text(const char *name, const char *text)
{
	char path[128];

	check(snprintf(path, sizeof(path), "%s/%s", dir, name) > 0);
	check(fd_replace_file(AT_FDCWD, path, 0644, text, strlen(text)) == 0);
}

static void explanations(void)
{
	char path[128];
	struct err e = { 0 };

	check(snprintf(path, sizeof(path), "%s/kernel", dir) > 0 && mkdir(path, 0755) == 0);
	check(snprintf(path, sizeof(path), "%s/user", dir) > 0 && mkdir(path, 0755) == 0);
	check(cage_explain(&e, -EPERM, "make namespaces", dir) == -EPERM);
	check(strstr(e.msg, "(in a container: "));
	put_text("kernel/apparmor_restrict_unprivileged_userns", "1\n");
	check(cage_explain(&e, -EACCES, "make a root", dir) == -EACCES);
	check(streq(e.msg,
		    "cannot make a root for the cage: Permission denied: AppArmor denies user "
		    "namespaces to ordinary users: sudo sysctl "
		    "kernel.apparmor_restrict_unprivileged_userns=0"));
	put_text("kernel/unprivileged_userns_clone", "0\n");
	check(cage_explain(&e, -EPERM, "make namespaces", dir) == -EPERM);
	check(strstr(e.msg, "sudo sysctl kernel.unprivileged_userns_clone=1"));
	put_text("user/max_user_namespaces", "100\n");
	check(cage_explain(&e, -ENOSPC, "make namespaces", dir) == -ENOSPC);
	check(strstr(e.msg, "too many namespaces"));
	put_text("user/max_user_namespaces", "0\n");
	check(cage_explain(&e, -ENOSPC, "make namespaces", dir) == -ENOSPC);
	check(strstr(e.msg, "sudo sysctl user.max_user_namespaces=15000"));
	check(cage_explain(&e, -ENOSYS, "make a root", dir) == -ENOSYS);
	check(strstr(e.msg, "Linux 5.12"));
}

static void ids(void)
{
	const char *all = "         0          0 4294967295\n";
	const char *few = "0 100000 65536\n", *two = "0 1000 1\n1 100000 65535\n";

	check(cage_pick_uid(all, 42) == 0x70000000 + 42);
	check(cage_pick_uid(few, 42) == 65534);
	check(cage_pick_uid(two, 42) == 65534);
	check(cage_pick_uid("0 1000 1\n", 42) == (uid_t)-1);
	check(cage_pick_uid("", 42) == (uid_t)-1);
	check(cage_pick_uid("garbage", 42) == (uid_t)-1);
}

/* A namespace in which no more may be made, as on a machine that forbids them. */
static void forbidden(void)
{
	pid_t pid = fork();
	int st = -1;

	check(pid >= 0);
	if (pid == 0) {
		_close_ int fd = -1;
		struct err e = { 0 };
		int out, pidfd;
		pid_t p;

		check(unshare(CLONE_NEWUSER) == 0);
		fd = open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);
		if (fd < 0 || write(fd, "0", 1) != 1)
			_exit(0); /* /proc/sys is read-only here */
		check(start("all", &out, &p, &pidfd, &e) == -ENOSPC);
		check(strstr(e.msg, "sudo sysctl user.max_user_namespaces=15000"));
		_exit(0);
	}
	check(waitpid(pid, &st, 0) == pid && st == 0);
}

static char *mounts(void)
{
	char *text = NULL;

	check(fd_read_file(AT_FDCWD, "/proc/self/mountinfo", 1 << 20, &text, NULL) == 0);
	return text;
}

static unsigned open_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void everything(void)
{
	unsigned fds = open_fds();
	_free_ char *before = mounts(), *after = NULL;

	inside();
	works();
	dials();
	shares();
	outside();
	ends();
	orphan();
	failures();
	forbidden();
	after = mounts();
	check(streq(before, after));
	check(open_fds() == fds);
}

static void copy_look(const char *from)
{
	_free_ char *p = NULL;
	size_t n;

	check(fd_read_file(AT_FDCWD, from, 16 << 20, &p, &n) == 0);
	check(fd_replace_file(AT_FDCWD, look, 0755, p, n) == 0);
}

/* Can this machine make user namespaces at all? */
static bool namespaces_work(void)
{
	pid_t pid = fork();
	int st = -1;

	check(pid >= 0);
	if (pid == 0)
		_exit(unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) == 0 ? 0 : 1);
	check(waitpid(pid, &st, 0) == pid);
	return st == 0;
}

static void own_share(uid_t uid)
{
	char path[80];

	check(snprintf(path, sizeof(path), "%s/share", dir) > 0 && chown(path, uid, uid) == 0);
	check(snprintf(path, sizeof(path), "%s/share/file", dir) > 0 && chown(path, uid, uid) == 0);
}

static void as_user(uid_t uid)
{
	pid_t pid = fork();
	int st = -1;

	check(pid >= 0);
	if (pid == 0) {
		own_share(uid);
		check(setgroups(0, NULL) == 0 && setresgid(uid, uid, uid) == 0);
		check(setresuid(uid, uid, uid) == 0);
		check(prctl(PR_SET_DUMPABLE, 1) == 0); /* as an ordinary program is */
		everything();
		_exit(0);
	}
	check(waitpid(pid, &st, 0) == pid && st == 0);
}

/* Our own mount namespace, in which everything propagates: a cage that leaks would show, and the
 * machine's other mounts do not disturb us. */
static void own_mounts(void)
{
	check(unshare(CLONE_NEWNS) == 0);
	check(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	check(mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL) == 0);
}

/* A share with a file of ours and one of somebody else. */
static void make_share(void)
{
	char path[80], to[80];

	check(snprintf(path, sizeof(path), "%s/share", dir) > 0 && mkdir(path, 0755) == 0);
	check(snprintf(to, sizeof(to), "%s/link", dir) > 0 && symlink(path, to) == 0);
	put_text("share/file", "1");
	put_text("share/foreign", "2");
	check(snprintf(path, sizeof(path), "%s/share/foreign", dir) > 0);
	foreign = geteuid() == 0;
	check(!foreign || (chown(path, 4711, 4711) == 0 && chmod(path, 0600) == 0));
}

int main(int argc, char **argv)
{
	check(argc == 2);
	ids();
	if (!namespaces_work())
		skip("no user namespaces here");
	check(mkdtemp(dir) && chmod(dir, 0755) == 0);
	check(snprintf(look, sizeof(look), "%s/look", dir) > 0);
	check(snprintf(data, sizeof(data), "%s/data", dir) > 0);
	copy_look(argv[1]);
	put_text("data", "secret");
	explanations();
	make_share();
	if (geteuid() == 0) {
		own_mounts();
		as_user(54321);
		check(chmod(data, 0600) == 0); /* only root may read it, and the cage shall */
	}
	everything();
	check(execlp("rm", "rm", "-r", dir, NULL) == 0);
	return 0;
}
