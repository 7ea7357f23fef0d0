#pragma once
/* A connection as HTTP sees it: bytes in, bytes out, in a loop; TLS by OpenSSL or (tests) none. Never blocks.
 *
 * Reading is by pull: edge() is called when there may be more to read or room to write; chan_read() until it says CHAN_WAIT. Writing is buffered up to CHAN_OUT_MAX; who
 * is told 0 waits for edge(). Frames written in one round go out together: chan_write() puts bytes down, they are sent at the end of the round, or when 16 KiB are there. */
#include "proxy/loop.h"

enum { CHAN_OUT_MAX = 256 * 1024, CHAN_WAIT = -1, CHAN_END = 0, CHAN_BROKEN = -2 };

struct chan;
struct chan_ops {
	void (*edge)(void *arg);
};

/* > 0: bytes; CHAN_END: the peer ended in order (close_notify, FIN on plain); CHAN_WAIT; CHAN_BROKEN. */
ssize_t chan_read(struct chan *c, void *p, size_t max);
/* Bytes taken, perhaps 0 (full): then edge() comes when half of CHAN_OUT_MAX is free; n == 0 asks for that too. After a failure it takes all and drops it: the reader is told. */
size_t chan_write(struct chan *c, const void *p, size_t n);
size_t chan_space(const struct chan *c);
bool chan_flushed(const struct chan *c); /* all is with the kernel */
/* Our last byte: after what is buffered, close_notify and FIN. Reading goes on. */
void chan_shut(struct chan *c);
/* Ask for edge() in this or the next round. */
void chan_again(struct chan *c);
/* Who is told of edges from now on. */
void chan_owner(struct chan *c, const struct chan_ops *ops, void *arg);
/* Close. reset: the peer sees an error. NULL is fine. Safe from within edge(). */
struct chan *chan_free(struct chan *c, bool reset);
const char *chan_alpn(const struct chan *c); /* "h2", "http/1.1" (also where none was agreed) */

/* A connection without TLS (tests, fuzzers). fd is taken over. NULL: no memory. */
struct chan *chan_plain(struct loop *l, int fd, const char *alpn) _must_check_;
