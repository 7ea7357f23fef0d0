/* Rules that change while sandboxes run.
 *
 * Whoever changes them holds rules_lock() until all are told, so that none gets an older policy after a newer one. A sandbox that
 * is just being started has read its policy before anybody could tell it another; so the command that started it looks once more
 * when it is up. */
#include "cli/net-push.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/push.h"
#include "io/fd.h"
#include "state/rules.h"

enum { PUSH_MS = 10000 };

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

int net_push_file(struct ctx *c, const struct sandbox *b, bool or_nothing, int *ret_fd,
		  struct err *e)
{
	struct buf text = BUF_INIT(NET_TEXT_MAX);
	int r = policy_text(c, b, or_nothing, &text, e);

	if (r == 0) {
		r = push_seal("bac-policy", &text, ret_fd);
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
		r = push_seal("bac-policy", &text, &fd);
		r = r < 0 ? err_errno(e, r, "cannot write the network policy")
			  : door_policy(d, b->name, fd, door_in_ms(PUSH_MS), e);
	}
	buf_done(&text);
	return r;
}

static int file(struct ctx *c, const struct sandbox *b, void *arg, int *ret_fd, struct err *e)
{
	(void)arg;
	return net_push_file(c, b, true, ret_fd, e);
}

int net_push(struct ctx *c, const struct sandbox *b, struct err *e)
{
	static const struct push p = { file, door_policy, NULL, "the rules are kept" };

	return push_change(c, &p, b, e);
}
