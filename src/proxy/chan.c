#include "proxy/chan.h"

#include <sys/socket.h>

#include "base/text.h"
#include "io/fd.h"
#include "proxy/chan-priv.h"

enum {
	SEND_MIN = 16 * 1024, /* less waits for the end of the round */
	WIRE_MAX = 512 * 1024,
	KEEP_MAX = 4096, /* an idle one owns no more */
	LINGER_MS = 2000,
};

static void freed(uv_handle_t *h)
{
	free(h->data);
}

static void close_now(struct chan *c)
{
	if (c->closed)
		return;
	c->closed = true;
	loop_close(c->loop, &c->watch);
	loop_forget(c->loop, &c->again);
	if (c->layer)
		c->layer->done(c);
	buf_done(&c->out);
	buf_done(&c->wire);
	uv_close((uv_handle_t *)&c->timer, freed);
}

static void again(struct chan *c)
{
	if (!c->closed)
		loop_again(c->loop, &c->again);
}

static void cut(struct chan *c)
{
	c->cut = true;
	c->readable = true;
	c->told = true;
	again(c);
}

/* ---- reading ---- */

ssize_t chan_receive(struct chan *c, void *p, size_t max)
{
	ssize_t n;

	if (!c->readable)
		return CHAN_WAIT;
	n = recv(c->watch.fd, p, max, MSG_DONTWAIT);
	if (n > 0) {
		if ((size_t)n < max && !c->hung_up)
			c->readable = false; /* it was all: the next byte makes an edge */
		return n;
	}
	if (n == 0)
		return c->cut ? CHAN_BROKEN : CHAN_END;
	if (errno == EAGAIN || errno == EINTR) {
		c->readable = false;
		return CHAN_WAIT;
	}
	return CHAN_BROKEN;
}

ssize_t chan_read(struct chan *c, void *p, size_t max)
{
	ssize_t n;

	if (c->ended)
		return c->cut ? CHAN_BROKEN : CHAN_END;
	if (c->broken)
		return CHAN_BROKEN;
	n = c->layer ? c->layer->read(c, p, max) : chan_receive(c, p, max);
	if (n == CHAN_END)
		c->ended = true;
	else if (n == CHAN_BROKEN)
		c->broken = true;
	return n == CHAN_END && c->cut ? CHAN_BROKEN : n;
}

/* ---- writing ---- */

static void shrink(struct buf *b)
{
	if (!b->n && b->cap > KEEP_MAX)
		buf_done(b);
}

/* What has gone out may have held a credential. */
static void forget(struct buf *b)
{
	if (!b->n && b->p)
		explicit_bzero(b->p, b->cap);
	shrink(b);
}

static void send_from(struct chan *c, struct buf *b)
{
	while (b->n && c->writable && !c->cut) {
		ssize_t n = send(c->watch.fd, buf_data(b), b->n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0)
			buf_consume(b, (size_t)n);
		else if (errno == EAGAIN)
			c->writable = false;
		else if (errno != EINTR)
			cut(c);
	}
	shrink(b);
}

static void send_last(struct chan *c)
{
	if (!c->shut_put && c->layer)
		c->layer->shut(c);
	c->shut_put = true;
	if (c->layer)
		send_from(c, &c->wire);
	if (c->out.n || c->wire.n || c->cut || c->shut_sent)
		return;
	c->shut_sent = true;
	(void)shutdown(c->watch.fd, SHUT_WR);
}

void chan_send(struct chan *c)
{
	size_t before;

	if (c->closed)
		return;
	if (!c->layer) {
		send_from(c, &c->out);
	} else {
		do {
			before = c->out.n + c->wire.n;
			c->layer->push(c);
			send_from(c, &c->wire);
		} while (c->out.n && c->writable && !c->cut && !c->broken &&
			 c->out.n + c->wire.n < before);
	}
	if (c->cut || c->broken) {
		buf_done(&c->out);
		buf_done(&c->wire);
		return;
	}
	if (c->shut && !c->out.n)
		send_last(c);
	forget(&c->out);
	if (c->starved && chan_space(c) >= CHAN_OUT_MAX / 2) {
		c->starved = false;
		c->told = true;
		again(c);
	}
}

size_t chan_space(const struct chan *c)
{
	const size_t used = c->out.n + c->wire.n;

	return used < CHAN_OUT_MAX ? CHAN_OUT_MAX - used : 0;
}

size_t chan_write(struct chan *c, const void *p, size_t n)
{
	const uint8_t *at = p;
	size_t left = n;

	if (c->cut || c->broken || c->shut || c->closed)
		return n;
	while (left) {
		size_t k = MIN(left, chan_space(c));

		if (!k || buf_add(&c->out, at, k) < 0)
			break;
		at += k;
		left -= k;
		if (c->out.n >= SEND_MIN)
			chan_send(c);
		if (c->cut || c->broken)
			return n;
	}
	if (left || !n)
		c->starved = true;
	if (c->out.n || c->starved)
		again(c);
	return n - left;
}

bool chan_flushed(const struct chan *c)
{
	return c->cut || c->broken || (!c->out.n && !c->wire.n);
}

void chan_shut(struct chan *c)
{
	c->shut = true;
	again(c);
}

/* ---- edges ---- */

static void drain(struct chan *c)
{
	uint8_t bytes[4096];
	ssize_t n;

	for (int i = 0; i < 64; i++) {
		n = recv(c->watch.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			c->ended = true;
			return;
		}
	}
	again(c);
}

static void edge(struct chan *c)
{
	if (c->layer && c->layer->step && !c->lingers)
		c->layer->step(c);
	chan_send(c);
	if (c->closed)
		return;
	if (c->lingers) {
		drain(c);
		if (c->cut || c->broken || c->ended)
			close_now(c);
		return;
	}
	c->told = false;
	if (c->ops)
		c->ops->edge(c->arg);
}

static void on_event(struct watch *w, uint32_t events)
{
	struct chan *c = (struct chan *)w;

	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		c->readable = true;
	if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		c->writable = true;
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		c->hung_up = true;
	edge(c);
}

static void on_again(struct again *a)
{
	struct chan *c = (struct chan *)((char *)a - offsetof(struct chan, again));

	if (c->closed)
		return;
	if (c->told || c->lingers)
		edge(c);
	else
		chan_send(c);
}

void chan_again(struct chan *c)
{
	c->told = true;
	again(c);
}

void chan_owner(struct chan *c, const struct chan_ops *ops, void *arg)
{
	c->ops = ops;
	c->arg = arg;
}

const char *chan_alpn(const struct chan *c)
{
	return c->alpn;
}

/* ---- life ---- */

static void on_timer(uv_timer_t *t)
{
	close_now(t->data);
}

struct chan *chan_free(struct chan *c, bool reset)
{
	const struct linger none = { .l_onoff = 1, .l_linger = 0 };

	if (!c || c->closed || c->lingers)
		return NULL;
	c->ops = NULL;
	if (reset && c->watch.fd >= 0)
		(void)setsockopt(c->watch.fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	if (reset || c->cut || c->broken || c->watch.fd < 0) {
		close_now(c);
		return NULL;
	}
	/* what was written is delivered, and what the peer still sends does not turn it into a reset */
	c->shut = true;
	c->lingers = true;
	chan_send(c);
	if (c->cut || c->broken || (c->ended && c->shut_sent)) {
		close_now(c);
		return NULL;
	}
	(void)uv_timer_start(&c->timer, on_timer, LINGER_MS, 0);
	again(c);
	return NULL;
}

struct chan *chan_make(struct loop *l, int fd, const char *alpn)
{
	struct chan *c = calloc(1, sizeof(*c));

	if (!c) {
		(void)fd_close(fd);
		return NULL;
	}
	c->loop = l;
	c->watch.fd = -1;
	c->watch.run = on_event;
	c->again.run = on_again;
	c->readable = c->writable = true;
	buf_init(&c->out, CHAN_OUT_MAX);
	buf_init(&c->wire, WIRE_MAX);
	(void)!text_copy(c->alpn, sizeof(c->alpn), alpn);
	(void)uv_timer_init(&l->uv, &c->timer);
	c->timer.data = c;
	if (loop_add(l, &c->watch, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET) < 0) {
		(void)fd_close(fd);
		close_now(c);
		return NULL;
	}
	return c;
}

struct chan *chan_plain(struct loop *l, int fd, const char *alpn)
{
	return chan_make(l, fd, alpn);
}
