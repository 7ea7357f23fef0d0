/* Which accelerator works here.
 *
 * That /dev/kvm is there proves nothing: in a nested machine it may open, make virtual machines, and
 * never get a kernel through its first instructions. So a guest is started with KVM, whose init, told by
 * "bac.probe", says HELLO at once; one that is silent for PROBE_MS is killed, and the answer is "no".
 *
 * The answer is kept in a file, under a key that names everything it depends on: the boot, the host's
 * kernel, the user, the state of /dev/kvm, QEMU, the libraries, the guest kernel. Another key, a
 * truncated file, a file that is not ours to believe: each is a miss, and a miss costs one probe. Whoever
 * probes holds a lock; the others wait for it and find the answer. */
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "io/fd.h"
#include "sys/lock.h"
#include "sys/spawn.h"
#include "vm/vm.h"
#include "wire/frame.h"

enum {
	PROBE_MS = 5000,
	LOCK_MS = 30000,
	TSC_MS = 50,
	MEMORY = 256 << 20,
	CACHE_MAX = 256 * 1024,
	FILES_MAX = 512,
	CONSOLE_MAX = 16384,
	VERSION = 2,
};

#define CACHE "probe.json"
#define LOCK  "probe.lock"

void vm_probe_done(struct vm_probe *p)
{
	p->qemu_files = vm_files_free(p->qemu_files);
	p->n_qemu_files = 0;
}

/* --- the key --- */

static int add_file(struct buf *key, const char *what, const char *path)
{
	struct stat st = { 0 };

	(void)stat(path, &st);
	return buf_printf(key, "%s=%s:%lld:%lld.%09ld\n", what, path, (long long)st.st_size,
			  (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

/* How /dev/kvm looks to us: a user who is added to its group has another key. */
static int add_device(struct buf *key)
{
	_close_ int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	int code = fd < 0 ? errno : 0;
	struct stat st = { 0 };

	(void)stat("/dev/kvm", &st);
	return buf_printf(key, "kvm=%d:%o:%u:%u\n", code, st.st_mode, st.st_uid, st.st_gid);
}

static int make_key(struct buf *key, const char *qemu, const char *kernel)
{
	_free_ char *boot = NULL;
	struct utsname u;
	int r;

	r = fd_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 64, &boot, NULL);
	if (r < 0)
		return r;
	boot[strcspn(boot, "\n")] = '\0';
	if (uname(&u) < 0)
		return -errno;
	r = buf_printf(key, "boot=%s\nhost=%s %s\nuid=%u\n", boot, u.release, u.version, geteuid());
	if (r == 0)
		r = add_device(key);
	if (r == 0)
		r = add_file(key, "qemu", qemu);
	if (r == 0)
		r = add_file(key, "libraries", "/etc/ld.so.cache");
	if (r == 0)
		r = add_file(key, "kernel", kernel);
	return r == 0 && !buf_str(key) ? -ENOMEM : r;
}

/* --- the cache --- */

/* A path as vm_files() makes it, of a file that is there. */
static bool is_good_path(const char *path)
{
	return path && path[0] == '/' && !strstr(path, "/../") && access(path, F_OK) == 0;
}

static int read_files(const json_t *list, struct vm_probe *ret)
{
	size_t n = json_array_size(list); /* 0 if it is no array */

	if (n == 0 || n > FILES_MAX)
		return -EINVAL;
	ret->qemu_files = calloc(n + 1, sizeof(*ret->qemu_files));
	if (!ret->qemu_files)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const char *path = json_string_value(json_array_get(list, i));

		if (!is_good_path(path))
			return -EINVAL;
		ret->qemu_files[i] = strdup(path);
		if (!ret->qemu_files[i])
			return -ENOMEM;
		ret->n_qemu_files = i + 1;
	}
	return 0;
}

static int read_answer(const json_t *o, const char *key, struct vm_probe *ret)
{
	const char *why = json_string_value(json_object_get(o, "why"));
	const json_t *kvm = json_object_get(o, "kvm"), *khz = json_object_get(o, "tsc_khz");
	const json_t *safe = json_object_get(o, "tcg_safe");
	const char *have = json_string_value(json_object_get(o, "key"));
	int n;

	if (json_integer_value(json_object_get(o, "version")) != VERSION || !streq(have, key))
		return -ESTALE;
	if (!json_is_boolean(kvm) || !json_is_boolean(safe) || !json_is_integer(khz) ||
	    json_integer_value(khz) < 0 || !why)
		return -EINVAL;
	n = snprintf(ret->why, sizeof(ret->why), "%s", why);
	if (n < 0 || (size_t)n >= sizeof(ret->why))
		return -EINVAL;
	ret->kvm = json_is_true(kvm);
	ret->tcg_safe = json_is_true(safe);
	ret->tsc_khz = (uint64_t)json_integer_value(khz);
	return read_files(json_object_get(o, "qemu_files"), ret);
}

/* 0 and *ret, or -errno: a miss. */
static int cache_read(int dir, const char *key, struct vm_probe *ret)
{
	struct vm_probe p = { 0 };
	_free_ char *text = NULL;
	json_t *o;
	size_t n;
	int r;

	r = fd_read_file(dir, CACHE, CACHE_MAX, &text, &n);
	if (r < 0)
		return r;
	o = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	r = read_answer(o, key, &p);
	json_decref(o);
	if (r < 0) {
		vm_probe_done(&p);
		return r;
	}
	*ret = p;
	return 0;
}

/* Best effort: without it the next command probes again. */
static void cache_write(int dir, const char *key, const struct vm_probe *p)
{
	json_t *o, *files = json_array();
	_free_ char *text = NULL;

	for (size_t i = 0; i < p->n_qemu_files; i++)
		(void)json_array_append_new(files, json_string(p->qemu_files[i]));
	o = json_pack("{s:i, s:s, s:b, s:s, s:b, s:I, s:o}", "version", VERSION, "key", key, "kvm",
		      p->kvm ? 1 : 0, "why", p->why, "tcg_safe", p->tcg_safe ? 1 : 0, "tsc_khz",
		      (json_int_t)p->tsc_khz, "qemu_files", files);
	if (!o)
		return;
	text = json_dumps(o, JSON_INDENT(1));
	json_decref(o);
	if (text)
		(void)!fd_replace_file(dir, CACHE, 0600, text, strlen(text));
}

/* --- the try --- */

struct
try {
	int ctl, qmp, console; /* our ends */
	pid_t pid;
	int pidfd;
	struct buf in;  /* from the guest */
	struct buf out; /* QEMU's messages */
};

static void try_done(struct try *t)
{
	if (t->pid > 0)
		sys_kill(t->pid);
	t->pid = -1;
	t->ctl = fd_close(t->ctl);
	t->qmp = fd_close(t->qmp);
	t->console = fd_close(t->console);
	t->pidfd = fd_close(t->pidfd);
	buf_done(&t->in);
	buf_done(&t->out);
}

static int try_start(struct try *t, const struct vm_probe *p, const char *qemu, const char *kernel,
		     const char *initrd, struct err *e)
{
	_close_ int ctl = -1, qmp = -1, console = -1;
	int a[2], b[2], c[2];
	struct vm_spec s = { .qemu = qemu,
			     .qemu_files = (const char *const *)p->qemu_files,
			     .machine = "microvm",
			     .kvm = true,
			     .cpus = 1,
			     .memory = MEMORY,
			     .kernel = kernel,
			     .initrd = initrd,
			     .cmdline = "bac.probe" };

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, a) < 0)
		return err_errno(e, -errno, "cannot make a socket");
	t->ctl = a[0];
	ctl = a[1];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, b) < 0)
		return err_errno(e, -errno, "cannot make a socket");
	t->qmp = b[0];
	qmp = b[1];
	if (pipe2(c, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_errno(e, -errno, "cannot make a pipe");
	t->console = c[0];
	console = c[1];
	s.ctl_fd = ctl;
	s.qmp_fd = qmp;
	s.console_fd = console;
	return vm_spawn(&s, &t->pid, &t->pidfd, e);
}

/* Read what is there; what does not fit is dropped. */
static void take(int fd, struct buf *b)
{
	char c[4096];
	ssize_t n;

	while ((n = read(fd, c, sizeof(c))) > 0)
		(void)!buf_add(b, c, MIN((size_t)n, buf_space(b)));
}

/* 1: the guest said HELLO. 0: not yet. -EPROTO: it said something else. */
static int look_for_hello(const struct buf *in)
{
	struct wire_frame f;
	size_t used;
	int r = wire_frame_parse(&f, &used, FROM_GUEST, buf_data(in), in->n);

	if (r == WIRE_AGAIN)
		return 0;
	return r == WIRE_OK && f.type == WIRE_HELLO ? 1 : -EPROTO;
}

/* 0: it works. -ETIMEDOUT, -EPROTO, or -ECHILD: QEMU ended. */
static int try_wait(struct try *t)
{
	uint64_t now, end = fd_now_ns() + (uint64_t)PROBE_MS * 1000000;

	while ((now = fd_now_ns()) < end) {
		struct pollfd p[] = { { .fd = t->ctl, .events = POLLIN },
				      { .fd = t->console, .events = POLLIN },
				      { .fd = t->pidfd, .events = POLLIN } };
		int r;

		if (poll(p, ARRAY_SIZE(p), (int)((end - now) / 1000000) + 1) < 0 && errno != EINTR)
			return -errno;
		take(t->ctl, &t->in);
		take(t->console, &t->out);
		r = look_for_hello(&t->in);
		if (r != 0)
			return MIN(r, 0);
		if (p[2].revents)
			return -ECHILD;
		if (p[0].revents & (POLLHUP | POLLERR))
			t->ctl = fd_close(t->ctl); /* poll passes over it; QEMU's end follows */
	}
	return -ETIMEDOUT;
}

/* QEMU's last word, without its name in front. */
static const char *last_word(struct buf *out)
{
	char *s = (char *)buf_str(out), *nl;
	size_t n = s ? strlen(s) : 0;

	while (n > 0 && strchr("\r\n ", s[n - 1]))
		s[--n] = '\0';
	if (n == 0)
		return "QEMU ended without a word";
	nl = strrchr(s, '\n');
	s = nl ? nl + 1 : s;
	nl = strstr(s, ": ");
	return starts_with(s, "qemu-system-") && nl ? nl + 2 : s;
}

/* The text may hold what QEMU said: made printable as any text for people is. */
static _printf_(2, 3) void say(struct vm_probe *p, const char *fmt, ...)
{
	struct err e;
	char text[sizeof(p->why)];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (char *c = text; *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?'; /* JSON wants UTF-8, and QEMU promises nothing */
	(void)err_set(&e, -EIO, "%s", text);
	(void)snprintf(p->why, sizeof(p->why), "%.*s", (int)sizeof(p->why) - 1, e.msg);
}

/* Somebody may open it, but not whoever QEMU runs as. */
static void say_denied(struct vm_probe *p, const struct stat *st)
{
	const char *who = geteuid() == 0 ? " to QEMU, which is not root" : "";

	if (geteuid() != 0 && st->st_gid != 0 && (st->st_mode & 0060) == 0060)
		say(p,
		    "/dev/kvm: Permission denied; add yourself to its group and log in again: sudo "
		    "usermod -aG kvm $USER");
	else
		say(p, "/dev/kvm: Permission denied%s: sudo chmod 666 /dev/kvm", who);
}

/* What can be known without starting anything. True if it is worth a try. */
static bool device_opens(struct vm_probe *p)
{
	_close_ int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	int code = errno;
	struct stat st;

	if (fd < 0 && code == ENOENT) {
		say(p, "there is no /dev/kvm (virtualisation is off in the firmware, or this is a "
		       "virtual machine or a container without it)");
		return false;
	}
	if (stat("/dev/kvm", &st) < 0 || (fd < 0 && code != EACCES && code != EPERM)) {
		say(p, "/dev/kvm: %s", err_text(code));
		return false;
	}
	/* root's QEMU is nobody: it opens the device by its group or as anybody (sys/cage.c) */
	if (fd < 0 || (geteuid() == 0 && (st.st_mode & 0006) != 0006 &&
		       ((st.st_mode & 0060) != 0060 || st.st_gid == 0))) {
		say_denied(p, &st);
		return false;
	}
	return true;
}

/* Fills p->kvm and p->why. 0, or -Exxx: QEMU cannot be started at all, with any accelerator. */
static int try_kvm(struct vm_probe *p, const char *qemu, const char *kernel, const char *initrd,
		   struct err *e)
{
	_cleanup_(try_done) struct try t = { .ctl = -1,
					     .qmp = -1,
					     .console = -1,
					     .pid = -1,
					     .pidfd = -1,
					     .in = BUF_INIT(WIRE_FRAME_MAX + WIRE_HEADER),
					     .out = BUF_INIT(CONSOLE_MAX) };
	int r;

	if (!device_opens(p))
		return 0;
	r = try_start(&t, p, qemu, kernel, initrd, e);
	if (r < 0)
		return r;
	r = try_wait(&t);
	if (r == 0) {
		p->kvm = true;
		return 0;
	}
	take(t.console, &t.out);
	if (r == -ECHILD)
		say(p, "QEMU cannot use /dev/kvm: %s", last_word(&t.out));
	else if (r == -ETIMEDOUT)
		say(p, "KVM is there but a guest does not start on it (nested virtualisation?)");
	else
		say(p, "KVM is there but its guest talks nonsense");
	return 0;
}

/* Ask QEMU about itself; the text is out's. */
static int ask(const char *qemu, const char *option, const char *value, struct buf *out,
	       struct err *e)
{
	const char *argv[] = { qemu, option, value, NULL };
	int r;

	r = sys_run(&(struct sys_cmd) { .argv = argv, .out = out, .deadline_ms = PROBE_MS }, e);
	if (r == 0 && !buf_str(out))
		return err_set(e, -ENOMEM, "out of memory");
	if (r != 0)
		(void)err_ctx(e, "cannot ask QEMU what it can do");
	return r > 0 ? -EIO : r;
}

/* Emulation needs no try: it is QEMU's own code, if it was built in. */
static int check_tcg(const struct vm_probe *p, const char *qemu, struct err *e)
{
	struct buf out = BUF_INIT(4096);
	int r = ask(qemu, "-accel", "help", &out, e);

	if (r == 0 && !strstr(buf_str(&out), "tcg"))
		r = err_set(e, -ENOTSUP, "this QEMU cannot emulate, and KVM does not work: %s",
			    p->why);
	buf_done(&out);
	return r;
}

/* "QEMU emulator version 7.2.22 (Debian ...)"; fixed in 8.1 (commit deba78709ae8). */
static int check_version(struct vm_probe *p, const char *qemu, struct err *e)
{
	static const char *const words = "QEMU emulator version ";
	struct buf out = BUF_INIT(4096);
	unsigned major, minor;
	const char *at;
	int r = ask(qemu, "--version", NULL, &out, e);

	at = r == 0 ? strstr(buf_str(&out), words) : NULL;
	if (at && sscanf(at + strlen(words), "%u.%u", &major, &minor) == 2)
		p->tcg_safe = major > 8 || (major == 8 && minor >= 1);
	buf_done(&out);
	return r;
}

static int probe(const char *qemu, const char *kernel, const char *initrd, struct vm_probe *p,
		 struct err *e)
{
	int r;

	r = vm_files(qemu, &p->qemu_files, &p->n_qemu_files, e);
	if (r < 0)
		return r;
	p->tsc_khz = vm_tsc_khz(TSC_MS);
	r = check_version(p, qemu, e);
	if (r < 0)
		return r;
	r = try_kvm(p, qemu, kernel, initrd, e);
	if (r == 0 && !p->kvm)
		r = check_tcg(p, qemu, e);
	return r;
}

static int probe_and_keep(int dir, const char *key, const char *qemu, const char *kernel,
			  const char *initrd, struct vm_probe *ret, struct err *e)
{
	struct vm_probe p = { 0 };
	int r = probe(qemu, kernel, initrd, &p, e);

	if (r < 0) {
		vm_probe_done(&p);
		return r;
	}
	cache_write(dir, key, &p);
	*ret = p;
	return 0;
}

int vm_probe(const char *cache_dir, const char *qemu, const char *kernel, const char *initrd,
	     bool fresh, struct vm_probe *ret, struct err *e)
{
	struct buf key = BUF_INIT(16384);
	_close_ int dir = -1, lock = -1;
	int r;

	dir = open(cache_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_errno(e, -errno, "cannot open %s", cache_dir);
	r = make_key(&key, qemu, kernel);
	if (r < 0)
		(void)err_errno(e, r, "cannot tell what the accelerator depends on");
	else if (fresh || cache_read(dir, buf_str(&key), ret) < 0) {
		/* If the lock cannot be had, probing twice is the lesser evil. */
		(void)!lock_take_within(dir, LOCK, LOCK_MS, &lock);
		if (fresh || cache_read(dir, buf_str(&key), ret) < 0)
			r = probe_and_keep(dir, buf_str(&key), qemu, kernel, initrd, ret, e);
	}
	buf_done(&key);
	return r;
}
