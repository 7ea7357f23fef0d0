#pragma once
/* The back-end of a vhost-user conversation: features, the guest's memory, two queues and their event
 * descriptors. Knows nothing of what is in the queues.
 *
 * A queue is configured (NUM, BASE, ADDR), started by its kick descriptor and stopped by GET_VRING_BASE. While it
 * is started its configuration is frozen: a message that would change it ends the conversation. It is served while it is started and
 * enabled. Memory may be replaced at any time. */
#include "workspace/mem.h"
#include "workspace/vhost-msg.h"
#include "workspace/virtq.h"

struct vhost_queue {
	struct virtq ring;        /* valid once the queue was started */
	struct virtq_where where; /* as configured */
	bool addressed;           /* ADDR came */
	bool enabled;
	bool watched;   /* kick is in the epoll set */
	bool opened;    /* ring is valid */
	unsigned run;   /* changes when what was taken from the ring is forgotten: a fresh start */
	int kick, call; /* event descriptors or -1; kick is open while the queue is started */
};

struct vhost {
	int sock;
	int epoll;
	uint32_t tag; /* of the first queue's kick in the epoll set; the next has the next */
	uint64_t features, protocol;
	struct mem *mem;
	struct vhost_queue q[VHOST_QUEUES];
	/* the message that is being read */
	uint8_t in[VHOST_HEADER + VHOST_PAYLOAD_MAX];
	size_t n_in;
	struct vhost_msg m;
	int fds[VHOST_FDS_MAX];
	size_t n_fds;
	uint64_t answer;   /* to it, if it wants one */
	const char *fault; /* what ended the conversation, for a message, or NULL */
};

/* sock and epoll stay the caller's. Kicks appear in the epoll set, edge-triggered (nobody reads them), with
 * tag + queue as data.u32. */
void vhost_init(struct vhost *v, int sock, int epoll, uint32_t tag);
void vhost_done(struct vhost *v);

/* Read and do at most one message. 1: done one; 0: nothing more at the moment; negative ends the conversation:
 * -ECONNRESET (the front-end has gone), -EPROTO or another errno. */
int vhost_read(struct vhost *v) _must_check_;

/* True if the queue may be read. */
bool vhost_serves(const struct vhost *v, size_t queue);

/* Started, if perhaps not enabled: answers may be given. */
bool vhost_started(const struct vhost *v, size_t queue);

/* Interrupt the guest; a ring is broken: stop listening to its kicks. */
void vhost_call(struct vhost *v, size_t queue);
void vhost_broken(struct vhost *v, size_t queue);
