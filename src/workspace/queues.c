/* Requests on their way from a ring to the file system and back.
 *
 * A request lies in one struct with its translated buffers. Most are answered before the next is taken, and
 * so use the same struct again and again. One that is answered later keeps its struct, and a reference to
 * the memory in which its buffers lie. There are at most as many of these as heads in the rings, since
 * a head that was not given back is not taken again: the guest cannot make us allocate more.
 *
 * The guest is told (an interrupt) when a ring is drained, and after some requests even if it is
 * not: with many in the ring it need not wait for the last. */
#include "workspace/queues.h"

#include "workspace/say.h"

enum {
	BATCH = 256,     /* requests of one queue before anything else has its turn */
	TELL_AFTER = 16, /* answers */
	SPARE_MAX = 16,  /* structs (of 17 KiB) kept for later */
	SAID_MAX = 4,    /* broken rings that are told of: a guest can break one again and again */
};

struct request {
	struct fs_req req;
	struct request *next, **pprev; /* in later or held */
	struct mem *mem;               /* reference, while it is with the file system */
	size_t queue;
	unsigned run; /* of its queue, when it was taken */
	size_t len;   /* held: of the answer */
	struct virtq_chain chain;
};

void queues_init(struct queues *q, struct vhost *vhost, struct fs *fs)
{
	*q = (struct queues) { .vhost = vhost, .fs = fs };
}

static struct request *request_get(struct queues *q)
{
	struct request *rq = q->spare;

	if (!rq)
		return malloc(sizeof(*rq));
	q->spare = rq->next;
	q->n_spare--;
	return rq;
}

static void request_put(struct queues *q, struct request *rq)
{
	if (q->n_spare >= SPARE_MAX) {
		free(rq);
		return;
	}
	rq->next = q->spare;
	q->spare = rq;
	q->n_spare++;
}

static void list_add(struct request **list, struct request *rq)
{
	rq->next = *list;
	rq->pprev = list;
	if (*list)
		(*list)->pprev = &rq->next;
	*list = rq;
}

static void list_del(struct request *rq)
{
	*rq->pprev = rq->next;
	if (rq->next)
		rq->next->pprev = rq->pprev;
}

static void list_free(struct request *rq)
{
	while (rq) {
		struct request *next = rq->next;

		(void)mem_unref(rq->mem);
		free(rq);
		rq = next;
	}
}

void queues_done(struct queues *q)
{
	list_free(q->later);
	list_free(q->held);
	while (q->spare) {
		struct request *next = q->spare->next;

		free(q->spare);
		q->spare = next;
	}
}

static void tell(struct queues *q, size_t queue)
{
	if (!q->pushed[queue])
		return;
	q->pushed[queue] = false;
	if (virtq_wants_call(&q->vhost->q[queue].ring))
		vhost_call(q->vhost, queue);
}

static void answer(struct queues *q, size_t queue, uint16_t head, size_t len)
{
	virtq_push(&q->vhost->q[queue].ring, head, (uint32_t)len);
	q->pushed[queue] = true;
}

/* A request that the file system calls no request is given back with nothing in it. */
static void handle(struct queues *q, size_t queue, struct request *rq)
{
	ssize_t n;

	rq->req = (struct fs_req) { .in = rq->chain.iov,
				    .n_in = rq->chain.n_in,
				    .out = rq->chain.iov + rq->chain.n_in,
				    .n_out = rq->chain.n_out,
				    .token = rq };
	n = fs_handle(q->fs, &rq->req);
	if (n == FS_LATER) {
		rq->mem = mem_ref(q->vhost->mem);
		rq->queue = queue;
		rq->run = q->vhost->q[queue].run;
		list_add(&q->later, rq);
		return;
	}
	answer(q, queue, rq->chain.head, n < 0 ? 0 : (size_t)n);
	request_put(q, rq);
}

/* Take one request and serve it. As virtq_next(), or -ENOMEM. */
static int one(struct queues *q, size_t queue)
{
	struct request *rq = request_get(q);
	int r;

	if (!rq)
		return -ENOMEM;
	r = virtq_next(&q->vhost->q[queue].ring, &rq->chain);
	if (r == 1)
		handle(q, queue, rq);
	else
		request_put(q, rq);
	return r;
}

static void broken(struct queues *q, size_t queue)
{
	struct virtq *ring = &q->vhost->q[queue].ring;

	if (!ring->broken)
		ring->broken = "out of memory";
	if (q->said < SAID_MAX) {
		q->said++;
		say("queue %zu of the guest is not served any more: %s", queue, ring->broken);
	}
	vhost_broken(q->vhost, queue);
}

void queues_drain(struct queues *q, size_t queue)
{
	struct virtq *ring = &q->vhost->q[queue].ring;
	unsigned left = BATCH;
	int r;

	q->more[queue] = false;
	if (!vhost_serves(q->vhost, queue))
		return;
	virtq_kicks_off(ring);
	do {
		while ((r = one(q, queue)) == 1 && --left)
			if (left % TELL_AFTER == 0)
				tell(q, queue);
		tell(q, queue);
	} while (r == 0 && virtq_kicks_on(ring));
	if (r < 0)
		broken(q, queue);
	else
		q->more[queue] = left == 0;
}

/* Into the ring, if it still knows of the request; kept if the ring does not run. */
static void finish(struct queues *q, struct request *rq)
{
	const struct vhost_queue *vq = &q->vhost->q[rq->queue];

	if (rq->run == vq->run && !vq->ring.broken) {
		if (!vhost_started(q->vhost, rq->queue)) {
			list_add(&q->held, rq);
			return;
		}
		answer(q, rq->queue, rq->chain.head, rq->len);
	}
	rq->mem = mem_unref(rq->mem);
	request_put(q, rq);
}

static void tell_all(struct queues *q)
{
	for (size_t i = 0; i < VHOST_QUEUES; i++)
		if (vhost_started(q->vhost, i))
			tell(q, i);
}

void queues_completed(struct queues *q)
{
	struct request *rq;
	void *token;
	size_t len;

	while (fs_completed(q->fs, &token, &len)) {
		rq = token;
		rq->len = len;
		list_del(rq);
		finish(q, rq);
	}
	tell_all(q);
}

void queues_changed(struct queues *q)
{
	struct request *rq = q->held;

	q->held = NULL;
	while (rq) {
		struct request *next = rq->next;

		finish(q, rq);
		rq = next;
	}
	tell_all(q);
	for (size_t i = 0; i < VHOST_QUEUES; i++)
		q->more[i] = vhost_serves(q->vhost, i);
}
