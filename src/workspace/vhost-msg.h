#pragma once
/* The vhost-user protocol's messages, as far as a file system's back-end needs them (QEMU,
 * docs/interop/vhost-user.rst). Pure: bytes in, checked values out. The front-end is a QEMU that the guest
 * may have taken over, so every length, count, index and number of descriptors is judged here, before
 * anybody acts on it. Numbers are in the machine's own byte order, as the protocol has it. */
#include "base/base.h"

/* The two queues of a virtio-fs device with one request queue. */
enum { VHOST_QUEUES = 2 };

/* Descriptors and regions of one message: the protocol's baseline. */
enum { VHOST_REGIONS_MAX = 8, VHOST_FDS_MAX = 8 };

enum { VHOST_HEADER = 12, VHOST_PAYLOAD_MAX = 8 + 32 * VHOST_REGIONS_MAX, VHOST_REPLY_MAX = 20 };

/* name, number, payload, descriptors, what is answered at once */
#define VHOST_REQUESTS(X) \
	X(GET_FEATURES, 1, NONE, NONE, U64) \
	X(SET_FEATURES, 2, U64, NONE, NONE) \
	X(SET_OWNER, 3, NONE, NONE, NONE) \
	X(SET_MEM_TABLE, 5, MEM, REGION, NONE) \
	X(SET_VRING_NUM, 8, STATE, NONE, NONE) \
	X(SET_VRING_ADDR, 9, ADDR, NONE, NONE) \
	X(SET_VRING_BASE, 10, STATE, NONE, NONE) \
	X(GET_VRING_BASE, 11, STATE, NONE, STATE) \
	X(SET_VRING_KICK, 12, FILE, FILE, NONE) \
	X(SET_VRING_CALL, 13, FILE, FILE, NONE) \
	X(SET_VRING_ERR, 14, FILE, FILE, NONE) \
	X(GET_PROTOCOL_FEATURES, 15, NONE, NONE, U64) \
	X(SET_PROTOCOL_FEATURES, 16, U64, NONE, NONE) \
	X(GET_QUEUE_NUM, 17, NONE, NONE, U64) \
	X(SET_VRING_ENABLE, 18, STATE, NONE, NONE)

enum vhost_request {
#define X(name, num, payload, fds, reply) VHOST_##name = (num),
	VHOST_REQUESTS(X)
#undef X
};

struct vhost_region {
	uint64_t guest;  /* guest's physical address */
	uint64_t size;   /* bytes, never 0 */
	uint64_t user;   /* address in the front-end; rings are given in these */
	uint64_t offset; /* into the descriptor */
};

struct vhost_msg {
	uint8_t request;            /* enum vhost_request */
	bool need_reply;            /* wants an acknowledgement, if REPLY_ACK is agreed */
	uint32_t size;              /* of the payload that follows the header */
	uint32_t index;             /* STATE, ADDR, FILE: the queue, below VHOST_QUEUES */
	uint32_t num;               /* STATE */
	bool has_fd;                /* FILE */
	uint64_t u64;               /* U64 */
	uint64_t desc, avail, used; /* ADDR: in the front-end's addresses */
	uint32_t n_regions;         /* MEM: 1 to VHOST_REGIONS_MAX */
	struct vhost_region regions[VHOST_REGIONS_MAX];
};

/* The header alone: request, need_reply and size of *ret are set. 0, or -EPROTO: a request that we have
 * not, a version or flag that is none, a payload that this request cannot have. */
int vhost_msg_head(struct vhost_msg *ret, const uint8_t p[VHOST_HEADER]) _must_check_;

/* The payload of a message whose head was taken; p has m->size bytes, n_fds descriptors came with them. 0 or
 * -EPROTO. No sum of two numbers of a region wraps. */
int vhost_msg_body(struct vhost_msg *m, const uint8_t *p, size_t n_fds) _must_check_;

/* True if the request itself asks for an answer (not only for an acknowledgement). */
bool vhost_msg_has_answer(const struct vhost_msg *m);

/* Write the reply to m: a STATE of m->index and value for a request that wants one, else value as u64 (also
 * for an acknowledgement). The length. */
size_t vhost_msg_reply(uint8_t dst[VHOST_REPLY_MAX], const struct vhost_msg *m, uint64_t value);

/* "SET_MEM_TABLE", or "?" */
const char *vhost_msg_name(uint8_t request);
