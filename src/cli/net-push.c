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

static int empty(struct buf *out)
{
	int r = net_text_begin(out);

	return r == 0 ? net_text_end(out, 0) : r;
}

int net_push_file(struct ctx *c, const char *sandbox, bool chosen, int *ret_fd, struct err *e)
{
	struct buf out = BUF_INIT(NET_TEXT_MAX);
	_close_ int fd = memfd_create("bac-policy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = rules_text(c->state, sandbox, &out, e);

	if (r == -ENOENT && !chosen)
		r = empty(&out);
	if (r < 0) {
		buf_done(&out);
		return r;
	}
	r = fd < 0 ? -errno : fd_write_all(fd, buf_data(&out), out.n);
	if (r == 0 &&
	    (lseek(fd, 0, SEEK_SET) < 0 ||
	     fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0))
		r = -errno;
	buf_done(&out);
	if (r < 0)
		return err_errno(e, r, "cannot write the network policy");
	*ret_fd = take_fd(&fd);
	return 0;
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
	r = net_push_file(c, b->id, false, &fd, e);
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

	if (b) {
		r = push_one(c, b, e);
		return r < 0 ? err_ctx(e,
				       "the rule is kept, but the running sandbox '%s' does not "
				       "have it yet",
				       b->name)
			     : 0;
	}
	r = state_list(c->state, &v, &n, e);
	if (r < 0)
		return r;
	push_quick(c, v, n);
	for (i = 0; i < n; i++) {
		struct err one = { 0 };

		r = v[i].name ? push_told(c, &v[i], &one) : 0;
		sandbox_done(&v[i]);
	}
	free(v);
	return worst;
}
