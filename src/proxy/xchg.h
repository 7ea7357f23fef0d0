#pragma once
/* One request and its answer: a front (which speaks with the guest), a back (with the server), and what decides between them.
 *
 *   guest --chan-- front: h1 or h2 --- xchg: policy, receipt, credential, leak guard --- back: h1 or h2 --chan-- server
 *
 * Any front goes with any back. Bodies flow by offer and credit: data() says how many bytes it took; who could not give all stops reading and waits for resume().
 * Nobody holds more than XCHG_HOLD_MAX of a body.
 *
 * Rules of calls. A half may be called from within its own call into xchg (re-entrancy): it must leave its own state in order before it calls. After end(), fail() or
 * cancel() of a half, and after xchg_*_gone(), the half and the exchange never speak again; each frees its own. */
#include "proxy/chan.h"
#include "proxy/head.h"

struct xchg;
struct front;
struct back;

enum { XCHG_HOLD_MAX = 64 * 1024 };

enum xchg_fault {
	XCHG_CUT = 1,   /* the peer reset the stream, or its connection broke */
	XCHG_UNTOUCHED, /* the server says that it has not begun with it (GOAWAY, REFUSED_STREAM, closed keep-alive connection before a byte): safe to try again */
	XCHG_BAD,       /* it is not HTTP */
	XCHG_LIMIT,     /* a limit was reached */
};

/* What xchg wants of a front. s is the front's own stream. */
struct front_ops {
	void (*answer)(
		void *s,
		struct xhead *h); /* 1xx any number of times, then one final. h is the caller's */
	size_t (*data)(void *s, const uint8_t *p, size_t n);
	void (*end)(void *s, struct hfields *trailers); /* NULL: none. Over */
	void (*fail)(
		void *s,
		enum xchg_fault
			why); /* cut it off so that the client sees that something is missing. Over */
	void (*resume)(void *s); /* the request's body may go on */
};
/* And of a back. */
struct back_ops {
	size_t (*data)(void *s, const uint8_t *p, size_t n);
	void (*end)(void *s,
		    struct hfields
			    *trailers); /* the request is complete (not over: the answer comes) */
	void (*cancel)(void *s);        /* over */
	void (*resume)(void *s);        /* the answer's body may go on */
};

/* What a front calls. */
/* A request has come. h is taken over (its content, not the struct). Returns the exchange, or NULL (no memory: the front fails the stream itself). The front may be called back before this
 * returns. body: data or an end will follow by xchg_up_*; without it the request is complete. */
struct xchg *xchg_request(struct front *f, const struct front_ops *ops, void *s, struct xhead *h,
			  bool body);
size_t xchg_up(struct xchg *x, const uint8_t *p, size_t n);
void xchg_up_end(struct xchg *x, struct hfields *trailers);
void xchg_front_gone(struct xchg *x, enum xchg_fault why); /* the client reset it */
/* The front took less of the answer than it was given, and could take more now. xchg offers the rest and calls the back's resume(). */
void xchg_down_room(struct xchg *x);

/* What a back calls. */
void xchg_answer(struct xchg *x, struct xhead *h); /* taken over */
size_t xchg_down(struct xchg *x, const uint8_t *p, size_t n);
void xchg_down_end(struct xchg *x, struct hfields *trailers);
void xchg_back_gone(struct xchg *x, enum xchg_fault why, const char *detail);
/* The back took less of the request's body than it was given, and could take more now. */
void xchg_up_room(struct xchg *x);

/* After a final answer of 101 (HTTP/1) or of 2xx to a CONNECT: bytes both ways by the same calls until either end. */

/* ---- the halves ---- */
/* A front on a connection: conn is what it serves (open.h), handed to xchg_request(). closed(conn) when there is nothing more to do with it. */
struct front {
	void *conn;
	const char *proto; /* "h1", "h2" */
	void (*stop)(
		struct front *f,
		bool now); /* no more requests (GOAWAY, Connection: close); now: those under way are cut */
	struct front *(*free)(struct front *f);
};
struct front *front_h1(struct loop *l, struct chan *c, void *conn, void (*closed)(void *conn))
	_must_check_;
struct front *front_h2(struct loop *l, struct chan *c, void *conn, void (*closed)(void *conn),
		       bool connect_protocol) _must_check_;

/* A back: takes requests while back->room > 0. changed(owner) when room or alive has changed. */
struct back {
	void *owner;
	const char *proto;
	unsigned
		room; /* requests that could begin now: 1 or 0 for h1; MAX_CONCURRENT_STREAMS less those under way for h2 */
	bool alive;   /* false: nothing more will begin on it */
	bool connect_protocol; /* the server takes extended CONNECT */
	bool used; /* it has carried a whole exchange: an untouched failure is then no news about the server */
	/* Begin: h is the caller's, read before it returns. *ret_s, *ret_ops for x from here on. 0, -ENOMEM, -EAGAIN (no room). */
	int (*begin)(struct back *b, struct xchg *x, const struct xhead *h, bool body, void **ret_s,
		     const struct back_ops **ret_ops);
	struct back *(*free)(struct back *b); /* exchanges on it are told XCHG_CUT */
};
struct back *back_h1(struct loop *l, struct chan *c, void *owner, void (*changed)(void *owner))
	_must_check_;
struct back *back_h2(struct loop *l, struct chan *c, void *owner, void (*changed)(void *owner))
	_must_check_;
