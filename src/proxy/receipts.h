#pragma once
/* Receipts on their way to bac-audit: gathered for a round, sent as one datagram, and waited for. One that nobody waits for (the end of a request, say) goes
 * with the next that somebody does, at most 5 ms later: so a request costs bac-audit one wake-up and not two.
 *
 * Nothing is dropped. When bac-audit does not take them, they queue up; above RECEIPTS_FULL bytes receipts_full() is true, and who would
 * make more (accept, DNS) waits until it is not. */
#include "proxy/loop.h"
#include "wire/receipt.h"

enum { RECEIPTS_FULL = 1024 * 1024 };

struct receipts;

/* Who waits until what was put before is in the file. A member of the waiter's own struct; zeroed: waits for nothing. */
struct receipt_wait {
	struct receipt_wait *prev, *next;
	uint64_t number;
	void (*run)(struct receipt_wait *w); /* not called from receipts_wait() itself */
};

/* For the whole life of the process. sock is bac-audit's. gone is told when the conversation has ended: nothing can be allowed any more. room: the queue is short again. */
int receipts_new(struct loop *l, int sock, uint64_t first_flow, void (*gone)(void *arg),
		 void (*room)(void *arg), void *arg, struct receipts **ret) _must_check_;

void receipts_add(struct receipts *rs, const struct receipt *r);
/* w->run() when all that was added until now is written. */
void receipts_wait(struct receipts *rs, struct receipt_wait *w);
/* Send what has been gathered. */
void receipts_flush(struct receipts *rs);
void receipts_cancel(struct receipts *rs, struct receipt_wait *w);
bool receipts_full(const struct receipts *rs);
/* A number that no other flow of this proxy has. */
uint64_t receipts_flow(struct receipts *rs);
