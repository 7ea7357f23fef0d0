/* What a program in a cage sees, one fact a line: run by test-cage inside the cage. A static program
 * of its own, since a cage holds no libraries unless they are asked for. With the argument "sleep" it
 * says "ready" and waits; with "abort" it aborts, as process 1; with "threads" it counts how many
 * threads it may have; with "dial" and a port it connects to the host; with "work" it works on a share (descriptor 8) as the user. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* NOLINTNEXTLINE(misc-no-recursion): a cage is a few directories deep */
static void walk(const char *dir)
{
	DIR *d = opendir(*dir ? dir : "/");
	struct dirent *de;

	while (d && (de = readdir(d))) {
		char path[4096];
		struct stat st;

		if (!strcmp(de->d_name, ".") || !strcmp(de->d_name, ".."))
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, de->d_name);
		if (lstat(path, &st) < 0)
			continue;
		printf("path %s\n", path);
		if (S_ISDIR(st.st_mode))
			walk(path);
	}
	if (d)
		(void)closedir(d);
}

static void writes(void)
{
	static const char *const places[] = { "/new", "/vm/new", "/tmp/new", "/dev/new",
					      "/dev/shm/new" };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (open(places[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0)
			printf("wrote %s\n", places[i]);
	if (open("/vm/data", O_WRONLY | O_CLOEXEC) >= 0)
		printf("wrote /vm/data\n");
	if (chmod("/vm/data", 0777) == 0 || unlink("/vm/data") == 0)
		printf("wrote /vm/data\n");
	if (mount("x", "/vm", "tmpfs", 0, NULL) == 0)
		printf("wrote mount\n");
	if (mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL) == 0)
		printf("wrote remount\n");
	if (sethostname("x", 1) == 0)
		printf("wrote hostname\n");
}

static void powers(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct c[_LINUX_CAPABILITY_U32S_3] = { 0 };
	unsigned bounding = 0;

	(void)syscall(SYS_capget, &h, c);
	for (unsigned long i = 0; i < 64; i++)
		bounding += prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1;
	printf("caps %x %x %x %u\n", c[0].effective | c[1].effective,
	       c[0].permitted | c[1].permitted, c[0].inheritable | c[1].inheritable, bounding);
	printf("nnp %d\n", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	printf("securebits %x\n", (unsigned)prctl(PR_GET_SECUREBITS, 0, 0, 0, 0));
	printf("userns %s\n", unshare(CLONE_NEWUSER) == 0 && mount("x", "/", "tmpfs", 0, NULL) == 0
				      ? "mounted"
				      : "no");
	printf("root %s\n", setuid(0) == 0 ? "yes" : "no");
}

static void descriptors(void)
{
	for (int fd = 0; fd < 4096; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf("fd %d\n", fd);
}

static void surroundings(void)
{
	struct if_nameindex *all = if_nameindex();
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	char comm[32] = "";
	struct utsname u;
	sigset_t set;

	for (struct if_nameindex *i = all; i && i->if_index; i++)
		printf("net %s\n", i->if_name);
	if (s >= 0)
		(void)close(s);
	(void)uname(&u);
	(void)prctl(PR_GET_NAME, comm, 0, 0, 0);
	printf("host %s\npid %d\nppid %d\nsid %d\n", u.nodename, (int)getpid(), (int)getppid(),
	       (int)getsid(0));
	printf("uid %u %u\ngid %u %u\ngroups %d\n", getuid(), geteuid(), getgid(), getegid(),
	       getgroups(0, NULL));
	/* in our namespace there is nobody but us */
	for (int p = 2; p < 70000; p++)
		if (kill(p, 0) == 0 || errno != ESRCH)
			printf("sees pid %d\n", p);
	(void)sigprocmask(SIG_BLOCK, NULL, &set);
	for (int i = 1; i < 32; i++) {
		struct sigaction sa;

		if (sigismember(&set, i) ||
		    (sigaction(i, NULL, &sa) == 0 && sa.sa_handler == SIG_IGN))
			printf("signal %d\n", i);
	}
	for (char **e = environ; *e; e++)
		printf("env %s\n", *e);
}

/* A listener of the host's loopback, and whether the host's network is ours to change. */
static void dial(const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct ifreq q = { .ifr_name = "lo", .ifr_flags = 0 };
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	printf("dial %s\n",
	       s >= 0 && connect(s, (struct sockaddr *)&a, sizeof(a)) == 0 ? "yes" : "no");
	printf("change %s\n", ioctl(s, SIOCSIFFLAGS, &q) == 0 ? "yes" : "no");
	printf("raw %s\n",
	       socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP) >= 0 ? "yes" : "no");
	(void)close(s);
}

static void limits(void)
{
	static const struct {
		int what;
		const char *name;
	} list[] = { { RLIMIT_CORE, "core" },
		     { RLIMIT_NOFILE, "nofile" },
		     { RLIMIT_FSIZE, "fsize" },
		     { RLIMIT_MEMLOCK, "memlock" } };

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		struct rlimit r = { 0 };

		(void)getrlimit((__rlimit_resource_t)list[i].what, &r);
		printf("limit %s %llu %llu\n", list[i].name, (unsigned long long)r.rlim_cur,
		       (unsigned long long)r.rlim_max);
	}
}

static void *idle(void *unused)
{
	(void)pause();
	return unused;
}

static void threads(void)
{
	unsigned n = 1;
	pthread_t t;

	while (n < 1000 && pthread_create(&t, NULL, idle, NULL) == 0)
		n++;
	printf("threads %u\n", n);
}

static void devices(void)
{
	static char b[16];
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct statvfs v;

	printf("null %s\n", fd >= 0 && write(fd, b, 1) == 1 ? "works" : "fails");
	fd = open("/vm/data", O_RDONLY | O_CLOEXEC);
	printf("data %.*s\n", fd >= 0 ? (int)read(fd, b, sizeof(b)) : 0, b);
	if (statvfs("/vm/data", &v) == 0)
		printf("flags %d %d %d\n", !!(v.f_flag & ST_RDONLY), !!(v.f_flag & ST_NOSUID),
		       !!(v.f_flag & ST_NODEV));
}

/* Which share is at fd, what can be done with it, and what lies above. */
static void work(void)
{
	struct stat here, above;
	int fd = openat(8, "made", O_WRONLY | O_CREAT | O_CLOEXEC, 0640), at;
	char name[16];

	printf("made %s\n", fd >= 0 && write(fd, "x", 1) == 1 ? "yes" : strerror(errno));
	if (fstat(8, &here) == 0 && fstatat(8, "..", &above, 0) == 0)
		printf("above %s\n", here.st_ino == above.st_ino && here.st_dev == above.st_dev
					     ? "nothing"
					     : "something");
	fd = openat(8, "../../../../../../../etc/passwd", O_RDONLY | O_CLOEXEC);
	printf("escape %s\n", fd >= 0 ? "yes" : "no");
	at = openat(8, "file", O_PATH | O_CLOEXEC);
	(void)snprintf(name, sizeof(name), "%d", at);
	fd = openat(9, name, O_RDONLY | O_CLOEXEC);
	printf("again %s\n", fd >= 0 ? "yes" : strerror(errno));
	fd = openat(8, "foreign", O_RDWR | O_CLOEXEC);
	printf("foreign %s\n", fd >= 0 ? "yes" : "no");
	printf("chown %s\n", fchownat(8, "file", 4711, 4711, 0) == 0 ? "yes" : "no");
	if (fstatat(8, "foreign", &here, 0) == 0)
		printf("owner %u\n", here.st_uid);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	descriptors(); /* first: the others open some */
	if (!strcmp(what, "sleep")) {
		printf("ready\n");
		for (;;)
			(void)pause();
	}
	if (!strcmp(what, "abort"))
		abort();
	if (!strcmp(what, "work")) {
		work();
		surroundings();
		powers();
		return 0;
	}
	if (!strcmp(what, "dial") && argc > 2) {
		dial(argv[2]);
		surroundings();
		powers();
		return 0;
	}
	if (!strcmp(what, "threads")) {
		threads();
		return 0;
	}
	walk("");
	writes();
	surroundings();
	limits();
	devices();
	powers();
	printf("end\n");
	return 0;
}
