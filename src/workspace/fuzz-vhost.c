/* A front-end that says anything, in any order, with any descriptors, over a real socket; whatever queue it gets
 * to run is drained. Each message of the input: a byte with the number of descriptors (low nibble) and their kind
 * (bit 4: the guest's memory, else an event), bit 5 asks for an acknowledgement; a byte with the request, a byte with the
 * payload's length, the payload. The bytes that follow are also poked into the guest's memory. */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rdwr.h"
#include "io/fd.h"
#include "workspace/vhost.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

enum { SIZE = 0x10000, DRAIN_MAX = 100 };

static struct vhost v;
static struct virtq_chain chain;
static int memory = -1, event = -1;

static void memory_once(void)
{
	if (memory >= 0)
		return;
	memory = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	check(memory >= 0 && event >= 0 && ftruncate(memory, SIZE) == 0);
	check(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
}

static bool put(int front, const uint8_t *bytes, size_t len, int fd, size_t n_fds)
{
	char room[CMSG_SPACE(sizeof(int) * 15)] = { 0 };
	struct iovec io = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = len };
	struct msghdr h = { .msg_iov = &io, .msg_iovlen = 1 };

	if (n_fds) {
		struct cmsghdr *c;

		h.msg_control = room;
		h.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		for (size_t i = 0; i < n_fds; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(int));
	}
	return sendmsg(front, &h, MSG_DONTWAIT) == (ssize_t)len;
}

static void drain(size_t i)
{
	struct virtq *q = &v.q[i].ring;
	int r = 0;

	for (unsigned k = 0; k < DRAIN_MAX && vhost_serves(&v, i); k++) {
		r = virtq_next(q, &chain);
		if (r != 1)
			break;
		if (k % 4)
			virtq_push(q, chain.head, 1);
	}
	if (r < 0)
		vhost_broken(&v, i);
	else if (vhost_started(&v, i))
		(void)virtq_kicks_on(q);
}

/* The bytes of a message whose size is right, unless the request is none. */
static bool message(struct rd *r, int front)
{
	const uint8_t how = rd_u8(r), request = rd_u8(r), len = rd_u8(r);
	const uint32_t head[3] = { request, 1 | (how & 0x20 ? 8 : 0), len };
	uint8_t bytes[VHOST_HEADER + UINT8_MAX];
	const uint8_t *body = rd_take(r, len);

	if (!body)
		return false;
	memcpy(bytes, head, sizeof(head));
	memcpy(bytes + sizeof(head), body, len);
	return put(front, bytes, sizeof(head) + len, how & 0x10 ? memory : event, how & 15);
}

static void poke(const struct rd *r)
{
	for (size_t i = 0; v.mem && i < r->n && i < 64; i++)
		v.mem->r[0].host[(size_t)r->p[i] * 37 % v.mem->r[0].size] = r->p[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct rd r = rd_init(p, n);
	int s[2], epoll = epoll_create1(EPOLL_CLOEXEC);
	uint8_t out[256];

	memory_once();
	check(epoll >= 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) == 0);
	vhost_init(&v, s[1], epoll, 7);
	while (message(&r, s[0])) {
		int ans = vhost_read(&v);

		check(ans <= 1 && (ans != -EPROTO || v.fault));
		if (ans < 0)
			break;
		while (recv(s[0], out, sizeof(out), MSG_DONTWAIT) > 0)
			;
		poke(&r);
		for (size_t i = 0; i < VHOST_QUEUES; i++)
			drain(i);
	}
	vhost_done(&v);
	(void)fd_close(s[0]);
	(void)fd_close(s[1]);
	(void)fd_close(epoll);
	return 0;
}
