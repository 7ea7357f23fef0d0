/* Telling sandboxes that run. */
#include "cli/push.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cli/start.h"
#include "io/fd.h"

enum { QUICK_MS = 400, PUSH_MS = 10000, DOOR_MS = 1000 };

int push_seal(const char *name, const struct buf *text, int *ret_fd)
{
	_close_ int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
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

static int push_one(struct ctx *c, const struct push *p, const struct sandbox *b, uint64_t ms,
		    struct err *e)
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
	r = p->file(c, b, p->arg, &fd, e);
	if (r == 0)
		r = p->tell(&d, b->name, fd, deadline, e);
	door_done(&d);
	return r == -EPIPE && !state_is_locked(c->state, b->id) ? 0 : r; /* it has just ended */
}

static int push_told(struct ctx *c, const struct push *p, const struct sandbox *b, struct err *e)
{
	int r = push_one(c, p, b, PUSH_MS, e);

	return r < 0 ? err_ctx(e, "%s, but '%s', which runs, was not told yet", p->kept, b->name)
		     : 0;
}

/* Those that answer at once first: nobody waits for one that is stuck. Who is done has no name any more. */
static void push_quick(struct ctx *c, const struct push *p, struct sandbox *v, size_t n)
{
	struct err none;
	size_t i;

	for (i = 0; i < n; i++)
		if (push_one(c, p, &v[i], QUICK_MS, &none) == 0)
			sandbox_done(&v[i]);
}

int push_change(struct ctx *c, const struct push *p, const struct sandbox *b, struct err *e)
{
	struct sandbox *v;
	int r, worst = 0;
	size_t n, i;

	if (b)
		return push_told(c, p, b, e);
	r = state_list(c->state, &v, &n, e);
	if (r < 0)
		return r;
	push_quick(c, p, v, n);
	for (i = 0; i < n; i++) {
		struct err one = { 0 };

		r = v[i].name ? push_told(c, p, &v[i], &one) : 0;
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
