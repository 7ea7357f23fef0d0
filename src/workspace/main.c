/* bac-workspace: serves the user's folders to one virtual machine. Started by the supervisor, with an empty root
 * and these descriptors:
 *
 *   2  a line when it dies
 *   3  QEMU (vhost-user, connected)
 *   4  the supervisor (wire/share.h)
 *   5  the directory /proc/self/fd; without it that is opened
 *
 * The order is the argument: until START it reads only what the supervisor says, then it seals itself, and
 * only then it reads what a guest may have had a hand in. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "io/fd.h"
#include "seal/seal.h"
#include "workspace/say.h"
#include "workspace/seal.h"
#include "workspace/serve.h"

enum { FD_VHOST = 3, FD_CONTROL = 4, FD_PROC = 5 };

enum { FDS_MAX = 32768 };

static int proc_fd(void)
{
	if (fcntl(FD_PROC, F_GETFD) >= 0)
		return FD_PROC;
	return open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* As many descriptors as we may have: a quarter for folders, half for the guest's open files, and the rest for
 * locks and what is under way. */
static void limits(struct fs_config *c)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return;
	l.rlim_cur = MIN(l.rlim_max, (rlim_t)FDS_MAX);
	(void)setrlimit(RLIMIT_NOFILE, &l);
	c->fd_budget = MAX(l.rlim_cur / 4, (rlim_t)4);
	c->handle_max = MAX(l.rlim_cur / 2, (rlim_t)4);
}

/* Shares and rules, until START. */
static int prepare(struct control *c)
{
	int r = 1;

	while (r >= 0 && !c->start)
		r = control_read(c, true);
	if (r < 0 && r != -ECONNRESET)
		say("the supervisor's message is not understood: %s", err_text(r));
	return r < 0 ? r : 0;
}

/* The supervisor learns whether it worked, whatever happened. */
static int seal_up(struct control *c)
{
	int r = seal(), told = control_started(c, r);

	if (r < 0)
		say("cannot seal: %s", err_text(r));
	return r < 0 ? r : told;
}

static int run(struct control *c)
{
	struct server *s = NULL;
	int r;

	r = prepare(c);
	if (r == 0)
		r = serve_new(c, FD_VHOST, &s);
	if (r == 0)
		r = seal_up(c);
	if (r == 0)
		r = serve_run(s);
	(void)serve_free(s);
	return r;
}

int main(void)
{
	struct control *c = NULL;
	struct fs_config config = { .uid = geteuid(), .gid = getegid() };
	int r;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGIO, SIG_IGN); /* somebody opens what a lease is on: gitguard.h */
	r = seal_begin();
	if (r < 0) {
		say("cannot begin: %s", err_text(r));
		return 1;
	}
	config.proc_fd = proc_fd();
	if (config.proc_fd < 0 || fcntl(FD_VHOST, F_GETFD) < 0 || fcntl(FD_CONTROL, F_GETFD) < 0) {
		say("started by bac, not by hand");
		return 1;
	}
	limits(&config);
	r = control_new(FD_CONTROL, &config, &c);
	if (r == 0)
		r = run(c);
	(void)control_free(c);
	return r < 0;
}
