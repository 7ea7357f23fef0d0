/* bac-audit as its peers see it: a sealed child of the test serves sockets of the test. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/seal.h"
#include "audit/serve.h"
#include "base/check.h"
#include "seal/seal.h"
#include "sys/dirs.h"
#include "wire/frame.h"

static char top[] = "/tmp/test-audit-serve-XXXXXX";

struct rig {
	int dir, proxy, sup;
	pid_t pid;
};

static _noreturn_ void child(int dir, int proxy, int sup, uint64_t file_size)
{
	const struct audit_config c = { "web", file_size, 3 * file_size };
	struct audit_chain *chain;
	int r;

	(void)signal(SIGXFSZ, SIG_IGN);
	check(audit_chain_open(dir, &c, &chain) == 0);
	check(seal_begin() == 0 && seal() == 0);
	r = serve_run(chain, proxy, sup);
	(void)audit_chain_close(chain);
	_exit(r == 0 ? 0 : r == -EPROTO ? 3 : 4);
}

static struct rig start(uint64_t file_size)
{
	static unsigned n;
	char path[64];
	struct rig r;
	int p[2], s[2];

	(void)snprintf(path, sizeof(path), "%s/%u", top, n++);
	check(mkdir(path, 0700) == 0);
	r.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(r.dir >= 0);
	check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p) == 0);
	check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s) == 0);
	r.pid = fork();
	check(r.pid >= 0);
	if (!r.pid) {
		(void)close(p[0]);
		(void)close(s[0]);
		child(r.dir, p[1], s[1], file_size);
	}
	(void)close(p[1]);
	(void)close(s[1]);
	r.proxy = p[0];
	r.sup = s[0];
	return r;
}

static int finish(struct rig *r)
{
	struct audit_verdict v;
	int status;

	(void)fd_close(r->sup);
	(void)fd_close(r->proxy);
	check(waitpid(r->pid, &status, 0) == r->pid && WIFEXITED(status));
	check(audit_verify(r->dir, &v) == 0 && !v.broken && !v.rest);
	(void)close(r->dir);
	return WEXITSTATUS(status);
}

static void send_records(int fd, unsigned n, const char *host)
{
	const struct receipt one = { .event = RECEIPT_DECISION,
				     .kind = RK_TLS,
				     .host = host,
				     .port = 443,
				     .reason = "default-deny" };
	struct buf b = BUF_INIT(RECEIPT_DATAGRAM_MAX);

	while (n--)
		check(receipt_put(&b, &one) == 0);
	check(send(fd, buf_data(&b), b.n, 0) == (ssize_t)b.n);
	buf_done(&b);
}

/* The next answer; waits for it. False: hung up. */
static bool answer(int fd, struct receipt_answer *ret)
{
	static uint8_t p[RECEIPT_ANSWER_MAX];
	ssize_t n = recv(fd, p, sizeof(p), 0);

	if (n <= 0)
		return false;
	check(receipt_answer_get(ret, p, (size_t)n) == WIRE_OK);
	return true;
}

/* Answers until this many are written. */
static void written(int fd, uint64_t want)
{
	struct receipt_answer a = { 0 };

	while (a.count < want)
		check(answer(fd, &a) && !a.alarm && a.count <= want);
}

static void both_sides(void)
{
	struct rig r = start(1 << 20);

	send_records(r.proxy, 1, "a.example");
	written(r.proxy, 1);
	send_records(r.sup, RECEIPT_BATCH, "b.example");
	written(r.sup, RECEIPT_BATCH);
	for (int i = 0; i < 20; i++)
		send_records(r.proxy, 7, "c.example");
	written(r.proxy, 141);
	check(finish(&r) == 0);
}

/* Over many files, sealed. */
static void rotates(void)
{
	struct rig r = start(AUDIT_LINE_MAX);
	struct audit_verdict v;

	for (unsigned i = 1; i <= 100; i++) {
		send_records(r.proxy, RECEIPT_BATCH, "a.example");
		written(r.proxy, (uint64_t)i * RECEIPT_BATCH);
	}
	check(audit_verify(r.dir, &v) == 0 && !v.broken && v.first > 1000);
	check(finish(&r) == 0);
}

/* The proxy talks nonsense: it is hung up on, and another one can come. */
static void nonsense(void)
{
	static uint8_t big[RECEIPT_DATAGRAM_MAX + 1];
	static const size_t sizes[] = { 1, 7, 100, sizeof(big) };
	struct receipt_answer a;
	struct rig r = start(1 << 20);

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		const uint8_t byte = RECEIPT_NEW_PROXY;
		int p[2];

		check(send(r.proxy, big, sizes[i], 0) == (ssize_t)sizes[i]);
		check(!answer(r.proxy, &a));
		(void)close(r.proxy);
		check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p) == 0);
		check(fd_send_with(r.sup, &byte, 1, p[1], 0) == 0);
		(void)close(p[1]);
		r.proxy = p[0];
		send_records(r.proxy, 2, "a.example");
		written(r.proxy, 2);
	}
	send_records(r.proxy, RECEIPT_BATCH + 1, "a.example");
	check(!answer(r.proxy, &a));
	send_records(r.sup, 1, "b.example");
	written(r.sup, 1);
	check(send(r.sup, "x", 1, 0) == 1);
	check(finish(&r) == 3);
}

/* The proxy must not bring descriptors. */
static void gift(void)
{
	const uint8_t byte = RECEIPT_NEW_PROXY;
	struct receipt_answer a;
	struct rig r = start(1 << 20);

	check(fd_send_with(r.proxy, &byte, 1, r.dir, 0) == 0);
	check(!answer(r.proxy, &a));
	check(finish(&r) == 0);
}

/* No room: no answer, an alarm, and all is made good once there is room. */
static void full(void)
{
	struct rig r = start(1 << 20);
	struct rlimit l = { 600, RLIM_INFINITY };
	struct receipt_answer a;
	struct pollfd f = { r.proxy, POLLIN, 0 };

	send_records(r.proxy, 1, "a.example");
	written(r.proxy, 1);
	check(prlimit(r.pid, RLIMIT_FSIZE, &l, NULL) == 0);
	send_records(r.proxy, 3, "b.example");
	check(answer(r.sup, &a) && a.alarm && a.code == EFBIG &&
	      strstr(a.text, "cannot be written"));
	send_records(r.proxy, 3, "c.example");
	check(poll(&f, 1, 0) == 0);
	l.rlim_cur = RLIM_INFINITY;
	check(prlimit(r.pid, RLIMIT_FSIZE, &l, NULL) == 0);
	check(answer(r.sup, &a) && a.alarm && !a.code && strstr(a.text, "again"));
	written(r.proxy, 7);
	check(finish(&r) == 0);
}

/* A proxy that reads no answer holds up nobody. */
static void deaf(void)
{
	struct rig r = start(8 << 20);
	const struct timeval patience = { 0, 200000 };
	struct receipt_answer a = { 0 };
	uint64_t sent = 0;

	check(setsockopt(r.proxy, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0);
	for (int i = 0; i < 2000; i++, sent++) {
		send_records(r.proxy, 1, "a.example");
		send_records(r.sup, 1, "b.example");
		written(r.sup, (uint64_t)i + 1);
	}
	while (a.count < sent)
		check(answer(r.proxy, &a) && a.count <= sent);
	check(finish(&r) == 0);
}

int main(void)
{
	check(mkdtemp(top));
	(void)signal(SIGPIPE, SIG_IGN);
	both_sides();
	rotates();
	nonsense();
	gift();
	full();
	deaf();
	check(dirs_remove(AT_FDCWD, top) == 0);
	return 0;
}
