/* bac-fetch: opens the store for bac-keeper. As the user, not in a cage, in the environment of the command that started the sandbox: the store may be the desktop's, and an
 * entry may be a command of the user's. Descriptor 3 is the keeper (wire/keeper.h), whose end is its own; 2 takes a line when it dies.
 *
 * Each question is a child of its own, which opens the store, answers and ends: so no value stays, a command that hangs holds nobody up, and what takes too long is killed. A
 * write is waited for, so that who reads afterwards finds it.
 *
 * The child of a turn takes the lock of that login first, reads what the sandbox before it has left there, and lives on after its answer until it is told that the turn
 * is over: so the lock cannot outlive whoever holds it. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "io/fd.h"
#include "secrets/store.h"
#include "sys/dirs.h"
#include "sys/lock.h"
#include "wire/keeper.h"

enum {
	FD_KEEPER = 3,
	CHILDREN_MAX = 8,
	COMMAND_MS = 30000, /* for a command of the user's */
	CHILD_S = 45,       /* for all that a child does */
	WAIT_S = 120,       /* to have a turn, and the value */
	HOLD_S = 30,        /* then, for the provider's answer */
	LOGIN_S = 60,       /* another sandbox may have renewed it */
};

struct child {
	pid_t pid; /* 0: none */
	uint32_t number;
	bool loose; /* nobody wants to hear of it */
};

struct fetch {
	struct child v[CHILDREN_MAX];
	unsigned n;
	int sig;
	char *config;
	uint8_t in[KEEPER_MSG_MAX];
};

static void answer(const struct keeper_msg *m)
{
	static uint8_t out[KEEPER_VALUE_MAX + 4096];
	ssize_t n = keeper_put(m, out, sizeof(out));

	if (n > 0)
		(void)!send(FD_KEEPER, out, (size_t)n, MSG_NOSIGNAL);
	explicit_bzero(out, sizeof(out));
}

static void not(uint32_t number, const char *why)
{
	const struct keeper_msg m = { .type = KEEPER_NOT, .number = number, .text = why };

	answer(&m);
}

/* ---- in a child ---- */

static int open_store(const struct fetch *f, struct store **ret, struct err *e)
{
	_free_ char *notice = NULL; /* for people who look at a terminal */

	return store_open(f->config, "auto", ret, &notice, e);
}

static int peek(struct store *s, const struct keeper_msg *m, char **ret, size_t *ret_n)
{
	struct store_entry entry;
	struct err e;
	int r = store_get(s, m->text, &entry, ret, ret_n, &e);

	if (r == 0)
		store_entry_done(&entry);
	return r;
}

static bool of_login(const char *key)
{
	const char *kind = strchr(key, '/');

	return kind && starts_with(kind, "/oauth/");
}

/* A value and how long it is good for; NULL: to a peek, it must be made. */
static int get(struct store *s, const struct keeper_msg *m, char **ret, size_t *ret_n,
	       int64_t *ret_refresh, struct err *e)
{
	int r = 0;

	*ret_refresh = -1;
	if (m->type != KEEPER_PEEK)
		r = store_resolve(s, m->text, COMMAND_MS, ret, ret_n, ret_refresh, e);
	else if (peek(s, m, ret, ret_n) < 0)
		*ret = NULL;
	if (of_login(m->text) && (*ret_refresh < 0 || *ret_refresh > LOGIN_S))
		*ret_refresh = LOGIN_S;
	return r;
}

static bool on_get(const struct fetch *f, const struct keeper_msg *m)
{
	_cleanup_(store_closep) struct store *s = NULL;
	struct keeper_msg a = { .type = KEEPER_GOT, .number = m->number };
	struct err e = { 0 };
	char *value = NULL;
	int64_t refresh = 0;
	size_t n = 0;
	int r = open_store(f, &s, &e);

	if (r == 0)
		r = get(s, m, &value, &n, &refresh, &e);
	if (r < 0 || !value) {
		not(m->number, r < 0 && m->type != KEEPER_PEEK ? e.msg : "");
		return false;
	}
	a.bytes = (struct keeper_bytes) { (const uint8_t *)value, (uint32_t)n };
	a.when = refresh < 0 ? UINT64_MAX : (uint64_t)refresh;
	answer(&a);
	(void)store_value_free(value, n);
	return true;
}

/* The lock of a login, beside the store that it is in. */
static int take_lock(const struct fetch *f, const char *key, int *ret)
{
	_close_ int dir = open(f->config, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[STORE_KEY_MAX + 16];

	if (dir < 0)
		return -errno;
	(void)snprintf(name, sizeof(name), ".turn.%s", key);
	for (char *p = name; *p; p++)
		if (*p == '/')
			*p = '.';
	return lock_take(dir, name, false, true, ret);
}

static void on_turn(const struct fetch *f, const struct keeper_msg *m)
{
	_close_ int lock = -1;
	char text[200];
	int r;

	(void)alarm(WAIT_S);
	r = take_lock(f, m->text, &lock);
	if (r < 0) {
		(void)snprintf(text, sizeof(text), "cannot lock the login: %s", strerror(-r));
		not(m->number, text);
		return;
	}
	if (!on_get(f, m))
		return;
	(void)alarm(HOLD_S);
	for (;;)
		(void)pause();
}

static void on_put(const struct fetch *f, const struct keeper_msg *m)
{
	const struct keeper_msg done = { .type = KEEPER_PUT_DONE, .number = m->number };
	_cleanup_(store_closep) struct store *s = NULL;
	struct store_entry entry = { .how = STORE_VALUE };
	_free_ char *key = strdup(m->text);
	struct err e = { 0 };
	int r;

	entry.key = key;
	r = key ? open_store(f, &s, &e) : err_errno(&e, -ENOMEM, "cannot write");
	if (r == 0)
		r = store_put(s, &entry, (const char *)m->bytes.p, m->bytes.n, &e);
	if (r < 0)
		not(m->number, e.msg);
	else
		answer(&done);
}

static _noreturn_ void child(const struct fetch *f, const struct keeper_msg *m)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)alarm(CHILD_S);
	if (m->type == KEEPER_PUT)
		on_put(f, m);
	else if (m->type == KEEPER_TURN)
		on_turn(f, m);
	else
		(void)on_get(f, m);
	_exit(0);
}

/* ---- the loop ---- */

static void ended(uint32_t number, int status)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		not(number, "it took too long");
	else if (!WIFEXITED(status) || WEXITSTATUS(status))
		not(number, "what asked the store for it has died");
}

static void start(struct fetch *f, const struct keeper_msg *m)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		child(f, m);
	if (pid < 0) {
		not(m->number, "no process can be started");
		return;
	}
	if (m->type == KEEPER_PUT) {
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		ended(m->number, status);
		return;
	}
	for (size_t i = 0; i < CHILDREN_MAX; i++) {
		if (f->v[i].pid)
			continue;
		f->v[i] = (struct child) { .pid = pid, .number = m->number };
		f->n++;
		return;
	}
}

static void on_children(struct fetch *f)
{
	struct signalfd_siginfo si;
	int status;
	pid_t pid;

	(void)!read(f->sig, &si, sizeof(si));
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (size_t i = 0; i < CHILDREN_MAX; i++) {
			if (f->v[i].pid != pid)
				continue;
			f->v[i].pid = 0;
			f->n--;
			if (!f->v[i].loose)
				ended(f->v[i].number, status);
		}
}

static void loose(struct fetch *f, uint32_t number)
{
	for (size_t i = 0; i < CHILDREN_MAX; i++)
		if (f->v[i].pid && f->v[i].number == number) {
			f->v[i].loose = true;
			(void)kill(f->v[i].pid, SIGKILL);
		}
}

static bool for_us(const struct keeper_msg *m)
{
	return m->type == KEEPER_GET || m->type == KEEPER_PEEK || m->type == KEEPER_PUT ||
	       m->type == KEEPER_TURN || m->type == KEEPER_LOOSE;
}

/* 0; -errno: the end. */
static int take(struct fetch *f)
{
	struct keeper_msg m;
	ssize_t n = recv(FD_KEEPER, f->in, sizeof(f->in), MSG_DONTWAIT);
	int r = 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -ECONNRESET;
	if (keeper_parse(&m, 'K', f->in, (size_t)n, 0) != WIRE_OK || !for_us(&m))
		r = -EPROTO;
	else if (m.type == KEEPER_LOOSE)
		loose(f, m.number);
	else
		start(f, &m);
	explicit_bzero(f->in, (size_t)n);
	return r;
}

static int serve(struct fetch *f)
{
	int r = 0;

	while (r == 0) {
		struct pollfd p[] = {
			{ .fd = FD_KEEPER, .events = f->n < CHILDREN_MAX ? POLLIN : 0 },
			{ .fd = f->sig, .events = POLLIN },
		};

		if (poll(p, ARRAY_SIZE(p), -1) < 0)
			continue;
		if (p[1].revents)
			on_children(f);
		if (p[0].revents & POLLIN)
			r = take(f);
		else if (p[0].revents)
			r = -ECONNRESET; /* nobody is there to be answered */
	}
	return r == -ECONNRESET ? 0 : r;
}

static int begin(struct fetch *f, struct err *e)
{
	const struct rlimit none = { 0, 0 };
	struct dirs d;
	sigset_t set;
	int r;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)umask(077);
	if (fd_cloexec(FD_KEEPER, true) < 0)
		return err_set(e, -EBADF, "started by bac, not by hand");
	(void)close_range(FD_KEEPER + 1, ~0U, 0);
	if (setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_errno(e, -errno, "cannot begin");
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
	f->sig = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (f->sig < 0)
		return err_errno(e, -errno, "cannot begin");
	r = dirs_get(&d, e);
	if (r < 0)
		return r;
	f->config = strdup(d.config);
	dirs_done(&d);
	return f->config ? 0 : err_errno(e, -ENOMEM, "cannot begin");
}

int main(void)
{
	static struct fetch f;
	struct err e = { 0 };
	int r = begin(&f, &e);

	if (r == 0) {
		r = serve(&f);
		if (r < 0)
			(void)err_set(&e, r, "the keeper was not understood");
	}
	free(f.config);
	if (r == 0)
		return 0;
	(void)dprintf(STDERR_FILENO, "bac-fetch: %s\n", e.msg);
	return 1;
}
