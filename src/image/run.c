/* Running programs in namespaces, by unshare(1): newuidmap(1) maps the subordinate ids. */
#include "image/run.h"

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "io/fd.h"
#include "sys/spawn.h"

enum {
	ARGS_MAX = 96,
	LINE_LONGEST = 4096,
	SUBUID_MAX = 1 << 20,
	IDS_NEEDED = 65535,
	DYING_MS = 10000,
};

/* ---- signals ---- */

int image_signals_hold(struct image_signals *s)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, &s->old) < 0)
		return -errno;
	s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->fd < 0) {
		int r = -errno;

		(void)sigprocmask(SIG_SETMASK, &s->old, NULL);
		return r;
	}
	return 0;
}

void image_signals_release(struct image_signals *s)
{
	s->fd = fd_close(s->fd);
	(void)sigprocmask(SIG_SETMASK, &s->old, NULL);
}

bool image_signals_pending(const struct image_signals *s)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* ---- the environment ---- */

static bool same_variable(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return strncmp(a, b, n) == 0 && b[n] == '=';
}

static bool is_replaced(const char *var, const char *const *env)
{
	size_t i;

	for (i = 0; env && env[i]; i++)
		if (same_variable(env[i], var))
			return true;
	return false;
}

/* Ours, with env over it: a heap array of borrowed texts, or NULL. */
static const char **join_env(const char *const *env)
{
	size_t n = 0, i, k = 0;
	const char **v;

	while (environ[n])
		n++;
	for (i = 0; env && env[i]; i++)
		n++;
	v = calloc(n + 1, sizeof(*v));
	if (!v)
		return NULL;
	for (i = 0; environ[i]; i++)
		if (!is_replaced(environ[i], env))
			v[k++] = environ[i];
	for (i = 0; env && env[i]; i++)
		v[k++] = env[i];
	return v;
}

/* ---- the run ---- */

/* The shell is process 1 of the namespace: it reaps what others leave, and a program that ends itself by
 * a signal really ends, which process 1 cannot. */
#define AS_CHILD "sh", "-c", "\"$@\"; exit $?", "sh"

static const char *const unshare_root[] = { "unshare",      "--mount",      "--pid", "--fork",
					    "--kill-child", "--mount-proc", AS_CHILD };
static const char *const unshare_user[] = { "unshare",    "--user",       "--map-root-user",
					    "--map-auto", "--mount",      "--pid",
					    "--fork",     "--kill-child", "--mount-proc",
					    AS_CHILD };

static int join_args(const char *const *argv, const char *v[ARGS_MAX])
{
	const char *const *pre = geteuid() == 0 ? unshare_root : unshare_user;
	size_t n = geteuid() == 0 ? ARRAY_SIZE(unshare_root) : ARRAY_SIZE(unshare_user), i;

	memcpy(v, pre, n * sizeof(*v));
	for (i = 0; argv[i]; i++) {
		if (n == ARGS_MAX - 1)
			return -E2BIG;
		v[n++] = argv[i];
	}
	v[n] = NULL;
	return 0;
}

struct output {
	const struct image_run *run;
	int fd;
	char line[LINE_LONGEST];
	size_t n;
	char last[256]; /* the last line that was not empty */
};

static void end_line(struct output *o)
{
	o->line[o->n] = '\0';
	if (o->n)
		(void)snprintf(o->last, sizeof(o->last), "%.255s", o->line);
	if (o->n && o->run->line)
		o->run->line(o->run->user, o->line);
	o->n = 0;
}

/* False at the end of the output. */
static bool read_output(struct output *o)
{
	char part[8192];
	ssize_t n = read(o->fd, part, sizeof(part)), i;

	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	if (n == 0)
		return false;
	if (o->run->log >= 0)
		(void)!fd_write_all(o->run->log, part, (size_t)n);
	for (i = 0; i < n; i++) {
		if (part[i] == '\n' || part[i] == '\r')
			end_line(o);
		else if (o->n < sizeof(o->line) - 1)
			o->line[o->n++] = part[i];
	}
	return true;
}

/* Until the output ends or a signal comes: the pipe closes with the last process that has it. */
static int watch(struct output *o)
{
	for (;;) {
		struct pollfd p[] = {
			{ .fd = o->fd, .events = POLLIN },
			{ .fd = o->run->signals, .events = POLLIN },
		};

		if (poll(p, ARRAY_SIZE(p), -1) < 0 && errno != EINTR)
			return -errno;
		if (p[1].revents)
			return -EINTR;
		if (p[0].revents && !read_output(o)) {
			end_line(o);
			return 0;
		}
	}
}

/* Wait until all who write to us are dead, so that what they wrote can be removed. */
static void drain(struct output *o)
{
	uint64_t end = fd_now_ns() + (uint64_t)DYING_MS * 1000000;
	struct pollfd p = { .fd = o->fd, .events = POLLIN };
	char part[4096];

	while (fd_now_ns() < end && poll(&p, 1, DYING_MS) > 0 &&
	       read(o->fd, part, sizeof(part)) > 0)
		;
}

static int finish(struct output *o, pid_t pid, int pidfd, int r, struct err *e)
{
	const char *name = o->run->argv[0];
	int status = 0;

	if (r < 0) {
		(void)kill(-pid, SIGKILL);
		sys_kill(pid);
		drain(o);
		return r == -EINTR ? err_set(e, r, "interrupted")
				   : err_errno(e, r, "cannot run %s", name);
	}
	r = sys_wait(pid, pidfd, UINT64_MAX, &status);
	if (r < 0)
		return err_errno(e, r, "cannot wait for %s", name);
	if (status)
		return err_set(e, status, "%s failed: %s", name,
			       o->last[0] ? o->last : "it said nothing about why");
	return 0;
}

int image_run(const struct image_run *run, struct err *e)
{
	_free_ const char **env = join_env(run->env);
	_close_ int ours = -1, theirs = -1, pidfd = -1;
	struct output o = { .run = run };
	const char *argv[ARGS_MAX];
	struct sys_cmd c = { .argv = argv, .env = env, .group = true };
	struct sys_fd fds[2] = { { .to = 1 }, { .to = 2 } };
	_free_ char *path = NULL;
	int p[2], r;
	pid_t pid;

	if (!env)
		return err_errno(e, -ENOMEM, "cannot run %s", run->argv[0]);
	r = sys_find(run->argv[0], &path, e); /* its absence is not unshare's to tell */
	if (r < 0)
		return r;
	r = join_args(run->argv, argv);
	if (r == 0 && pipe2(p, O_CLOEXEC) < 0)
		r = -errno;
	if (r != 0)
		return err_errno(e, r, "cannot run %s", run->argv[0]);
	o.fd = ours = p[0];
	theirs = fds[0].from = fds[1].from = p[1];
	c.fds = fds;
	c.n_fds = ARRAY_SIZE(fds);
	r = sys_spawn(&c, &pid, &pidfd, e);
	if (r < 0)
		return r;
	theirs = fd_close(theirs);
	return finish(&o, pid, pidfd, watch(&o), e);
}

/* ---- can we? ---- */

/* Has the user a range of at least IDS_NEEDED in /etc/subuid or /etc/subgid? A missing file is no: the
 * ids may come from elsewhere, but then unshare does not find them either. */
static bool has_ids(const char *file, const char *user)
{
	_free_ char *text = NULL;
	char *line, *rest = NULL, uid[16];

	(void)snprintf(uid, sizeof(uid), "%u", (unsigned)geteuid());
	if (fd_read_file(AT_FDCWD, file, SUBUID_MAX, &text, NULL) < 0)
		return false;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *count = strrchr(line, ':');
		size_t n = strcspn(line, ":");

		if (count && strtoul(count + 1, NULL, 10) >= IDS_NEEDED &&
		    ((strlen(user) == n && memcmp(line, user, n) == 0) ||
		     (strlen(uid) == n && memcmp(line, uid, n) == 0)))
			return true;
	}
	return false;
}

static int explain(const struct err *why, struct err *e)
{
	const struct passwd *pw = getpwuid(geteuid());
	const char *user = pw ? pw->pw_name : "";
	_free_ char *path = NULL;

	if (sys_find("newuidmap", &path, e) < 0)
		return e->code;
	if (!has_ids("/etc/subuid", user) || !has_ids("/etc/subgid", user))
		return err_set(e, -EPERM,
			       "user '%s' has no subordinate ids: sudo usermod --add-subuids "
			       "100000-165535 --add-subgids 100000-165535 %s",
			       user, user);
	return err_set(e, -EPERM, "cannot make a user namespace: %s", why->msg);
}

int image_run_check(struct err *e)
{
	static const char *const argv[] = { "true", NULL };
	struct image_run run = { .argv = argv, .log = -1, .signals = -1 };
	struct err why;
	int r = image_run(&run, &why);

	if (r == 0)
		return 0;
	if (r < 0) {
		*e = why;
		return r;
	}
	if (geteuid() != 0)
		return explain(&why, e);
	return err_set(e, -EPERM, "cannot make namespaces as root: %s", why.msg);
}

int image_run_remove(const char *path)
{
	const char *const argv[] = { "rm", "-rf", "--one-file-system", "--", path, NULL };
	struct image_run run = { .argv = argv, .log = -1, .signals = -1 };
	struct err e;

	return image_run(&run, &e) == 0 ? 0 : -EIO;
}
