#include "keeper/peer.h"

#include <sys/socket.h>

#include "io/fd.h"

struct peer_part {
	struct peer_part *next;
	size_t n;
	uint8_t p[];
};

static void drop_first(struct peer *p)
{
	struct peer_part *part = p->first;

	p->first = part->next;
	if (!p->first)
		p->end = &p->first;
	p->queued -= part->n;
	explicit_bzero(part->p, part->n);
	free(part);
}

void peer_close(struct peer *p)
{
	while (p->first)
		drop_first(p);
	p->fd = fd_close(p->fd);
}

void peer_open(struct peer *p, char who, int fd)
{
	if (p->who)
		peer_close(p);
	*p = (struct peer) { .fd = fd, .who = who };
	p->end = &p->first;
}

static int queue(struct peer *p, const uint8_t *bytes, size_t n)
{
	struct peer_part *part;

	if (n > PEER_QUEUE_MAX - p->queued)
		return -ENOBUFS;
	part = malloc(sizeof(*part) + n);
	if (!part)
		return -ENOMEM;
	part->next = NULL;
	part->n = n;
	memcpy(part->p, bytes, n);
	*p->end = part;
	p->end = &part->next;
	p->queued += n;
	return 0;
}

/* 0; 1: not now; -errno. */
static int try(const struct peer *p, const uint8_t *bytes, size_t n)
{
	if (send(p->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	return errno == EAGAIN || errno == ENOBUFS || errno == EINTR ? 1 : -errno;
}

int peer_send(struct peer *p, const struct keeper_msg *m)
{
	static uint8_t scratch[KEEPER_MSG_MAX];
	ssize_t n;
	int r = 1;

	if (p->fd < 0)
		return -ENOTCONN;
	n = keeper_put(m, scratch, sizeof(scratch));
	if (n >= 0 && !p->first)
		r = try(p, scratch, (size_t)n);
	if (n >= 0 && r == 1)
		r = queue(p, scratch, (size_t)n);
	explicit_bzero(scratch, n < 0 ? sizeof(scratch) : (size_t)n);
	return n < 0 ? (int)n : r;
}

int peer_flush(struct peer *p)
{
	int r = 0;

	while (p->first && (r = try(p, p->first->p, p->first->n)) == 0)
		drop_first(p);
	return MIN(r, 0);
}
