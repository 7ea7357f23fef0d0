/* vhost-user, the back-end's side.
 *
 * What the versions of QEMU need. None of them insists on a protocol feature for this device: it has a fixed
 * number of queues and keeps its configuration space itself. MQ and REPLY_ACK are offered since they
 * are cheap and make the start orderly. 7.2 (recorded) sends ERR and CALL before the rest, waits for an
 * acknowledgement of SET_MEM_TABLE only, enables queues after their kicks, and exchanges CALL while they
 * run. Before 7.2 bit 30 is not among the features that are set: then queues are enabled from the
 * start. From 8.1 on it waits for SET_VRING_ENABLE as well. 9 and 10 ask for features (RING_RESET, IN_ORDER,
 * device state) that we do not offer, and go without.
 *
 * A virtual machine that is paused stops its queues and starts them again where they were: requests that
 * are still worked on are then answered into the started ring. A driver that starts anew has a ring whose
 * indices are not those that were left; the old requests are forgotten (`run` changes). */
#include "workspace/vhost.h"

#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/fd.h"

enum { PROTOCOL_MQ = 0, PROTOCOL_REPLY_ACK = 3, F_PROTOCOL_FEATURES = 30 };

static const uint64_t features_offered =
	1ULL << VIRTIO_F_VERSION_1 | 1ULL << VIRTIO_RING_F_INDIRECT_DESC |
	1ULL << VIRTIO_RING_F_EVENT_IDX | 1ULL << F_PROTOCOL_FEATURES;

static const uint64_t protocol_offered = 1ULL << PROTOCOL_MQ | 1ULL << PROTOCOL_REPLY_ACK;

static bool has(uint64_t bits, unsigned bit)
{
	return bits >> bit & 1;
}

void vhost_init(struct vhost *v, int sock, int epoll, uint32_t tag)
{
	*v = (struct vhost) { .sock = sock, .epoll = epoll, .tag = tag };
	for (size_t i = 0; i < VHOST_QUEUES; i++)
		v->q[i].kick = v->q[i].call = -1;
}

static void drop_fds(struct vhost *v)
{
	for (size_t i = 0; i < v->n_fds; i++)
		v->fds[i] = fd_close(v->fds[i]);
	v->n_fds = 0;
}

/* The front-end has the same descriptor open, so closing it would not take it out of the set. */
static void unwatch(struct vhost *v, struct vhost_queue *q)
{
	if (q->watched)
		(void)epoll_ctl(v->epoll, EPOLL_CTL_DEL, q->kick, NULL);
	q->watched = false;
}

void vhost_done(struct vhost *v)
{
	drop_fds(v);
	for (size_t i = 0; i < VHOST_QUEUES; i++) {
		struct vhost_queue *q = &v->q[i];

		unwatch(v, q);
		q->kick = fd_close(q->kick);
		q->call = fd_close(q->call);
	}
	v->mem = mem_unref(v->mem);
}

static int fault(struct vhost *v, const char *why)
{
	v->fault = why;
	return -EPROTO;
}

bool vhost_started(const struct vhost *v, size_t queue)
{
	return v->q[queue].kick >= 0;
}

static bool any_started(const struct vhost *v)
{
	bool any = false;

	for (size_t i = 0; i < VHOST_QUEUES; i++)
		any = any || vhost_started(v, i);
	return any;
}

bool vhost_serves(const struct vhost *v, size_t queue)
{
	const struct vhost_queue *q = &v->q[queue];

	return q->kick >= 0 && !q->ring.broken &&
	       (q->enabled || !has(v->features, F_PROTOCOL_FEATURES));
}

static int get_features(struct vhost *v, const struct vhost_msg *m)
{
	(void)v;
	v->answer = m->request == VHOST_GET_FEATURES ? features_offered : protocol_offered;
	return 0;
}

static int set_features(struct vhost *v, const struct vhost_msg *m)
{
	if (m->u64 & ~features_offered || !has(m->u64, VIRTIO_F_VERSION_1))
		return fault(v, "features that were not offered");
	if (any_started(v) && m->u64 != v->features)
		return fault(v, "features changed while a queue runs");
	v->features = m->u64;
	return 0;
}

static int set_protocol(struct vhost *v, const struct vhost_msg *m)
{
	if (m->u64 & ~protocol_offered)
		return fault(v, "protocol features that were not offered");
	if (any_started(v) && m->u64 != v->protocol)
		return fault(v, "protocol features changed while a queue runs");
	v->protocol = m->u64;
	return 0;
}

static int nothing(struct vhost *v, const struct vhost_msg *m)
{
	(void)v;
	(void)m;
	return 0;
}

static int queue_num(struct vhost *v, const struct vhost_msg *m)
{
	(void)v;
	(void)m;
	v->answer = VHOST_QUEUES;
	return 0;
}

/* Rings that run are found in the new memory before the old goes. */
static int set_memory(struct vhost *v, const struct vhost_msg *m)
{
	struct mem *fresh;
	int r;

	r = mem_map(m, v->fds, &fresh);
	if (r < 0)
		return fault(v, "memory that cannot be used");
	for (size_t i = 0; i < VHOST_QUEUES && r == 0; i++)
		if (vhost_started(v, i))
			r = virtq_move(&v->q[i].ring, fresh, &v->q[i].where);
	(void)mem_unref(v->mem);
	v->mem = fresh;
	return r < 0 ? fault(v, "memory without a queue that runs") : 0;
}

static int set_num(struct vhost *v, const struct vhost_msg *m)
{
	if (m->num < 2 || m->num > VIRTQ_SIZE_MAX)
		return fault(v, "a queue's size");
	v->q[m->index].where.num = m->num;
	return 0;
}

static int set_base(struct vhost *v, const struct vhost_msg *m)
{
	if (m->num > UINT16_MAX)
		return fault(v, "a queue's index");
	v->q[m->index].where.base = (uint16_t)m->num;
	return 0;
}

static int set_addr(struct vhost *v, const struct vhost_msg *m)
{
	struct virtq_where *w = &v->q[m->index].where;

	w->desc = m->desc;
	w->avail = m->avail;
	w->used = m->used;
	v->q[m->index].addressed = true;
	return 0;
}

/* An event descriptor has no file type; whatever else comes might block or be a file of somebody's. */
static int take_event(struct vhost *v, int *ret)
{
	struct stat st;
	int r;

	if (fstat(v->fds[0], &st) < 0 || (st.st_mode & S_IFMT))
		return fault(v, "a descriptor that is no event");
	r = fd_nonblock(v->fds[0], true);
	if (r < 0)
		return r;
	*ret = take_fd(&v->fds[0]);
	return 0;
}

/* Nothing was lost since the queue was stopped: it goes on. Else it is another ring. */
static void queue_opened(struct vhost_queue *q, struct virtq *fresh)
{
	const struct virtq *old = &q->ring;

	if (q->opened && old->num == fresh->num && old->last_avail == fresh->last_avail &&
	    old->used_idx == fresh->used_idx && !old->broken)
		memcpy(fresh->busy, old->busy, sizeof(fresh->busy));
	else
		q->run++;
	q->ring = *fresh;
	q->opened = true;
}

static int set_kick(struct vhost *v, const struct vhost_msg *m)
{
	struct vhost_queue *q = &v->q[m->index];
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET, .data.u32 = v->tag + m->index };
	struct virtq fresh;
	int r;

	if (!m->has_fd || !v->mem || !q->where.num || !q->addressed)
		return fault(v, "a queue started before it was set up");
	q->where.event_idx = has(v->features, VIRTIO_RING_F_EVENT_IDX);
	q->where.indirect = has(v->features, VIRTIO_RING_F_INDIRECT_DESC);
	if (virtq_open(&fresh, v->mem, &q->where) < 0)
		return fault(v, "a queue that does not lie in memory");
	r = take_event(v, &q->kick);
	if (r < 0)
		return r;
	queue_opened(q, &fresh);
	if (epoll_ctl(v->epoll, EPOLL_CTL_ADD, q->kick, &ev) < 0)
		return -errno;
	q->watched = true;
	return 0;
}

/* The front-end changes this while the queue runs. An interrupt that was due meanwhile is sent: one too many
 * does no harm, one too few does. */
static int set_call(struct vhost *v, const struct vhost_msg *m)
{
	struct vhost_queue *q = &v->q[m->index];
	int r;

	q->call = fd_close(q->call);
	if (!m->has_fd)
		return 0;
	r = take_event(v, &q->call);
	if (r == 0 && vhost_started(v, m->index))
		vhost_call(v, m->index);
	return r;
}

static int set_enable(struct vhost *v, const struct vhost_msg *m)
{
	if (m->num > 1)
		return fault(v, "a queue that is neither on nor off");
	v->q[m->index].enabled = m->num;
	return 0;
}

static int stop(struct vhost *v, const struct vhost_msg *m)
{
	struct vhost_queue *q = &v->q[m->index];

	if (q->kick >= 0)
		q->where.base = q->ring.last_avail;
	unwatch(v, q);
	q->kick = fd_close(q->kick);
	v->answer = q->where.base;
	return 0;
}

/* What a message does, and whether it may come while its queue is started. */
static const struct {
	int (*run)(struct vhost *v, const struct vhost_msg *m);
	bool frozen;
} acts[] = {
	[VHOST_GET_FEATURES] = { get_features, false },
	[VHOST_SET_FEATURES] = { set_features, false },
	[VHOST_SET_OWNER] = { nothing, false },
	[VHOST_SET_MEM_TABLE] = { set_memory, false },
	[VHOST_SET_VRING_NUM] = { set_num, true },
	[VHOST_SET_VRING_ADDR] = { set_addr, true },
	[VHOST_SET_VRING_BASE] = { set_base, true },
	[VHOST_GET_VRING_BASE] = { stop, false },
	[VHOST_SET_VRING_KICK] = { set_kick, true },
	[VHOST_SET_VRING_CALL] = { set_call, false },
	/* never used: QEMU prints a line each time, and a guest could make it print for ever */
	[VHOST_SET_VRING_ERR] = { nothing, false },
	[VHOST_GET_PROTOCOL_FEATURES] = { get_features, false },
	[VHOST_SET_PROTOCOL_FEATURES] = { set_protocol, false },
	[VHOST_GET_QUEUE_NUM] = { queue_num, false },
	[VHOST_SET_VRING_ENABLE] = { set_enable, false },
};

static int reply(struct vhost *v, uint64_t value)
{
	uint8_t bytes[VHOST_REPLY_MAX];
	size_t n = vhost_msg_reply(bytes, &v->m, value);
	ssize_t w = send(v->sock, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);

	return w < 0 ? -errno : (size_t)w == n ? 0 : -EPIPE;
}

static int act(struct vhost *v)
{
	const struct vhost_msg *m = &v->m;
	int r;

	v->answer = 0;
	/* parsed: the request is in the table, the index is a queue's */
	if (acts[m->request].frozen && vhost_started(v, m->index))
		return fault(v, "a queue changed while it runs");
	r = acts[m->request].run(v, m);
	if (r < 0)
		return r;
	if (vhost_msg_has_answer(m) || (m->need_reply && has(v->protocol, PROTOCOL_REPLY_ACK)))
		return reply(v, v->answer);
	return 0;
}

/* Descriptors come with the first byte of a message. */
static int keep_fds(struct vhost *v, struct msghdr *h)
{
	bool bad = h->msg_flags & MSG_CTRUNC;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (v->n_in || v->n_fds == VHOST_FDS_MAX) {
				(void)fd_close(fd);
				bad = true;
			} else {
				v->fds[v->n_fds++] = fd;
			}
		}
	}
	return bad ? fault(v, "descriptors in the wrong place") : 0;
}

/* Up to len more bytes of the message. Their number; 0: none at the moment. */
static ssize_t more(struct vhost *v, size_t len)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int) * VHOST_FDS_MAX)];
	} control;
	struct iovec io = { .iov_base = v->in + v->n_in, .iov_len = len };
	struct msghdr h = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(v->sock, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int r;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	r = keep_fds(v, &h);
	if (r < 0)
		return r;
	if (n == 0)
		return -ECONNRESET;
	v->n_in += (size_t)n;
	return n;
}

/* Bytes that the message still lacks: first its header, then what the header says. */
static size_t missing(const struct vhost *v)
{
	if (v->n_in < VHOST_HEADER)
		return VHOST_HEADER - v->n_in;
	return VHOST_HEADER + v->m.size - v->n_in;
}

int vhost_read(struct vhost *v)
{
	size_t len;
	ssize_t n;
	int r;

	while ((len = missing(v))) {
		n = more(v, len);
		if (n <= 0)
			return (int)n;
		if (v->n_in == VHOST_HEADER && vhost_msg_head(&v->m, v->in) < 0)
			return fault(v, "a message that is not spoken here");
	}
	r = vhost_msg_body(&v->m, v->in + VHOST_HEADER, v->n_fds);
	if (r < 0)
		return fault(v, vhost_msg_name(v->m.request));
	r = act(v);
	drop_fds(v);
	v->n_in = 0;
	return r < 0 ? r : 1;
}

void vhost_call(struct vhost *v, size_t queue)
{
	const uint64_t one = 1;
	const int fd = v->q[queue].call;

	/* full means that it rings already */
	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
		return;
}

void vhost_broken(struct vhost *v, size_t queue)
{
	unwatch(v, &v->q[queue]);
}
