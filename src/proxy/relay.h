#pragma once
/* Bytes from one socket to another, in one direction.
 *
 * Small ones are read and written; a stream that keeps its pump busy is spliced through a pipe (splice(2)) and never enters this
 * process. Pipes and buffers exist only while something is in them: an idle pump owns nothing. What the receiver does not take stops the
 * sender (back-pressure), in the kernel's buffers. */
#include "base/buf.h"
#include "proxy/http.h"
#include "proxy/loop.h"

struct flow;
struct splice_pipe;

/* One end of a flow. Edges are remembered until they are used up. */
struct side {
	struct watch watch; /* first */
	struct flow *flow;
	bool readable, writable;
	bool hung_up; /* the peer has sent its last byte, or a reset */
};

enum pump_result {
	PUMP_WAITS,   /* for an edge of either side */
	PUMP_AGAIN,   /* it has had its share of this round */
	PUMP_END,     /* all that it was to carry is delivered */
	PUMP_EOF,     /* the sender has ended, and all is delivered */
	PUMP_RESET,   /* the sender's connection is broken */
	PUMP_REFUSED, /* the receiver's is */
	PUMP_BAD,     /* a chunked body that is malformed */
};

struct pump {
	struct relay *relay;
	struct side *from, *to;
	struct buf pend; /* goes first */
	uint64_t left;   /* to carry, if scan is NULL; UINT64_MAX: until the end */
	struct http_bodyscan *scan;
	uint64_t moved; /* delivered, without what others put into pend */
	struct splice_pipe *pipe;
	bool bulk, ended;
};

/* What all pumps of a process share. */
struct relay {
	uint8_t *scratch;         /* SCRATCH_MAX: of use until the next call that might use it */
	struct splice_pipe *pool; /* empty ones, kept for the next who needs one */
	unsigned n_pool;
};

enum { SCRATCH_MAX = 128 * 1024 };

void side_init(struct side *s, struct flow *f);
/* Takes fd over. 0 or -errno. */
int side_open(struct loop *l, struct side *s, int fd, void (*run)(struct watch *w, uint32_t events))
	_must_check_;
/* Note what an event said. */
void side_note(struct side *s, uint32_t events);
/* An end by which the peer sees an error. */
void side_reset(struct loop *l, struct side *s);
void side_shut(struct side *s); /* our last byte */

void pump_init(struct pump *p, struct relay *r, struct side *from, struct side *to);
void pump_done(struct pump *p);
enum pump_result pump_run(struct pump *p);
