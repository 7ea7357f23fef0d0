/* Requests between rings and a file system that is played here: the first byte of a request says what
 * becomes of it. */
#include "workspace/queues.h"

#include <fcntl.h>
#include <linux/virtio_ring.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "io/fd.h"

enum { SIZE = 0x40000, USER = 0x70000000, NUM = 512, AVAIL = 0x4000, USED = 0x6000, BUF = 0x10000 };

enum { NOW = 1, LATER = 2, BAD = 3, FORGET = 4, ANSWER = 7 };

/* The file system: what was taken, and the late ones in the order of their coming. */
static unsigned handled;
static void *late[NUM];
static struct iovec late_out[NUM];
static unsigned n_late, n_done, n_given;

ssize_t fs_handle(struct fs *f, struct fs_req *r)
{
	const uint8_t *in = r->in[0].iov_base;

	(void)f;
	check(r->n_in == 1 && r->n_out == 1);
	handled++;
	switch (in[0]) {
	case NOW:
		*(uint8_t *)r->out[0].iov_base = ANSWER;
		return 5;
	case LATER:
		late[n_late] = r->token;
		late_out[n_late++] = r->out[0];
		return FS_LATER;
	case BAD:
		return -EPROTO;
	default:
		return 0;
	}
}

/* n_done of the late ones are done. */
bool fs_completed(struct fs *f, void **ret_token, size_t *ret_len)
{
	(void)f;
	if (n_given == n_done)
		return false;
	*(uint8_t *)late_out[n_given].iov_base = ANSWER;
	*ret_token = late[n_given++];
	*ret_len = 9;
	return true;
}

static struct vhost v;
static struct queues q;
static uint8_t *guest;
static int call, front, memory;
static uint16_t next_avail;

static int memory_file(void)
{
	int fd = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	check(fd >= 0 && ftruncate(fd, SIZE) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	return fd;
}

static void say_to(uint32_t request, const void *body, uint32_t size, int fd)
{
	const uint32_t head[3] = { request, 1, size };
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec io[2] = { { .iov_base = (void *)(uintptr_t)head, .iov_len = sizeof(head) },
			       { .iov_base = (void *)(uintptr_t)body, .iov_len = size } };
	struct msghdr h = { .msg_iov = io, .msg_iovlen = 2 };

	if (fd >= 0) {
		h.msg_control = &control;
		h.msg_controllen = sizeof(control);
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.align), &fd, sizeof(int));
	}
	check(sendmsg(front, &h, 0) == (ssize_t)(sizeof(head) + size));
	check(vhost_read(&v) == 1);
}

static void say_state(uint32_t request, uint32_t num)
{
	const uint32_t body[2] = { 1, num };

	say_to(request, body, sizeof(body), -1);
}

static void say_memory(void)
{
	const uint64_t body[5] = { 1, 0, SIZE, USER, 0 };

	say_to(VHOST_SET_MEM_TABLE, body, sizeof(body), memory);
}

static void start_queue(uint16_t base)
{
	const uint64_t addr[5] = { 1, USER, USER + USED, USER + AVAIL, 0 }, index = 1;
	int kick = eventfd(0, EFD_CLOEXEC);

	say_state(VHOST_SET_VRING_NUM, NUM);
	say_state(VHOST_SET_VRING_BASE, base);
	say_to(VHOST_SET_VRING_ADDR, addr, sizeof(addr), -1);
	say_to(VHOST_SET_VRING_KICK, &index, sizeof(index), kick);
	say_to(VHOST_SET_VRING_CALL, &index, sizeof(index), call);
	kick = fd_close(kick);
	queues_changed(&q);
}

static void begin(void)
{
	const uint64_t features = 1ULL << 32;
	int s[2];

	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) == 0);
	front = s[0];
	memory = memory_file();
	guest = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	call = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	check(guest != MAP_FAILED && call >= 0);
	vhost_init(&v, s[1], epoll_create1(EPOLL_CLOEXEC), 0);
	queues_init(&q, &v, NULL);
	say_to(VHOST_SET_FEATURES, &features, sizeof(features), -1);
	say_memory();
	next_avail = 0;
	handled = n_late = n_done = n_given = 0;
	start_queue(0);
}

static void end(void)
{
	int sock = v.sock, epoll = v.epoll;

	queues_done(&q);
	vhost_done(&v);
	(void)fd_close(sock);
	(void)fd_close(epoll);
	front = fd_close(front);
	memory = fd_close(memory);
	call = fd_close(call);
	check(munmap(guest, SIZE) == 0);
}

/* A request with a buffer to read and one to fill. Its head. */
static uint16_t offer(uint8_t what)
{
	struct vring_desc *d = (void *)guest;
	uint16_t *avail = (void *)(guest + AVAIL);
	const uint16_t head = (uint16_t)(next_avail * 2 % NUM);

	guest[BUF + head * 64] = what;
	guest[BUF + head * 64 + 32] = 0;
	d[head] = (struct vring_desc) { .addr = BUF + head * 64U,
					.len = 1,
					.flags = VRING_DESC_F_NEXT,
					.next = (uint16_t)(head + 1) };
	d[head + 1] = (struct vring_desc) { .addr = BUF + head * 64U + 32,
					    .len = 16,
					    .flags = VRING_DESC_F_WRITE };
	avail[2 + next_avail % NUM] = head;
	avail[1] = ++next_avail;
	return head;
}

static uint16_t used_idx(void)
{
	return ((const uint16_t *)(const void *)(guest + USED))[1];
}

static struct vring_used_elem used(unsigned i)
{
	return ((const struct vring_used_elem *)(const void *)(guest + USED + 4))[i % NUM];
}

static bool called(void)
{
	uint64_t n;

	return read(call, &n, sizeof(n)) == sizeof(n);
}

static void at_once(void)
{
	uint16_t head[3];

	begin();
	(void)called();
	queues_drain(&q, 1);
	check(!handled && !called());
	head[0] = offer(NOW);
	head[1] = offer(BAD);
	head[2] = offer(FORGET);
	queues_drain(&q, 1);
	check(handled == 3 && used_idx() == 3 && called() && !q.more[1]);
	check(used(0).id == head[0] && used(0).len == 5 &&
	      guest[BUF + head[0] * 64 + 32] == ANSWER);
	check(used(1).id == head[1] && used(1).len == 0);
	check(used(2).id == head[2] && used(2).len == 0);
	check(q.n_spare == 1);
	end();
}

/* More than one turn's worth: the rest is for the next. */
static void many(void)
{
	begin();
	for (unsigned i = 0; i < 256; i++)
		(void)offer(NOW);
	queues_drain(&q, 1);
	check(handled == 256 && q.more[1]);
	queues_drain(&q, 1);
	check(handled == 256 && !q.more[1]);
	for (unsigned i = 0; i < 256; i++)
		(void)offer(NOW);
	queues_drain(&q, 1);
	(void)offer(NOW);
	check(q.more[1]);
	queues_drain(&q, 1);
	check(handled == 513 && used_idx() == 513 && !q.more[1]);
	end();
}

/* Answered out of turn, the memory replaced meanwhile: the old one is used for the buffers. */
static void later(void)
{
	uint16_t head[2];
	uint8_t *old;

	begin();
	head[0] = offer(LATER);
	(void)offer(NOW);
	head[1] = offer(LATER);
	queues_drain(&q, 1);
	check(handled == 3 && used_idx() == 1 && n_late == 2);
	check(v.mem->refs == 3);
	old = v.mem->r[0].host;
	say_memory();
	check(v.mem->refs == 1 && v.mem->r[0].host != old);
	(void)called();
	n_done = 2;
	queues_completed(&q);
	check(used_idx() == 3 && called());
	check(used(1).id == head[0] && used(1).len == 9 && used(2).id == head[1]);
	check(guest[BUF + head[0] * 64 + 32] == ANSWER);
	check(q.n_spare == 3 && !q.later);
	end();
}

/* A queue that is stopped and goes on gets its answers; one that begins anew does not. */
static void stopped(void)
{
	begin();
	(void)offer(LATER);
	(void)offer(LATER);
	(void)offer(LATER);
	queues_drain(&q, 1);
	say_state(VHOST_GET_VRING_BASE, 0);
	queues_changed(&q);
	n_done = 2;
	queues_completed(&q);
	check(used_idx() == 0 && q.held && q.later);
	start_queue(3);
	check(used_idx() == 2 && !q.held);
	n_done = 3;
	queues_completed(&q);
	check(used_idx() == 3 && !q.later);

	(void)offer(LATER);
	(void)offer(LATER);
	queues_drain(&q, 1);
	say_state(VHOST_GET_VRING_BASE, 0);
	n_done = 4;
	queues_completed(&q);
	check(q.held);
	memset(guest, 0, BUF);
	next_avail = 0;
	start_queue(0);
	check(!q.held && used_idx() == 0);
	n_done = 5;
	queues_completed(&q);
	check(used_idx() == 0 && !q.later);
	(void)offer(NOW);
	queues_drain(&q, 1);
	check(used_idx() == 1);
	end();
}

/* What is with the file system or held at the end goes with the queues. */
static void left_over(void)
{
	begin();
	(void)offer(LATER);
	(void)offer(LATER);
	queues_drain(&q, 1);
	say_state(VHOST_GET_VRING_BASE, 0);
	n_done = 1;
	queues_completed(&q);
	check(q.held && q.later);
	end();
}

static void broken(void)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC), words = dup(STDERR_FILENO);

	check(null >= 0 && words >= 0 && dup2(null, STDERR_FILENO) >= 0);
	begin();
	for (unsigned i = 0; i < 10; i++) {
		uint16_t *avail = (void *)(guest + AVAIL);

		(void)offer(LATER);
		queues_drain(&q, 1);
		avail[1] = (uint16_t)(next_avail + NUM + 1);
		queues_drain(&q, 1);
		check(v.q[1].ring.broken && !vhost_serves(&v, 1));
		n_done = i + 1;
		queues_completed(&q); /* has nowhere to go */
		check(used_idx() == 0 && !q.later);
		say_state(VHOST_GET_VRING_BASE, 0);
		memset(guest, 0, BUF);
		next_avail = 0;
		start_queue(0);
		check(vhost_serves(&v, 1));
	}
	check(q.said == 4);
	end();
	check(dup2(words, STDERR_FILENO) >= 0);
	(void)fd_close(words);
	(void)fd_close(null);
}

int main(void)
{
	at_once();
	many();
	later();
	stopped();
	left_over();
	broken();
	return 0;
}
