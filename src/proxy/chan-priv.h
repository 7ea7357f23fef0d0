#pragma once
/* What the files of a chan share: the socket, what is on its way out, and the layer between (TLS, or none). */
#include "base/buf.h"
#include "proxy/chan.h"

/* All but done() may find the connection broken: then they set c->broken. */
struct chan_layer {
	ssize_t (*read)(struct chan *c, void *p, size_t max);
	void (*step)(struct chan *c); /* go on with a handshake; true edges only */
	void (*push)(struct chan *c); /* from out to wire, as much as is good */
	void (*shut)(struct chan *c); /* the last bytes into wire */
	void (*done)(struct chan *c);
};

struct chan {
	struct watch watch; /* first */
	struct again again;
	uv_timer_t timer;
	struct loop *loop;
	const struct chan_ops *ops;
	void *arg;
	const struct chan_layer *layer; /* NULL: out is what is sent */
	void *tls;                      /* the layer's */
	char alpn[16];
	struct buf out, wire;
	bool readable, writable, hung_up, ended, broken;
	bool cut;     /* nothing can be sent any more; what came before can still be read */
	bool starved; /* the owner was told that it is full */
	bool told;    /* the owner has something to hear of */
	bool shut, shut_put, shut_sent;
	bool lingers, closed;
};

/* fd is taken over. NULL: no memory, and fd is closed. */
struct chan *chan_make(struct loop *l, int fd, const char *alpn) _must_check_;
/* Into wire; and what is there to the kernel. */
void chan_send(struct chan *c);
/* recv(2) as a layer needs it: > 0, CHAN_END, CHAN_WAIT, CHAN_BROKEN. */
ssize_t chan_receive(struct chan *c, void *p, size_t max);
