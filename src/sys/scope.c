/* systemd-run(1) with --scope executes its command itself, after it has asked the manager to put the
 * process into a new unit. So the caller's fork() stays the parent, and descriptors, environment and
 * PDEATHSIG go through. */
#include "sys/scope.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "io/fd.h"
#include "sys/spawn.h"

enum { ARGS_MAX = 16, ID_MAX = 64 };

/* A socket may be left over from a manager that is gone; only a connection proves that one is there. */
static bool answers(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	_close_ int fd = -1;
	size_t n = strlen(path);

	if (n >= sizeof(sa.sun_path))
		return false;
	memcpy(sa.sun_path, path, n);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0;
}

int sys_systemd_find(struct sys_systemd *ret)
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	struct sys_systemd m = { .root = geteuid() == 0 };
	_free_ char *socket = NULL, *program = NULL;
	struct err e;

	if (m.root)
		socket = strdup("/run/systemd/private");
	else if (!run || run[0] != '/' || asprintf(&socket, "%s/systemd/private", run) < 0)
		return 0;
	if (!socket || !answers(socket) || sys_find("systemd-run", &program, &e) < 0)
		return 0;
	m.socket = take_ptr(socket);
	m.systemd_run = take_ptr(program);
	*ret = m;
	return 1;
}

void sys_systemd_done(struct sys_systemd *m)
{
	free(m->socket);
	free(m->systemd_run);
	*m = (struct sys_systemd) { 0 };
}

char **sys_scope_free(char **argv)
{
	for (char **a = argv; a && *a; a++)
		free(*a);
	free(argv);
	return NULL;
}

static bool id_is_fit(const char *id)
{
	size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

	return n > 0 && n <= ID_MAX && id[n] == '\0';
}

struct words {
	char **v; /* ARGS_MAX and a NULL */
	size_t n;
	bool bad;
};

static _printf_(2, 3) void word(struct words *w, const char *fmt, ...)
{
	va_list ap;
	int r;

	if (w->bad || w->n == ARGS_MAX) {
		w->bad = true;
		return;
	}
	va_start(ap, fmt);
	r = vasprintf(&w->v[w->n], fmt, ap);
	va_end(ap);
	if (r < 0) {
		w->v[w->n] = NULL;
		w->bad = true;
		return;
	}
	w->n++;
}

char **sys_scope_argv(const struct sys_systemd *m, const struct sys_scope *s)
{
	struct words w = { 0 };

	if (!m || !id_is_fit(s->id))
		return NULL;
	w.v = calloc(ARGS_MAX + 1, sizeof(*w.v));
	if (!w.v)
		return NULL;
	word(&w, "%s", m->systemd_run);
	if (!m->root)
		word(&w, "--user");
	word(&w, "--scope");
	word(&w, "--quiet");
	word(&w, "--collect");
	word(&w, "--unit=bac-%s", s->id);
	if (s->text)
		word(&w, "--description=%s", s->text);
	if (s->memory_max)
		word(&w, "--property=MemoryMax=%llu", (unsigned long long)s->memory_max);
	if (s->tasks_max)
		word(&w, "--property=TasksMax=%llu", (unsigned long long)s->tasks_max);
	if (s->cpu_percent)
		word(&w, "--property=CPUQuota=%u%%", s->cpu_percent);
	word(&w, "--");
	return w.bad ? sys_scope_free(w.v) : w.v;
}
