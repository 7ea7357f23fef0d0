/* PID 1 of a sandbox.
 *
 * Words of the kernel's command line: bac.probe: say HELLO and turn the machine off, without touching
 * a disk; this is how the host finds out whether an accelerator works.
 *
 * Not as process 1, its program has other roles: save.h. */
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest/init/authority.h"
#include "guest/init/boot.h"
#include "guest/init/clock.h"
#include "guest/init/contract.h"
#include "guest/init/die.h"
#include "guest/init/down.h"
#include "guest/init/klog.h"
#include "guest/init/modules.h"
#include "guest/init/oci.h"
#include "guest/init/poke.h"
#include "guest/init/port.h"
#include "guest/init/save.h"
#include "guest/init/session.h"
#include "guest/init/share.h"
#include "guest/init/sockets.h"
#include "io/fd.h"

enum {
	PORT_WAIT_MS = 30 * 1000,
	CONFIG_WAIT_MS = 120 * 1000,
	LOST_DEADLINE_MS = 5000,
	SIGNAL_DEADLINE_MS = 10 * 1000,
	KEEP_MEMORY = 1024 * 1024, /* freed blocks up to here are used again, not given back */
};

enum phase { WAITING = 1, SHARING = 8, RUNNING = 2, STOPPING = 4 };

struct init {
	struct loop loop;
	struct port port;
	struct sessions sessions;
	struct clock clock;
	struct klog klog;
	struct down down;
	struct boot boot;
	struct shares shares;
	struct poke poke;
	struct authority authority;
	struct sockets sockets;
	struct watch signals;
	struct timer config_wait;
	enum phase phase;
	bool image; /* the root is one that bac did not build */
	bool lost;  /* the conversation is over */
};

/* ---- frames of the connection ---- */

static void on_image(struct init *in, const struct wire_frame *f)
{
	struct wire_env m;
	int ans = wire_env_parse(&m, f);

	die_check(MIN(ans, 0));
	if (ans != WIRE_OK)
		die("what the host says of the image is not valid");
	in->image = true;
	authority_image(&in->authority, &m);
	wire_env_done(&m);
}

/* At a disk's first start: the mark is beside the overlay, out of the sandbox's sight. */
static void make_contract(struct init *in, const char *name)
{
	static const char mark[] = "disk/contract";
	_close_ int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	char note[CONTRACT_NOTE_MAX];
	struct err e;

	if (faccessat(in->boot.old_root, mark, F_OK, 0) == 0)
		return;
	if (contract_make(root, in->boot.base, name, note, &e) < 0)
		die("%s", e.msg);
	if (*note)
		die_check(wire_text_add(&in->port.ctl, 0, WIRE_NOTE, note));
	fd = openat(in->boot.old_root, mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

static void on_config(struct init *in, const struct wire_frame *f)
{
	struct wire_config m;
	struct err e;

	if (wire_config_parse(&m, f) != WIRE_OK)
		die("the host's configuration is not valid");
	loop_cancel(&in->loop, &in->config_wait);
	clock_set(&in->clock, m.realtime_ns);
	if (boot_switch(&in->boot, &e) < 0)
		die("%s", e.msg);
	die_know(&in->port, in->boot.old_root);
	if (in->boot.base >= 0)
		modules_show(in->boot.base);
	if (in->image)
		make_contract(in, *m.hostname ? m.hostname : "NAME");
	boot_identity(&in->boot, m.hostname, m.workdir);
	in->sessions.workdir = in->boot.workdir;
	in->sessions.null_fd = in->boot.null_fd;
	in->sessions.pts_fd = in->boot.pts_fd;
	in->sessions.proc_fd = in->boot.proc_fd;
	in->phase = SHARING;
}

static void on_mount(struct init *in, const struct wire_frame *f)
{
	struct wire_mount m;

	if (wire_mount_parse(&m, f) != WIRE_OK)
		return;
	if (in->phase == SHARING)
		shares_boot(&in->shares, &m);
	else
		shares_change(&in->shares, f->type, &m);
}

static void on_changed(struct init *in, const struct wire_frame *f)
{
	struct wire_changed m;

	if (wire_changed_parse(&m, f) == WIRE_OK)
		poke_send(&in->poke, &m);
}

static void on_trust(struct init *in, const struct wire_frame *f)
{
	const char *pem;

	if (wire_trust_parse(&pem, f) == WIRE_OK)
		authority_trust(&in->authority, pem);
}

static void on_env(struct init *in, const struct wire_frame *f)
{
	struct wire_env m;
	int ans = wire_env_parse(&m, f);

	die_check(MIN(ans, 0));
	if (ans != WIRE_OK)
		return;
	authority_env(&in->authority, &m);
	wire_env_done(&m);
}

static void on_start(struct init *in, const struct wire_frame *f)
{
	(void)f;
	authority_begin(&in->authority);
	authority_settle(&in->authority);
	in->phase = RUNNING;
	die_check(wire_u64_add(&in->port.ctl, WIRE_READY, loop_now()));
	/* while the host takes it; the first command finds them */
	port_flush(&in->port);
	sockets_listen(&in->sockets, sockets_kinds, &in->loop, &in->boot);
}

static void on_time(struct init *in, const struct wire_frame *f)
{
	uint64_t ns;

	if (wire_u64_parse(&ns, f) == WIRE_OK)
		clock_set(&in->clock, ns);
}

static void on_ping(struct init *in, const struct wire_frame *f)
{
	uint64_t token;

	if (wire_u64_parse(&token, f) == WIRE_OK)
		die_check(wire_u64_add(&in->port.ctl, WIRE_PONG, token));
}

static void on_shutdown(struct init *in, const struct wire_frame *f)
{
	uint32_t ms;

	if (wire_u32_parse(&ms, f) != WIRE_OK)
		return;
	in->phase = STOPPING;
	down_begin(&in->down, ms);
}

static const struct {
	unsigned when; /* phases in which it may come */
	void (*fn)(struct init *in, const struct wire_frame *f);
} table[] = {
	[WIRE_IMAGE] = { WAITING, on_image },
	[WIRE_CONFIG] = { WAITING, on_config },
	[WIRE_MOUNT] = { SHARING | RUNNING | STOPPING, on_mount },
	[WIRE_UMOUNT] = { RUNNING | STOPPING, on_mount },
	[WIRE_CHANGED] = { RUNNING | STOPPING, on_changed },
	[WIRE_TRUST] = { SHARING | RUNNING | STOPPING, on_trust },
	[WIRE_ENV] = { SHARING | RUNNING | STOPPING, on_env },
	[WIRE_START] = { SHARING, on_start },
	[WIRE_TIME] = { SHARING | RUNNING | STOPPING, on_time },
	[WIRE_PING] = { WAITING | SHARING | RUNNING | STOPPING, on_ping },
	[WIRE_SHUTDOWN] = { SHARING | RUNNING | STOPPING, on_shutdown },
};

/* The conversation is over: nobody can give orders any more. Keep what is on the disk. */
static void on_lost(void *user, const char *why)
{
	struct init *in = user;

	if (in->phase == WAITING || in->phase == SHARING)
		die("%s", why);
	if (in->lost)
		return;
	in->lost = true;
	die_note("%s; shutting down", why);
	in->phase = STOPPING;
	loop_unwatch(&in->loop, &in->port.w);
	in->port.blocked = true;
	in->port.loop = NULL;
	down_begin(&in->down, LOST_DEADLINE_MS);
}

static void on_frame(void *user, const struct wire_frame *f)
{
	struct init *in = user;
	const char *fault = NULL;

	if (in->lost)
		return;
	if (f->stream && (in->phase == WAITING || in->phase == SHARING))
		fault = "the host opened a stream before the guest was ready";
	else if (f->stream)
		fault = sessions_frame(&in->sessions, f);
	else if (f->type < ARRAY_SIZE(table) && table[f->type].when & in->phase)
		table[f->type].fn(in, f);
	else
		fault = "the host sent a frame at a time when it has no meaning";
	if (fault)
		on_lost(in, fault);
}

/* ---- signals ---- */

static void reap(struct init *in)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (!sockets_reaped(&in->sockets, pid, status))
			sessions_reaped(&in->sessions, pid, status);
	if (sockets_idle(&in->sockets))
		down_services_gone(&in->down);
	if (pid < 0 && errno == ECHILD)
		down_all_gone(&in->down);
}

static void on_signal(struct watch *w, uint32_t events)
{
	struct init *in = container_of(w, struct init, signals);
	struct signalfd_siginfo si[8];
	ssize_t n = read(w->fd, si, sizeof(si));
	size_t i;

	(void)events;
	for (i = 0; n > 0 && i < (size_t)n / sizeof(*si); i++)
		if (si[i].ssi_signo != SIGCHLD && in->phase == RUNNING) {
			in->phase = STOPPING;
			down_begin(&in->down, SIGNAL_DEADLINE_MS);
		}
	reap(in);
}

/* Besides our children: what the various poweroff and reboot commands send to PID 1. */
static void watch_signals(struct init *in)
{
	const int signals[] = { SIGCHLD, SIGTERM, SIGUSR1, SIGUSR2, SIGPWR, SIGRTMIN + 4 };
	sigset_t set;
	size_t i;

	(void)sigemptyset(&set);
	for (i = 0; i < ARRAY_SIZE(signals); i++)
		(void)sigaddset(&set, signals[i]);
	in->signals.fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	/* blocked, not ignored: a command inherits what is ignored */
	(void)sigaddset(&set, SIGPIPE);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	in->signals.fn = on_signal;
	if (in->signals.fd < 0 || loop_watch(&in->loop, &in->signals, EPOLLIN) < 0)
		die("cannot watch processes: %s", err_text(errno));
}

/* ---- start ---- */

static void say_hello(struct init *in)
{
	struct wire_hello m = { .version = WIRE_VERSION, .boot_ns = loop_now() };
	struct utsname u = { 0 };

	(void)uname(&u);
	m.release = u.release;
	die_check(wire_hello_add(&in->port.ctl, &m));
	if (!port_drain(&in->port, PORT_WAIT_MS))
		die("the host does not take what the guest sends");
}

static void on_no_config(struct timer *t)
{
	(void)t;
	die("the host sent no configuration");
}

static void start(struct init *in)
{
	const char *why;
	struct err e;
	int r;

	(void)umask(022);
	boot_first_mounts();
	(void)reboot(RB_DISABLE_CAD);
	die_catch_crashes();
	modules_load();
	r = port_open(&in->port, PORT_WAIT_MS, &why);
	if (r < 0)
		die("%s", why);
	die_know(&in->port, -1);
	say_hello(in);
	if (boot_has_word("bac.probe"))
		die_power_off();

	die_check(loop_init(&in->loop));
	in->port.on_frame = on_frame;
	in->port.on_lost = on_lost;
	in->port.user = in;
	shares_init(&in->shares, &in->loop, &in->port);
	sessions_init(&in->sessions, &in->loop, &in->port, &in->authority);
	in->down = (struct down) { .loop = &in->loop,
				   .port = &in->port,
				   .boot = &in->boot,
				   .sessions = &in->sessions,
				   .sockets = &in->sockets };
	watch_signals(in);
	klog_start(&in->klog, &in->loop, &in->port);
	clock_start(&in->clock, &in->loop, &in->port);
	/* while the host prepares its answer */
	if (boot_disks(&in->boot, &e) < 0)
		die("%s", e.msg);
	in->config_wait.fn = on_no_config;
	loop_after(&in->loop, &in->config_wait, CONFIG_WAIT_MS);
	die_check(port_watch(&in->port, &in->loop));
}

/* dockerd calls runc by a link to us. */
static bool called_runc(const char *name)
{
	const char *slash = name ? strrchr(name, '/') : NULL;

	return name && streq(slash ? slash + 1 : name, "runc");
}

int main(int argc, char **argv)
{
	static struct init in = { .phase = WAITING,
				  .boot = { .base = -1 },
				  .poke = { -1 },
				  .authority = AUTHORITY_INIT };
	bool busy = false;

	if (getpid() != 1 && argc == 2 && streq(argv[1], "save"))
		return save_main();
	if (argc > 0 && called_runc(argv[0]))
		return oci_main(argv);
	if (getpid() != 1) {
		(void)fprintf(stderr, "bac-init: this is the first process of a sandbox; "
				      "it cannot be started by hand\n");
		return 1;
	}
	(void)mallopt(M_MMAP_THRESHOLD, KEEP_MEMORY);
	(void)mallopt(M_TRIM_THRESHOLD, 4 * KEEP_MEMORY);
	start(&in);
	for (;;) {
		die_check(loop_turn(&in.loop, busy));
		busy = chans_pump(&in.sessions.chans);
	}
}
