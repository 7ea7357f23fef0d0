#pragma once
/* The control port: frames from and to the supervisor.
 *
 * Two queues go out: `ctl` holds the frames of the connection and credits, `out` the frames of the
 * streams in their order. `ctl` goes first. Both are bounded by their users: data is only made while
 * port_wants_data(), and no frame is taken in while the queues are long. */
#include "base/buf.h"
#include "guest/init/loop.h"
#include "wire/msg.h"

enum {
	PORT_WRITE_MAX = 32 * 1024,                   /* what the driver takes in one write */
	PORT_DATA_MAX = PORT_WRITE_MAX - WIRE_HEADER, /* a DATA frame that fills one write */
	PORT_PAUSE = 512 * 1024,                      /* queued bytes at which input waits */
	PORT_OUT_MAX = 4 * 1024 * 1024,               /* cannot be reached */
	PORT_IN_MAX = 128 * 1024,
};

struct port {
	struct watch w;
	struct loop *loop;
	struct buf in, ctl, out;
	struct buf *mid; /* queue of which a write took only a part */
	size_t mid_left; /* bytes of that write still to go */
	uint32_t armed;  /* events that are watched */
	bool blocked;    /* the driver is full */
	void (*on_frame)(void *user, const struct wire_frame *f);
	void (*on_lost)(void *user, const char *why);
	void *user;
};

/* Find the port named "ctl", open it and wait until the host's end is there; gives up after ms.
 * 0 or -errno with what is missing in *ret_why. */
int port_open(struct port *p, uint64_t ms, const char **ret_why) _must_check_;

/* Start to call on_frame() and on_lost(), which the owner has set. */
int port_watch(struct port *p, struct loop *l) _must_check_;

/* True if a command's output may be queued now. */
static inline bool port_wants_data(const struct port *p)
{
	return !p->blocked && p->out.n < PORT_WRITE_MAX;
}

/* Place for a DATA frame of up to PORT_DATA_MAX bytes, or NULL on lack of memory; port_data_end()
 * queues the n bytes that were put there (0: none). */
uint8_t *port_data_begin(struct port *p) _must_check_;
void port_data_end(struct port *p, uint32_t stream, uint8_t chan, size_t n);

/* Give the driver what it takes. */
void port_flush(struct port *p);

/* The same, but wait until all is gone. False: not within ms. */
bool port_drain(struct port *p, uint64_t ms);
