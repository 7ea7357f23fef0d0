/* Ending sandboxes. The polite way is a STOP at the door; where nobody answers in time, the lock tells which process
 * holds the sandbox (its pid is in run.json, and is believed only while the lock is held and the process is a
 * supervisor of ours), and that is killed. */
#include "cli/halt.h"

#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/door.h"
#include "cli/secret.h"
#include "cli/start.h"
#include "io/fd.h"

enum { GREET_MS = 2000, EXTRA_MS = 6000, LOCK_MS = 5000 };

/* 0: it is gone. 1: it was not there. -EBUSY: in use. Other: it does not answer. */
static int stop_politely(struct ctx *c, const struct sandbox *b, unsigned flags, struct err *e)
{
	struct wire_stop m = { .flags = (uint8_t)(((flags & HALT_NOW) ? STOP_NOW : 0) |
						  ((flags & HALT_IF_IDLE) ? STOP_IF_IDLE : 0)) };
	struct wire_frame f;
	uint64_t ms;
	struct door d;
	int r = setting_number(c->state, "sandbox.stopTimeout", &ms, e);

	if (r == 0)
		r = start_connect(c, b, door_in_ms(GREET_MS), &d, e);
	if (r != 0)
		return r;
	m.deadline_ms = (uint32_t)MIN(ms, (uint64_t)3600000);
	r = wire_stop_add(&d.out, &m);
	if (r == 0)
		r = door_answer(&d, b->name, WIRE_DONE, door_in_ms(ms + EXTRA_MS), &f, e);
	door_done(&d);
	return r == -EPIPE ? 0 : r;
}

/* The supervisor's pid, if there is one that we may believe: a process of ours that has the lock file open. */
static int supervisor_pidfd(struct ctx *c, const struct sandbox *b)
{
	_free_ char *text = NULL;
	char path[64], link[64], target[64];
	json_int_t pid = 0;
	struct stat want, have;
	json_t *j;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/run.json", b->id);
	if (fd_read_file(state_sandboxes_fd(c->state), path, 4096, &text, NULL) < 0)
		return -ENOENT;
	j = json_loads(text, 0, NULL);
	if (json_unpack(j, "{s:I}", "pid", &pid) < 0)
		pid = 0;
	json_decref(j);
	fd = pid > 1 ? pidfd_open((pid_t)pid, 0) : -1;
	if (fd < 0)
		return -ENOENT;
	(void)snprintf(path, sizeof(path), "%s/lock", b->id);
	(void)snprintf(link, sizeof(link), "/proc/%lld/fd/4", (long long)pid);
	n = readlink(link, target, sizeof(target));
	if (n > 0 && stat(link, &have) == 0 &&
	    fstatat(state_sandboxes_fd(c->state), path, &want, 0) == 0 &&
	    have.st_ino == want.st_ino && have.st_dev == want.st_dev)
		return fd;
	(void)fd_close(fd);
	return -ESRCH;
}

static void kill_supervisor(struct ctx *c, const struct sandbox *b)
{
	_close_ int fd = supervisor_pidfd(c, b);

	if (fd < 0)
		return;
	(void)pidfd_send_signal(fd, SIGKILL, NULL, 0);
	say("the supervisor of '%s' did not answer and was killed", b->name);
}

int halt_and_wait(struct ctx *c, const struct sandbox *b, bool now, struct err *e)
{
	_close_ int fd = supervisor_pidfd(c, b);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int r = stop_politely(c, b, now ? HALT_NOW : 0, e);

	if (r < 0 && fd >= 0)
		(void)pidfd_send_signal(fd, SIGKILL, NULL, 0);
	if (fd >= 0 && poll(&p, 1, LOCK_MS) <= 0)
		return err_set(e, -EBUSY, "the supervisor of '%s' does not end", b->name);
	return MIN(r, 0);
}

int halt_sandbox(struct ctx *c, const struct sandbox *b, unsigned flags, bool *ret_ran,
		 int *ret_lock, struct err *e)
{
	bool ran = false;
	int r;

	r = state_lock(c->state, b->id, 0, ret_lock);
	if (r == -EBUSY) {
		ran = true;
		r = stop_politely(c, b, flags, e);
		if (r == -EBUSY)
			return r;
		if (r < 0 && !(flags & HALT_IF_IDLE))
			kill_supervisor(c, b);
		else if (r < 0)
			return r;
		r = state_lock(c->state, b->id, LOCK_MS, ret_lock);
	}
	if (r == -EBUSY)
		return err_set(e, r, "sandbox '%s' is busy: another command works on it; try again",
			       b->name);
	if (r < 0)
		return err_errno(e, r, "cannot lock sandbox '%s'", b->name);
	*ret_ran = ran;
	return 0;
}

/* What it was allowed and refused outlives it, unless the user does not want that. */
static int drop_receipts(struct ctx *c, const struct sandbox *b, struct err *e)
{
	_free_ char *dir = NULL;
	uint64_t keep;
	int r = setting_number(c->state, "audit.keep", &keep, e);

	if (r < 0 || keep)
		return r;
	if (asprintf(&dir, "%s/audit/%s", c->dirs.state, b->id) < 0)
		return err_errno(e, -ENOMEM, "cannot remove '%s'", b->name);
	r = dirs_remove(AT_FDCWD, dir);
	return r < 0 && r != -ENOENT ? err_errno(e, r, "cannot remove %s", dir) : 0;
}

int halt_remove(struct ctx *c, const struct sandbox *b, unsigned flags, struct err *e)
{
	_free_ char *run_dir = ctx_run_dir(c, b->id);
	_close_ int lock = -1;
	bool ran, secrets;
	int r;

	if (!run_dir)
		return err_errno(e, -ENOMEM, "cannot remove '%s'", b->name);
	if (b->lost) {
		/* Its directory, and the lock with it, were taken away; it may run all the same. */
		struct err none = { 0 };

		r = stop_politely(c, b, HALT_NOW, &none);
	} else {
		r = halt_sandbox(c, b, flags | HALT_NOW, &ran, &lock, e);
		if (r < 0)
			return r;
	}
	r = dirs_remove(AT_FDCWD, run_dir);
	if (r < 0)
		return err_errno(e, r, "cannot remove %s", run_dir);
	secrets = secret_has_own(c, b);
	r = state_remove(c->state, b, e);
	if (r < 0)
		return r;
	secret_forget(c, b, secrets);
	return drop_receipts(c, b, e);
}
