#include "proxy/pool.h"

#include <stdio.h>

#include "base/text.h"
#include "proxy/open.h"
#include "proxy/tls.h"

struct pool_host {
	struct pool_host *next;
	struct pool *pool;
	struct host host;
	uint16_t port;
	bool known, h2,
		connect_protocol; /* what the server was seen to speak when it had the choice */
	struct pool_conn *conns;
	unsigned n_conns, n_new; /* all; not connected yet */
	struct pool_wait *waits;
	struct ssl_session_st *session;
	struct again again;
};

struct pool_conn {
	struct pool_conn *next, **link;
	struct pool_host *h;
	uv_timer_t timer;
	struct again again;
	struct dial *dial;
	struct chan *chan;
	struct back *back;
	bool offered_h2, closed, retired;
	unsigned n_used; /* exchanges under way */
	bool judged;
	uint8_t addr[16], addr_len;
	uint16_t addr_port;
	char address[64];
};

struct pool {
	struct proxy *p;
	struct pool_host *hosts;
	unsigned n_hosts;
};

static void serve(struct pool_host *h);

static void serve_soon(struct pool_host *h)
{
	loop_again(&h->pool->p->loop, &h->again);
}

static void on_host(struct again *a)
{
	serve((struct pool_host *)((char *)a - offsetof(struct pool_host, again)));
}

/* ---- the end of a connection ---- */

static void freed(uv_handle_t *handle)
{
	free(handle->data);
}

static void close_conn(struct pool_conn *k)
{
	struct pool_host *h = k->h;

	if (k->closed)
		return;
	k->closed = true;
	*k->link = k->next;
	if (k->next)
		k->next->link = k->link;
	h->n_conns--;
	if (!k->back)
		h->n_new--;
	dial_cancel(take_ptr(k->dial));
	k->chan = chan_free(k->chan, true);
	loop_forget(&h->pool->p->loop, &k->again);
	if (k->back)
		k->back = k->back->free(k->back);
	uv_close((uv_handle_t *)&k->timer, freed);
	serve_soon(h);
}

/* Will one of the others have room some day? */
static bool others_work(const struct pool_conn *k)
{
	const struct pool_conn *i;

	for (i = k->h->conns; i; i = i->next)
		if (i != k && i->back && i->back->alive)
			return true;
	return false;
}

/* All who wait hear it; or the first of them, if the rest may be served by others (a server that takes no more connections). */
static void fail(struct pool_conn *k, const struct pool_fault *why)
{
	struct pool_host *h = k->h;
	struct pool_wait *list = h->waits, *w;
	char note[DIAL_TEXT_MAX + TLS_WHY_MAX], rule[NET_ID_MAX + 1];
	struct pool_fault own = *why;

	/* it is k's, which goes */
	(void)snprintf(note, sizeof(note), "%s", why->note);
	(void)snprintf(rule, sizeof(rule), "%s", why->rule ? why->rule : "");
	own.note = note;
	own.rule = why->rule ? rule : NULL;
	if (others_work(k)) {
		h->waits = list ? list->next : NULL;
		if (h->waits)
			h->waits->link = &h->waits;
		if (list)
			list->next = NULL;
	} else {
		h->waits = NULL;
	}
	if (list)
		list->link = &list;
	close_conn(k);
	while ((w = list)) {
		pool_cancel(w);
		w->failed(w, &own);
	}
}

/* ---- a new connection ---- */

static void on_timer(uv_timer_t *t)
{
	struct pool_conn *k = t->data;

	if (k->closed)
		return;
	if (!k->back)
		fail(k, &(struct pool_fault) { .reason = "dial-failed",
					       .note = "no TLS handshake in time" });
	else if (!k->n_used)
		close_conn(k);
}

static bool too_many_idle(const struct pool_conn *k)
{
	const struct pool_conn *i;
	unsigned n = 0;

	if (!streq(k->back->proto, "h1"))
		return false;
	for (i = k->h->conns; i && n <= POOL_IDLE_H1; i = i->next)
		n += i->back && !i->n_used;
	return n > POOL_IDLE_H1;
}

/* One too many is not closed at once: where many clients ask by turns, it is wanted in the next moment. */
static void idle(struct pool_conn *k)
{
	if (!k->closed && k->back && !k->n_used)
		(void)uv_timer_start(&k->timer, on_timer,
				     too_many_idle(k) ? POOL_EXTRA_MS : POOL_IDLE_MS, 0);
}

static void review(struct again *a)
{
	struct pool_conn *k = (struct pool_conn *)((char *)a - offsetof(struct pool_conn, again));

	if (k->closed || !k->back)
		return;
	k->h->connect_protocol |= k->back->connect_protocol;
	if (!k->n_used && (!k->back->alive || k->retired))
		close_conn(k);
	else if (k->h->waits)
		serve(k->h);
}

/* From a back: not a good moment to free it. */
static void changed(void *owner)
{
	struct pool_conn *k = owner;

	if (!k->closed)
		loop_again(&k->h->pool->p->loop, &k->again);
}

static void connected(struct pool_conn *k)
{
	struct pool_host *h = k->h;
	struct loop *l = &h->pool->p->loop;
	const bool h2 = streq(chan_alpn(k->chan), "h2");

	k->back = open_back(l, k->chan, k, changed);
	if (!k->back) {
		fail(k, &(struct pool_fault) { .reason = "dial-failed", .note = "no memory" });
		return;
	}
	k->chan = NULL; /* the back's */
	h->n_new--;
	if (k->offered_h2) {
		h->known = true;
		h->h2 = h2;
	}
	idle(k);
	serve_soon(h);
}

static void on_shake(void *arg)
{
	struct pool_conn *k = arg;
	struct pool_fault why = { .reason = "tls-failed" };

	if (k->closed || k->back)
		return;
	switch (tls_state(k->chan)) {
	case TLS_READY:
		connected(k);
		return;
	case TLS_FAILED:
		why.note = tls_why(k->chan, &why.untrusted);
		if (why.untrusted)
			why.reason = "untrusted-server";
		fail(k, &why);
		return;
	default:
		return;
	}
}

static const struct chan_ops shake_ops = { on_shake };

static void dialled(void *arg, struct dial_result *r)
{
	struct pool_conn *k = arg;
	struct pool_host *h = k->h;
	struct tls *tls = proxy_tls(h->pool->p);
	const struct tls_to to = {
		.host = &h->host, .port = h->port, .offer_h2 = k->offered_h2, .session = &h->session
	};

	k->dial = NULL;
	if (r->fd < 0) {
		fail(k, &(struct pool_fault) { .refused = r->refused,
					       .rule = r->refused ? r->rule : "<dial failed>",
					       .reason = r->refused ? r->reason : "dial-failed",
					       .note = r->note });
		return;
	}
	k->judged = r->judged;
	memcpy(k->addr, r->addr, sizeof(k->addr));
	k->addr_len = r->addr_len;
	k->addr_port = r->port;
	(void)!text_copy(k->address, sizeof(k->address), r->address);
	k->chan = tls ? tls_client(tls, &h->pool->p->loop, r->fd, &to) : NULL;
	if (!k->chan) {
		fail(k, &(struct pool_fault) { .reason = "dial-failed", .note = "no memory" });
		return;
	}
	chan_owner(k->chan, &shake_ops, k);
	(void)uv_timer_start(&k->timer, on_timer, POOL_SHAKE_MS, 0);
}

static bool dial(struct pool_host *h, bool h2)
{
	struct proxy *p = h->pool->p;
	struct pool_conn *k = calloc(1, sizeof(*k));

	if (!k)
		return false;
	k->h = h;
	k->offered_h2 = h2;
	k->again.run = review;
	(void)uv_timer_init(&p->loop.uv, &k->timer);
	k->timer.data = k;
	k->next = h->conns;
	k->link = &h->conns;
	if (k->next)
		k->next->link = &k->next;
	h->conns = k;
	h->n_conns++;
	h->n_new++;
	k->dial = dial_start(p, &h->host, h->port, false, dialled, k);
	if (!k->dial) {
		close_conn(k);
		return false;
	}
	return true;
}

/* ---- who gets what ---- */

static bool suits(const struct pool_conn *k, const struct pool_wait *w)
{
	const struct back *b = k->back;

	if (!b || !b->alive || !b->room || k->retired || (w->fresh && b->used))
		return false;
	if (w->h1)
		return streq(b->proto, "h1");
	/* what was asked without h2 says nothing of a server that could have had it */
	return !w->h2 || streq(b->proto, "h2") || (k->h->known && !k->h->h2);
}

static struct pool_conn *find(struct pool_host *h, const struct pool_wait *w)
{
	struct pool_conn *k;

	for (k = h->conns; k; k = k->next)
		if (suits(k, w))
			return k;
	return NULL;
}

static unsigned count_h2(const struct pool_host *h)
{
	const struct pool_conn *k;
	unsigned n = 0;

	for (k = h->conns; k; k = k->next)
		n += k->back ? k->back->alive && streq(k->back->proto, "h2") : k->offered_h2;
	return n;
}

/* One connection under way is enough for all as long as it may turn out to be HTTP/2. */
static bool wants_another(struct pool_host *h, const struct pool_wait *w, unsigned n_waiting)
{
	const bool h2 = w->h2 && !w->h1 && (!h->known || h->h2);

	if (h->n_conns >= POOL_CONNS_MAX)
		return false;
	if (!h2)
		return h->n_new < n_waiting;
	return h->n_new == 0 && count_h2(h) < POOL_H2_MAX;
}

static void serve(struct pool_host *h)
{
	struct pool_wait *w, *next;
	unsigned n_waiting = 0;

	for (w = h->waits; w; w = next) {
		struct pool_conn *k = find(h, w);

		next = w->next;
		if (k) {
			pool_cancel(w);
			w->got(w, k->back, k->address);
			next = h->waits; /* anything may have happened */
			n_waiting = 0;
			continue;
		}
		n_waiting++;
		if (wants_another(h, w, n_waiting) && !dial(h, w->h2 && !w->h1))
			break;
	}
}

static struct pool_host *host_of(struct pool *pool, const struct host *host, uint16_t port)
{
	struct pool_host *h;

	for (h = pool->hosts; h; h = h->next)
		if (h->port == port && host_same(&h->host, host))
			return h;
	return NULL;
}

/* What a guest has asked for once is not remembered for ever. */
static void prune(struct pool *pool)
{
	struct pool_host **at = &pool->hosts, *h;

	if (pool->n_hosts < POOL_HOSTS_MAX)
		return;
	while ((h = *at)) {
		if (h->conns || h->waits) {
			at = &h->next;
			continue;
		}
		*at = h->next;
		pool->n_hosts--;
		loop_forget(&pool->p->loop, &h->again);
		tls_session_free(h->session);
		free(h);
	}
}

static struct pool_host *host_make(struct pool *pool, const struct host *host, uint16_t port)
{
	struct pool_host *h = host_of(pool, host, port);

	if (h)
		return h;
	prune(pool);
	h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	pool->n_hosts++;
	h->pool = pool;
	h->host = *host;
	h->port = port;
	h->again.run = on_host;
	h->next = pool->hosts;
	pool->hosts = h;
	return h;
}

void pool_get(struct pool *pool, const struct host *host, uint16_t port, struct pool_wait *w)
{
	struct pool_host *h = host_make(pool, host, port);
	struct pool_wait **at;

	if (!h) /* a host is made once, and kept: without memory for it there is nothing left to do */
		abort();
	for (at = &h->waits; *at; at = &(*at)->next)
		;
	w->next = NULL;
	w->link = at;
	*at = w;
	serve_soon(h);
}

void pool_cancel(struct pool_wait *w)
{
	if (!w->link)
		return;
	*w->link = w->next;
	if (w->next)
		w->next->link = w->link;
	w->next = NULL;
	w->link = NULL;
}

bool pool_knows(struct pool *pool, const struct host *host, uint16_t port, bool *ret_h2,
		bool *ret_connect)
{
	const struct pool_host *h = host_of(pool, host, port);

	if (!h || !h->known)
		return false;
	*ret_h2 = h->h2;
	*ret_connect = h->h2 && h->connect_protocol;
	return true;
}

void pool_began(struct back *b)
{
	struct pool_conn *k = b->owner;

	k->n_used++;
	(void)uv_timer_stop(&k->timer);
}

void pool_ended(struct back *b)
{
	struct pool_conn *k = b->owner;

	k->n_used--;
	idle(k);
	changed(k);
}

/* ---- changes ---- */

static void each(struct pool *pool, void (*run)(struct pool_conn *k))
{
	struct pool_host *h;
	struct pool_conn *k, *next;

	for (h = pool->hosts; h; h = h->next)
		for (k = h->conns; k; k = next) {
			next = k->next;
			run(k);
		}
}

static void judge(struct pool_conn *k)
{
	const struct proxy *p = k->h->pool->p;

	if (k->judged && k->addr_len &&
	    net_decide_addr(p->policy, k->addr, k->addr_len, k->h->port).verdict == NET_DENY)
		close_conn(k);
}

static void retire(struct pool_conn *k)
{
	k->retired = true;
	changed(k);
}

void pool_judge(struct pool *pool)
{
	each(pool, judge);
}

void pool_renew(struct pool *pool)
{
	struct pool_host *h;

	each(pool, retire);
	for (h = pool->hosts; h; h = h->next)
		tls_session_free(take_ptr(h->session));
}

int pool_new(struct proxy *p, struct pool **ret)
{
	struct pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return -ENOMEM;
	pool->p = p;
	*ret = pool;
	return 0;
}
