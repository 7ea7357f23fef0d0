#pragma once
/* Entries of directories read ahead: a small pool of buffers, lent to the handles that read now.
 *
 * The guest asks for a page at a time, and the host's kernel is asked for more at once. A handle whose
 * buffer was lent on just reads again from where the guest stands: the host's d_off is the only cookie. */
#include "base/base.h"

#define DIRBUF_SIZE 32768U
#define DIRBUF_N    16U

struct handle;

struct dirbuf {
	struct handle *owner; /* NULL: free */
	uint64_t used_at;
	size_t at, n;      /* unread: [at, n) */
	uint64_t next_off; /* the cookie that stands before [at] */
	_Alignas(8) char bytes[DIRBUF_SIZE];
};

struct dirbufs {
	struct dirbuf *buf[DIRBUF_N]; /* made when first needed */
	uint64_t clock;
};

/* A buffer for h: its own, a free one, or the one longest unused (empty then). NULL: no memory. */
struct dirbuf *dirbuf_take(struct dirbufs *d, struct handle *h);
/* h needs it no more; NULL buffers are fine. */
void dirbuf_give(struct handle *h);
void dirbuf_done(struct dirbufs *d);
