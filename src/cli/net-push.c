#include "cli/net-push.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/start.h"
#include "io/fd.h"
#include "state/rules.h"

enum { PUSH_MS = 10000 };

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

static int push_one(struct ctx *c, const struct sandbox *b, struct err *e)
{
	uint64_t deadline = door_in_ms(PUSH_MS);
	_close_ int fd = -1;
	struct door d;
	int r;

	if (b->no_network || !state_is_locked(c->state, b->id))
		return 0;
	r = start_connect(c, b, deadline, &d, e);
	if (r != 0)
		return r > 0 ? 0 : r;
	r = net_push_file(c, b->id, false, &fd, e);
	if (r == 0)
		r = door_policy(&d, b->name, fd, deadline, e);
	door_done(&d);
	return r;
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
	for (i = 0; i < n; i++) {
		struct err one = { 0 };

		r = push_one(c, &v[i], &one);
		if (r < 0) {
			if (worst < 0)
				say("%s", e->msg);
			*e = one;
			worst = err_ctx(e,
					"the policy is kept, but the running sandbox '%s' does not "
					"have it yet",
					v[i].name);
		}
		sandbox_done(&v[i]);
	}
	free(v);
	return worst;
}
