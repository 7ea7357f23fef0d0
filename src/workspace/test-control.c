/* The supervisor's messages, said over a socket to a server's end with its real file system. */
#include "workspace/control.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/leak.h"
#include "io/fd.h"

static struct control *c;
static int sup, proc;
static uint8_t bytes[SHARE_MSG_MAX + 1];
static struct share_msg got;

static void begin(void)
{
	struct fs_config config = { .uid = geteuid(), .gid = getegid() };
	int s[2];

	check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s) == 0);
	sup = s[0];
	proc = config.proc_fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	check(proc >= 0 && control_new(s[1], &config, &c) == 0);
}

static void end(void)
{
	int sock = c->sock;

	c = control_free(c);
	(void)fd_close(sock);
	sup = fd_close(sup);
	proc = fd_close(proc);
}

static void send_raw(const void *p, size_t n, int fd, size_t n_fds)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int) * 8)];
	} control = { 0 };
	struct iovec io = { .iov_base = (void *)(uintptr_t)p, .iov_len = n };
	struct msghdr h = { .msg_iov = &io, .msg_iovlen = 1 };

	if (n_fds) {
		h.msg_control = &control;
		h.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		for (size_t i = 0; i < n_fds; i++)
			memcpy(CMSG_DATA(&control.align) + i * sizeof(int), &fd, sizeof(int));
	}
	check(sendmsg(sup, &h, 0) == (ssize_t)n);
}

static void send_msg(const struct share_msg *m, int fd)
{
	ssize_t n = share_put(m, bytes, sizeof(bytes));

	check(n > 0);
	send_raw(bytes, (size_t)n, fd, fd >= 0);
}

static void receive(void)
{
	ssize_t n = recv(sup, bytes, sizeof(bytes), MSG_DONTWAIT);

	check(n > 0 && share_parse(&got, FROM_WORKSPACE, bytes, (size_t)n, 0) == WIRE_OK);
}

/* Say it, and what is answered. */
static int ask(struct share_msg m, int fd)
{
	static uint32_t seq;

	m.seq = ++seq;
	send_msg(&m, fd);
	check(control_read(c, false) == 1);
	receive();
	check(got.type == SHARE_ANSWER && got.seq == seq);
	check((got.answer.code == 0) == (got.answer.text[0] == '\0'));
	return got.answer.code;
}

static int ask_add(uint32_t id, uint8_t flags, const char *path)
{
	int fd = open(path, O_PATH | O_CLOEXEC), r;

	check(fd >= 0);
	r = ask((struct share_msg) { .type = SHARE_ADD, .add = { id, flags, path } }, fd);
	(void)fd_close(fd);
	return r;
}

static int ask_rule(uint8_t kind, const char *pattern)
{
	struct share_msg m = { .type = SHARE_RULES };

	m.rules.n = 1;
	m.rules.v[0] = (struct share_rule) { kind, pattern };
	return ask(m, -1);
}

static void shares(void)
{
	begin();
	check(control_read(c, false) == 0);
	check(ask((struct share_msg) { .type = SHARE_REMOVE, .remove = 1 }, -1) == -ENOENT);
	check(ask_rule(SHARE_HIDE, "a//b") == -EINVAL && !c->fs);
	check(ask_rule(SHARE_HIDE, ".env") == 0);
	check(ask_rule(SHARE_HIDE, ".env") == -EBUSY);
	check(ask_add(1, 0, "/tmp") == 0);
	check(ask_add(1, 0, "/tmp") == -EEXIST);
	check(ask_add(2, SHARE_FILE, "/tmp") < 0);
	check(ask_add(3, SHARE_FILE | SHARE_RO, "/proc/self/status") <= 0);
	check(ask((struct share_msg) { .type = SHARE_REMOVE, .remove = 1 }, -1) == 0);
	check(ask((struct share_msg) { .type = SHARE_REMOVE, .remove = 1 }, -1) == -ENOENT);
	end();
	begin();
	check(ask_add(1, 0, "/tmp") == 0);
	check(ask_rule(SHARE_HIDE, ".env") == -EBUSY);
	end();
}

/* Marks at any time; what is none is refused, and the conversation goes on. */
static void marks(void)
{
	struct share_msg m = { .type = SHARE_MARKS,
			       .marks = { .p = (const uint8_t *)"x", .n = 1 } };
	struct leak_mark *v = calloc(LEAK_FORMS_MAX, sizeof(*v));
	struct buf b = BUF_INIT(LEAK_SET_MAX);
	struct leak_set s;
	size_t n;

	check(v);
	n = leak_marks(1, "a", (const uint8_t *)"0123456789abcdef0123", 20, v, LEAK_FORMS_MAX);
	check(leak_set_init(&s, 1, v, n) == 0 && leak_set_put(&b, &s) == 0);
	begin();
	check(ask(m, -1) == -EPROTO);
	m.marks = (struct share_marks) { true, (uint32_t)b.n, buf_data(&b) };
	check(ask(m, -1) == 0 && ask(m, -1) == 0);
	check(ask_add(1, 0, "/tmp") == 0);
	m.marks.refuse = false;
	check(ask(m, -1) == 0);
	end();
	buf_done(&b);
	leak_set_done(&s);
}

/* START is answered when the process is sealed, once. */
static void start(void)
{
	struct share_msg m = { .type = SHARE_START, .seq = 77 };

	begin();
	send_msg(&m, -1);
	check(control_read(c, true) == 1 && c->start && c->fs);
	check(recv(sup, bytes, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	check(control_started(c, 0) == 0);
	receive();
	check(got.type == SHARE_ANSWER && got.seq == 77 && got.answer.code == 0);
	check(ask(m, -1) == -EALREADY);
	check(ask_add(1, 0, "/tmp") == 0);
	end();
}

static void ends(const void *p, size_t n, int fd, size_t n_fds)
{
	begin();
	send_raw(p, n, fd, n_fds);
	check(control_read(c, false) == -EPROTO);
	end();
}

static void faults(void)
{
	const struct share_msg add = { .type = SHARE_ADD, .add = { 1, 0, "/tmp" } };
	const struct share_msg answer = { .type = SHARE_ANSWER, .answer = { 0, "" } };
	static uint8_t p[SHARE_MSG_MAX + 1], big[SHARE_MSG_MAX + 100];
	int fd = open("/tmp", O_PATH | O_CLOEXEC);
	size_t n = (size_t)share_put(&add, p, sizeof(p));

	check(fd >= 0);
	ends(p, n, -1, 0);
	ends(p, n, fd, 2);
	ends(p, n, fd, 8); /* more than there is room for */
	ends(p, n - 1, fd, 1);
	ends("", 1, -1, 0);
	big[0] = SHARE_RULES;
	ends(big, sizeof(big), -1, 0);
	n = (size_t)share_put(&answer, p, sizeof(p));
	ends(p, n, -1, 0);
	begin();
	sup = fd_close(sup);
	check(control_read(c, false) == -ECONNRESET);
	end();
	fd = fd_close(fd);
}

/* So many in a second, and what was left out is counted. The test may see two seconds. */
static void refusals(void)
{
	const struct fs_refusal r = {
		.kind = PATH_HIDE, .share = 4, .path = "a/.env", .rule = ".env", .op = "OPEN"
	};
	unsigned told = 0, asked = 0;
	uint32_t dropped = 0;

	begin();
	do {
		c->config.refused(c->config.refused_arg, &r);
		asked++;
		while (recv(sup, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_PEEK) > 0) {
			receive();
			check(got.type == SHARE_REFUSED && got.seq == 0 && got.refused.share == 4);
			check(got.refused.kind == SHARE_HIDE && streq(got.refused.path, "a/.env"));
			dropped += got.refused.dropped;
			told++;
		}
	} while (asked < 100 || !dropped);
	check(told >= SHARE_REFUSALS_MAX && dropped >= 100 - 2 * SHARE_REFUSALS_MAX);
	check(told + dropped == asked);
	end();
}

int main(void)
{
	shares();
	marks();
	start();
	faults();
	refusals();
	return 0;
}
