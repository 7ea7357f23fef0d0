#include "cli/cred-push.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/compose.h"
#include "cli/login-push.h"
#include "cli/push.h"
#include "io/fd.h"
#include "sys/lock.h"

enum { LOCK_MS = 120000, PUSH_MS = 15000 };

int cred_lock(struct ctx *c, int *ret_fd, struct err *e)
{
	_close_ int dir = open(c->dirs.state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = dir < 0 ? -errno : lock_take_within(dir, "credentials.lock", LOCK_MS, ret_fd);

	return r < 0 ? err_errno(e, r, "cannot lock the credentials") : 0;
}

static void say_lines(struct buf *notes)
{
	const char *p = notes->n ? buf_str(notes) : NULL;

	while (p && *p) {
		size_t n = strcspn(p, "\n");

		say("%.*s", (int)n, p);
		p += n + (p[n] == '\n');
	}
}

/* The file; and of one that has started, those of its logins. */
static int compose(struct ctx *c, const struct sandbox *b, struct logins *logins, struct buf *out,
		   size_t *ret_n, struct err *e)
{
	struct buf notes = BUF_INIT(COMPOSE_NOTES_MAX);
	const bool starting = !logins;
	struct err none = { 0 };
	struct compose_source s;
	int r = compose_source(c, &s, e);

	if (r == 0)
		r = compose_file(c, &s, b, starting, out, starting ? &notes : NULL, ret_n, e);
	if (r == 0)
		say_lines(&notes);
	if (r == 0 && logins && compose_logins(c, &s, b, logins, &none) < 0) {
		say("warning: %s", none.msg);
		compose_logins_done(logins);
	}
	compose_source_done(&s);
	buf_done(&notes);
	return r;
}

static int seal(const struct buf *text, int *ret_fd, struct err *e)
{
	int r = push_seal("bac-credentials", text, ret_fd);

	return r < 0 ? err_errno(e, r, "cannot write the credentials") : 0;
}

int cred_push_file(struct ctx *c, const struct sandbox *b, int *ret_fd, struct err *e)
{
	struct buf out = BUF_INIT(COMPOSE_FILE_MAX);
	_close_ int lock = -1;
	size_t n = 0;
	int r = b->no_network ? 0 : cred_lock(c, &lock, e);

	if (r == 0 && !b->no_network)
		r = compose(c, b, NULL, &out, &n, e);
	if (r == 0 && !n)
		buf_consume(&out, out.n);
	if (r == 0)
		r = seal(&out, ret_fd, e);
	buf_done(&out);
	return r;
}

/* ---- telling ---- */
static int file(struct ctx *c, const struct sandbox *b, void *arg, int *ret_fd, struct err *e)
{
	struct buf out = BUF_INIT(COMPOSE_FILE_MAX);
	size_t n;
	int r = compose_file(c, arg, b, false, &out, NULL, &n, e);

	if (r == 0)
		r = seal(&out, ret_fd, e);
	buf_done(&out);
	return r;
}

int cred_push(struct ctx *c, const struct sandbox *b, struct err *e)
{
	struct compose_source s = { 0 };
	const struct push p = { file, door_credentials, &s, "what you changed is kept" };
	_close_ int lock = -1;
	int r = cred_lock(c, &lock, e);

	if (r == 0)
		r = compose_source(c, &s, e);
	if (r == 0)
		r = push_change(c, &p, b, e);
	compose_source_done(&s);
	return r;
}

/* What a file holds, but for what is only said to those who start. */
static bool holds(int fd, const struct buf *text)
{
	_free_ char *now = malloc(text->n + 1);
	struct stat st;

	return now && fstat(fd, &st) == 0 && (size_t)st.st_size == text->n &&
	       pread(fd, now, text->n, 0) == (ssize_t)text->n &&
	       (!text->n || !memcmp(now, buf_data(text), text->n));
}

int cred_push_if_changed(struct ctx *c, const struct sandbox *b, int given, struct door *d,
			 bool files, struct err *e)
{
	struct buf out = BUF_INIT(COMPOSE_FILE_MAX);
	_close_ int lock = -1, fd = -1;
	struct logins logins = { 0 };
	size_t n = 0;
	int r;

	if (b->no_network)
		return 0;
	r = cred_lock(c, &lock, e);
	if (r == 0)
		r = compose(c, b, &logins, &out, &n, e);
	if (r == 0 && !n)
		buf_consume(&out, out.n);
	if (r == 0 && !holds(given, &out)) {
		r = seal(&out, &fd, e);
		if (r == 0)
			r = door_credentials(d, b->name, fd, door_in_ms(PUSH_MS), e);
	}
	lock = fd_close(lock);
	if (r == 0 && files)
		login_push(c, b, &logins);
	compose_logins_done(&logins);
	buf_done(&out);
	return r;
}
