/* bac mount and bac umount: folders for a sandbox that is there. */
#include <unistd.h>

#include "cli/cmds.h"
#include "cli/paths.h"
#include "cli/start.h"
#include "io/fd.h"

enum { MOUNT_MS = 60000 };

static bool below(const char *a, const char *b)
{
	size_t n = strlen(b);

	return strncmp(a, b, n) == 0 && a[n] == '/';
}

/* The sandbox runs: let its supervisor do it. *ret_ran is false if it does not run. */
static int live(struct ctx *c, const struct sandbox *b, const struct box_share *p, bool umount,
		bool *ret_ran, struct err *e)
{
	uint64_t deadline = door_in_ms(MOUNT_MS);
	struct wire_frame f;
	struct door d;
	int r;

	*ret_ran = false;
	r = start_connect(c, b, deadline, &d, e);
	if (r != 0)
		return r > 0 ? 0 : r;
	*ret_ran = true;
	r = start_share(d.fd, p, umount, e);
	if (r == 0)
		r = door_answer(&d, b->name, WIRE_DONE, deadline, &f, e);
	door_done(&d);
	return r < 0 ? err_ctx(e, umount ? "cannot unmount %s" : "cannot mount %s", p->path) : 0;
}

static int mount_it(struct ctx *c, struct sandbox *b, const char *word, struct err *e)
{
	struct box_share p = { 0 };
	bool ran = false;
	int r = path_take(c, word, &p, e);

	if (r == 0)
		r = path_add(&b->shares, &p, e);
	if (r == 0)
		r = live(c, b, &p, false, &ran, e);
	if (r == 0)
		r = state_shares_set(c->state, b, e);
	if (r == 0)
		(void)printf("%s%s\n", p.path, ran ? "" : " (from the next start on)");
	path_done(&p);
	return r == 0 ? flush_out(e) : r;
}

static int umount_it(struct ctx *c, struct sandbox *b, const char *word, struct err *e)
{
	ssize_t at = path_find(&b->shares, word);
	bool ran;
	int r;

	if (at < 0)
		return err_set(e, -ENOENT, "'%s' is not shared with '%s' (see 'bac inspect %s')",
			       word, b->name, b->name);
	for (size_t i = 0; i < b->shares.n; i++)
		if (below(b->shares.v[i].path, b->shares.v[at].path))
			return err_set(e, -EBUSY, "%s lies in it: unmount that first",
				       b->shares.v[i].path);
	r = live(c, b, &b->shares.v[at], true, &ran, e);
	if (r < 0)
		return r;
	shares_take_out(&b->shares, (size_t)at);
	return state_shares_set(c->state, b, e);
}

static int run(struct args *args, struct err *e,
	       int (*act)(struct ctx *c, struct sandbox *b, const char *word, struct err *e))
{
	struct sandbox b = { 0 };
	_close_ int lock = -1;
	struct ctx c;
	int r = ctx_open(&c, e);

	if (r == 0)
		r = state_get(c.state, args->v[0], &b, e);
	if (r == 0) {
		r = state_shares_lock(c.state, b.id, &lock);
		if (r < 0)
			r = err_errno(e, r, "cannot change the shares of '%s'", b.name);
	}
	if (r == 0) {
		sandbox_done(&b);
		r = state_get(c.state, args->v[0], &b, e);
	}
	for (size_t i = 1; r == 0 && i < args->n; i++)
		r = act(&c, &b, args->v[i], e);
	sandbox_done(&b);
	ctx_done(&c);
	return r;
}

static int run_mount(void *opt, struct args *args, struct err *e)
{
	(void)opt;
	return run(args, e, mount_it);
}

static int run_umount(void *opt, struct args *args, struct err *e)
{
	(void)opt;
	return run(args, e, umount_it);
}

const struct cmd mount_cmd = {
	.name = "mount",
	.usage = "[OPTIONS] SANDBOX PATH[:ro]...",
	.brief = "share more folders or files of the host with a sandbox",
	.text = "Each appears in the sandbox at the path that it has on the host, at once if the "
		"sandbox runs, and\n"
		"at each start. With :ro it cannot be changed from inside, whatever root does "
		"there.",
	.min_args = 2,
	.max_args = SIZE_MAX,
	.run = run_mount,
};

const struct cmd umount_cmd = {
	.name = "umount",
	.usage = "[OPTIONS] SANDBOX PATH...",
	.brief = "take shared folders away from a sandbox",
	.text = "What has files open in there gets errors from then on. The files of the host stay "
		"as they are.",
	.min_args = 2,
	.max_args = SIZE_MAX,
	.run = run_umount,
};
