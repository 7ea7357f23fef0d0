#include "cli/guest.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/exec.h"
#include "cli/session.h"
#include "cli/start.h"
#include "io/fd.h"

enum { CONNECT_MS = 10000 };

/* The input as a memory file: it may be more than a pipe takes at once. */
static int input(const struct guest_cmd *g, int *ret_fd)
{
	_close_ int fd = memfd_create("bac-input", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : fd_write_all(fd, g->in, g->n_in);

	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}

static int talk(struct door *d, const struct sandbox *b, const struct guest_cmd *g,
		struct session_opts *o, struct err *e)
{
	struct envs env = { .v = (char **)g->env };
	struct exec_spec x = { .name = b->name,
			       .user = g->user,
			       .cwd = g->cwd,
			       .argv = (const char **)g->argv,
			       .env = &env,
			       .input = o->input };
	char text[WIRE_TEXT_MAX + 1] = "";
	struct wire_exit m = { 0 };
	int r;

	while (g->argv[x.argc])
		x.argc++;
	while (g->env && g->env[env.n])
		env.n++;
	r = exec_put(d, &x, e);
	if (r == 0)
		r = session_run(d, b->name, o, &m, text, e);
	if (r < 0)
		return r;
	(void)err_set(e, -EIO, "%s", text);
	return wire_exit_status(&m);
}

int guest_run(struct ctx *c, const struct sandbox *b, const struct guest_cmd *g, struct err *e)
{
	_close_ int in = -1, null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct session_opts o = { .input = g->in,
				  .in_fd = -1,
				  .out_fd = g->out < 0 ? null : g->out,
				  .err_fd = g->out < 0 ? null : g->out };
	struct door d;
	int r = null < 0 ? -errno : g->in ? input(g, &in) : 0;

	if (r < 0)
		return err_errno(e, r, "cannot run a command in '%s'", b->name);
	o.in_fd = in;
	r = start_connect(c, b, door_in_ms(CONNECT_MS), &d, e);
	if (r > 0)
		return err_set(e, -EPIPE, "sandbox '%s' has ended (see 'bac logs %s')", b->name,
			       b->name);
	if (r < 0)
		return r;
	r = talk(&d, b, g, &o, e);
	door_done(&d);
	return r;
}
