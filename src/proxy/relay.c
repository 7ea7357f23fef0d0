#include "proxy/relay.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/fd.h"

enum {
	PIPE_SIZE =
		1024 *
		1024, /* a third less work than with 256 KiB; the most an ordinary user may have */
	POOL_MAX = 4, /* a user's pipes share an allowance of 64 MiB (pipe(7)) */
	SHARE = 1024 * 1024,
	COPY_MAX = 64 * 1024,
	BULK_MIN = 32 * 1024,
	PEND_MAX = 256 * 1024
};

struct splice_pipe {
	struct splice_pipe *next;
	int in, out;
	size_t size, held;
};

static struct splice_pipe *pipe_get(struct relay *r)
{
	struct splice_pipe *p = r->pool;
	int fd[2], size;

	if (p) {
		r->pool = p->next;
		r->n_pool--;
		return p;
	}
	p = calloc(1, sizeof(*p));
	if (!p || pipe2(fd, O_CLOEXEC | O_NONBLOCK) < 0) {
		free(p);
		return NULL;
	}
	p->out = fd[0];
	p->in = fd[1];
	size = fcntl(p->in, F_SETPIPE_SZ,
		     PIPE_SIZE); /* refused where the user has many: then it is small */
	p->size = size > 0 ? (size_t)size : 65536;
	return p;
}

static void pipe_put(struct relay *r, struct splice_pipe *p)
{
	if (!p)
		return;
	if (p->held || r->n_pool >= POOL_MAX) {
		(void)fd_close(p->in);
		(void)fd_close(p->out);
		free(p);
		return;
	}
	p->next = r->pool;
	r->pool = p;
	r->n_pool++;
}

void side_init(struct side *s, struct flow *f)
{
	*s = (struct side) { .watch = { .fd = -1 }, .flow = f };
}

int side_open(struct loop *l, struct side *s, int fd, void (*run)(struct watch *w, uint32_t events))
{
	s->watch.run = run;
	s->readable = s->writable = s->hung_up = false;
	return loop_add(l, &s->watch, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

void side_note(struct side *s, uint32_t events)
{
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		s->readable = true;
	if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		s->writable = true;
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		s->hung_up = true;
}

void side_reset(struct loop *l, struct side *s)
{
	const struct linger none = { .l_onoff = 1, .l_linger = 0 };

	if (s->watch.fd >= 0)
		(void)setsockopt(s->watch.fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	loop_close(l, &s->watch);
}

void side_shut(struct side *s)
{
	if (s->watch.fd >= 0)
		(void)shutdown(s->watch.fd, SHUT_WR);
}

void pump_init(struct pump *p, struct relay *r, struct side *from, struct side *to)
{
	*p = (struct pump) { .relay = r, .from = from, .to = to };
	buf_init(&p->pend, PEND_MAX);
}

void pump_done(struct pump *p)
{
	pipe_put(p->relay, take_ptr(p->pipe));
	buf_done(&p->pend);
}

/* 1: pend is empty; 0: the receiver is full; -1: it is gone. */
static int flush(struct pump *p)
{
	while (p->pend.n) {
		ssize_t n;

		if (!p->to->writable)
			return 0;
		n = send(p->to->watch.fd, buf_data(&p->pend), p->pend.n,
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN) {
			p->to->writable = false;
			return 0;
		}
		if (n < 0)
			return -1;
		buf_consume(&p->pend, (size_t)n);
	}
	if (p->pend.p) /* an idle pump owns nothing */
		buf_done(&p->pend);
	return 1;
}

/* 1: the pipe is empty; 0: the receiver is full; -1: it is gone. */
static int drain(struct pump *p)
{
	while (p->pipe && p->pipe->held) {
		ssize_t n;

		if (!p->to->writable)
			return 0;
		n = splice(p->pipe->out, NULL, p->to->watch.fd, NULL, p->pipe->held,
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (n < 0 && errno == EAGAIN) {
			p->to->writable = false;
			return 0;
		}
		if (n <= 0)
			return -1;
		p->pipe->held -= (size_t)n;
		p->moved += (uint64_t)n;
	}
	return 1;
}

static enum pump_result at_error(void)
{
	return errno == EAGAIN ? PUMP_WAITS : PUMP_RESET;
}

/* A piece by way of a pipe. PUMP_AGAIN: it went well. */
static enum pump_result splice_some(struct pump *p)
{
	size_t room;
	ssize_t n;

	if (!p->pipe)
		p->pipe = pipe_get(p->relay);
	if (!p->pipe) {
		p->bulk = false;
		return PUMP_AGAIN;
	}
	room = MIN((uint64_t)(p->pipe->size - p->pipe->held), p->left);
	n = splice(p->from->watch.fd, NULL, p->pipe->in, NULL, room,
		   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n < 0 && errno == EAGAIN && p->pipe->held)
		return PUMP_WAITS; /* the pipe may be full of small pieces: this says nothing of the sender */
	if (n < 0 && errno == EAGAIN) {
		p->from->readable = false;
		pipe_put(p->relay, take_ptr(p->pipe));
		return PUMP_WAITS;
	}
	if (n < 0)
		return PUMP_RESET;
	if (n == 0) {
		p->ended = true;
		return PUMP_EOF;
	}
	p->pipe->held += (size_t)n;
	if (p->left != UINT64_MAX)
		p->left -= (uint64_t)n;
	return drain(p) < 0 ? PUMP_REFUSED : PUMP_AGAIN;
}

/* How much of what was read belongs to this body: all but for a chunked one. */
static ssize_t scanned(struct pump *p, const uint8_t *bytes, size_t n)
{
	return p->scan ? http_body_scan(p->scan, bytes, n) : (ssize_t)n;
}

/* Chunks are looked at before they are taken: what follows them belongs to another request. */
static ssize_t take(struct pump *p, uint8_t *bytes, size_t max)
{
	ssize_t n, mine;

	if (!p->scan)
		return recv(p->from->watch.fd, bytes, max, MSG_DONTWAIT);
	n = recv(p->from->watch.fd, bytes, max, MSG_DONTWAIT | MSG_PEEK);
	if (n <= 0)
		return n;
	mine = scanned(p, bytes, (size_t)n);
	if (mine < 0) {
		errno = EPROTO;
		return -1;
	}
	return mine ? recv(p->from->watch.fd, bytes, (size_t)mine, MSG_DONTWAIT) : 0;
}

static enum pump_result deliver(struct pump *p, const uint8_t *bytes, size_t n)
{
	ssize_t sent = 0;

	if (p->to->writable) {
		sent = send(p->to->watch.fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && errno != EAGAIN)
			return PUMP_REFUSED;
	}
	sent = MAX(sent, (ssize_t)0);
	p->moved += n; /* or will be, before anything else */
	if ((size_t)sent == n)
		return PUMP_AGAIN;
	return buf_add(&p->pend, bytes + sent, n - (size_t)sent) < 0 ? PUMP_RESET : PUMP_AGAIN;
}

/* A piece by way of our memory. */
static enum pump_result copy_some(struct pump *p)
{
	uint8_t *scratch = p->relay->scratch;
	size_t max = COPY_MAX;
	ssize_t n;

	if (p->left < max && !p->scan)
		max = p->left;
	n = take(p, scratch, max);
	if (n < 0 && errno == EAGAIN)
		p->from->readable = false;
	if (n < 0)
		return errno == EPROTO && p->scan ? PUMP_BAD : at_error();
	if (n == 0 && !(p->scan && p->scan->done)) {
		p->ended = true;
		return PUMP_EOF;
	}
	if (p->left != UINT64_MAX && !p->scan)
		p->left -= (uint64_t)n;
	if ((size_t)n < max && !p->from->hung_up && !p->scan)
		p->from->readable = false; /* it was all: the next byte makes an edge */
	if ((size_t)n >= BULK_MIN && !p->scan)
		p->bulk = true;
	return deliver(p, scratch, (size_t)n);
}

static bool all_taken(const struct pump *p)
{
	return p->scan ? p->scan->done : p->left == 0;
}

/* What is under way goes first. PUMP_AGAIN: there is room for more. */
static enum pump_result deliver_rest(struct pump *p)
{
	int r = flush(p);

	if (r > 0)
		r = drain(p);
	if (r < 0)
		return PUMP_REFUSED;
	if (r > 0 && all_taken(p))
		return PUMP_END;
	if (r > 0 && p->ended)
		return PUMP_EOF;
	if (r == 0 && (p->pend.n || !p->pipe || p->pipe->held > p->pipe->size / 2))
		return PUMP_WAITS;
	return all_taken(p) || p->ended || !p->from->readable ? PUMP_WAITS : PUMP_AGAIN;
}

/* It waits. A stream that was slow in this round is copied in the next, and an empty pipe is somebody else's. */
static void settle(struct pump *p, uint64_t start)
{
	p->bulk = p->bulk && p->moved - start >= BULK_MIN;
	if (p->pipe && !p->pipe->held)
		pipe_put(p->relay, take_ptr(p->pipe));
}

enum pump_result pump_run(struct pump *p)
{
	const uint64_t start = p->moved;
	enum pump_result y;

	for (;;) {
		y = deliver_rest(p);
		if (y == PUMP_AGAIN && p->moved - start > SHARE)
			return PUMP_AGAIN;
		/* what is in the pipe came first: nothing may go past it */
		if (y == PUMP_AGAIN)
			y = !p->scan && (p->bulk || (p->pipe && p->pipe->held)) ? splice_some(p)
										: copy_some(p);
		else if (y == PUMP_WAITS)
			settle(p, start);
		if (y == PUMP_EOF && p->pipe && p->pipe->held)
			continue; /* it has ended; what is in the pipe is not delivered */
		if (y != PUMP_AGAIN)
			return y;
	}
}
