/* Messages of the supervisor: a table of who may ask what and when. */
#include "workspace/control.h"

#include <sys/socket.h>

#include "base/err.h"
#include "base/leak.h"
#include "io/fd.h"
#include "policy/path-file.h"

enum { NEWS_WAIT_MS = 200, NEWS_REST_MS = 2000 };

enum { FDS_MAX = 4 }; /* one is right; more are seen to be wrong */

static int send_msg(struct control *c, const struct share_msg *m, int flags)
{
	ssize_t n = share_put(m, c->bytes, sizeof(c->bytes));

	if (n < 0)
		return (int)n;
	n = send(c->sock, c->bytes, (size_t)n, MSG_NOSIGNAL | flags);
	return n < 0 ? -errno : 0;
}

static int answer(struct control *c, uint32_t seq, int code, const char *text)
{
	const struct share_msg a = { .type = SHARE_ANSWER,
				     .seq = seq,
				     .answer = { .code = code, .text = text } };

	return send_msg(c, &a, 0);
}

static const uint8_t kinds[] = { [PATH_PROTECT] = SHARE_PROTECT,
				 [PATH_HIDE] = SHARE_HIDE,
				 [FS_LEAK] = SHARE_LEAK,
				 [FS_LEAK_REFUSED] = SHARE_LEAK_REFUSED };

/* A guest may be refused as often as it likes; the log is not filled by it, and never waited for. */
static void refused(void *arg, const struct fs_refusal *r)
{
	struct control *c = arg;
	const uint64_t second = fd_now_ns() / 1000000000;
	struct share_msg m = { .type = SHARE_REFUSED };

	if (second != c->second) {
		c->second = second;
		c->refused = 0;
	}
	m.refused =
		(struct share_refused) { .kind = r->kind < ARRAY_SIZE(kinds) ? kinds[r->kind] : 0,
					 .share = r->share,
					 .dropped = c->dropped,
					 .path = r->path,
					 .rule = r->rule,
					 .op = r->op };
	if (c->refused >= SHARE_REFUSALS_MAX || send_msg(c, &m, MSG_DONTWAIT) < 0) {
		c->dropped += c->dropped != UINT32_MAX;
		return;
	}
	c->refused++;
	c->dropped = 0;
}

/* The supervisor reads at once, and its socket holds some hundred messages: a burst waits for it, but not for long
 * (NEWS_WAIT_MS): news that comes late is no news. */
static void changed(void *arg, const struct fs_change *f)
{
	struct control *c = arg;
	const struct share_msg m = {
		.type = SHARE_CHANGED,
		.changed = { .id = f->share, .kind = f->kind, .dir = f->dir, .path = f->path }
	};

	if (fd_now_ns() < c->deaf_until)
		return;
	if (send_msg(c, &m, 0) == -EAGAIN) /* it is stopped: the guest's files do not wait for it */
		c->deaf_until = fd_now_ns() + (uint64_t)NEWS_REST_MS * 1000000;
}

int control_new(int sock, const struct fs_config *config, struct control **ret)
{
	const struct timeval wait = { .tv_usec = NEWS_WAIT_MS * 1000L };
	struct control *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	(void)setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	c->sock = sock;
	c->fd = -1;
	c->config = *config;
	c->config.refused = refused;
	c->config.changed = changed;
	c->config.refused_arg = c;
	*ret = c;
	return 0;
}

struct control *control_free(struct control *c)
{
	if (c) {
		c->fs = fs_free(c->fs);
		c->rules = path_rules_free(c->rules);
		free(c);
	}
	return NULL;
}

static const enum path_rule_kind rule_kinds[] = {
	[SHARE_HIDE] = PATH_HIDE, [SHARE_PROTECT] = PATH_PROTECT, [SHARE_ALLOW] = PATH_ALLOW
};

/* The defaults, then the supervisor's: a later rule is the stronger one. */
static int make_rules(struct control *c, const struct share_rules *rules, struct err *e)
{
	_cleanup_(path_builder_freep) struct path_builder *b = NULL;
	int r = path_builder_new(&b);

	if (r < 0)
		return err_errno(e, r, "cannot take the path rules");
	r = path_file_add_defaults(b, e);
	for (uint32_t i = 0; rules && i < rules->n && r == 0; i++)
		r = path_builder_add(b, rule_kinds[rules->v[i].kind], rules->v[i].pattern, "", e);
	if (r < 0)
		return r;
	r = path_rules_freeze(b, &c->rules);
	return r < 0 ? err_errno(e, r, "cannot take the path rules") : 0;
}

/* The file system is made with its rules, so these come first. */
static int have_fs(struct control *c, struct err *e)
{
	int r = 0;

	if (c->fs)
		return 0;
	if (!c->rules)
		r = make_rules(c, NULL, e);
	if (r < 0)
		return r;
	c->config.rules = c->rules;
	r = fs_new(&c->config, &c->fs);
	return r < 0 ? err_errno(e, r, "cannot make the file system") : 0;
}

static int on_add(struct control *c, struct err *e)
{
	const struct share_add *a = &c->m.add;
	int r = have_fs(c, e);

	if (r < 0)
		return r;
	r = fs_share_add(c->fs, a->id,
			 (a->flags & SHARE_RO ? FS_SHARE_RO : 0) |
				 (a->flags & SHARE_FILE ? FS_SHARE_FILE : 0),
			 take_fd(&c->fd), a->path);
	return r < 0 ? err_errno(e, r, "cannot share '%.500s'", a->path) : 0;
}

static int on_remove(struct control *c, struct err *e)
{
	int r;

	r = c->fs ? fs_share_remove(c->fs, c->m.remove) : -ENOENT;
	return r < 0 ? err_errno(e, r, "cannot remove share %u", c->m.remove) : 0;
}

static int on_rules(struct control *c, struct err *e)
{
	if (c->fs || c->rules)
		return err_set(e, -EBUSY, "rules come once, and before the first share");
	return make_rules(c, &c->m.rules, e);
}

static int on_start(struct control *c, struct err *e)
{
	int r = have_fs(c, e);

	if (r < 0)
		return r;
	if (c->start)
		return err_set(e, -EALREADY, "started already");
	c->start = true;
	c->start_seq = c->m.seq;
	return 0;
}

static int on_marks(struct control *c, struct err *e)
{
	struct leak_set s;
	int r = have_fs(c, e);

	if (r < 0)
		return r;
	r = leak_set_parse(&s, c->m.marks.p, c->m.marks.n);
	if (r < 0)
		return err_errno(e, r, "cannot take the marks of secrets");
	fs_marks(c->fs, &s, c->m.marks.refuse);
	return 0;
}

static int (*const acts[])(struct control *c, struct err *e) = {
	[SHARE_ADD] = on_add,     [SHARE_REMOVE] = on_remove, [SHARE_RULES] = on_rules,
	[SHARE_START] = on_start, [SHARE_MARKS] = on_marks,
};

/* c->m was parsed: its type is one of the supervisor's. */
static int act(struct control *c)
{
	const bool was_started = c->start;
	struct err e = { 0 };
	int r = acts[c->m.type](c, &e);

	if (c->start != was_started)
		return 0; /* answered when it is done */
	return answer(c, c->m.seq, r, e.msg);
}

/* The descriptors of a datagram into c->fd (the first; one is right) and the bin. Their number. */
static size_t take_fds(struct control *c, struct msghdr *h)
{
	size_t n_fds = 0;

	for (struct cmsghdr *k = CMSG_FIRSTHDR(h); k; k = CMSG_NXTHDR(h, k)) {
		size_t n = (k->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (k->cmsg_level != SOL_SOCKET || k->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++, n_fds++) {
			int fd;

			memcpy(&fd, CMSG_DATA(k) + i * sizeof(int), sizeof(fd));
			if (n_fds)
				(void)fd_close(fd);
			else
				c->fd = fd;
		}
	}
	return n_fds;
}

int control_read(struct control *c, bool wait)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	} control;
	struct iovec io = { .iov_base = c->bytes, .iov_len = sizeof(c->bytes) };
	struct msghdr h = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	const int flags = MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT);
	ssize_t n = recvmsg(c->sock, &h, flags);
	size_t n_fds;
	int r = -EPROTO;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	n_fds = take_fds(c, &h);
	if (n == 0 && !n_fds)
		r = -ECONNRESET;
	else if (!(h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) &&
		 share_parse(&c->m, FROM_SUPERVISOR, c->bytes, (size_t)n, n_fds) == WIRE_OK)
		r = act(c);
	c->fd = fd_close(c->fd);
	return r < 0 ? r : 1;
}

int control_started(struct control *c, int r)
{
	return answer(c, c->start_seq, r, r < 0 ? "cannot seal the workspace server" : "");
}
