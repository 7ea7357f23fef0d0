/* Rules that change while sandboxes run.
 *
 * Whoever changes them holds rules_lock() until all are told, so that none gets an older policy after a newer one. A sandbox that
 * is just being started has read its policy before anybody could tell it another; so the command that started it looks once more
 * when it is up. */
#include "cli/net-push.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/start.h"
#include "io/fd.h"
#include "state/rules.h"

enum { QUICK_MS = 400, PUSH_MS = 10000, DOOR_MS = 1000 };

static int nothing(struct buf *out)
{
	int r = net_text_begin(out);

	return r == 0 ? net_text_end(out, 0) : r;
}

static int policy_text(struct ctx *c, const struct sandbox *b, bool or_nothing, struct buf *out,
		       struct err *e)
{
	int r = b->no_network ? 0 : rules_text(c->state, b->id, out, e);

	if (r != -ENOENT || !or_nothing)
		return r;
	r = nothing(out);
	return r < 0 ? err_errno(e, r, "cannot write the network policy") : 0;
}

static int sealed(const struct buf *text, int *ret_fd)
{
	_close_ int fd = memfd_create("bac-policy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = fd < 0 ? -errno
		       : fd_write_all(fd, text->n ? (const void *)buf_data(text) : "", text->n);

	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		r = -errno;
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}

int net_push_file(struct ctx *c, const struct sandbox *b, bool or_nothing, int *ret_fd,
		  struct err *e)
{
	struct buf text = BUF_INIT(NET_TEXT_MAX);
	int r = policy_text(c, b, or_nothing, &text, e);

	if (r == 0) {
		r = sealed(&text, ret_fd);
		if (r < 0)
			(void)err_errno(e, r, "cannot write the network policy");
	}
	buf_done(&text);
	return r;
}

/* Whether a memory file holds this text. */
static bool holds(int fd, const struct buf *text)
{
	struct stat st;
	void *map;
	bool same;

	if (fstat(fd, &st) < 0 || (size_t)st.st_size != text->n)
		return false;
	map = mmap(NULL, text->n, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return false;
	same = !memcmp(map, buf_data(text), text->n);
	(void)munmap(map, text->n);
	return same;
}

int net_push_if_changed(struct ctx *c, const struct sandbox *b, int given, struct door *d,
			struct err *e)
{
	struct buf text = BUF_INIT(NET_TEXT_MAX);
	_close_ int lock = -1, fd = -1;
	int r;

	if (b->no_network)
		return 0;
	r = rules_lock(c->state, &lock, e);
	if (r == 0)
		r = policy_text(c, b, true, &text, e);
	if (r == 0 && !holds(given, &text)) {
		r = sealed(&text, &fd);
		r = r < 0 ? err_errno(e, r, "cannot write the network policy")
			  : door_policy(d, b->name, fd, door_in_ms(PUSH_MS), e);
	}
	buf_done(&text);
	return r;
}

/* Its lock is taken, and nobody is at the door: it is just being started or ended, or a command works on it. */
static int wait_for_door(struct ctx *c, const struct sandbox *b, uint64_t deadline,
			 struct door *ret, struct err *e)
{
	const struct timespec pause = { .tv_nsec = 20000000 };
	uint64_t patience = MIN(deadline, door_in_ms(DOOR_MS));
	int r;

	for (;;) {
		if (!state_is_locked(c->state, b->id))
			return 1;
		r = start_connect(c, b, deadline, ret, e);
		if (r <= 0 || fd_now_ns() > patience)
			return r;
		(void)nanosleep(&pause, NULL);
	}
}

static int push_one(struct ctx *c, const struct sandbox *b, uint64_t ms, struct err *e)
{
	uint64_t deadline = door_in_ms(ms);
	_close_ int fd = -1;
	struct door d;
	int r;

	if (b->no_network)
		return 0;
	r = wait_for_door(c, b, deadline, &d, e);
	if (r != 0)
		return r > 0 ? 0 : r;
	r = net_push_file(c, b, true, &fd, e);
	if (r == 0)
		r = door_policy(&d, b->name, fd, deadline, e);
	door_done(&d);
	return r == -EPIPE && !state_is_locked(c->state, b->id) ? 0 : r; /* it has just ended */
}

static int push_told(struct ctx *c, const struct sandbox *b, struct err *e)
{
	int r = push_one(c, b, PUSH_MS, e);

	return r < 0 ? err_ctx(e,
			       "the rules are kept, but '%s', which runs, does not have them yet",
			       b->name)
		     : 0;
}

/* Those that answer at once first: nobody waits for one that is stuck. Who is done has no name any more. */
static void push_quick(struct ctx *c, struct sandbox *v, size_t n)
{
	struct err none;
	size_t i;

	for (i = 0; i < n; i++)
		if (push_one(c, &v[i], QUICK_MS, &none) == 0)
			sandbox_done(&v[i]);
}

int net_push(struct ctx *c, const struct sandbox *b, struct err *e)
{
	struct sandbox *v;
	int r, worst = 0;
	size_t n, i;

	if (b)
		return push_told(c, b, e);
	r = state_list(c->state, &v, &n, e);
	if (r < 0)
		return r;
	push_quick(c, v, n);
	for (i = 0; i < n; i++) {
		struct err one = { 0 };

		r = v[i].name ? push_told(c, &v[i], &one) : 0;
		sandbox_done(&v[i]);
		if (r >= 0)
			continue;
		if (worst < 0)
			say("%s", e->msg);
		*e = one;
		worst = r;
	}
	free(v);
	return worst;
}
