#pragma once
/* The channels of the streams: pipes and terminals on this side, DATA and CREDIT on the other.
 *
 * An outlet reads from a command only when the host has given credit and the port wants data, so
 * nothing is ever stored; what cannot go waits in the pipe, and then the command waits. An inlet keeps
 * what the command has not read yet, at most a window. */
#include "guest/init/port.h"
#include "wire/flow.h"

enum { CHAN_LEFTOVERS_MAX = 256 }; /* ends of finished commands that are still emptied */

struct chans {
	struct loop *loop;
	struct port *port;
	struct outlet *first, **last; /* outlets that may have something to send, in turn */
	struct leftover *old, **newest;
	unsigned n_leftovers;
};

struct outlet {
	struct watch w; /* fd -1: not in use, or at its end */
	struct chans *c;
	struct wire_flow flow;
	uint32_t stream;
	uint8_t chan;
	bool tty;
	bool readable; /* not known to be empty */
	bool hup;      /* all writers are gone: readable until the end is read */
	bool bounded;  /* the command has ended: only `left` bytes more */
	bool queued;
	size_t left;
	struct outlet *next;
	void (*on_end)(struct outlet *o); /* after EOF; may free the owner */
};

struct inlet {
	struct watch w; /* fd -1: what comes is dropped, and credit given for it */
	struct chans *c;
	struct wire_flow flow;
	uint32_t stream;
	bool tty;
	bool open;    /* the host has not sent EOF */
	bool waiting; /* watched for room */
	struct buf pending;
};

void chans_init(struct chans *c, struct loop *l, struct port *p);

/* Move output to the port, a frame from each outlet in turn, while the port wants it. True if there is
 * more to do at once. */
bool chans_pump(struct chans *c);

/* Take fd (non-blocking) over. stream, chan, tty and on_end are set. 0 or -errno. */
int outlet_open(struct outlet *o, struct chans *c, int fd) _must_check_;
/* False: the host gave more than there is. */
bool outlet_credit(struct outlet *o, uint32_t n);
/* The command has ended: send what it wrote, without waiting for the end of the pipe, which its
 * children may keep open. on_end() is called from chans_pump(). */
void outlet_finish(struct outlet *o);
/* Nobody listens: a pipe is emptied until its end, a terminal is closed. Sends nothing and does not
 * call on_end(). */
void outlet_drop(struct outlet *o);

void inlet_open(struct inlet *in, struct chans *c, int fd);
/* False: the host sent more than it had credit for. */
bool inlet_data(struct inlet *in, const void *p, size_t n);
void inlet_eof(struct inlet *in);
void inlet_close(struct inlet *in);
