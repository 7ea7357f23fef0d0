/* Asking all supervisors at once. Connections are opened first, then all answers are awaited together, so that one
 * that hangs costs one deadline and not one for each. A supervisor that takes the connection and says nothing is as
 * unresponsive as a guest that does not answer its ping. */
#include "cli/probe.h"

#include <poll.h>
#include <stdio.h>

#include "cli/door.h"
#include "io/fd.h"

enum { SLACK_MS = 300 };

struct asked {
	struct door d;
	bool open;
	bool greeted;
};

static void ask_one(const struct ctx *c, const struct sandbox *b, uint32_t ms, struct asked *a,
		    struct probe *p)
{
	_free_ char *run_dir = ctx_run_dir(c, b->id);
	struct err e = { 0 };
	int r;

	p->status = b->lost ? "lost" : "stopped";
	if (b->lost || !run_dir || !state_is_locked(c->state, b->id))
		return;
	p->status = "starting"; /* locked, and no door yet */
	r = door_connect(run_dir, &a->d, &e);
	if (r == -ENOENT || r == -ECONNREFUSED)
		return;
	p->status = "unresponsive";
	if (r < 0)
		return;
	a->open = wire_u32_add(&a->d.out, 0, WIRE_STATUS, 0, ms) == 0 && door_flush(&a->d, 0) == 0;
	if (!a->open)
		door_done(&a->d);
}

static void take_answer(struct asked *a, struct probe *p)
{
	struct wire_frame f;
	int r;

	while ((r = door_next(&a->d, 0, &f)) == 0) {
		if (f.type == WIRE_DOOR)
			continue;
		if (f.type != WIRE_STATUS_IS || wire_status_parse(&p->m, &f) != WIRE_OK)
			continue;
		(void)snprintf(p->remark, sizeof(p->remark), "%s", p->m.remark);
		p->m.remark = p->remark;
		p->known = true;
		p->status = p->m.state == STATE_RUNNING && !p->m.answers
				    ? "unresponsive"
				    : wire_state_name(p->m.state);
		r = -EPIPE;
		break;
	}
	if (r != -ETIMEDOUT) {
		if (!p->known)
			p->status = "stopped"; /* it ended while we asked */
		a->open = false;
		door_done(&a->d);
	}
}

static void collect(struct asked *a, struct probe *p, size_t n, uint64_t deadline)
{
	struct pollfd *fds = calloc(n ? n : 1, sizeof(*fds));
	size_t i, waiting = 1;

	while (fds && waiting) {
		uint64_t now = fd_now_ns();

		waiting = 0;
		for (i = 0; i < n; i++) {
			fds[i] = (struct pollfd) { a[i].open ? a[i].d.fd : -1, POLLIN, 0 };
			waiting += a[i].open;
		}
		if (!waiting || now >= deadline)
			break;
		if (poll(fds, n, (int)((deadline - now) / 1000000 + 1)) < 0 && errno != EINTR)
			break;
		for (i = 0; i < n; i++)
			if (a[i].open && fds[i].revents)
				take_answer(&a[i], &p[i]);
	}
	free(fds);
}

void probe_all(const struct ctx *c, const struct sandbox *v, size_t n, uint32_t ms,
	       struct probe *ret)
{
	struct asked *a = calloc(n ? n : 1, sizeof(*a));
	size_t i;

	memset(ret, 0, n * sizeof(*ret));
	for (i = 0; i < n; i++) {
		ret[i].status = "unresponsive";
		if (a)
			ask_one(c, &v[i], ms, &a[i], &ret[i]);
	}
	if (a)
		collect(a, ret, n, door_in_ms(ms + SLACK_MS));
	for (i = 0; a && i < n; i++)
		if (a[i].open)
			door_done(&a[i].d);
	free(a);
}

const char *probe_text(char *dst, size_t max, const struct probe *p)
{
	(void)snprintf(dst, max, "%s%s", p->status,
		       p->known && p->m.accel == ACCEL_TCG ? " (emulated)" : "");
	return dst;
}
