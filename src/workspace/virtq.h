#pragma once
/* One split virtqueue, from the device's side: takes chains of buffers that the guest made available,
 * gives them back as used. Pure: the ring lies in a table of regions (workspace/mem.h). The guest may write
 * any byte of it at any time. */
#include <sys/uio.h>

#include "base/base.h"
#include "workspace/mem.h"

enum {
	VIRTQ_SIZE_MAX = 1024,    /* as QEMU's; a power of two */
	VIRTQ_IOV_MAX = 1024 + 8, /* buffers of one chain: 4 MiB in pages, and what heads need */
};

/* Where the front-end says that the ring lies (its own addresses), and how it is used. */
struct virtq_where {
	uint32_t num;
	uint64_t desc, avail, used;
	uint16_t base;  /* index of the next chain to take */
	bool event_idx; /* agreed features */
	bool indirect;
};

struct virtq {
	const struct mem *mem; /* borrowed */
	uint16_t num;
	bool event_idx;
	bool indirect;
	const uint8_t *desc;
	const uint8_t *avail;
	uint8_t *used;
	uint16_t last_avail; /* index of the next chain to take */
	uint16_t used_idx;   /* as it was last written */
	uint16_t signalled;  /* used_idx when the guest was last told, if that is known */
	bool signalled_known;
	const char *broken;        /* what the guest did, or NULL */
	bool busy[VIRTQ_SIZE_MAX]; /* heads that were taken and not given back */
};

/* A chain, read into our own memory once. The buffers lie in guest memory. */
struct virtq_chain {
	uint16_t head;
	size_t n_in;  /* the first so many buffers are for us to read, */
	size_t n_out; /* the next so many are for us to fill */
	struct iovec iov[VIRTQ_IOV_MAX];
};

/* Start at w in m. 0; -EPROTO: a size that is no power of two from 2 to VIRTQ_SIZE_MAX, an address that is not aligned or
 * does not lie in one region. */
int virtq_open(struct virtq *ret, const struct mem *m, const struct virtq_where *w) _must_check_;

/* The memory table was replaced: find the same ring in m. 0 or -EPROTO, and then nothing changed. */
int virtq_move(struct virtq *v, const struct mem *m, const struct virtq_where *w) _must_check_;

/* Take the next chain. 1; 0: none there; -EPROTO: the ring is broken (v->broken says why) and stays so. */
int virtq_next(struct virtq *v, struct virtq_chain *ret) _must_check_;

/* Give back a chain into whose buffers len bytes were written. */
void virtq_push(struct virtq *v, uint16_t head, uint32_t len);

/* Between the two the guest need not kick: off while the ring is drained, on before waiting. After on, true
 * means that something has come meanwhile: drain again. */
void virtq_kicks_off(struct virtq *v);
bool virtq_kicks_on(struct virtq *v);

/* True if the guest wants to be told of what was pushed since it was last told; it counts as told. */
bool virtq_wants_call(struct virtq *v);
