/* Sockets on the loop. Reading happens in chunks that a queue has room for; writing is tried at
 * once, since almost always the socket takes it and a trip through the loop is saved. */
#include "supervisor/conn.h"

#include <sys/socket.h>
#include <unistd.h>

#include "io/fd.h"

enum { CHUNK = 64 * 1024 };

static void on_poll(uv_poll_t *p, int status, int events);

static void watch(struct conn *c)
{
	int want = UV_READABLE | (c->out.n ? UV_WRITABLE : 0);

	if (c->gone || want == c->events)
		return;
	c->events = want;
	(void)uv_poll_start(&c->poll, want, on_poll);
}

static void gone(struct conn *c)
{
	if (c->gone)
		return;
	c->gone = true;
	(void)uv_poll_stop(&c->poll);
	c->on_gone(c);
}

/* False if the peer is gone. */
static bool push(struct conn *c)
{
	while (c->out.n) {
		ssize_t k = send(c->fd, buf_data(&c->out), c->out.n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return errno == EAGAIN;
		buf_consume(&c->out, (size_t)k);
	}
	return true;
}

void conn_flush(struct conn *c)
{
	if (!c->open || c->gone)
		return;
	if (push(c))
		watch(c);
	else
		gone(c);
}

/* recv(), with the descriptor that may come along. */
static ssize_t receive(struct conn *c, void *to, size_t room)
{
	int fd = -1;
	ssize_t k;

	if (!c->takes_fd)
		return recv(c->fd, to, room, MSG_DONTWAIT);
	k = fd_receive_with(c->fd, to, room, MSG_DONTWAIT, &fd);
	if (k < 0) {
		errno = (int)-k;
		return -1;
	}
	if (fd >= 0) {
		(void)fd_close(c->came_fd);
		c->came_fd = fd;
	}
	return k;
}

/* False if the peer is gone. */
static bool pull(struct conn *c)
{
	size_t room = MIN(buf_space(&c->in), (size_t)CHUNK);
	void *to = buf_room(&c->in, room);
	ssize_t k;

	if (!room || !to)
		return false; /* the owner left a whole maximum unread: no honest peer does that */
	do
		k = receive(c, to, room);
	while (k < 0 && errno == EINTR);
	if (k < 0)
		return errno == EAGAIN;
	if (k == 0)
		return false;
	buf_added(&c->in, (size_t)k);
	c->on_input(c);
	return true;
}

static void on_poll(uv_poll_t *p, int status, int events)
{
	struct conn *c = p->data;

	if (status < 0 || ((events & UV_WRITABLE) && !push(c))) {
		gone(c);
		return;
	}
	if ((events & UV_READABLE) && !pull(c)) {
		gone(c);
		return;
	}
	watch(c);
}

void conn_look(struct conn *c)
{
	if (!pull(c))
		gone(c);
}

int conn_open(struct conn *c, uv_loop_t *loop, int fd, size_t in_max, size_t out_max)
{
	int r = fd_nonblock(fd, true);

	if (r == 0)
		r = uv_poll_init(loop, &c->poll, fd);
	if (r < 0)
		return r;
	buf_init(&c->in, in_max);
	buf_init(&c->out, out_max);
	c->poll.data = c;
	c->fd = fd;
	c->open = true;
	c->gone = false;
	c->events = 0;
	c->came_fd = -1;
	watch(c);
	return 0;
}

static void closed(uv_handle_t *h)
{
	struct conn *c = h->data;

	c->fd = fd_close(c->fd);
	c->came_fd = fd_close(c->came_fd);
	buf_done(&c->in);
	buf_done(&c->out);
	if (c->on_closed)
		c->on_closed(c);
}

void conn_close(struct conn *c)
{
	if (!c->open)
		return;
	c->open = false;
	c->gone = true;
	(void)uv_poll_stop(&c->poll);
	uv_close((uv_handle_t *)&c->poll, closed);
}
