#pragma once
/* Credit of one channel, seen from one end (docs/protocol/ctl.md, "Credit").
 *
 * The sender's half counts what it may still send; the receiver's half counts what it has let the
 * peer send, and what it has to give back. No function blocks or allocates. */
#include "base/base.h"
#include "wire/limits.h"

struct wire_flow {
	uint32_t may_send; /* credit we hold */
	uint32_t may_come; /* credit the peer holds */
	uint32_t owed;     /* bytes passed on and not yet given back */
};

static inline struct wire_flow wire_flow_init(void)
{
	struct wire_flow f = { .may_send = WIRE_WINDOW, .may_come = WIRE_WINDOW };

	return f;
}

/* The peer sent len bytes. False: it had no credit for them. */
static inline bool wire_flow_came(struct wire_flow *f, uint32_t len)
{
	if (len > f->may_come)
		return false;
	f->may_come -= len;
	return true;
}

/* The peer gave us credit. False: more than a window. */
static inline bool wire_flow_credit(struct wire_flow *f, uint32_t n)
{
	if (n > WIRE_WINDOW - f->may_send)
		return false;
	f->may_send += n;
	return true;
}

/* We passed len received bytes on. Returns how much credit to send now (0: not worth a frame
 * yet): a quarter of a window at a time, or all that is owed when flush is set. */
static inline uint32_t wire_flow_passed(struct wire_flow *f, uint32_t len, bool flush)
{
	uint32_t n;

	f->owed += len;
	if (!f->owed || (f->owed < WIRE_WINDOW / 4 && !flush))
		return 0;
	n = f->owed;
	f->owed = 0;
	f->may_come += n;
	return n;
}
