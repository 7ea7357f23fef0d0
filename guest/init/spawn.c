/* Starting commands.
 *
 * The child does all that may be slow or may hang on the guest's own files (passwd, the directory, the
 * program), so that PID 1 never waits for them. What it cannot do it says on a pipe that closes by
 * itself when the program takes over.
 *
 * Under emulation, fork() is a large part of what a short command costs: the page tables are copied, both
 * sides fault on every page they touch afterwards, and the copy is thrown away a moment later. So the child
 * shares our memory until execve (CLONE_VM). vfork() does the same, but it also stops the parent until
 * then, and a file on a share whose server is waiting for somebody would stop PID 1. Here the parent goes
 * on, which makes the rules for the child strict:
 *
 *  - it works in its job, on a stack of its own, and nobody frees the job before the child has left;
 *  - it writes nowhere else: no malloc(), no stdio, nothing that sets errno (errno is ours). It makes raw
 *    system calls and calls functions that only compute. */
#include "guest/init/spawn.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/err.h"
#include "guest/init/raw.h"
#include "guest/init/user.h"
#include "io/fd.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

enum {
	CANNOT_RUN = 126,
	NOT_FOUND = 127,
	BASE_ENV_MAX = 10,
	ENTRY_MAX = USER_PATH_MAX + 16,
	STACK_SIZE = 64 * 1024,
	HIGH_FD = 64, /* above 3 and 4 */
};

struct spawn_job {
	struct wire_exec m; /* borrows from msg */
	uint8_t *msg;
	struct env *defaults; /* of the host; may be NULL */
	const char **env;     /* room for the defaults and the message's entries */
	const char **script;  /* room for the arguments of a shell */
	struct spawn s;
	int report;
	struct user user;
	struct err e;
	char base[BASE_ENV_MAX][ENTRY_MAX];
	size_t n_base;
	char path[WIRE_PATH_MAX + 1];
	/* not cleared, and mostly never touched */
	char passwd[USER_FILE_MAX], group[USER_FILE_MAX];
	char stack[STACK_SIZE] __attribute__((aligned(64)));
};

struct spawn_job *spawn_job_free(struct spawn_job *j)
{
	if (!j)
		return NULL;
	wire_exec_done(&j->m);
	(void)env_drop(j->defaults);
	free(j->msg);
	free(j->env);
	free(j->script);
	free(j);
	return NULL;
}

const struct wire_exec *spawn_job_exec(const struct spawn_job *j)
{
	return &j->m;
}

static uint32_t n_defaults(const struct spawn_job *j)
{
	return j->defaults ? j->defaults->n : 0;
}

int spawn_job_new(struct spawn_job **ret, const void *msg, size_t n, struct env *env)
{
	struct spawn_job *j = malloc(sizeof(*j));
	int ans;

	if (!j)
		return -ENOMEM;
	memset(j, 0, offsetof(struct spawn_job, passwd));
	j->defaults = env_hold(env);
	j->msg = malloc(n ? n : 1);
	if (!j->msg) {
		(void)spawn_job_free(j);
		return -ENOMEM;
	}
	memcpy(j->msg, msg, n);
	ans = wire_exec_parse(&j->m, j->msg, n);
	if (ans == WIRE_OK) {
		j->env = calloc((size_t)j->m.envc + n_defaults(j) + BASE_ENV_MAX + 1,
				sizeof(*j->env));
		j->script = calloc((size_t)j->m.argc + 2, sizeof(*j->script));
		if (!j->env || !j->script)
			ans = -ENOMEM;
	}
	if (ans != WIRE_OK)
		(void)spawn_job_free(j);
	else
		*ret = j;
	return ans;
}

/* ---- from here on: the child, in our memory ---- */

void spawn_report(int fd, uint8_t code, const char *text)
{
	uint8_t b[SPAWN_REPORT_MAX];
	size_t n = MIN(strlen(text), (size_t)WIRE_TEXT_MAX);

	b[0] = code;
	memcpy(b + 1, text, n);
	(void)raw_write(fd, b, n + 1);
}

static void _noreturn_ give_up(const struct spawn_job *j, uint8_t code)
{
	spawn_report(j->report, code, j->e.msg);
	raw_exit(code);
}

/* True if the message sets this variable, in its entries from that one on. */
static bool given(const struct wire_exec *m, uint32_t from, const char *entry)
{
	uint32_t i;

	for (i = from; i < m->envc; i++)
		if (env_same_name(entry, m->env[i]))
			return true;
	return false;
}

static void add_default(struct spawn_job *j, const char *name, const char *value)
{
	if (j->n_base < BASE_ENV_MAX)
		(void)snprintf(j->base[j->n_base++], ENTRY_MAX, "%s=%s", name, value);
}

/* True if the host has a default for this variable. */
static bool has_default(const struct spawn_job *j, const char *entry)
{
	uint32_t i;

	for (i = 0; i < n_defaults(j); i++)
		if (env_same_name(entry, j->defaults->v[i]))
			return true;
	return false;
}

/* Our defaults, the host's, and the message's entries; of two with one name the later. */
static void make_env(struct spawn_job *j)
{
	size_t n = 0, i;

	add_default(j, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	add_default(j, "HOME", j->user.home);
	add_default(j, "USER", j->user.name);
	add_default(j, "LOGNAME", j->user.name);
	add_default(j, "SHELL", j->user.shell);
	add_default(j, "LANG", "C.UTF-8");
	add_default(j, "IS_SANDBOX", "1");
	add_default(j, "BASH_ENV", "/etc/sandbox-persistent.sh");
	if (j->m.flags & EXEC_TTY)
		add_default(j, "TERM", "xterm-256color");
	for (i = 0; i < j->n_base; i++)
		if (!given(&j->m, 0, j->base[i]) && !has_default(j, j->base[i]))
			j->env[n++] = j->base[i];
	for (i = 0; i < n_defaults(j); i++)
		if (!given(&j->m, 0, j->defaults->v[i]))
			j->env[n++] = j->defaults->v[i];
	for (i = 0; i < j->m.envc; i++)
		if (!given(&j->m, (uint32_t)i + 1, j->m.env[i]))
			j->env[n++] = j->m.env[i];
	j->env[n] = NULL;
}

static const char *env_get(const char **env, const char *name)
{
	size_t n = strlen(name);

	for (; *env; env++)
		if (!strncmp(*env, name, n) && (*env)[n] == '=')
			return *env + n + 1;
	return "";
}

/* ---- finding and running the program ---- */

static int raw_exec(const char *path, const char **argv, const char **env)
{
	return (int)-raw(SYS_execve, (long)path, (long)argv, (long)env);
}

static bool exists(const char *path, struct stat *ret)
{
	return raw6(SYS_newfstatat, AT_FDCWD, (long)path, (long)ret, 0, 0, 0) == 0;
}

/* A NUL in the first line: a program for some other machine, and no script (what bash looks for). */
static bool is_binary(const char *path)
{
	long fd = raw6(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	char head[80] = "";
	long n, i;

	if (fd < 0)
		return false;
	n = raw6(SYS_read, fd, (long)head, sizeof(head), 0, 0, 0);
	(void)raw6(SYS_close, fd, 0, 0, 0, 0, 0);
	for (i = 0; i < n && head[i] != '\n'; i++)
		if (!head[i])
			return true;
	return false;
}

/* Returns only on failure: the errno. */
static int try_file(struct spawn_job *j, const char *path)
{
	int r = raw_exec(path, j->m.argv, j->env);
	struct stat st = { 0 };

	/* a file that the kernel cannot run is a script for the shell, as with execvp() */
	if (r == ENOEXEC && !is_binary(path)) {
		j->script[0] = "/bin/sh";
		j->script[1] = path;
		memcpy(j->script + 2, j->m.argv + 1, j->m.argc * sizeof(*j->script));
		(void)raw_exec("/bin/sh", j->script, j->env);
	}
	if (r == ENOENT && exists(path, &st))
		return ELIBBAD; /* its interpreter is meant */
	if (r == EACCES && exists(path, &st) && S_ISDIR(st.st_mode))
		return EISDIR;
	return r;
}

/* Search PATH. Returns only on failure: the errno that says most. */
static int try_path(struct spawn_job *j, const char *name)
{
	const char *at = env_get(j->env, "PATH");
	int found = ENOENT;

	for (;;) {
		const char *end = strchrnul(at, ':');
		int n = snprintf(j->path, sizeof(j->path), "%.*s%s%s", (int)(end - at), at,
				 end > at ? "/" : "", name);

		if (n > 0 && (size_t)n < sizeof(j->path)) {
			int r = try_file(j, j->path);

			if (r == EACCES || r == ELIBBAD)
				found = r;
			else if (r != ENOENT && r != ENOTDIR && r != EISDIR && r != ESTALE)
				return r;
		}
		if (!*end)
			return found;
		at = end + 1;
	}
}

static void _noreturn_ run(struct spawn_job *j)
{
	const char *name = j->m.argv[0];
	bool plain = !strchr(name, '/');
	int r;

	if (!*name)
		r = ENOENT;
	else
		r = plain ? try_path(j, name) : try_file(j, name);
	switch (r) {
	case ENOENT:
		(void)err_set(&j->e, -r, plain ? "'%s': not found" : "'%s': no such file", name);
		break;
	case EISDIR:
		(void)err_set(&j->e, -r, "'%s' is a directory", name);
		break;
	case ELIBBAD:
		(void)err_set(&j->e, -r, "'%s' needs an interpreter that is not there", name);
		break;
	case E2BIG:
		(void)err_set(&j->e, -r, "'%s': arguments and environment are too long", name);
		break;
	default:
		(void)err_errno(&j->e, -r, "'%s' cannot be run", name);
	}
	give_up(j, r == ENOENT || r == ENOTDIR ? NOT_FOUND : CANNOT_RUN);
}

/* ---- becoming the user ---- */

static void find_user(struct spawn_job *j)
{
	struct user_files f = { .passwd = j->passwd, .group = j->group };

	f.passwd_len = user_read("/etc/passwd", j->passwd, sizeof(j->passwd));
	f.group_len = user_read("/etc/group", j->group, sizeof(j->group));
	if (user_find(&j->user, &f, j->m.user, &j->e) < 0)
		give_up(j, CANNOT_RUN);
}

static void set_user(struct spawn_job *j)
{
	const struct user *u = &j->user;
	long r = raw(SYS_setgroups, (long)u->n_groups, (long)u->groups, 0);

	if (r == 0)
		r = raw(SYS_setresgid, u->gid, u->gid, u->gid);
	if (r == 0)
		r = raw(SYS_setresuid, u->uid, u->uid, u->uid);
	if (r == 0)
		return;
	(void)err_errno(&j->e, (int)r, "cannot become user '%s'", u->name);
	give_up(j, CANNOT_RUN);
}

static long raw_chdir(const char *path)
{
	return raw(SYS_chdir, (long)path, 0, 0);
}

static void enter_dir(struct spawn_job *j)
{
	long r;

	if (!*j->m.cwd) {
		if (raw_chdir(j->s.workdir) < 0 && raw_chdir(j->user.home) < 0)
			(void)raw_chdir("/");
		return;
	}
	r = raw_chdir(j->m.cwd);
	if (r == 0)
		return;
	if (r == -ENOENT)
		(void)err_set(&j->e, (int)r, "'%s': no such directory", j->m.cwd);
	else
		(void)err_errno(&j->e, (int)r, "cannot enter '%s'", j->m.cwd);
	give_up(j, CANNOT_RUN);
}

static int raw_dup(int from, int to)
{
	return (int)raw(SYS_dup3, from, to, 0);
}

static int set_terminal(struct spawn_job *j)
{
	struct winsize ws = { .ws_row = j->m.rows, .ws_col = j->m.cols };
	int fd = (int)raw_ioctl(j->s.terminal, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	int r;

	if (fd < 0)
		return fd;
	if (ws.ws_row && ws.ws_col)
		(void)raw_ioctl(fd, TIOCSWINSZ, (long)&ws);
	r = (int)raw_ioctl(fd, TIOCSCTTY, 0);
	if (r == 0)
		r = raw_dup(fd, 0);
	if (r >= 0)
		r = raw_dup(fd, 1);
	if (r >= 0)
		r = raw_dup(fd, 2);
	return r;
}

static void set_stdio(struct spawn_job *j)
{
	int r;

	if (j->s.terminal >= 0) {
		r = set_terminal(j);
	} else {
		r = raw_dup(j->s.in, 0);
		if (r >= 0)
			r = raw_dup(j->s.out, 1);
		if (r >= 0)
			r = raw_dup(j->s.err, 2);
	}
	if (r >= 0)
		return;
	(void)err_errno(&j->e, r, "cannot set up the command's input and output");
	give_up(j, CANNOT_RUN);
}

/* So that /dev/stdout and the terminal can be opened again by the user. */
static void own_stdio(const struct spawn_job *j)
{
	int i;

	if (!j->user.uid)
		return;
	if (j->s.terminal >= 0)
		(void)raw(SYS_fchown, 0, j->user.uid, -1);
	for (i = j->m.flags & EXEC_STDIN ? 0 : 1; i < 3 && j->s.terminal < 0; i++)
		(void)raw(SYS_fchown, i, j->user.uid, j->user.gid);
}

/* Nothing of PID 1 but stdio and these two goes on: an end of another command's pipe, held here, would
 * keep that pipe from ending. They become 3 and 4; -1 is left out. */
static void keep_only(int *a, int *b)
{
	int *keep[2] = { a, b }, next = 3;
	size_t i;

	for (i = 0; i < 2; i++)
		if (*keep[i] >= 0)
			*keep[i] = (int)raw(SYS_fcntl, *keep[i], F_DUPFD_CLOEXEC, HIGH_FD);
	for (i = 0; i < 2; i++)
		if (*keep[i] >= 0)
			*keep[i] = (int)raw(SYS_dup3, *keep[i], next++, O_CLOEXEC);
	(void)raw(SYS_close_range, next, ~0U, 0);
}

/* Signals that were blocked come now, and end the child as they would end the command. PID 1 ignores none,
 * and execve resets those with a handler. */
static void become_child(void)
{
	uint64_t none = 0;

	(void)raw(SYS_setsid, 0, 0, 0);
	(void)raw6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, sizeof(none), 0, 0);
}

static int child(void *arg)
{
	struct spawn_job *j = arg;
	int none = -1;

	become_child();
	set_stdio(j);
	keep_only(&j->report, &none);
	find_user(j);
	own_stdio(j);
	set_user(j);
	enter_dir(j);
	make_env(j);
	run(j);
}

/* ---- the parent ---- */

static int report_pipe(int *ret_from, int *ret_to)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	*ret_from = p[0];
	*ret_to = p[1];
	return 0;
}

/* The child cannot use tcgetattr() and so on; the master side reaches the same settings. */
static void set_utf8(int terminal)
{
	struct termios t;

	if (terminal < 0 || tcgetattr(terminal, &t) < 0)
		return;
	t.c_iflag |= IUTF8;
	(void)tcsetattr(terminal, TCSANOW, &t);
}

pid_t spawn_start(struct spawn_job *j, const struct spawn *s, int *ret_report)
{
	_close_ int from = -1, to = -1;
	int r = report_pipe(&from, &to);
	pid_t pid;

	if (r < 0)
		return r;
	set_utf8(s->terminal);
	j->s = *s;
	j->report = to;
	pid = clone(child, j->stack + STACK_SIZE, CLONE_VM | SIGCHLD, j);
	if (pid < 0)
		return -errno;
	*ret_report = take_fd(&from);
	return pid;
}

pid_t spawn_fn(int data, int (*fn)(void *ctx, int data, int report), void *ctx, int *ret_report)
{
	_close_ int from = -1, to = -1;
	int r = report_pipe(&from, &to);
	pid_t pid;

	if (r < 0)
		return r;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		(void)signal(SIGPIPE, SIG_IGN); /* its writes fail instead, and it says so */
		become_child();
		keep_only(&data, &to);
		_exit(fn(ctx, data, to));
	}
	*ret_report = take_fd(&from);
	return pid;
}
