/* A real guest, emulated, in its cage: BAC_TEST_KERNEL and BAC_TEST_INITRD name a kernel and an initrd
 * whose init says HELLO and, told by "bac.probe", powers off. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "io/fd.h"
#include "sys/spawn.h"
#include "vm/qmp.h"
#include "vm/vm.h"
#include "wire/msg.h"

enum { BOOT_S = 60 };

static char dir[] = "/tmp/test-vm-XXXXXX", disk[64];
static char *qemu, **files;

struct guest {
	int ctl, qmp, console, pidfd;
	pid_t pid;
};

static struct vm_spec spec(const char *cmdline)
{
	return (struct vm_spec) { .qemu = qemu,
				  .qemu_files = (const char *const *)files,
				  .machine = "microvm",
				  .cpus = 2,
				  .memory = (uint64_t)256 << 20,
				  .disk_size = (uint64_t)64 << 20,
				  .tsc_khz = vm_tsc_khz(20),
				  .kernel = getenv("BAC_TEST_KERNEL"),
				  .initrd = getenv("BAC_TEST_INITRD"),
				  .cmdline = cmdline };
}

static int start(struct vm_spec s, struct guest *g, struct err *e)
{
	int a[2], b[2], c[2], r;

	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a) == 0);
	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, b) == 0);
	check(pipe2(c, O_CLOEXEC) == 0);
	s.ctl_fd = a[1];
	s.qmp_fd = b[1];
	s.console_fd = c[1];
	r = vm_spawn(&s, &g->pid, &g->pidfd, e);
	check(close(a[1]) == 0 && close(b[1]) == 0 && close(c[1]) == 0);
	g->ctl = a[0];
	g->qmp = b[0];
	g->console = c[0];
	if (r < 0)
		check(close(a[0]) == 0 && close(b[0]) == 0 && close(c[0]) == 0);
	return r;
}

static int end(struct guest *g, unsigned seconds)
{
	int st = -1;

	check(sys_wait(g->pid, g->pidfd, fd_now_ns() + seconds * 1000000000ULL, &st) == 0);
	check(close(g->ctl) == 0 && close(g->qmp) == 0 && close(g->console) == 0);
	check(close(g->pidfd) == 0);
	return st;
}

static void await_readable(int fd, unsigned seconds)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	check(poll(&p, 1, (int)seconds * 1000) == 1);
}

static void await_hello(struct guest *g)
{
	uint8_t bytes[WIRE_HEADER + 512];
	struct wire_frame f;
	struct wire_hello h;
	size_t n = 0, used;
	int r;

	do {
		ssize_t k;

		await_readable(g->ctl, BOOT_S);
		k = read(g->ctl, bytes + n, sizeof(bytes) - n);
		check(k > 0);
		n += (size_t)k;
		r = wire_frame_parse(&f, &used, FROM_GUEST, bytes, n);
	} while (r == WIRE_AGAIN);
	check(r == WIRE_OK && f.type == WIRE_HELLO);
	check(wire_hello_parse(&h, &f) == WIRE_OK && h.version == WIRE_VERSION);
}

static void await_event(struct guest *g, struct buf *in, enum qmp_event want)
{
	enum qmp_event ev = QMP_NOTHING;
	char text[128];

	for (;;) {
		int r = qmp_next(in, &ev, text, sizeof(text));
		void *room;
		ssize_t k;

		check(r >= 0);
		if (r > 0 && ev == want)
			return;
		if (r > 0)
			continue;
		await_readable(g->qmp, BOOT_S);
		room = buf_room(in, 4096);
		check(room);
		k = read(g->qmp, room, 4096);
		check(k > 0);
		buf_added(in, (size_t)k);
	}
}

static void say(struct guest *g, const char *command)
{
	struct buf out = BUF_INIT(256);

	check(qmp_command(&out, command) == 0);
	check(fd_write_all(g->qmp, buf_data(&out), out.n) == 0);
	buf_done(&out);
}

/* From HELLO to power off; and what QMP tells of it. */
static void probe_guest(const char *machine)
{
	struct buf in = BUF_INIT(2 * QMP_LINE_MAX);
	struct vm_spec s = spec("bac.probe");
	struct err e = { 0 };
	struct guest g;

	s.machine = machine;
	if (start(s, &g, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		check(false);
	}
	await_event(&g, &in, QMP_GREETING);
	say(&g, "qmp_capabilities");
	await_hello(&g);
	await_event(&g, &in, QMP_SHUTDOWN);
	check(end(&g, 20) == 0);
	buf_done(&in);
}

/* Nobody holds the lock of a template's image. */
static bool is_free(const char *path)
{
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	check(fd >= 0);
	return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* Two machines never have one disk. Needs no guest: QEMU is stopped as soon as it runs. */
static void one_disk(void)
{
	struct buf in = BUF_INIT(2 * QMP_LINE_MAX);
	struct vm_spec s = spec("");
	struct err e = { 0 };
	struct guest a, b;

	s.disk_image = s.root_image = disk;
	check(start(s, &a, &e) == 0);
	check(start(s, &b, &e) == -EBUSY);
	check(strstr(e.msg, "cannot start QEMU: another machine runs on the disk /tmp/"));
	await_event(&a, &in, QMP_GREETING);
	say(&a, "qmp_capabilities");
	say(&a, "stop");
	await_event(&a, &in, QMP_STOPPED);
	check(start(s, &b, &e) == -EBUSY);
	check(!is_free(disk));
	/* an orderly end on SIGTERM, though it is process 1 of its namespace */
	check(kill(a.pid, SIGTERM) == 0);
	check(end(&a, 20) == 0);
	check(is_free(disk));
	buf_consume(&in, in.n);
	check(start(s, &b, &e) == 0);
	await_event(&b, &in, QMP_GREETING);
	check(kill(b.pid, SIGKILL) == 0);
	check(end(&b, 20) == 137);
	buf_done(&in);
}

static void orphan(void)
{
	struct pollfd p = { .events = POLLHUP };
	int pass[2];
	pid_t middle;
	char c;

	check(pipe2(pass, O_CLOEXEC) == 0);
	middle = fork();
	check(middle >= 0);
	if (middle == 0) {
		struct vm_spec s = spec("");
		struct err e;
		struct guest g;
		int a[2], b[2];

		check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a) == 0);
		check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, b) == 0);
		s.ctl_fd = a[1];
		s.qmp_fd = b[1];
		s.console_fd = pass[1];
		check(vm_spawn(&s, &g.pid, &g.pidfd, &e) == 0);
		check(write(pass[1], "r", 1) == 1);
		(void)pause();
	}
	check(close(pass[1]) == 0);
	check(read(pass[0], &c, 1) == 1 && c == 'r');
	sys_kill(middle);
	p.fd = pass[0];
	/* QEMU held the last write end */
	for (int i = 0; i < 100 && !(p.revents & POLLHUP); i++)
		check(poll(&p, 1, 50) >= 0);
	check(p.revents & POLLHUP);
	check(close(pass[0]) == 0);
}

static void refused(void)
{
	struct vm_spec s = spec("");
	struct err e = { 0 };
	struct guest g;

	s.cpus = 0;
	check(start(s, &g, &e) == -EINVAL && strstr(e.msg, "1 to 255 CPUs"));
	s = spec("");
	s.memory = 1 << 20;
	check(start(s, &g, &e) == -EINVAL && strstr(e.msg, "16 MiB"));
	s = spec("");
	s.machine = "pc";
	check(start(s, &g, &e) == -EINVAL && strstr(e.msg, "no machine 'pc'"));
	s = spec("");
	s.disk_image = "/none";
	check(start(s, &g, &e) == -ENOENT && strstr(e.msg, "cannot open the disk /none"));
	s = spec("");
	s.kernel = "/none";
	check(start(s, &g, &e) == -ENOENT && strstr(e.msg, "cannot put /none into the cage"));
}

int main(void)
{
	struct err e = { 0 };
	size_t n;

	if (!getenv("BAC_TEST_KERNEL") || !getenv("BAC_TEST_INITRD"))
		skip("BAC_TEST_KERNEL and BAC_TEST_INITRD name no guest to boot");
	if (vm_find_qemu(NULL, &qemu, &e) < 0)
		skip(e.msg);
	check(vm_files(qemu, &files, &n, &e) == 0);
	check(mkdtemp(dir));
	check(snprintf(disk, sizeof(disk), "%s/a,b=c disk", dir) > 0);
	check(fd_replace_file(AT_FDCWD, disk, 0600, "", 0) == 0 && truncate(disk, 64 << 20) == 0);
	refused();
	one_disk();
	orphan();
	probe_guest("microvm");
	probe_guest("q35");
	check(!vm_files_free(files));
	free(qemu);
	check(unlink(disk) == 0 && rmdir(dir) == 0);
	return 0;
}
