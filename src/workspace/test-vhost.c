/* The back-end as a front-end meets it: over a socket, with a memory file for a guest. */
#include "workspace/vhost.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <fcntl.h>

#include "base/check.h"
#include "io/fd.h"

enum {
	SIZE = 0x10000,
	USER = 0x70000000,
	TAG = 40,
	REPLY = 4,
	NEED_REPLY = 8,
	FEATURES_BASIC = 0, /* VERSION_1 alone is added */
};

static const uint64_t version_1 = 1ULL << 32, protocol_bit = 1ULL << 30;

static struct vhost v;
static int front, back, epoll, memory, kick, call;
static uint8_t *guest;

static void begin(void)
{
	int s[2];

	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) == 0);
	front = s[0];
	back = s[1];
	epoll = epoll_create1(EPOLL_CLOEXEC);
	memory = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	check(ftruncate(memory, SIZE) == 0 && fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	guest = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	check(guest != MAP_FAILED);
	kick = eventfd(0, EFD_CLOEXEC);
	call = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	check(epoll >= 0 && kick >= 0 && call >= 0);
	vhost_init(&v, back, epoll, TAG);
}

static void end(void)
{
	vhost_done(&v);
	front = fd_close(front);
	back = fd_close(back);
	epoll = fd_close(epoll);
	memory = fd_close(memory);
	kick = fd_close(kick);
	call = fd_close(call);
	check(munmap(guest, SIZE) == 0);
}

static void send_raw(const void *p, size_t n, const int *fds, size_t n_fds)
{
	char room[CMSG_SPACE(sizeof(int) * 16)] = { 0 };
	struct iovec io = { .iov_base = (void *)(uintptr_t)p, .iov_len = n };
	struct msghdr h = { .msg_iov = &io, .msg_iovlen = 1 };

	if (n_fds) {
		struct cmsghdr *c;

		h.msg_control = room;
		h.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	}
	check(sendmsg(front, &h, 0) == (ssize_t)n);
}

static void send_msg(uint32_t request, uint32_t flags, const void *body, uint32_t size,
		     const int *fds, size_t n_fds)
{
	const uint32_t head[3] = { request, 1 | flags, size };
	uint8_t bytes[VHOST_HEADER + VHOST_PAYLOAD_MAX];

	memcpy(bytes, head, sizeof(head));
	if (size)
		memcpy(bytes + sizeof(head), body, size);
	send_raw(bytes, sizeof(head) + size, fds, n_fds);
}

static int say_u64(uint32_t request, uint64_t value)
{
	send_msg(request, 0, &value, sizeof(value), NULL, 0);
	return vhost_read(&v);
}

static int say_state(uint32_t request, uint32_t index, uint32_t num)
{
	const uint32_t body[2] = { index, num };

	send_msg(request, 0, body, sizeof(body), NULL, 0);
	return vhost_read(&v);
}

static int say_file(uint32_t request, uint64_t index, int fd)
{
	send_msg(request, 0, &index, sizeof(index), &fd, 1);
	return vhost_read(&v);
}

static int say_addr(uint64_t desc, uint64_t avail, uint64_t used)
{
	const uint64_t body[5] = { 0, USER + desc, USER + used, USER + avail, 0 };

	send_msg(VHOST_SET_VRING_ADDR, 0, body, sizeof(body), NULL, 0);
	return vhost_read(&v);
}

static int say_memory(uint64_t at, uint64_t size, uint64_t offset, int fd)
{
	const uint64_t body[5] = { 1, at, size, USER + offset, offset };

	send_msg(VHOST_SET_MEM_TABLE, 0, body, sizeof(body), &fd, 1);
	return vhost_read(&v);
}

static uint64_t reply(uint32_t request)
{
	uint32_t head[3];
	uint64_t value;

	check(fd_read_all(front, head, sizeof(head)) == sizeof(head));
	check(head[0] == request && head[1] == (1 | REPLY) && head[2] == sizeof(value));
	check(fd_read_all(front, &value, sizeof(value)) == sizeof(value));
	return value;
}

/* As far as a queue that runs. */
static void start(uint64_t features)
{
	check(say_u64(VHOST_SET_FEATURES, version_1 | features) == 1);
	check(say_memory(0, SIZE, 0, memory) == 1);
	check(say_state(VHOST_SET_VRING_NUM, 0, 8) == 1);
	check(say_state(VHOST_SET_VRING_BASE, 0, 0) == 1);
	check(say_addr(0, 0x1000, 0x2000) == 1);
	check(!vhost_started(&v, 0));
	check(say_file(VHOST_SET_VRING_KICK, 0, kick) == 1);
	check(vhost_started(&v, 0));
}

static bool kicked(void)
{
	struct epoll_event ev;
	const uint64_t one = 1;
	int n;

	check(write(kick, &one, sizeof(one)) == sizeof(one));
	n = epoll_wait(epoll, &ev, 1, 0);
	check(n <= 0 || ev.data.u32 == TAG);
	return n == 1;
}

static void life(void)
{
	uint64_t count;

	begin();
	check(vhost_read(&v) == 0);
	send_msg(VHOST_GET_FEATURES, 0, NULL, 0, NULL, 0);
	check(vhost_read(&v) == 1);
	check(reply(VHOST_GET_FEATURES) == (version_1 | protocol_bit | 3ULL << 28));
	send_msg(VHOST_GET_PROTOCOL_FEATURES, 0, NULL, 0, NULL, 0);
	check(vhost_read(&v) == 1 && reply(VHOST_GET_PROTOCOL_FEATURES) == 9);
	check(say_u64(VHOST_SET_PROTOCOL_FEATURES, 9) == 1);
	send_msg(VHOST_GET_QUEUE_NUM, 0, NULL, 0, NULL, 0);
	check(vhost_read(&v) == 1 && reply(VHOST_GET_QUEUE_NUM) == VHOST_QUEUES);
	send_msg(VHOST_SET_OWNER, NEED_REPLY, NULL, 0, NULL, 0);
	check(vhost_read(&v) == 1 && reply(VHOST_SET_OWNER) == 0);

	start(protocol_bit);
	check(!vhost_serves(&v, 0)); /* not enabled */
	check(say_state(VHOST_SET_VRING_ENABLE, 0, 1) == 1);
	check(vhost_serves(&v, 0) && !vhost_serves(&v, 1));
	check(kicked() && kicked());
	check(say_file(VHOST_SET_VRING_CALL, 0, call) == 1);
	check(read(call, &count, sizeof(count)) == sizeof(count)); /* once, in case */
	vhost_call(&v, 0);
	check(read(call, &count, sizeof(count)) == sizeof(count) && count == 1);
	vhost_broken(&v, 0);
	check(!kicked());

	v.q[0].ring.last_avail = 5;
	check(say_state(VHOST_GET_VRING_BASE, 0, 0) == 1);
	check(reply(VHOST_GET_VRING_BASE) == 5ULL << 32);
	check(!vhost_started(&v, 0) && !vhost_serves(&v, 0));
	front = fd_close(front);
	check(vhost_read(&v) == -ECONNRESET);
	end();
}

/* Without protocol features queues are enabled from the start. */
static void old_front_end(void)
{
	begin();
	start(FEATURES_BASIC);
	check(vhost_serves(&v, 0));
	end();
}

/* Stopped and started again: where it was, or anew. */
static void again(void)
{
	unsigned run;

	begin();
	start(0);
	run = v.q[0].run;
	v.q[0].ring.busy[3] = true;
	v.q[0].ring.last_avail = 5;
	check(say_state(VHOST_GET_VRING_BASE, 0, 0) == 1 && reply(VHOST_GET_VRING_BASE));
	check(!kicked());
	check(say_state(VHOST_SET_VRING_BASE, 0, 5) == 1);
	check(say_file(VHOST_SET_VRING_KICK, 0, kick) == 1);
	check(v.q[0].run == run && v.q[0].ring.busy[3]);
	check(say_state(VHOST_GET_VRING_BASE, 0, 0) == 1 && reply(VHOST_GET_VRING_BASE));
	guest[0x2002] = 1; /* the used index is another */
	check(say_file(VHOST_SET_VRING_KICK, 0, kick) == 1);
	check(v.q[0].run != run && !v.q[0].ring.busy[3]);
	end();
}

/* Each ends the conversation of a queue that runs. */
static void frozen(void)
{
	static const uint32_t requests[] = { VHOST_SET_VRING_NUM, VHOST_SET_VRING_BASE };

	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		begin();
		start(0);
		check(say_state(requests[i], 1, 8) == 1); /* the other one may */
		check(say_state(requests[i], 0, 8) == -EPROTO);
		end();
	}
	begin();
	start(0);
	check(say_addr(0, 0x1000, 0x2000) == -EPROTO);
	end();
	begin();
	start(0);
	check(say_file(VHOST_SET_VRING_KICK, 0, kick) == -EPROTO);
	end();
	begin();
	start(0);
	check(say_u64(VHOST_SET_FEATURES, version_1) == 1); /* the same */
	check(say_u64(VHOST_SET_FEATURES, version_1 | protocol_bit) == -EPROTO);
	end();
}

static void order(void)
{
	begin(); /* a kick before memory and addresses */
	check(say_u64(VHOST_SET_FEATURES, version_1) == 1);
	check(say_file(VHOST_SET_VRING_KICK, 0, kick) == -EPROTO);
	end();
	begin(); /* features that were not offered; none at all */
	check(say_u64(VHOST_SET_FEATURES, version_1 | 1ULL << 34) == -EPROTO);
	end();
	begin();
	check(say_u64(VHOST_SET_FEATURES, 0) == -EPROTO);
	end();
	begin();
	check(say_u64(VHOST_SET_PROTOCOL_FEATURES, 1ULL << 12) == -EPROTO);
	end();
	begin(); /* a file as an event */
	start(0);
	check(say_file(VHOST_SET_VRING_CALL, 0, memory) == -EPROTO);
	end();
	begin();
	check(say_state(VHOST_SET_VRING_NUM, 0, VIRTQ_SIZE_MAX + 1) == -EPROTO);
	end();
	begin();
	check(say_state(VHOST_SET_VRING_BASE, 0, 65536) == -EPROTO);
	end();
	begin();
	check(say_state(VHOST_SET_VRING_ENABLE, 0, 2) == -EPROTO);
	end();
}

static void memories(void)
{
	int loose;

	begin();
	start(0);
	check(say_memory(0, SIZE, 0, memory) == 1);                  /* the same, and it goes on */
	check(say_memory(0, SIZE / 2, SIZE / 2, memory) == -EPROTO); /* without the ring */
	end();
	begin();
	check(say_memory(0, SIZE + 1, 0, memory) == -EPROTO);
	end();
	begin();
	check(say_memory(0, SIZE, 1, memory) == -EPROTO);
	end();
	begin(); /* from within a page */
	guest[0x1234] = 77;
	check(say_memory(0x100, 0x1000, 0x1234, memory) == 1);
	check(*(uint8_t *)mem_at_guest(v.mem, 0x100, 1) == 77);
	check(mem_at_guest(v.mem, 0x100, 0x1000) && !mem_at_guest(v.mem, 0x100, 0x1001));
	check(!mem_at_guest(v.mem, 0xff, 1) && !mem_at_guest(v.mem, 0x1100, 1));
	check(!mem_at_guest(v.mem, 0x100, 0) && !mem_at_guest(v.mem, 0x101, UINT64_MAX));
	end();
	begin(); /* could shrink */
	loose = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	check(loose >= 0 && ftruncate(loose, SIZE) == 0);
	check(say_memory(0, SIZE, 0, loose) == -EPROTO);
	loose = fd_close(loose);
	end();
	begin(); /* no file at all */
	check(say_memory(0, SIZE, 0, kick) == -EPROTO);
	end();
}

static void overlap(void)
{
	uint64_t body[9] = { 2, 0, 0x2000, USER, 0, 0x1fff, 0x1000, USER + 0x2000, 0x2000 };
	const int fds[2] = { memory, memory };

	begin();
	memcpy((int *)(uintptr_t)fds, (int[]) { memory, memory }, sizeof(fds));
	send_msg(VHOST_SET_MEM_TABLE, 0, body, sizeof(body), fds, 2);
	check(vhost_read(&v) == -EPROTO);
	end();
}

/* Bytes that come one by one; descriptors that come late or in heaps. */
static void pieces(void)
{
	const uint32_t msg[5] = { VHOST_GET_VRING_BASE, 1, 8, 1, 0 };
	const uint8_t *p = (const void *)msg;
	int fds[VHOST_FDS_MAX + 1];

	begin();
	for (size_t i = 0; i < sizeof(msg); i++) {
		check(vhost_read(&v) == 0);
		send_raw(p + i, 1, NULL, 0);
	}
	check(vhost_read(&v) == 1 && reply(VHOST_GET_VRING_BASE) == 1);
	send_raw(p, 4, NULL, 0);
	check(vhost_read(&v) == 0);
	send_raw(p + 4, 16, &kick, 1);
	check(vhost_read(&v) == -EPROTO);
	end();
	begin();
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = memory;
	send_raw(p, sizeof(msg), fds, ARRAY_SIZE(fds));
	check(vhost_read(&v) == -EPROTO);
	end();
	begin();
	send_raw("GET / HTTP/1.1\r\n\r\n", 18, NULL, 0);
	check(vhost_read(&v) == -EPROTO && v.fault);
	end();
}

int main(void)
{
	life();
	old_front_end();
	again();
	frozen();
	order();
	memories();
	overlap();
	pieces();
	return 0;
}
