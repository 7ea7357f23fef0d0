#include "supervisor/minder-keep.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/fd.h"
#include "sys/cage.h"
#include "wire/keeper.h"

enum { KEEPER_FILES = 32, STOPPED_MS = 3000, ONE_MAX = 1024 * 1024 };

/* Where hosts have what they trust, in one file: Debian, Fedora, openSUSE, Alpine. */
static const char *const bundles[] = { "/etc/ssl/certs/ca-certificates.crt",
				       "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
				       "/etc/ssl/cert.pem" };

void keep_init(struct keep *k, const struct wire_order *o, int null, int words)
{
	*k = (struct keep) { .o = o, .null = null, .words = words, .fd = -1 };
	k->start_at = k->fetch_at = k->stopped_at = MINDER_NEVER;
}

/* ---- start ---- */

static int start_keeper(struct keep *k, int control, int minder, struct err *e)
{
	static const char *const argv[] = { "/bac-keeper", NULL }, *const env[] = { NULL };
	const struct cage_bind bind = { k->o->keeper, argv[0], CAGE_EXEC };
	const struct sys_fd fds[] = {
		{ k->null, 0 }, { k->words, 1 }, { k->words, 2 }, { control, 3 }, { minder, 4 }
	};
	const struct cage_limit limits[] = { { RLIMIT_CORE, 0 }, { RLIMIT_NOFILE, KEEPER_FILES } };
	const struct cage_spec c = { .binds = &bind,
				     .n_binds = 1,
				     .argv = argv,
				     .env = env,
				     .fds = fds,
				     .n_fds = ARRAY_SIZE(fds),
				     .limits = limits,
				     .n_limits = ARRAY_SIZE(limits),
				     .as_user = true };
	_close_ int pidfd = -1;

	return cage_spawn(&c, &k->keeper, &pidfd, e);
}

/* A message that brings a descriptor. */
static int hand(int sock, const void *p, ssize_t n, int fd)
{
	if (n < 0)
		return (int)n;
	return fd_send_with(sock, p, (size_t)n, fd, MSG_DONTWAIT);
}

static int hand_keeper(const struct keep *k, uint8_t type, int fd)
{
	const struct keeper_msg m = { .type = type };
	uint8_t bytes[16];

	return hand(k->fd, bytes, keeper_put(&m, bytes, sizeof(bytes)), fd);
}

static int hand_proxy(int proxy, uint8_t type, int fd)
{
	const struct proxy_msg m = { .type = type };
	uint8_t bytes[16];

	return hand(proxy, bytes, proxy_put(&m, bytes, sizeof(bytes)), fd);
}

static int start_fetch(struct keep *k, struct err *e)
{
	const char *argv[] = { k->o->fetch, NULL };
	_close_ int ours = -1, theirs = -1;
	int r = minder_pair(&ours, &theirs);
	const struct sys_fd fds[] = { { theirs, 3 }, { k->words, 2 } };
	const struct sys_cmd cmd = {
		.argv = argv, .dir = "/", .fds = fds, .n_fds = ARRAY_SIZE(fds)
	};

	k->fetch_at = MINDER_NEVER;
	if (r < 0)
		return err_errno(e, r, "cannot start bac-fetch");
	r = sys_spawn(&cmd, &k->fetch, NULL, e);
	if (r < 0)
		return err_ctx(e, "cannot start bac-fetch");
	k->fetch_since = fd_now_ns();
	(void)!hand_keeper(k, KEEPER_FETCH, ours); /* a keeper that is gone is seen by its end */
	return 0;
}

static int start(struct keep *k, struct err *e)
{
	_close_ int ctl = -1, ctl_theirs = -1, theirs = -1;
	int r;

	k->start_at = MINDER_NEVER;
	k->fd = fd_close(k->fd);
	r = minder_pair(&ctl, &ctl_theirs);
	if (r == 0)
		r = minder_pair(&k->fd, &theirs);
	if (r < 0)
		return err_errno(e, r, "cannot make the sockets of bac-keeper");
	r = start_keeper(k, ctl_theirs, theirs, e);
	if (r < 0)
		return err_ctx(e, "cannot start bac-keeper");
	k->up_since = fd_now_ns();
	r = minder_say(MINDER_KEEPER, ctl, k->why);
	if (r < 0)
		return err_errno(e, r, "cannot start bac-keeper");
	k->why[0] = '\0';
	return start_fetch(k, e);
}

static void plan(struct keep *k)
{
	if (minder_well(k->up_since))
		k->falls = 0;
	k->start_at = minder_again(k->falls++);
}

/* What does not start is tried again later. */
static int start_or_plan(struct keep *k, struct err *e)
{
	int r = start(k, e);

	if (r < 0 && k->keeper) /* bac-fetch alone could not be started */
		k->fetch_at = minder_again(k->fetch_falls++);
	else if (r < 0)
		plan(k);
	return r;
}

int keep_want(struct keep *k, struct err *e)
{
	if (k->wanted)
		return 0;
	k->wanted = true;
	return start_or_plan(k, e);
}

/* ---- falls ---- */

/* One that was killed by us has its reason already. */
static void keeper_gone(struct keep *k, int status)
{
	k->keeper = 0;
	k->stopped_at = MINDER_NEVER;
	k->fd = fd_close(k->fd);
	if (k->fetch)
		(void)kill(k->fetch, SIGKILL);
	if (!k->why[0] && WIFSIGNALED(status))
		(void)snprintf(k->why, sizeof(k->why),
			       "the keeper of credentials was killed by signal %d (%s)",
			       WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (!k->why[0])
		(void)snprintf(k->why, sizeof(k->why),
			       "the keeper of credentials ended with status %d",
			       WEXITSTATUS(status));
	plan(k);
}

bool keep_gone(struct keep *k, pid_t pid, int status)
{
	if (pid == k->keeper) {
		keeper_gone(k, status);
		return true;
	}
	if (pid != k->fetch)
		return false;
	k->fetch = 0;
	if (!k->keeper)
		return true; /* it comes again with the keeper */
	if (minder_well(k->fetch_since))
		k->fetch_falls = 0;
	k->fetch_at = minder_again(k->fetch_falls++);
	return true;
}

bool keep_stopped(struct keep *k, pid_t pid, bool stopped)
{
	if (pid == k->keeper)
		k->stopped_at =
			stopped ? fd_now_ns() + (uint64_t)STOPPED_MS * 1000000 : MINDER_NEVER;
	return pid == k->keeper || pid == k->fetch;
}

void keep_replace(struct keep *k, const char *why)
{
	if (!k->keeper)
		return;
	(void)snprintf(k->why, sizeof(k->why), "the keeper of credentials %.100s", why);
	(void)kill(k->keeper, SIGKILL);
}

void keep_slow(struct keep *k)
{
	if (k->keeper && stuck(&k->slow, k->keeper))
		keep_replace(k, "did not answer");
}

uint64_t keep_deadline(const struct keep *k)
{
	uint64_t first = k->stopped_at;

	if (!k->keeper && !k->fetch)
		first = MIN(first, k->start_at);
	if (k->keeper && !k->fetch)
		first = MIN(first, k->fetch_at);
	return first;
}

static void fetch_again(struct keep *k)
{
	struct err e = { 0 };

	if (start_fetch(k, &e) < 0) {
		(void)minder_say(MINDER_SAY, -1, e.msg);
		k->fetch_at = minder_again(k->fetch_falls++);
		return;
	}
	(void)minder_say(MINDER_SAY, -1,
			 "what opens the store for the keeper had ended: started again");
}

bool keep_on_time(struct keep *k)
{
	uint64_t now = fd_now_ns();
	struct err e = { 0 };

	if (now >= k->stopped_at) {
		k->stopped_at = MINDER_NEVER;
		keep_replace(k, "was stopped");
	}
	if (k->keeper && !k->fetch && now >= k->fetch_at)
		fetch_again(k);
	if (k->keeper || k->fetch || now < k->start_at)
		return false;
	if (start_or_plan(k, &e) < 0)
		(void)minder_say(MINDER_SAY, -1, e.msg);
	return k->keeper;
}

/* ---- the proxy ---- */

void keep_link(struct keep *k, int proxy)
{
	_close_ int a = -1, b = -1;

	if (!k->keeper || proxy < 0)
		return;
	if (minder_pair(&a, &b) < 0 || hand_keeper(k, KEEPER_PROXY, a) < 0 ||
	    hand_proxy(proxy, PROXY_KEEPER, b) < 0)
		(void)minder_say(MINDER_SAY, -1, "keeper and proxy cannot be connected");
}

/* ---- trust ---- */

/* A file's text, or a line for the log. */
static int add_file(struct buf *out, const char *path, const char *what)
{
	_free_ char *text = NULL;
	char line[MINDER_TEXT_MAX];
	size_t n = 0;
	int r = fd_read_file(AT_FDCWD, path, ONE_MAX, &text, &n);

	if (r == 0)
		r = buf_add(out, text, n);
	if (r == 0 && n && text[n - 1] != '\n')
		r = buf_add(out, "\n", 1);
	if (text)
		explicit_bzero(text, n); /* it may be a key */
	if (r < 0 && what) {
		(void)snprintf(line, sizeof(line), "%s: cannot read %.300s: %s", what, path,
			       err_text(r));
		(void)minder_say(MINDER_SAY, -1, line);
	}
	return r;
}

static void add_bundle(struct buf *out)
{
	const char *own = getenv("SSL_CERT_FILE"); /* as OpenSSL, curl, Go and Python take it */

	if (own && *own == '/' && add_file(out, own, "SSL_CERT_FILE") == 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(bundles); i++)
		if (add_file(out, bundles[i], NULL) == 0)
			return;
	(void)minder_say(MINDER_SAY, -1,
			 "the host has no bundle of certificate authorities: no server is trusted "
			 "but by tls.extraCa");
}

/* "HOST=CERT:KEY" */
static void add_client(struct buf *out, const char *entry)
{
	static const char what[] = "tls.clientCerts";
	const char *at = strchr(entry, '='), *colon = at ? strrchr(at, ':') : NULL;
	_free_ char *cert = colon ? strndup(at + 1, (size_t)(colon - at - 1)) : NULL;
	size_t before = out->n;

	if (!cert) {
		(void)minder_say(MINDER_SAY, -1, "tls.clientCerts: an entry is no HOST=CERT:KEY");
		return;
	}
	if (buf_printf(out, "client %.*s\n", (int)(at - entry), entry) < 0 ||
	    add_file(out, cert, what) < 0 || add_file(out, colon + 1, what) < 0)
		out->n = before; /* all of it, or nothing */
}

static int trust_file(const struct keep *k, int *ret)
{
	struct buf out = BUF_INIT(PROXY_TRUST_MAX);
	_close_ int fd = memfd_create("bac-trust", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = fd < 0 ? -errno : 0;

	add_bundle(&out);
	for (uint32_t i = 0; i < k->o->n_extra_ca; i++)
		(void)!add_file(&out, k->o->extra_ca[i], "tls.extraCa");
	for (uint32_t i = 0; i < k->o->n_client_certs; i++)
		add_client(&out, k->o->client_certs[i]);
	if (r == 0)
		r = fd_write_all(fd, out.n ? (const void *)buf_data(&out) : "", out.n);
	if (r == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		r = -errno;
	if (out.p)
		explicit_bzero(out.p, out.cap);
	buf_done(&out);
	if (r == 0)
		*ret = take_fd(&fd);
	return r;
}

void keep_trust(struct keep *k, int proxy)
{
	_close_ int fd = -1;

	if (!k->wanted || proxy < 0)
		return;
	if (trust_file(k, &fd) < 0 || hand_proxy(proxy, PROXY_TRUST, fd) < 0)
		(void)minder_say(MINDER_SAY, -1, "cannot tell the proxy whom to trust");
}
