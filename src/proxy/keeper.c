/* Questions are gathered for a round: what requests of one round ask alike goes once, and each of them has the answer. It cannot be older than they are:
 * a question that has gone is joined by nobody. */
#include "proxy/keeper.h"

#include <sys/socket.h>
#include <time.h>

#include "io/fd.h"
#include "proxy/tls.h"

enum { LEAVES_MAX = 256 };

struct leaf {
	struct tls_leaf *tls;
	char host[HOST_NAME_MAX_LEN + 1];
	uint16_t port;
	uint64_t until_ms; /* half of its life */
};

struct keeper {
	struct watch watch; /* first */
	struct loop *loop;
	struct again again; /* those who are to hear that there is no keeper */
	uv_prepare_t flush;
	struct keeper_ask asks, lost; /* rings, oldest first */
	uint32_t number;
	bool waits; /* for room in the socket */
	struct leaf leaves[LEAVES_MAX];
	size_t n_leaves, oldest;
	void (*say)(void *arg, const char *line);
	void *arg;
	uint8_t in[KEEPER_CHAIN_MAX + KEEPER_KEY_MAX + KEEPER_VALUE_MAX + 4096];
	uint8_t out[2 * KEEPER_VALUE_MAX + 4096];
};

static void unlink_ask(struct keeper_ask *a)
{
	if (!a->next)
		return;
	a->prev->next = a->next;
	a->next->prev = a->prev;
	a->prev = a->next = NULL;
}

static void link_ask(struct keeper_ask *ring, struct keeper_ask *a)
{
	a->next = ring;
	a->prev = ring->prev;
	a->prev->next = a;
	ring->prev = a;
}

static struct keeper_ask *first(struct keeper_ask *ring)
{
	return ring->next == ring ? NULL : ring->next;
}

/* ---- the end of a conversation ---- */

static void on_lost(struct again *again)
{
	struct keeper *k = (struct keeper *)((char *)again - offsetof(struct keeper, again));
	struct keeper_ask *a;

	while ((a = first(&k->lost))) {
		unlink_ask(a);
		a->done(a, NULL);
	}
}

static void lose(struct keeper *k)
{
	struct keeper_ask *a;

	loop_close(k->loop, &k->watch);
	k->waits = false;
	while ((a = first(&k->asks))) {
		unlink_ask(a);
		link_ask(&k->lost, a);
	}
	if (first(&k->lost))
		loop_again(k->loop, &k->again);
	keeper_forget_leaves(k);
}

/* ---- asking ---- */

/* False: the socket takes no more. */
static bool send_one(struct keeper *k, struct keeper_ask *a)
{
	ssize_t n = keeper_put(&a->m, k->out, sizeof(k->out)), sent;

	if (n < 0) { /* too large to be asked: as if nobody were there */
		unlink_ask(a);
		link_ask(&k->lost, a);
		loop_again(k->loop, &k->again);
		return true;
	}
	sent = send(k->watch.fd, k->out, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
	explicit_bzero(k->out, (size_t)n);
	a->sent = sent == n;
	return a->sent;
}

/* One that went in this round, from `from` on, and asks the same as a. */
static const struct keeper_ask *alike(const struct keeper_ask *from, const struct keeper_ask *a)
{
	if (!a->shared)
		return NULL;
	for (; from != a; from = from->next)
		if (from->sent && from->shared && from->m.port == a->m.port &&
		    streq(from->m.text, a->m.text) && streq(from->m.text2, a->m.text2))
			return from;
	return NULL;
}

static void send_all(struct keeper *k)
{
	struct keeper_ask *a, *next, *from = NULL;
	const struct keeper_ask *same;
	bool more = true;

	for (a = k->asks.next; a != &k->asks && more; a = next) {
		next = a->next;
		if (a->sent)
			continue;
		same = from ? alike(from, a) : NULL;
		if (same) {
			a->m.number = same->m.number;
			a->sent = true;
			continue;
		}
		more = send_one(k, a);
		if (a->sent && !from)
			from = a;
	}
	if (more == k->waits) {
		k->waits = !more;
		loop_events(k->loop, &k->watch, more ? EPOLLIN : EPOLLIN | EPOLLOUT);
	}
}

static void on_prepare(uv_prepare_t *h)
{
	struct keeper *k = h->data;

	(void)uv_prepare_stop(h);
	if (keeper_there(k) && !k->waits)
		send_all(k);
}

int keeper_ask(struct keeper *k, struct keeper_ask *a)
{
	if (!keeper_there(k))
		return -ENOTCONN;
	a->m.number = ++k->number;
	a->sent = false;
	link_ask(&k->asks, a);
	if (!uv_is_active((const uv_handle_t *)&k->flush))
		(void)uv_prepare_start(&k->flush, on_prepare);
	return 0;
}

void keeper_cancel(struct keeper *k, struct keeper_ask *a)
{
	(void)k;
	unlink_ask(a);
}

void keeper_over(struct keeper *k, uint32_t number)
{
	const struct keeper_msg m = { .type = KEEPER_OVER, .number = number };
	uint8_t out[16];
	ssize_t n = keeper_put(&m, out, sizeof(out));

	if (n > 0 && keeper_there(k))
		(void)!send(k->watch.fd, out, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- answers ---- */

/* All that asked so. Who hears may cancel others, of which one may be the next: so that is looked for anew. */
static void tell(struct keeper *k, const struct keeper_msg *m)
{
	struct keeper_ask *a;

	do {
		for (a = k->asks.next; a != &k->asks && !(a->sent && a->m.number == m->number);)
			a = a->next;
		if (a == &k->asks)
			break;
		unlink_ask(a);
		a->done(a, m);
	} while (k->watch.fd >= 0);
}

/* 1, 0: nothing there, or -errno. */
static int take(struct keeper *k)
{
	ssize_t n = recv(k->watch.fd, k->in, sizeof(k->in), MSG_DONTWAIT | MSG_TRUNC);
	struct keeper_msg m;

	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0 || (size_t)n > sizeof(k->in) ||
	    keeper_parse(&m, 'K', k->in, (size_t)n, 0) != WIRE_OK)
		return n < 0 ? -errno : -EPROTO;
	if (m.type == KEEPER_LEAF_IS || m.type == KEEPER_VALUE_IS || m.type == KEEPER_NO ||
	    m.type == KEEPER_KEPT)
		tell(k, &m);
	explicit_bzero(k->in, (size_t)n);
	return 1;
}

static void on_event(struct watch *w, uint32_t events)
{
	struct keeper *k = (struct keeper *)w;
	int r;

	if (events & EPOLLOUT)
		send_all(k);
	do { /* nothing more is expected than what was asked; its end is an edge of its own */
		r = take(k);
	} while (r > 0 && k->watch.fd >= 0 && first(&k->asks));
	if (r < 0) {
		k->say(k->arg,
		       "the keeper is gone: what needs it is refused until there is another");
		lose(k);
	}
}

void keeper_set(struct keeper *k, int fd)
{
	lose(k);
	if (loop_add(k->loop, &k->watch, fd, EPOLLIN) < 0)
		(void)fd_close(fd);
}

bool keeper_there(const struct keeper *k)
{
	return k->watch.fd >= 0;
}

int keeper_new(struct loop *l, void (*say)(void *arg, const char *line), void *arg,
	       struct keeper **ret)
{
	struct keeper *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return -ENOMEM;
	r = uv_prepare_init(&l->uv, &k->flush);
	if (r < 0) {
		free(k);
		return r;
	}
	k->flush.data = k;
	k->asks.prev = k->asks.next = &k->asks;
	k->lost.prev = k->lost.next = &k->lost;
	k->loop = l;
	k->watch.fd = -1;
	k->watch.run = on_event;
	k->again.run = on_lost;
	k->say = say;
	k->arg = arg;
	*ret = k;
	return 0;
}

/* ---- certificates ---- */

static struct leaf *find(struct keeper *k, const char *host, uint16_t port)
{
	for (size_t i = 0; i < k->n_leaves; i++)
		if (k->leaves[i].port == port && streq(k->leaves[i].host, host))
			return &k->leaves[i];
	return NULL;
}

const struct tls_leaf *keeper_leaf(struct keeper *k, const char *host, uint16_t port)
{
	const struct leaf *l = keeper_there(k) ? find(k, host, port) : NULL;

	return l && loop_now(k->loop) < l->until_ms ? l->tls : NULL;
}

static struct leaf *place(struct keeper *k, const char *host, uint16_t port)
{
	struct leaf *l = find(k, host, port);

	if (!l)
		l = k->n_leaves < LEAVES_MAX ? &k->leaves[k->n_leaves++]
					     : &k->leaves[k->oldest++ % LEAVES_MAX];
	(void)tls_leaf_free(l->tls);
	*l = (struct leaf) { .port = port };
	return l;
}

const struct tls_leaf *keeper_leaf_is(struct keeper *k, const char *host, uint16_t port,
				      const struct keeper_msg *m)
{
	const uint64_t now = (uint64_t)time(NULL);
	struct tls_leaf *tls = NULL;
	struct leaf *l;

	if (m->type != KEEPER_LEAF_IS || strlen(host) > HOST_NAME_MAX_LEN ||
	    tls_leaf_new(m->bytes.p, m->bytes.n, m->bytes2.p, m->bytes2.n, &tls) < 0)
		return NULL;
	l = place(k, host, port);
	memcpy(l->host, host, strlen(host) + 1);
	l->tls = tls;
	l->until_ms =
		loop_now(k->loop) + (m->when > now ? MIN(m->when - now, (uint64_t)86400) * 500 : 0);
	return tls;
}

void keeper_forget_leaves(struct keeper *k)
{
	while (k->n_leaves) {
		struct leaf *l = &k->leaves[--k->n_leaves];

		l->tls = tls_leaf_free(l->tls);
	}
	k->oldest = 0;
}
