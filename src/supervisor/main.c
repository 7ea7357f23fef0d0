/* bac-supervisor: runs one sandbox, from the start of its machine to its end.
 *
 * Started by a bac command with its orders (descriptor 3), the lock of the sandbox's directory (4), which it
 * holds as long as it lives, a pipe (5) on which it says one line: R (ready) and what the user should know, H (the boot hung) or E and why, and a
 * socket (6) with the shares; 7 and 8 are memory files: policy and credentials (wire/order.h).
 *
 * The order of the stages is the argument:
 *   begin   should leave the terminal and drop what was inherited; mustn't read anything foreign
 *   orders  should read what to do; the last code that parses for the user
 *   open    should open every file and start QEMU; mustn't have read a byte of the guest
 *   seal    should give up everything but the listed system calls
 *   serve   the first code that sees guest bytes */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/fd.h"
#include "supervisor/marks.h"
#include "supervisor/net.h"
#include "supervisor/share.h"
#include "supervisor/sup.h"
#include "vm/vm.h"
#include "wire/net.h"

enum { FD_ORDERS = 3, FD_LOCK = 4, FD_READY = 5, FD_SHARES = 6, FD_POLICY = 7, FD_CRED = 8 };

static int begin(struct sup *s, struct err *e)
{
	struct rlimit none = { 0, 0 };
	int null;

	s->qemu = -1;
	s->dir_fd = s->run_fd = s->run_json = s->console_fd = s->listen_fd = s->clock_fd = -1;
	s->qemu_pidfd = s->share_pidfd = s->share_fd = -1;
	s->lock_fd = FD_LOCK;
	s->ready_fd = FD_READY;
	(void)close_range(FD_CRED + 1, ~0U, 0);
	if (fd_cloexec(FD_ORDERS, true) < 0 || fd_cloexec(FD_LOCK, true) < 0 ||
	    fd_cloexec(FD_READY, true) < 0 || fd_cloexec(FD_SHARES, true) < 0 ||
	    fd_cloexec(FD_POLICY, true) < 0 || fd_cloexec(FD_CRED, true) < 0)
		return err_set(e, -EBADF, "bac-supervisor is started by bac, not by hand");
	(void)setsid();
	(void)umask(077);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN);
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (chdir("/") < 0)
		return err_errno(e, -errno, "cannot enter /");
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return err_errno(e, -errno, "cannot open /dev/null");
	(void)dup2(null, STDIN_FILENO);
	(void)dup2(null, STDOUT_FILENO);
	(void)dup2(null, STDERR_FILENO);
	if (null > STDERR_FILENO)
		(void)fd_close(null);
	return 0;
}

static int orders(struct sup *s, struct err *e)
{
	ssize_t n;

	s->order_bytes = malloc(ORDER_MAX);
	if (!s->order_bytes)
		return err_errno(e, -ENOMEM, "cannot read the orders");
	n = fd_read_all(FD_ORDERS, s->order_bytes, ORDER_MAX);
	(void)fd_close(FD_ORDERS);
	if (n < 0 || wire_order_parse(&s->order, s->order_bytes, (size_t)n) != WIRE_OK)
		return err_set(e, -EPROTO,
			       "the supervisor does not understand its orders; is bac installed in "
			       "two versions?");
	return 0;
}

static int open_dir(const char *path, int *ret, struct err *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(e, -errno, "cannot open %s", path);
	*ret = fd;
	return 0;
}

static int open_files(struct sup *s, struct err *e)
{
	int r;

	r = open_dir(s->order.dir, &s->dir_fd, e);
	if (r == 0)
		r = open_dir(s->order.run_dir, &s->run_fd, e);
	if (r == 0)
		r = slog_open(s->dir_fd, &s->log, e);
	if (r < 0)
		return r;
	s->run_json =
		openat(s->dir_fd, "run.json", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->run_json < 0)
		return err_errno(e, -errno, "cannot open %s/run.json", s->order.dir);
	return 0;
}

/* The other ends of QEMU's three descriptors. */
struct ends {
	int ctl, qmp, console, vhost;
};

static void ends_closep(struct ends *x)
{
	x->ctl = fd_close(x->ctl);
	x->qmp = fd_close(x->qmp);
	x->console = fd_close(x->console);
	x->vhost = fd_close(x->vhost);
}

static int pair(int *ours, int *theirs)
{
	int fd[2], size = 1024 * 1024;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) < 0)
		return -errno;
	(void)setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	(void)setsockopt(fd[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	*ours = fd[0];
	*theirs = fd[1];
	return 0;
}

static int spawn(struct sup *s, struct ends *ours, struct ends *theirs, struct err *e)
{
	const struct wire_order *o = &s->order;
	struct vm_spec v = { .qemu = o->qemu,
			     .qemu_files = o->qemu_files,
			     .machine = o->machine,
			     .kvm = o->accel == ACCEL_KVM,
			     .cpus = (uint32_t)o->cpus,
			     .memory = o->memory,
			     .disk_size = o->disk_size,
			     .tsc_khz = o->tsc_khz,
			     .tcg_multi = o->tcg_multi,
			     .kernel = o->kernel,
			     .initrd = o->initrd,
			     .cmdline = o->cmdline,
			     .root_image = o->root_image,
			     .root_blobs = o->root_blobs,
			     .base_image = *o->base_image ? o->base_image : NULL,
			     .disk_image = o->disk_image,
			     .ctl_fd = theirs->ctl,
			     .qmp_fd = theirs->qmp,
			     .console_fd = theirs->console,
			     .share_fd = theirs->vhost,
			     .mac = NET_GUEST_MAC };
	int r = sup_net_tap(s, &v.tap_fd, e);

	if (r < 0)
		return r;
	s->started_ns = fd_now_ns();
	s->started_real_ns = fd_real_ns();
	s->console_fd = take_fd(&ours->console);
	return vm_spawn(&v, &s->qemu, &s->qemu_pidfd, e);
}

static int start(struct sup *s, struct err *e)
{
	_cleanup_(ends_closep) struct ends ours = { -1, -1, -1, -1 }, theirs = { -1, -1, -1, -1 };
	int console[2], r;

	if (pair(&ours.ctl, &theirs.ctl) < 0 || pair(&ours.qmp, &theirs.qmp) < 0 ||
	    pipe2(console, O_CLOEXEC) < 0 || fd_nonblock(console[0], true) < 0)
		return err_errno(e, -errno, "cannot make QEMU's descriptors");
	ours.console = console[0];
	theirs.console = console[1];
	slog_say(s->log, "starting '%s': %s, %u CPUs, %llu MiB", s->order.name,
		 s->order.accel == ACCEL_KVM ? "KVM" : "emulated", (unsigned)s->order.cpus,
		 (unsigned long long)(s->order.memory >> 20));
	r = sup_share_start(s, theirs.console, &theirs.vhost, e);
	if (r == 0)
		r = spawn(s, &ours, &theirs, e);
	if (r == 0)
		r = sup_guest_open(s, ours.ctl, ours.qmp, e);
	if (r < 0)
		return r;
	(void)take_fd(&ours.ctl);
	(void)take_fd(&ours.qmp);
	return 0;
}

static void fail(struct sup *s, const struct err *e)
{
	char line[ERR_MSG_MAX + 2];
	int n = snprintf(line, sizeof(line), "E%s\n", e->msg);

	if (s->log)
		slog_say(s->log, "%s", e->msg);
	if (fd_write_all(s->ready_fd, line, (size_t)n) < 0)
		_exit(2);
}

static int run(struct sup *s, struct err *e)
{
	int r;

	r = open_files(s, e);
	if (r == 0)
		r = sup_net_start(s, e);
	if (r == 0)
		r = sup_seal_rings(e);
	if (r == 0 && uv_loop_init(&s->loop) != 0)
		r = err_set(e, -EIO, "cannot make the event loop");
	if (r == 0)
		r = sup_door_open(s, e);
	if (r == 0)
		r = sup_life_start(s, e);
	if (r == 0)
		r = start(s, e);
	if (r == 0)
		r = sup_life_watch(s, e);
	if (r == 0)
		r = sup_share_watch(s, e);
	if (r == 0)
		r = sup_net_watch(s, e);
	if (r == 0)
		r = sup_seal(e);
	if (r < 0) {
		if (s->qemu > 0)
			(void)kill(s->qemu, SIGKILL);
		sup_share_end(s);
		sup_net_end(s);
		return r;
	}
	(void)uv_run(&s->loop, UV_RUN_DEFAULT);
	return 0;
}

int main(void)
{
	struct sup s = { 0 };
	struct err e = { 0 };
	int r;

	r = begin(&s, &e);
	if (r == 0)
		r = orders(&s, &e);
	if (r == 0)
		r = run(&s, &e);
	if (r < 0)
		fail(&s, &e);
	sup_jobs_free(&s);
	sup_shares_free(&s);
	sup_marks_free(&s);
	sup_net_free(&s);
	slog_free(s.log);
	wire_order_done(&s.order);
	free(s.order_bytes);
	return r < 0 ? 1 : 0;
}
