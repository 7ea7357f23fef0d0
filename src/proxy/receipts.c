#include "proxy/receipts.h"

#include <sys/socket.h>

#include "io/fd.h"
#include "wire/frame.h"

/* One datagram, sealed: no more is added to it. */
struct batch {
	struct batch *next;
	size_t n;
	uint8_t bytes[];
};

enum {
	BATCH_MAX = 60 * 1024, /* bytes: what a socket takes without its owner's asking for more */
	LATE_MS = 5,
};

struct receipts {
	struct watch watch;
	struct loop *loop;
	uv_prepare_t flush;
	uv_timer_t late; /* runs while there is a receipt in `open` that nobody waits for */
	struct buf open; /* the batch that is being gathered */
	uint32_t n_open;
	struct batch *first, **last;
	size_t queued; /* bytes in batches */
	uint64_t added, acked, flow;
	struct receipt_wait waiters; /* a ring, oldest first */
	bool was_full, dead;
	void (*gone)(void *arg);
	void (*room)(void *arg);
	void *arg;
};

static void close_batch(struct receipts *rs)
{
	struct batch *b;

	if (!rs->n_open)
		return;
	b = malloc(sizeof(*b) + rs->open.n);
	if (!b) /* without a receipt there is no traffic */
		abort();
	b->next = NULL;
	b->n = rs->open.n;
	memcpy(b->bytes, buf_data(&rs->open), b->n);
	*rs->last = b;
	rs->last = &b->next;
	rs->queued += b->n;
	buf_consume(&rs->open, b->n);
	rs->n_open = 0;
}

static void send_batches(struct receipts *rs)
{
	while (rs->first && !rs->dead) {
		struct batch *b = rs->first;
		ssize_t n = send(rs->watch.fd, b->bytes, b->n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0) { /* full, or gone: that is heard of */
			loop_events(rs->loop, &rs->watch, EPOLLIN | EPOLLOUT);
			break;
		}
		rs->queued -= b->n;
		rs->first = b->next;
		if (!rs->first)
			rs->last = &rs->first;
		free(b);
	}
	if (rs->was_full && rs->queued < RECEIPTS_FULL / 2) {
		rs->was_full = false;
		rs->room(rs->arg);
	}
}

void receipts_flush(struct receipts *rs)
{
	close_batch(rs);
	send_batches(rs);
}

static void on_prepare(uv_prepare_t *h)
{
	(void)uv_prepare_stop(h);
	receipts_flush(h->data);
}

static void on_late(uv_timer_t *h)
{
	receipts_flush(h->data);
}

static void run_waiters(struct receipts *rs)
{
	struct receipt_wait *w;

	while ((w = rs->waiters.next) != &rs->waiters && w->number <= rs->acked) {
		receipts_cancel(rs, w);
		w->run(w);
	}
}

static void on_event(struct watch *watch, uint32_t events)
{
	struct receipts *rs = (struct receipts *)watch;
	uint8_t bytes[RECEIPT_ANSWER_MAX];
	struct receipt_answer a;
	ssize_t n;

	if (events & EPOLLOUT) {
		loop_events(rs->loop, watch, EPOLLIN);
		send_batches(rs);
	}
	if (!(events & ~(uint32_t)EPOLLOUT))
		return;
	n = recv(watch->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0 || receipt_answer_get(&a, bytes, (size_t)n) != WIRE_OK) {
		rs->dead = true;
		rs->gone(rs->arg);
	} else if (!a.alarm && a.count > rs->acked && a.count <= rs->added) {
		rs->acked = a.count;
		run_waiters(rs);
	}
}

int receipts_new(struct loop *l, int sock, uint64_t first_flow, void (*gone)(void *arg),
		 void (*room)(void *arg), void *arg, struct receipts **ret)
{
	struct receipts *rs = calloc(1, sizeof(*rs));
	int r;

	if (!rs)
		return -ENOMEM;
	rs->loop = l;
	rs->last = &rs->first;
	rs->gone = gone;
	rs->room = room;
	rs->arg = arg;
	rs->flow = first_flow;
	rs->waiters.next = rs->waiters.prev = &rs->waiters;
	buf_init(&rs->open, BATCH_MAX);
	rs->watch.run = on_event;
	r = uv_prepare_init(&l->uv, &rs->flush);
	rs->flush.data = rs->late.data = rs;
	if (r == 0)
		r = uv_timer_init(&l->uv, &rs->late);
	if (r == 0)
		r = loop_add(l, &rs->watch, sock, EPOLLIN);
	if (r < 0) {
		free(rs);
		return r;
	}
	*ret = rs;
	return 0;
}

void receipts_add(struct receipts *rs, const struct receipt *r)
{
	if (rs->n_open == RECEIPT_BATCH || buf_space(&rs->open) < RECEIPT_MAX)
		close_batch(rs);
	if (receipt_put(&rs->open, r) < 0)
		abort(); /* there was room: no memory, and without a receipt there is no traffic */
	rs->n_open++;
	rs->added++;
	if (rs->queued > RECEIPTS_FULL)
		rs->was_full = true;
	if (!uv_is_active((const uv_handle_t *)&rs->late))
		(void)uv_timer_start(&rs->late, on_late, LATE_MS, 0);
}

void receipts_wait(struct receipts *rs, struct receipt_wait *w)
{
	if (!uv_is_active((const uv_handle_t *)&rs->flush))
		(void)uv_prepare_start(&rs->flush, on_prepare);
	w->number = rs->added;
	w->next = &rs->waiters;
	w->prev = rs->waiters.prev;
	w->prev->next = w;
	rs->waiters.prev = w;
}

void receipts_cancel(struct receipts *rs, struct receipt_wait *w)
{
	(void)rs;
	if (!w->next)
		return;
	w->prev->next = w->next;
	w->next->prev = w->prev;
	w->next = w->prev = NULL;
}

bool receipts_full(const struct receipts *rs)
{
	return rs->was_full || rs->dead;
}

uint64_t receipts_flow(struct receipts *rs)
{
	return ++rs->flow;
}
