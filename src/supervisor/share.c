/* The file server and the shares.
 *
 * bac-workspace is started before QEMU, which asks it at once what it can do, and gets each share as a
 * descriptor; when it has START it seals itself. It is hostile as soon as the guest runs: what it says is
 * parsed like what the guest says, and nothing that it says makes us do more than answer a command or write a
 * line into the log.
 *
 * A share at run time goes through four hands: the command brings its descriptor, the server takes it (ANSWER),
 * the guest mounts it (MOUNTED), the command gets DONE. Taking it away is the reverse. */
#include "supervisor/share.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/fd.h"
#include "supervisor/marks.h"
#include "supervisor/net.h"
#include "sys/cage.h"
#include "wire/share.h"

enum {
	SERVER_FILES = 65536,
	START_MS = 20000,
	NEWS_MAX = 256 * 1024, /* bytes queued for the guest */
	SHARES_FD = 6,
	FD_VHOST = 3,
	FD_CONTROL = 4,
	FD_SELF = 5,
};

enum stage { ADDING, MOUNTING, MOUNTED, UNMOUNTING, REMOVING };

struct share {
	struct share *next;
	uint32_t id;
	uint32_t seq; /* of the message to the server whose answer is awaited */
	enum stage stage;
	uint8_t flags; /* MOUNT_RO, MOUNT_FILE */
	char *path, *alias;
	struct client *client; /* who waits, or NULL */
};

static struct share *share_free(struct share *h)
{
	if (!h)
		return NULL;
	free(h->path);
	free(h->alias);
	free(h);
	return NULL;
}

void sup_shares_free(struct sup *s)
{
	struct share *h;

	while ((h = s->shares)) {
		s->shares = h->next;
		(void)share_free(h);
	}
}

static struct wire_mount as_mount(const struct share *h)
{
	return (struct wire_mount) {
		.id = h->id, .flags = h->flags, .path = h->path, .alias = h->alias
	};
}

/* Appended, so that parents stay before what lies in them. NULL: no memory. */
static struct share *add(struct sup *s, const struct wire_mount *m)
{
	struct share *h = calloc(1, sizeof(*h)), **at = &s->shares;

	if (!h)
		return NULL;
	h->path = strdup(m->path);
	h->alias = strdup(m->alias);
	if (!h->path || !h->alias)
		return share_free(h);
	h->id = s->next_share++;
	h->flags = m->flags;
	while (*at)
		at = &(*at)->next;
	*at = h;
	s->n_shares++;
	return h;
}

static void drop(struct sup *s, struct share *h)
{
	struct share **at = &s->shares;

	while (*at && *at != h)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = h->next;
	s->n_shares--;
	(void)share_free(h);
}

static struct share *by_path(struct sup *s, const char *path)
{
	struct share *h = s->shares;

	while (h && !streq(h->path, path) && !streq(h->alias, path))
		h = h->next;
	return h;
}

/* ---- words to the server ---- */

static int tell(struct sup *s, const struct share_msg *m, int fd)
{
	static uint8_t bytes[SHARE_MSG_MAX];
	ssize_t n = share_put(m, bytes, sizeof(bytes));

	return n < 0 ? (int)n : fd_send_with(s->share_fd, bytes, (size_t)n, fd, MSG_DONTWAIT);
}

static int tell_add(struct sup *s, struct share *h, int fd)
{
	struct share_msg m = { .type = SHARE_ADD,
			       .seq = ++s->share_seq,
			       .add = { .id = h->id,
					.flags =
						(uint8_t)((h->flags & MOUNT_RO ? SHARE_RO : 0) |
							  (h->flags & MOUNT_FILE ? SHARE_FILE : 0)),
					.path = h->path } };

	h->seq = m.seq;
	return tell(s, &m, fd);
}

static int tell_remove(struct sup *s, struct share *h)
{
	struct share_msg m = { .type = SHARE_REMOVE, .seq = ++s->share_seq, .remove = h->id };

	h->seq = m.seq;
	h->stage = REMOVING;
	return tell(s, &m, -1);
}

int sup_share_marks(struct sup *s, const uint8_t *p, size_t n, bool refuse)
{
	const struct share_msg m = { .type = SHARE_MARKS,
				     .seq = ++s->share_seq,
				     .marks = { refuse, (uint32_t)n, p } };

	return s->share_pid > 0 ? tell(s, &m, -1) : 0;
}

/* ---- words from the server ---- */

/* One datagram. 1: there is none; -errno: the conversation is over. */
static int hear(struct sup *s, struct share_msg *ret)
{
	static uint8_t bytes[SHARE_MSG_MAX];
	ssize_t n = recv(s->share_fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 1 : -errno;
	if (n == 0)
		return -EPIPE;
	if ((size_t)n > sizeof(bytes) ||
	    share_parse(ret, FROM_WORKSPACE, bytes, (size_t)n, 0) != WIRE_OK)
		return -EPROTO;
	return 0;
}

static void log_refusal(struct sup *s, const struct share_refused *m)
{
	struct share *h = s->shares;
	char path[WIRE_TEXT_MAX];

	while (h && h->id != m->share)
		h = h->next;
	(void)snprintf(path, sizeof(path), "%s%s%s", h ? h->path : "?", *m->path ? "/" : "",
		       m->path);
	sup_marks_blank(s, path);
	sup_net_refused(s, m, path);
	if (m->kind == SHARE_LEAK || m->kind == SHARE_LEAK_REFUSED)
		slog_say(s->log, "workspace: the secret '%s' was %swritten into %s", m->rule,
			 m->kind == SHARE_LEAK ? "" : "not ", path);
	else
		slog_say(s->log, "workspace: refused %s of %s (%s %s)", m->op, path,
			 m->kind == SHARE_HIDE ? "hide" : "protect", m->rule);
	if (m->dropped)
		slog_say(s->log, "workspace: %u refusals more were not told one by one",
			 m->dropped);
}

/* On to the guest, unless much waits there: news that comes late is no use. */
static void pass_on(struct sup *s, const struct wire_changed *m)
{
	if (s->state != STATE_RUNNING || s->wire_dead || s->guest.out.n > NEWS_MAX)
		return;
	if (wire_changed_add(&s->guest.out, m) == 0)
		conn_flush(&s->guest);
}

static void settle(struct sup *s, struct share *h, int code, const char *text)
{
	struct client *c = h->client;

	h->client = NULL;
	if (code)
		slog_say(s->log, "the share %s: %s", h->path, text);
	if (c && code)
		sup_client_failed(c, code, text);
	else if (c)
		sup_client_frame(c, 0, WIRE_DONE, 0, NULL, 0);
}

static void to_guest(struct sup *s, struct share *h, enum wire_type type)
{
	struct wire_mount m = as_mount(h);

	h->stage = type == WIRE_MOUNT ? MOUNTING : UNMOUNTING;
	if (!s->wire_dead && s->guest.open && wire_mount_add(&s->guest.out, type, &m) == 0)
		conn_flush(&s->guest);
}

static void on_answer(struct sup *s, uint32_t seq, const struct share_answer *a)
{
	struct share *h = s->shares;

	while (h && !(h->seq == seq && (h->stage == ADDING || h->stage == REMOVING)))
		h = h->next;
	if (!h)
		return;
	if (h->stage == ADDING && a->code == 0) {
		to_guest(s, h, WIRE_MOUNT);
		return;
	}
	settle(s, h, a->code < 0 ? -a->code : 0, a->text);
	drop(s, h);
}

static void over(struct sup *s, const char *why)
{
	(void)uv_poll_stop(&s->share_poll);
	sup_reason(s,
		   "the workspace server %s: the sandbox is stopped rather than left with folders "
		   "that do not answer; start it again (see 'bac logs %s')",
		   why, s->order.name);
	sup_event(s, EV_SHARE_GONE);
}

static void on_share(uv_poll_t *p, int status, int events)
{
	struct sup *s = p->data;
	struct share_msg m;
	int r;

	(void)status;
	(void)events;
	while ((r = hear(s, &m)) == 0) {
		if (m.type == SHARE_REFUSED)
			log_refusal(s, &m.refused);
		else if (m.type == SHARE_CHANGED)
			pass_on(s, &m.changed);
		else
			on_answer(s, m.seq, &m.answer);
	}
	sup_marks_again(s);
	if (r == -EPROTO)
		over(s, "broke its protocol");
	else if (r < 0)
		(void)uv_poll_stop(&s->share_poll); /* its end says more, and is on its way */
}

/* Only QEMU's end makes it end well; the news of that is on its way, or something is wrong. */
static void on_late(uv_timer_t *t)
{
	over(t->data, "ended");
}

bool sup_share_reap(struct sup *s)
{
	char why[80];
	int status;

	if (s->share_pid <= 0 || waitpid(s->share_pid, &status, WNOHANG) <= 0)
		return false;
	s->share_pid = -1;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		(void)uv_timer_start(&s->share_late, on_late, 3000, 0);
		return true;
	}
	if (WIFSIGNALED(status))
		(void)snprintf(why, sizeof(why), "was killed by signal %d (%s)", WTERMSIG(status),
			       strsignal(WTERMSIG(status)));
	else
		(void)snprintf(why, sizeof(why), "ended with status %d", WEXITSTATUS(status));
	over(s, why);
	return true;
}

void sup_share_end(struct sup *s)
{
	int status;

	if (s->share_pid <= 0)
		return;
	(void)pidfd_send_signal(s->share_pidfd, SIGKILL, NULL, 0);
	while (waitpid(s->share_pid, &status, 0) < 0 && errno == EINTR)
		;
	s->share_pid = -1;
}

/* ---- start: before QEMU, before the seal ---- */

static int await_answer(struct sup *s, struct err *e)
{
	uint64_t end = fd_now_ns() + (uint64_t)START_MS * 1000000;
	struct share_msg m = { 0 };

	for (;;) {
		struct pollfd p = { .fd = s->share_fd, .events = POLLIN };
		int r = hear(s, &m);

		if (r < 0)
			return err_errno(e, r, "the workspace server ended (see 'bac logs %s')",
					 s->order.name);
		if (r == 0 && m.type == SHARE_ANSWER && m.seq == s->share_seq)
			break;
		if (fd_now_ns() > end)
			return err_set(e, -ETIMEDOUT, "the workspace server does not answer");
		if (r > 0)
			(void)poll(&p, 1, 1000);
	}
	return m.answer.code < 0 ? err_set(e, m.answer.code, "%s", m.answer.text) : 0;
}

/* Everything that the command sends on its socket: a MOUNT frame with a descriptor for each share, and START,
 * for which it is 1. */
static int receive(struct wire_mount *ret, uint8_t *bytes, size_t max, int *ret_fd, struct err *e)
{
	_close_ int fd = -1;
	ssize_t n = fd_receive_with(SHARES_FD, bytes, max, 0, &fd);
	struct wire_frame f;
	size_t used;

	if (n < 0)
		return err_errno(e, (int)n, "cannot receive the shares");
	if (n == 0)
		return err_set(e, -ECANCELED, "the command that starts it is gone");
	if (wire_frame_parse(&f, &used, FROM_HOST, bytes, (size_t)n) == WIRE_OK &&
	    f.type == WIRE_START)
		return 1;
	if (fd < 0 || wire_frame_parse(&f, &used, FROM_CLIENT, bytes, (size_t)n) != WIRE_OK ||
	    f.type != WIRE_MOUNT || wire_mount_parse(ret, &f) != WIRE_OK)
		return err_set(e, -EPROTO,
			       "the shares are not understood; is bac installed in two versions?");
	*ret_fd = take_fd(&fd);
	return 0;
}

static int take_shares(struct sup *s, struct err *e)
{
	uint8_t bytes[WIRE_HEADER + 8448];
	struct wire_mount m;
	int r;

	for (;;) {
		_close_ int fd = -1;
		struct share *h;

		r = receive(&m, bytes, sizeof(bytes), &fd, e);
		if (r != 0)
			break;
		h = add(s, &m);
		r = h ? tell_add(s, h, fd) : -ENOMEM;
		if (r < 0)
			return err_errno(e, r, "cannot share %s", m.path);
		r = await_answer(s, e);
		if (r < 0)
			return err_ctx(e, "cannot share %s", m.path);
		h->stage = MOUNTING;
	}
	(void)close(SHARES_FD);
	return r < 0 ? r : 0;
}

static const struct {
	const char *word;
	enum share_rule_kind kind;
} rule_words[] = { { "hide ", SHARE_HIDE },
		   { "protect ", SHARE_PROTECT },
		   { "allow ", SHARE_ALLOW } };

static int tell_rules(struct sup *s, struct err *e)
{
	struct share_msg *m = calloc(1, sizeof(*m));
	const char **rule = s->order.rules;
	int r = 0;

	if (!m)
		return err_errno(e, -ENOMEM, "cannot tell the path rules");
	m->type = SHARE_RULES;
	m->seq = ++s->share_seq;
	for (; rule && *rule && m->rules.n < SHARE_RULES_MAX; rule++)
		for (size_t k = 0; k < ARRAY_SIZE(rule_words); k++)
			if (starts_with(*rule, rule_words[k].word))
				m->rules.v[m->rules.n++] =
					(struct share_rule) { (uint8_t)rule_words[k].kind,
							      *rule + strlen(rule_words[k].word) };
	if (m->rules.n != s->order.n_rules)
		r = err_set(e, -E2BIG, "too many path rules (%u at most)", SHARE_RULES_MAX);
	if (r == 0 && m->rules.n) {
		r = tell(s, m, -1);
		r = r < 0 ? err_errno(e, r, "cannot tell the path rules") : await_answer(s, e);
	}
	free(m);
	return r;
}

static int tell_start(struct sup *s, struct err *e)
{
	struct share_msg m = { .type = SHARE_START, .seq = ++s->share_seq };
	int r = tell(s, &m, -1);

	return r < 0 ? err_errno(e, r, "cannot start the workspace server") : await_answer(s, e);
}

static int spawn(struct sup *s, int vhost, int control, int log_fd, struct err *e)
{
	static const char *const argv[] = { "/bac-workspace", NULL };
	static const char *const env[] = { NULL };
	const struct cage_bind bind = { s->order.workspace, "/bac-workspace", CAGE_EXEC };
	_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const struct sys_fd fds[] = { { null, 0 },
				      { log_fd, 1 },
				      { log_fd, 2 },
				      { vhost, FD_VHOST },
				      { control, FD_CONTROL } };
	const struct cage_limit limits[] = { { RLIMIT_CORE, 0 }, { RLIMIT_NOFILE, SERVER_FILES } };
	const struct cage_spec c = { .binds = &bind,
				     .n_binds = 1,
				     .argv = argv,
				     .env = env,
				     .fds = fds,
				     .n_fds = ARRAY_SIZE(fds),
				     .limits = limits,
				     .n_limits = ARRAY_SIZE(limits),
				     .as_user = true,
				     .self_fd = FD_SELF };

	if (null < 0)
		return err_errno(e, -errno, "cannot open /dev/null");
	return cage_spawn(&c, &s->share_pid, &s->share_pidfd, e);
}

int sup_share_start(struct sup *s, int log_fd, int *ret_vhost, struct err *e)
{
	_close_ int ours = -1, qemus = -1, vhost = -1, control = -1;
	int p[2], size = 4 * SHARE_MSG_MAX, r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p) < 0)
		return err_errno(e, -errno, "cannot start the workspace server");
	qemus = p[0];
	vhost = p[1];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p) < 0)
		return err_errno(e, -errno, "cannot start the workspace server");
	ours = p[0];
	control = p[1];
	(void)setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	r = spawn(s, vhost, control, log_fd, e);
	if (r < 0)
		return err_ctx(e, "cannot start the workspace server");
	s->share_fd = take_fd(&ours);
	r = tell_rules(s, e);
	if (r == 0)
		r = take_shares(s, e);
	if (r == 0)
		r = tell_start(s, e);
	if (r == 0)
		*ret_vhost = take_fd(&qemus);
	return r;
}

int sup_share_watch(struct sup *s, struct err *e)
{
	int r;

	s->share_poll.data = s->share_late.data = s;
	(void)uv_timer_init(&s->loop, &s->share_late);
	r = uv_poll_init(&s->loop, &s->share_poll, s->share_fd);
	if (r == 0)
		r = uv_poll_start(&s->share_poll, UV_READABLE, on_share);
	return r < 0 ? err_errno(e, r, "cannot watch the workspace server") : 0;
}

/* ---- the guest ---- */

int sup_share_config(struct sup *s)
{
	int r = 0;

	for (struct share *h = s->shares; h && r == 0; h = h->next) {
		struct wire_mount m = as_mount(h);

		r = wire_mount_add(&s->guest.out, WIRE_MOUNT, &m);
	}
	return r == 0 ? wire_empty_add(&s->guest.out, 0, WIRE_START) : r;
}

/* A MOUNTED during the boot: if it failed, the boot has failed. */
static void booted(struct sup *s, struct share *h, const struct wire_mounted *m)
{
	h->stage = MOUNTED;
	if (!m->code)
		return;
	sup_reason(s, "%s", m->text);
	sup_event(s, EV_FAIL);
}

bool sup_share_mounted(struct sup *s, const struct wire_frame *f)
{
	struct share *h = s->shares;
	struct wire_mounted m;

	if (wire_mounted_parse(&m, f) != WIRE_OK)
		return false;
	while (h && h->id != m.id)
		h = h->next;
	if (!h || (h->stage != MOUNTING && h->stage != UNMOUNTING))
		return false;
	if (s->state == STATE_STARTING) {
		booted(s, h, &m);
		return true;
	}
	if (h->stage == MOUNTING && m.code == 0) {
		h->stage = MOUNTED;
		settle(s, h, 0, "");
	} else if (h->stage == UNMOUNTING && m.code != 0) {
		h->stage = MOUNTED;
		settle(s, h, (int)m.code, m.text);
	} else {
		if (m.code)
			settle(s, h, (int)m.code, m.text);
		if (tell_remove(s, h) < 0)
			over(s, "does not read");
	}
	return true;
}

/* ---- the door ---- */

bool sup_share_mount(struct client *c, const struct wire_frame *f)
{
	_close_ int fd = take_fd(&c->conn.came_fd);
	struct sup *s = c->sup;
	struct wire_mount m;
	struct share *h;
	int r;

	if (wire_mount_parse(&m, f) != WIRE_OK || fd < 0)
		return false;
	if (s->state != STATE_RUNNING)
		sup_client_failed(c, EAGAIN, "the sandbox is not running");
	else if (by_path(s, m.path))
		sup_client_failed(c, EEXIST, "it is mounted already");
	else if (s->n_shares >= DOOR_SHARES_MAX)
		sup_client_failed(c, ENOSPC, "the sandbox has as many shares as it may");
	else if (!(h = add(s, &m)))
		sup_client_failed(c, ENOMEM, "out of memory");
	else {
		h->client = c;
		r = tell_add(s, h, fd);
		if (r < 0) {
			settle(s, h, -r, "the workspace server does not take it");
			drop(s, h);
		}
	}
	return true;
}

bool sup_share_umount(struct client *c, const struct wire_frame *f)
{
	struct sup *s = c->sup;
	struct wire_mount m;
	struct share *h;

	if (wire_mount_parse(&m, f) != WIRE_OK)
		return false;
	h = by_path(s, m.path);
	if (!h || s->state != STATE_RUNNING) {
		sup_client_failed(c, ENOENT, "it is not mounted");
	} else if (h->stage != MOUNTED) {
		sup_client_failed(c, EBUSY, "another command works on it; try again");
	} else {
		h->client = c;
		to_guest(s, h, WIRE_UMOUNT);
	}
	return true;
}

void sup_share_client_gone(struct client *c)
{
	for (struct share *h = c->sup->shares; h; h = h->next)
		if (h->client == c)
			h->client = NULL;
}
