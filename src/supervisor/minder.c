/* What the minder does, in this order: the network namespace (bac-net, which ends at once), bac-audit, bac-proxy; then
 * it waits. Everything that it waits for is a descriptor or a deadline that something has set: while nothing happens it sleeps.
 *
 * Proxy and audit are one thing that is up or down: what the one has told the other is counted (wire/receipt.h), and two
 * fresh ones count from zero. When either is gone, the other is ended: the proxy by SIGKILL, bac-audit by the end of its sockets, so that it
 * writes what was told before. The listeners stay: what comes meanwhile waits in their queues, and goes nowhere.
 *
 * Is the proxy stuck? A queue that is not empty says so for nothing: the minder has the listeners too. The first that becomes
 * readable is a reason to look again after a while, and if something waits then, to have the supervisor ask (PING). A loaded proxy costs
 * one wake-up in that time, an idle one none. A proxy that was stopped is seen by the signal. */
#include "supervisor/minder.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/fd.h"
#include "seal/seal.h"
#include "supervisor/minder-keep.h"
#include "supervisor/resolver.h"
#include "supervisor/stuck.h"
#include "sys/cage.h"
#include "sys/share.h"
#include "wire/net.h"
#include "wire/proxy.h"
#include "wire/receipt.h"

enum {
	FD_SUP = 3,
	FD_WORDS = 4,
	NET_MS = 20000,     /* for bac-net */
	LOOK_MS = 500,      /* how long something may wait in a queue before the proxy is asked */
	STOPPED_MS = 3000,  /* how long the proxy may be stopped by somebody */
	PATIENCE_MS = 2000, /* for bac-audit, to write what it has */
	LAST_MS = 1500,     /* for both, at the end */
	QUIET_MS = 100,     /* files are changed in more than one step */
	WELL_MS = 10000,    /* up for so long: the next fall is a first one */
	PROXY_FILES = 131072,
	AUDIT_FILES = 256,
};

const uint64_t MINDER_NEVER = UINT64_MAX;
static const unsigned backoff_ms[] = { 0, 200, 1000, 5000 };

struct minder {
	const struct wire_order *o;
	int null, sig, look, audit_dir;
	int fds[NET_FD_N]; /* TAP is given away */
	int audit_sup; /* what the next bac-audit gets as its end of the supervisor's socket, or -1 */
	int resolver_fd; /* to the proxy, or -1 */
	struct resolver resolver;
	struct keep keep;
	struct stuck slow;  /* the proxy, when it did not answer */
	pid_t proxy, audit; /* 0: none */
	bool up, ending;
	unsigned falls;
	char why[160]; /* it went down */
	/* deadlines, fd_now_ns(): MINDER_NEVER if not set */
	uint64_t start_at, audit_late, look_at, stopped_at, resolver_at, end_at;
	uint64_t up_since;
};

static uint64_t in_ms(uint64_t ms)
{
	return fd_now_ns() + ms * 1000000;
}

uint64_t minder_again(unsigned falls)
{
	return in_ms(backoff_ms[MIN(falls, (unsigned)ARRAY_SIZE(backoff_ms) - 1)]);
}

bool minder_well(uint64_t up_since)
{
	return fd_now_ns() - up_since > (uint64_t)WELL_MS * 1000000;
}

int minder_say(enum minder_says what, int fd, const char *text)
{
	char bytes[1 + MINDER_TEXT_MAX];
	int n = snprintf(bytes, sizeof(bytes), "%c%s", what, text);

	return fd_send_with(FD_SUP, bytes, MIN((size_t)n, sizeof(bytes) - 1), fd, 0);
}

static _noreturn_ void fail(const struct err *e)
{
	(void)!minder_say(MINDER_FAIL, -1, e->msg);
	_exit(1);
}

/* ---- the network namespace ---- */

static int take_net(struct minder *m, int sock, struct err *e)
{
	char text[NET_ANSWER_MAX + 1];

	for (int i = 0; i < NET_FD_N; i++) {
		struct pollfd p = { .fd = sock, .events = POLLIN };
		_close_ int fd = -1;
		ssize_t n;

		if (poll(&p, 1, NET_MS) <= 0)
			return err_set(e, -ETIMEDOUT, "the sandbox's network does not come up");
		n = fd_receive_with(sock, text, sizeof(text) - 1, 0, &fd);
		if (n <= 0)
			return err_set(e, -EPIPE, "bac-net ended without a word");
		text[n] = '\0';
		if ((uint8_t)text[0] == NET_FAILED)
			return err_set(e, -EIO, "%s", text + 1);
		if (n != 1 || text[0] != i || fd < 0)
			return err_set(e, -EPROTO, "bac-net is of another version");
		m->fds[i] = take_fd(&fd);
	}
	return 0;
}

static int make_net(struct minder *m, struct err *e)
{
	const char *argv[] = { m->o->net, NULL };
	_close_ int ours = -1, theirs = -1;
	int p[2], r, status;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p) < 0)
		return err_errno(e, -errno, "cannot make the sandbox's network");
	ours = p[0];
	theirs = p[1];
	struct sys_fd map[] = { { theirs, NET_SOCKET_FD }, { FD_WORDS, 2 } };
	struct sys_cmd cmd = { .argv = argv, .dir = "/", .fds = map, .n_fds = ARRAY_SIZE(map) };

	r = sys_spawn(&cmd, &pid, NULL, e);
	if (r < 0)
		return r;
	theirs = fd_close(theirs);
	r = take_net(m, ours, e);
	if (r < 0)
		sys_kill(pid);
	else
		(void)waitpid(pid, &status, 0);
	return r < 0 ? err_ctx(e, "no network") : 0;
}

/* ---- proxy and audit ---- */

int minder_pair(int *ret_a, int *ret_b)
{
	int p[2], size = 2 * PROXY_MSG_MAX;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p) < 0)
		return -errno;
	for (int i = 0; i < 2; i++)
		(void)setsockopt(p[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	*ret_a = p[0];
	*ret_b = p[1];
	return 0;
}

/* Its orders, as a memory file. */
static int audit_orders(const struct minder *m, int *ret)
{
	struct receipt_order o = { .sandbox = m->o->name,
				   .file_size = m->o->audit_file,
				   .total_size = m->o->audit_total };
	struct buf out = BUF_INIT(RECEIPT_ORDER_MAX);
	_close_ int fd = memfd_create("bac-audit", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : receipt_order_put(&out, &o);

	if (r == 0)
		r = fd_write_all(fd, buf_data(&out), out.n);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	buf_done(&out);
	if (r == 0)
		*ret = take_fd(&fd);
	return r;
}

static int start_audit(struct minder *m, int proxy_end, struct err *e)
{
	static const char *const argv[] = { "/bac-audit", NULL }, *const env[] = { NULL };
	const struct cage_bind bind = { m->o->audit, argv[0], CAGE_EXEC };
	_close_ int orders = -1, pidfd = -1;
	int r = audit_orders(m, &orders);
	const struct sys_fd fds[] = { { m->null, 0 },     { FD_WORDS, 1 },     { FD_WORDS, 2 },
				      { orders, 3 },      { m->audit_dir, 4 }, { proxy_end, 5 },
				      { m->audit_sup, 6 } };
	const struct cage_limit limits[] = { { RLIMIT_CORE, 0 }, { RLIMIT_NOFILE, AUDIT_FILES } };
	const struct cage_spec c = { .binds = &bind,
				     .n_binds = 1,
				     .argv = argv,
				     .env = env,
				     .fds = fds,
				     .n_fds = ARRAY_SIZE(fds),
				     .limits = limits,
				     .n_limits = ARRAY_SIZE(limits),
				     .as_user = true };

	return r < 0 ? err_errno(e, r, "cannot write its orders")
		     : cage_spawn(&c, &m->audit, &pidfd, e);
}

static int start_proxy(struct minder *m, int control, int resolver, int audit, struct err *e)
{
	static const char *const argv[] = { "/bac-proxy", NULL }, *const env[] = { NULL };
	const struct cage_bind bind = { m->o->proxy, argv[0], CAGE_EXEC };
	const struct sys_fd fds[] = { { m->null, 0 },
				      { FD_WORDS, 1 },
				      { FD_WORDS, 2 },
				      { control, 3 },
				      { resolver, 4 },
				      { audit, 5 },
				      { m->fds[NET_FD_TCP], 6 },
				      { m->fds[NET_FD_DNS_TCP], 7 },
				      { m->fds[NET_FD_DNS_UDP], 8 },
				      { m->fds[NET_FD_DROPS], 9 } };
	const struct cage_limit limits[] = { { RLIMIT_CORE, 0 }, { RLIMIT_NOFILE, PROXY_FILES } };
	const struct cage_spec c = { .binds = &bind,
				     .n_binds = 1,
				     .argv = argv,
				     .env = env,
				     .fds = fds,
				     .n_fds = ARRAY_SIZE(fds),
				     .limits = limits,
				     .n_limits = ARRAY_SIZE(limits),
				     .host_net = true };
	_close_ int pidfd = -1;

	return cage_spawn(&c, &m->proxy, &pidfd, e);
}

/* The socket of the next bac-audit; the supervisor lets go of the one before, which thereby ends. */
static int hand_audit(struct minder *m)
{
	_close_ int theirs = -1;
	int r;

	if (m->audit_sup >= 0)
		return 0;
	r = minder_pair(&m->audit_sup, &theirs);
	return r < 0 ? r : minder_say(MINDER_AUDIT, theirs, "");
}

static void tell_resolver(struct minder *m)
{
	_free_ char *conf = resolver_conf(PROXY_RESOLV_MAX),
		    *hosts = resolver_hosts(PROXY_HOSTS_MAX);
	_free_ uint8_t *bytes = malloc(PROXY_MSG_MAX);
	struct proxy_msg msg = { .type = PROXY_RESOLVER, .resolver = { conf, hosts } };
	ssize_t n = conf && hosts && bytes ? proxy_put(&msg, bytes, PROXY_MSG_MAX) : -ENOMEM;

	if (n > 0 && m->resolver_fd >= 0)
		n = send(m->resolver_fd, bytes, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno
											    : 0;
	if (n < 0)
		(void)!minder_say(MINDER_SAY, -1,
				  "cannot tell the proxy which resolvers the host has");
}

static int bring_up(struct minder *m, struct err *e)
{
	_close_ int ctl = -1, ctl_theirs = -1, res_theirs = -1, audit = -1, audit_theirs = -1;
	int r = hand_audit(m);

	m->resolver_fd = fd_close(m->resolver_fd);
	if (r == 0)
		r = minder_pair(&ctl, &ctl_theirs);
	if (r == 0)
		r = minder_pair(&m->resolver_fd, &res_theirs);
	if (r == 0)
		r = minder_pair(&audit, &audit_theirs);
	if (r < 0)
		return err_errno(e, r, "cannot make the sockets of the proxy");
	r = start_audit(m, audit, e);
	if (r < 0)
		return err_ctx(e, "cannot start bac-audit");
	m->audit_sup = fd_close(m->audit_sup);
	r = start_proxy(m, ctl_theirs, res_theirs, audit_theirs, e);
	if (r < 0)
		return err_ctx(e, "cannot start bac-proxy");
	m->up = true;
	m->up_since = fd_now_ns();
	tell_resolver(m);
	keep_trust(&m->keep, m->resolver_fd);
	keep_link(&m->keep, m->resolver_fd);
	return minder_say(MINDER_PROXY, ctl, m->why);
}

/* Both, or none: what is left of the two is ended, and a start is planned. */
static void go_down(struct minder *m)
{
	if (m->proxy)
		(void)kill(m->proxy, SIGKILL);
	m->stopped_at = MINDER_NEVER;
	if (!m->up)
		return;
	m->up = false;
	if (minder_well(m->up_since))
		m->falls = 0;
	m->start_at = minder_again(m->falls++);
	m->audit_late = in_ms(PATIENCE_MS);
	if (!m->ending && hand_audit(m) < 0)
		_exit(1); /* the supervisor is gone */
}

static void try_up(struct minder *m)
{
	struct err e = { 0 };

	m->start_at = MINDER_NEVER;
	if (bring_up(m, &e) == 0)
		return;
	(void)!minder_say(MINDER_SAY, -1, e.msg);
	m->up = true; /* as far as it got */
	m->up_since = fd_now_ns();
	go_down(m);
}

/* ---- what happens ---- */

static void remember(struct minder *m, const char *what, int status)
{
	if (m->why[0] && !m->up)
		return; /* the first is the cause */
	if (WIFSIGNALED(status))
		(void)snprintf(m->why, sizeof(m->why), "%s was killed by signal %d (%s)", what,
			       WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		(void)snprintf(m->why, sizeof(m->why), "%s ended with status %d", what,
			       WEXITSTATUS(status));
}

static void gone(struct minder *m, pid_t *which, const char *what, int status)
{
	*which = 0;
	if (m->up && !m->ending)
		remember(m, what, status);
	go_down(m);
}

static void on_children(struct minder *m)
{
	struct signalfd_siginfo si;
	int status;
	pid_t pid;

	(void)!read(m->sig, &si, sizeof(si));
	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
		if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
			if (keep_stopped(&m->keep, pid, WIFSTOPPED(status)))
				continue;
			if (pid == m->proxy || pid == m->audit)
				m->stopped_at =
					WIFSTOPPED(status) ? in_ms(STOPPED_MS) : MINDER_NEVER;
			continue;
		}
		if (pid == m->proxy)
			gone(m, &m->proxy, "the network proxy", status);
		else if (pid == m->audit)
			gone(m, &m->audit, "the log's writer", status);
		else
			(void)keep_gone(&m->keep, pid, status);
	}
}

static void replace(struct minder *m, const char *why)
{
	if (!m->up)
		return;
	(void)snprintf(m->why, sizeof(m->why), "the network proxy %.100s", why);
	go_down(m);
}

static void need_keeper(struct minder *m)
{
	struct err e = { 0 };

	if (m->keep.wanted)
		return;
	if (keep_want(&m->keep, &e) < 0)
		(void)minder_say(MINDER_SAY, -1, e.msg);
	keep_trust(&m->keep, m->resolver_fd);
	keep_link(&m->keep, m->resolver_fd);
}

/* The supervisor has little to say, and its end is the end. */
static void on_supervisor(struct minder *m)
{
	char text[1 + MINDER_TEXT_MAX + 1];
	ssize_t n = recv(FD_SUP, text, sizeof(text) - 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		m->ending = true;
		m->keep.start_at = m->keep.fetch_at = MINDER_NEVER;
		m->end_at = in_ms(LAST_MS);
		m->start_at = MINDER_NEVER;
		m->resolver_fd = fd_close(m->resolver_fd);
		return;
	}
	text[n] = '\0';
	if (text[0] == MINDER_REPLACE)
		replace(m, text + 1);
	else if (text[0] == MINDER_REPLACE_KEEPER)
		keep_replace(&m->keep, text + 1);
	else if (text[0] == MINDER_SLOW && m->up && m->proxy && stuck(&m->slow, m->proxy))
		replace(m, "did not answer");
	else if (text[0] == MINDER_SLOW_KEEPER)
		keep_slow(&m->keep);
	else if (text[0] == MINDER_NEED)
		need_keeper(m);
}

static void watch_queue(struct minder *m, int op, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT, .data.fd = fd };

	(void)epoll_ctl(m->look, op, fd, &ev);
}

static const enum net_fd queues[] = { NET_FD_TCP, NET_FD_DNS_TCP, NET_FD_DNS_UDP };

static void watch_queues(struct minder *m, int op)
{
	for (size_t i = 0; i < ARRAY_SIZE(queues); i++)
		watch_queue(m, op, m->fds[queues[i]]);
}

static void on_queue(struct minder *m)
{
	struct epoll_event ev[ARRAY_SIZE(queues)];

	if (epoll_wait(m->look, ev, ARRAY_SIZE(ev), 0) > 0 && m->look_at == MINDER_NEVER)
		m->look_at = in_ms(LOOK_MS);
}

static void look_again(struct minder *m)
{
	struct pollfd p[ARRAY_SIZE(queues)];

	for (size_t i = 0; i < ARRAY_SIZE(queues); i++)
		p[i] = (struct pollfd) { .fd = m->fds[queues[i]], .events = POLLIN };
	m->look_at = MINDER_NEVER;
	if (poll(p, ARRAY_SIZE(p), 0) > 0) {
		m->look_at = in_ms(LOOK_MS);
		if (m->up)
			(void)!minder_say(MINDER_ASK, -1, "");
		return;
	}
	watch_queues(m, EPOLL_CTL_MOD);
}

static void on_time(struct minder *m)
{
	uint64_t now = fd_now_ns();

	if (now >= m->stopped_at)
		replace(m, "was stopped");
	if (now >= m->look_at)
		look_again(m);
	if (now >= m->audit_late && !m->up && m->audit)
		(void)kill(m->audit, SIGKILL);
	if (now >= m->audit_late)
		m->audit_late = MINDER_NEVER;
	if (now >= m->resolver_at) {
		m->resolver_at = MINDER_NEVER;
		resolver_watch(&m->resolver);
		tell_resolver(m);
	}
	if (!m->up && !m->proxy && !m->audit && now >= m->start_at)
		try_up(m);
	if (!m->ending && keep_on_time(&m->keep))
		keep_link(&m->keep, m->resolver_fd);
}

/* Milliseconds for poll(), rounded up; what has nothing to wait for is not waited for. */
static int next_ms(const struct minder *m)
{
	const uint64_t all[] = { m->start_at,
				 m->audit_late,
				 m->look_at,
				 m->stopped_at,
				 m->resolver_at,
				 m->end_at,
				 m->ending ? MINDER_NEVER : keep_deadline(&m->keep) };
	uint64_t first = MINDER_NEVER, now = fd_now_ns();

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (!(i == 0 && (m->proxy || m->audit)))
			first = MIN(first, all[i]);
	if (first == MINDER_NEVER)
		return -1;
	return first <= now ? 0 : (int)MIN((first - now + 999999) / 1000000, (uint64_t)3600000);
}

static _noreturn_ void serve(struct minder *m)
{
	for (;;) {
		struct pollfd p[] = { { .fd = m->ending ? -1 : FD_SUP, .events = POLLIN },
				      { .fd = m->sig, .events = POLLIN },
				      { .fd = m->resolver.notes, .events = POLLIN },
				      { .fd = m->look, .events = POLLIN } };

		if (m->ending && ((!m->proxy && !m->audit) || fd_now_ns() >= m->end_at))
			_exit(0); /* what is left dies with us */
		(void)poll(p, ARRAY_SIZE(p), next_ms(m));
		if (p[1].revents)
			on_children(m);
		if (p[0].revents)
			on_supervisor(m);
		if (p[2].revents && resolver_news(&m->resolver))
			m->resolver_at = in_ms(QUIET_MS);
		if (p[3].revents)
			on_queue(m);
		on_time(m);
	}
}

/* ---- start ---- */

/* As a mount of its own: whoever takes bac-audit over finds nothing above it. */
static int take_audit_dir(struct minder *m, struct err *e)
{
	_close_ int tree = -1;
	int r = share_take(m->o->audit_dir, false, &tree, e);

	if (r < 0)
		return r;
	m->audit_dir = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return m->audit_dir < 0 ? err_errno(e, -errno, "cannot open %s", m->o->audit_dir) : 0;
}

static int begin(struct minder *m, struct err *e)
{
	sigset_t set;

	(void)sigfillset(&set);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)signal(SIGCHLD, SIG_DFL);
	m->null = open("/dev/null", O_RDWR | O_CLOEXEC);
	m->sig = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	m->look = epoll_create1(EPOLL_CLOEXEC);
	if (m->null < 0 || m->sig < 0 || m->look < 0)
		return err_errno(e, -errno, "cannot start the network");
	return take_audit_dir(m, e);
}

static void keep(int sock, int words)
{
	int a = fcntl(sock, F_DUPFD_CLOEXEC, 64), b = fcntl(words, F_DUPFD_CLOEXEC, 64);

	if (a < 0 || b < 0 || dup3(a, FD_SUP, O_CLOEXEC) < 0 || dup3(b, FD_WORDS, O_CLOEXEC) < 0)
		_exit(1);
	(void)close_range(FD_WORDS + 1, ~0U, 0);
}

_noreturn_ void minder_main(const struct wire_order *o, bool needs_keeper, int sock, int words,
			    pid_t parent)
{
	static struct minder m = { .null = -1,
				   .sig = -1,
				   .look = -1,
				   .audit_dir = -1,
				   .audit_sup = -1,
				   .resolver_fd = -1,
				   .resolver = RESOLVER_INIT,
				   .fds = { -1, -1, -1, -1, -1 } };
	struct err e = { 0 };

	m.o = o;
	m.start_at = m.audit_late = m.look_at = m.stopped_at = m.resolver_at = m.end_at =
		MINDER_NEVER;
	(void)prctl(PR_SET_NAME, "bac-minder");
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	keep(sock, words);
	if (begin(&m, &e) < 0 || make_net(&m, &e) < 0)
		fail(&e);
	if (minder_say(MINDER_TAP, m.fds[NET_FD_TAP], "") < 0)
		_exit(1);
	m.fds[NET_FD_TAP] = fd_close(m.fds[NET_FD_TAP]);
	resolver_watch(&m.resolver);
	watch_queues(&m, EPOLL_CTL_ADD);
	/* the keeper first: the guest is to know its authority when it comes up */
	keep_init(&m.keep, o, m.null, FD_WORDS);
	if ((needs_keeper && keep_want(&m.keep, &e) < 0) || bring_up(&m, &e) < 0)
		fail(&e);
	seal_settle();
	serve(&m);
}
