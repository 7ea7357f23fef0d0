/* Running skopeo. What it says on stderr are lines of logrus: time="..." level=fatal msg="..." . */
#include "image/skopeo.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "io/fd.h"
#include "sys/spawn.h"

enum { ARGS_MAX = 32, LINE_LONGEST = 16 * 1024, TICK_MS = 500, AUTH_FD = 3 };

#define POLICY "/etc/containers/policy.json"

/* ---- its words ---- */

bool image_skopeo_message(const char *line, char *dst, size_t max)
{
	const char *p = strstr(line, " msg=");
	size_t n = 0;
	bool quoted;

	if (!p)
		return false;
	p += 5;
	quoted = *p == '"';
	p += quoted;
	for (; *p && n < max - 1 && *p != (quoted ? '"' : ' '); p++) {
		if (quoted && *p == '\\' && p[1]) {
			p++;
			dst[n++] = (char)(strchr("nrt", *p) ? ' ' : *p);
		} else {
			dst[n++] = *p;
		}
	}
	dst[n] = '\0';
	return true;
}

struct talk {
	const struct image_skopeo *s;
	struct buf *out;
	int out_fd, err_fd;
	char line[LINE_LONGEST], msg[LINE_LONGEST];
	size_t n;
	char last[ERR_MSG_MAX]; /* what it died of, or the last line */
	bool fatal, flooded;
};

static void on_request(struct talk *t)
{
	static const char *const verbs[] = { "GET ", "POST ", "HEAD " };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(verbs); i++) {
		char *url = t->msg + strlen(verbs[i]);

		if (!starts_with(t->msg, verbs[i]) || !starts_with(url, "http"))
			continue;
		url[strcspn(url, "? ")] = '\0';
		t->s->request(t->s->user, url);
	}
}

static void end_line(struct talk *t)
{
	t->line[t->n] = '\0';
	if (!t->n)
		return;
	t->n = 0;
	if (!image_skopeo_message(t->line, t->msg, sizeof(t->msg)))
		(void)snprintf(t->msg, sizeof(t->msg), "%s", t->line);
	if (strstr(t->line, " level=debug ")) {
		if (t->s->request)
			on_request(t);
		return;
	}
	if (t->fatal)
		return;
	t->fatal = strstr(t->line, " level=fatal ");
	(void)snprintf(t->last, sizeof(t->last), "%.500s", t->msg);
}

/* False at the end. */
static bool read_words(struct talk *t)
{
	char part[4096];
	ssize_t n = read(t->err_fd, part, sizeof(part)), i;

	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	for (i = 0; i < n; i++) {
		if (part[i] == '\n')
			end_line(t);
		else if (t->n < sizeof(t->line) - 1)
			t->line[t->n++] = part[i];
	}
	if (n == 0)
		end_line(t);
	return n > 0;
}

static bool read_output(struct talk *t)
{
	char part[16 * 1024];
	ssize_t n = read(t->out_fd, part, sizeof(part));

	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	if (n > 0 && t->out && buf_add(t->out, part, (size_t)n) < 0)
		t->flooded = true;
	return n > 0 && !t->flooded;
}

/* ---- the run ---- */

/* Until both of its streams have ended. */
static int watch(struct talk *t)
{
	uint64_t next = fd_now_ns();

	while (t->out_fd >= 0 || t->err_fd >= 0) {
		struct pollfd p[] = {
			{ .fd = t->out_fd, .events = POLLIN },
			{ .fd = t->err_fd, .events = POLLIN },
			{ .fd = t->s->signals, .events = POLLIN },
		};

		if (poll(p, ARRAY_SIZE(p), t->s->tick ? TICK_MS : -1) < 0 && errno != EINTR)
			return -errno;
		if (p[2].revents)
			return -EINTR;
		if (p[0].revents && !read_output(t))
			t->out_fd = -1;
		if (p[1].revents && !read_words(t))
			t->err_fd = -1;
		if (t->flooded)
			return -EFBIG;
		if (t->s->tick && fd_now_ns() >= next) {
			t->s->tick(t->s->user);
			next = fd_now_ns() + (uint64_t)TICK_MS * 1000000;
		}
	}
	return 0;
}

static int finish(struct talk *t, pid_t pid, int pidfd, int r, struct err *e)
{
	int status = 0;

	if (r < 0) {
		(void)kill(-pid, SIGKILL);
		sys_kill(pid);
		if (r == -EFBIG)
			return err_set(e, r, "the answer is too long");
		return r == -EINTR ? err_set(e, r, "interrupted")
				   : err_errno(e, r, "cannot run skopeo");
	}
	r = sys_wait(pid, pidfd, UINT64_MAX, &status);
	if (r < 0)
		return err_errno(e, r, "cannot wait for skopeo");
	if (!status)
		return 0;
	(void)err_set(e, -EIO, "%s", t->last[0] ? t->last : "skopeo failed and did not say why");
	return 1;
}

/* Options of the command are called otherwise for a copy. */
static int make_args(const struct image_skopeo *s, const char *const *args, const char *v[ARGS_MAX])
{
	bool copy = streq(args[0], "copy");
	size_t n = 0;

	v[n++] = "skopeo";
	/* the host may demand signatures; without a word from it there is no policy at all, which skopeo refuses */
	if (access(POLICY, R_OK) < 0)
		v[n++] = "--insecure-policy";
	if (s->request)
		v[n++] = "--debug";
	v[n++] = args[0];
	if (s->auth >= 0) {
		v[n++] = copy ? "--src-authfile" : "--authfile";
		v[n++] = "/proc/self/fd/3";
	}
	if (s->certs) {
		v[n++] = copy ? "--src-cert-dir" : "--cert-dir";
		v[n++] = s->certs;
	}
	if (s->plain)
		v[n++] = copy ? "--src-tls-verify=false" : "--tls-verify=false";
	for (args++; *args; args++) {
		if (n == ARGS_MAX - 1)
			return -E2BIG;
		v[n++] = *args;
	}
	v[n] = NULL;
	return 0;
}

/* Variables by which the user's own files would be found. */
static const char *const ours[] = { "HOME",          "XDG_CONFIG_HOME",    "XDG_RUNTIME_DIR",
				    "XDG_DATA_HOME", "REGISTRY_AUTH_FILE", "DOCKER_CONFIG" };

static bool is_replaced(const char *var, const char *const *env)
{
	size_t n = strcspn(var, "="), i;

	for (i = 0; i < ARRAY_SIZE(ours); i++)
		if (strlen(ours[i]) == n && memcmp(ours[i], var, n) == 0)
			return true;
	for (i = 0; env && env[i]; i++)
		if (strncmp(env[i], var, n) == 0 && env[i][n] == '=')
			return true;
	return false;
}

struct env {
	char home[ARRAY_SIZE(ours) - 2][4160]; /* all but those of files */
	const char **v;
};

static int make_env(const struct image_skopeo *s, struct env *ret)
{
	size_t n = 0, i, k = 0;

	while (environ[n])
		n++;
	for (i = 0; s->env && s->env[i]; i++)
		n++;
	ret->v = calloc(n + ARRAY_SIZE(ours) + 1, sizeof(*ret->v));
	if (!ret->v)
		return -ENOMEM;
	for (i = 0; environ[i]; i++)
		if (!is_replaced(environ[i], s->env))
			ret->v[k++] = environ[i];
	for (i = 0; s->env && s->env[i]; i++)
		ret->v[k++] = s->env[i];
	for (i = 0; i < ARRAY_SIZE(ret->home); i++) {
		int len = snprintf(ret->home[i], sizeof(ret->home[i]), "%s=%s", ours[i], s->home);

		if (len < 0 || (size_t)len >= sizeof(ret->home[i]))
			return -ENAMETOOLONG;
		ret->v[k++] = ret->home[i];
	}
	return 0;
}

static int start(const struct image_skopeo *s, const char *const *args, int out, int errs,
		 pid_t *ret_pid, int *ret_pidfd, struct err *e)
{
	struct sys_fd fds[] = { { out, 1 }, { errs, 2 }, { s->auth, AUTH_FD } };
	const char *argv[ARGS_MAX];
	struct sys_cmd c = { .argv = argv, .fds = fds, .group = true };
	struct env env = { .v = NULL };
	int r = make_args(s, args, argv);

	if (r == 0)
		r = make_env(s, &env);
	if (r < 0) {
		(void)err_errno(e, r, "cannot run skopeo");
	} else {
		c.env = env.v;
		c.n_fds = s->auth >= 0 ? 3 : 2;
		r = sys_spawn(&c, ret_pid, ret_pidfd, e);
	}
	free(env.v);
	return r;
}

int image_skopeo(const struct image_skopeo *s, const char *const *args, struct buf *out,
		 struct err *e)
{
	_close_ int o_in = -1, o_out = -1, e_in = -1, e_out = -1, pidfd = -1;
	struct talk t = { .s = s, .out = out };
	int p[2], r = 0;
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "cannot run skopeo");
	o_in = p[0];
	o_out = p[1];
	if (pipe2(p, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "cannot run skopeo");
	e_in = p[0];
	e_out = p[1];
	r = start(s, args, o_out, e_out, &pid, &pidfd, e);
	if (r < 0)
		return r;
	o_out = fd_close(o_out);
	e_out = fd_close(e_out);
	t.out_fd = o_in;
	t.err_fd = e_in;
	return finish(&t, pid, pidfd, watch(&t), e);
}
