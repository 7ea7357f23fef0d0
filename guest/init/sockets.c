/* The socket listens from boot; who connects waits in its queue while the program starts, and is then answered by it. While it runs, the
 * socket is its own and nobody here looks at it.
 *
 * A program that cannot start must not leave those in the queue waiting: a child takes the socket for a while, tells each of them why, and is gone;
 * whoever comes later has the program tried again. So a broken one costs a start every few seconds, and only where somebody asks for it. */
#include "guest/init/sockets.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "guest/init/die.h"
#include "guest/init/engine.h"
#include "guest/init/spawn.h"
#include "guest/init/spec.h"
#include "guest/init/user.h"
#include "io/fd.h"

enum {
	BACKLOG = 128,
	REFUSE_TWICE = 2,
	RETRIES = 2,
	REQUEST_MS = 2000, /* how long a client may take to ask */
	AGAIN_MS = 1000,
	NOTIFY_MAX = 512,
	REQUEST_MAX = 16 * 1024,
	TEXT_MAX = 2 * SOCKET_WHY_MAX + 64,
	ANSWER_MAX = 16 * TEXT_MAX, /* a byte is six in JSON at most */
	LISTENER = 3,
};

enum { ABSENT, WAITING, STARTING, UP, REFUSING };

const struct socket_kind sockets_kinds[SOCKETS_N] = {
	{ .name = "dockerd",
	  .path = "/run/docker.sock",
	  .group = "docker",
	  .start_ms = 180 * 1000, /* emulated, on a busy machine */
	  .steady_ms = 10 * 1000,
	  .refuse_ms = 3 * 1000,
	  .there = engine_there,
	  .run = engine_run,
	  .last_words = engine_last_words },
};

/* ---- telling why not: a child ---- */

static void answer(int fd, const char *text)
{
	struct buf json = BUF_INIT(ANSWER_MAX / 2), http = BUF_INIT(ANSWER_MAX);
	struct timeval tv = { .tv_sec = REQUEST_MS / 1000 };
	char request[REQUEST_MAX];
	size_t n = 0;
	int r;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	while (n < sizeof(request) && !memmem(request, n, "\r\n\r\n", 4)) {
		ssize_t got = recv(fd, request + n, sizeof(request) - n, 0);

		if (got <= 0)
			break;
		n += (size_t)got;
	}
	r = buf_printf(&json, "{\"message\":");
	if (r == 0)
		r = spec_quote(&json, text);
	if (r == 0)
		r = buf_printf(&json, "}\n");
	if (r == 0)
		r = buf_printf(
			&http,
			"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
			"Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
			json.n, n >= 5 && !memcmp(request, "HEAD ", 5) ? "" : buf_str(&json));
	if (r == 0)
		(void)send(fd, buf_data(&http), http.n, MSG_NOSIGNAL);
	buf_done(&json);
	buf_done(&http);
}

static uint64_t refuse_ns(const struct service *s)
{
	unsigned times = MIN(s->failures ? s->failures - 1 : 0, (unsigned)REFUSE_TWICE);

	return ((uint64_t)s->kind->refuse_ms << times) * 1000000;
}

static int refuse_child(void *ctx, int listener, int report)
{
	const struct service *s = ctx;
	uint64_t end = loop_now() + refuse_ns(s);
	unsigned late;
	char words[SOCKET_WHY_MAX] = "", text[TEXT_MAX];

	(void)report;
	if (!*s->why)
		s->kind->last_words(words, sizeof(words));
	(void)snprintf(text, sizeof(text), "%s cannot be started: %s", s->kind->name,
		       *s->why ? s->why : words);
	/* those who are in the queue when the time is over get an answer as well */
	for (late = 0; late < BACKLOG; late += loop_now() >= end) {
		uint64_t now = loop_now();
		struct pollfd p = { .fd = listener, .events = POLLIN };
		_close_ int fd = -1;

		if (poll(&p, 1, now < end ? (int)((end - now) / 1000000) + 1 : 0) <= 0) {
			if (loop_now() >= end)
				break;
			continue;
		}
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			answer(fd, text);
	}
	return 0;
}

/* ---- starting ---- */

static void notify_name(const struct service *s, char dst[64])
{
	(void)snprintf(dst, 64, "bac-notify-%s", s->kind->name);
}

static int run_child(void *ctx, int listener, int report)
{
	const struct service *s = ctx;
	char notify[64];
	struct err e;

	(void)listener; /* it is LISTENER, as the program wants it */
	notify_name(s, notify);
	(void)s->kind->run(s->of->boot, notify, &e);
	spawn_report(report, 1, e.msg);
	return 1;
}

static void wait_client(struct service *s)
{
	s->state = WAITING;
	if (loop_watch(s->of->loop, &s->listener, EPOLLIN) < 0)
		die_note("%s is not watched", s->kind->path);
}

static void on_again(struct timer *t)
{
	wait_client(container_of(t, struct service, t));
}

/* It does not say that it is ready. What it started of its own ends with it, or is found by its next start. */
static void on_slow(struct timer *t)
{
	struct service *s = container_of(t, struct service, t);

	(void)snprintf(s->why, sizeof(s->why), "it did not come up within %u s",
		       s->kind->start_ms / 1000);
	(void)kill(s->pid, SIGKILL);
}

static bool spawn(struct service *s, int state, int (*fn)(void *, int, int))
{
	pid_t pid = spawn_fn(s->listener.fd, fn, s, &s->report);

	if (pid > 0) {
		s->pid = pid;
		s->state = state;
		s->since = loop_now();
		return true;
	}
	die_note("%s: %s", s->kind->name, err_text((int)pid));
	s->report = -1;
	s->state = ABSENT;
	s->t.fn = on_again;
	loop_after(s->of->loop, &s->t, AGAIN_MS);
	return false;
}

static void on_notify(struct watch *w, uint32_t events)
{
	struct service *s = container_of(w, struct service, notify);
	char text[NOTIFY_MAX + 1];
	ssize_t n = recv(w->fd, text, NOTIFY_MAX, 0);

	(void)events;
	if (n <= 0)
		return;
	text[n] = '\0';
	if (s->state != STARTING || !(starts_with(text, "READY=1") || strstr(text, "\nREADY=1")))
		return;
	s->state = UP;
	loop_cancel(s->of->loop, &s->t);
}

static void listen_notify(struct service *s)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	socklen_t len;
	int fd;

	if (s->notify.fd >= 0)
		return;
	notify_name(s, a.sun_path + 1);
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(a.sun_path + 1));
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	s->notify = (struct watch) { fd, on_notify };
	if (fd >= 0 && bind(fd, (struct sockaddr *)&a, len) == 0 &&
	    loop_watch(s->of->loop, &s->notify, EPOLLIN) == 0)
		return;
	die_note("%s cannot say that it is ready: %s", s->kind->name, err_text(errno));
	s->notify.fd = fd_close(fd);
}

static void start(struct service *s)
{
	s->why[0] = '\0';
	listen_notify(s);
	if (!spawn(s, STARTING, run_child))
		return;
	if (s->notify.fd < 0) {
		s->state = UP;
		return;
	}
	s->t.fn = on_slow;
	loop_after(s->of->loop, &s->t, s->kind->start_ms);
}

static void on_client(struct watch *w, uint32_t events)
{
	struct service *s = container_of(w, struct service, listener);

	(void)events;
	loop_unwatch(s->of->loop, w);
	start(s);
}

/* ---- its end ---- */

static void read_report(struct service *s)
{
	uint8_t said[SOCKET_WHY_MAX] = "";
	ssize_t n = s->report < 0 ? -1 : read(s->report, said, sizeof(said) - 1);

	if (n > 1)
		(void)snprintf(s->why, sizeof(s->why), "%.*s", (int)n - 1, (const char *)said + 1);
	s->report = fd_close(s->report);
}

static void ended(struct service *s, int status)
{
	bool up = s->state == UP, asked, steady;

	asked = (WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
		(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	steady = loop_now() - s->since > (uint64_t)s->kind->steady_ms * 1000000;
	if (WIFEXITED(status))
		die_note("%s ended with status %d%s%s", s->kind->name, WEXITSTATUS(status),
			 *s->why ? ": " : "", s->why);
	else
		die_note("%s was ended by signal %d", s->kind->name, WTERMSIG(status));
	if (up && asked) {
		s->failures = 0;
		wait_client(s);
	} else if (up && steady) {
		s->failures = 0;
		start(s);
	} else if (steady && !*s->why && s->failures < RETRIES) {
		/* not its settings, but a machine that is slow: dockerd gives containerd 15 s */
		s->failures++;
		start(s);
	} else {
		s->failures++;
		(void)spawn(s, REFUSING, refuse_child);
	}
}

bool sockets_reaped(struct sockets *ss, pid_t pid, int status)
{
	struct service *s;

	for (s = ss->s; s < ss->s + SOCKETS_N; s++) {
		if (s->pid != pid)
			continue;
		s->pid = 0;
		loop_cancel(ss->loop, &s->t);
		read_report(s);
		if (ss->stopping)
			s->state = ABSENT;
		else if (s->state == REFUSING)
			wait_client(s);
		else
			ended(s, status);
		return true;
	}
	return false;
}

/* ---- all of them ---- */

/* The group that may use it, else the agent's own. */
static gid_t group_of(const char *name)
{
	static char passwd[USER_FILE_MAX], group[USER_FILE_MAX];
	struct user_files f = { .passwd = passwd, .group = group };
	char spec[64];
	struct user u;
	struct err e;

	f.group_len = user_read("/etc/group", group, sizeof(group));
	(void)snprintf(spec, sizeof(spec), "0:%s", name);
	if (user_find(&u, &f, spec, &e) == 0)
		return u.gid;
	f.passwd_len = user_read("/etc/passwd", passwd, sizeof(passwd));
	return user_find(&u, &f, "", &e) == 0 ? u.gid : 0;
}

static int listen_at(const struct socket_kind *k)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", k->path);
	(void)unlink(k->path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || chmod(k->path, 0660) < 0 ||
	    listen(fd, BACKLOG) < 0)
		return -errno;
	if (lchown(k->path, 0, group_of(k->group)) < 0)
		die_note("%s is for root alone: %s", k->path, err_text(errno));
	return take_fd(&fd);
}

void sockets_listen(struct sockets *ss, const struct socket_kind *kinds, struct loop *l,
		    const struct boot *b)
{
	size_t i;

	ss->loop = l;
	ss->boot = b;
	for (i = 0; i < SOCKETS_N; i++) {
		struct service *s = &ss->s[i];

		*s = (struct service) { .kind = &kinds[i], .of = ss, .report = -1 };
		s->listener = (struct watch) { -1, on_client };
		s->notify.fd = -1;
		if (!kinds[i].there())
			continue;
		s->listener.fd = listen_at(&kinds[i]);
		if (s->listener.fd < 0)
			die_note("%s: %s", kinds[i].path, err_text(s->listener.fd));
		else
			wait_client(s);
	}
}

void sockets_stop(struct sockets *ss)
{
	struct service *s;

	ss->stopping = true;
	for (s = ss->s; ss->loop && s < ss->s + SOCKETS_N; s++) {
		loop_cancel(ss->loop, &s->t);
		if (s->state == WAITING)
			loop_unwatch(ss->loop, &s->listener);
		if (s->pid)
			(void)kill(s->pid, SIGTERM);
	}
}

bool sockets_idle(const struct sockets *ss)
{
	const struct service *s;

	for (s = ss->s; s < ss->s + SOCKETS_N; s++)
		if (s->pid)
			return false;
	return true;
}
