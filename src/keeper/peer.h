#pragma once
/* One conversation: messages out, as far as the other side reads; what it does not yet, waits in a bounded queue that is wiped. */
#include "wire/keeper.h"

enum { PEER_QUEUE_MAX = 1024 * 1024 };

struct peer {
	int fd;                         /* -1: nobody */
	char who;                       /* 'S', 'M', 'P', 'F' */
	struct peer_part *first, **end; /* queue */
	size_t queued;                  /* bytes */
};

void peer_open(struct peer *p, char who, int fd); /* fd is taken over; who was there is closed */
void peer_close(struct peer *p);
/* 0; -ENOTCONN: nobody is there; -ENOBUFS: the message is too long, or the queue is full; -errno: it is gone. */
int peer_send(struct peer *p, const struct keeper_msg *m) _must_check_;
/* It has room again. 0, or -errno: it is gone. */
int peer_flush(struct peer *p) _must_check_;
