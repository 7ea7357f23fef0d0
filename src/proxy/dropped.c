#include "proxy/dropped.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <stdio.h>
#include <sys/socket.h>

enum { KINDS_MAX = 32, FOLD_MS = 1000, BATCH = 256, LOOK_MAX = 64 };

struct seen {
	uint8_t kind, protocol, family; /* family: 4 or 6 */
	bool forged;                    /* its source is not the guest's address */
	uint16_t port;
	uint8_t addr[16];
	uint32_t count;
};

struct dropped {
	struct watch watch; /* first */
	struct proxy *p;
	uv_timer_t timer;
	struct seen seen[KINDS_MAX];
	size_t n;
	uint32_t others; /* more than there is room for */
};

static void put(struct dropped *d, const struct seen *s)
{
	char note[32] = "", host[INET6_ADDRSTRLEN] = "";
	struct receipt r = { .event = RECEIPT_DECISION,
			     .kind = s->kind,
			     .via = RV_NETWORK,
			     .port = s->port,
			     .count = s->count,
			     .host = host,
			     .address = "",
			     .method = "",
			     .path = "",
			     .rule = "",
			     .reason = "protocol-blocked",
			     .note = note };

	if (s->family)
		(void)inet_ntop(s->family == 4 ? AF_INET : AF_INET6, s->addr, host, sizeof(host));
	if (s->forged)
		(void)snprintf(note, sizeof(note), "forged source");
	else if (s->kind == RK_IP)
		(void)snprintf(note, sizeof(note), "protocol %u", s->protocol);
	receipts_add(d->p->receipts, &r);
}

static void on_timer(uv_timer_t *t)
{
	struct dropped *d = t->data;

	for (size_t i = 0; i < d->n; i++)
		put(d, &d->seen[i]);
	if (d->others)
		put(d, &(struct seen) { .kind = RK_IP, .count = d->others });
	d->n = 0;
	d->others = 0;
}

static void note(struct dropped *d, const struct seen *s)
{
	if (!d->n)
		(void)uv_timer_start(&d->timer, on_timer, FOLD_MS, 0);
	for (size_t i = 0; i < d->n; i++) {
		struct seen *o = &d->seen[i];

		if (o->kind == s->kind && o->protocol == s->protocol && o->port == s->port &&
		    o->family == s->family && o->forged == s->forged &&
		    memcmp(o->addr, s->addr, sizeof(o->addr)) == 0) {
			o->count++;
			return;
		}
	}
	if (d->n == KINDS_MAX) {
		d->others++;
		return;
	}
	d->seen[d->n] = *s;
	d->seen[d->n++].count = 1;
}

static uint8_t kind_of(uint8_t protocol)
{
	switch (protocol) {
	case 1:
	case 58:
		return RK_ICMP;
	case 6:
		return RK_TCP;
	case 17:
		return RK_UDP;
	default:
		return RK_IP;
	}
}

static void take_port(struct seen *s, struct rd *r)
{
	s->kind = kind_of(s->protocol);
	if (s->kind != RK_TCP && s->kind != RK_UDP)
		return;
	(void)rd_be16(r);
	s->port = rd_be16(r);
}

/* RFC 791 3.1. False: not a packet. */
static bool take_v4(struct seen *s, struct rd *r)
{
	static const uint8_t guest[4] = { 198, 18, 0, 2 };
	const uint8_t *p = rd_take(r, 20);
	size_t more;

	if (!p || p[0] >> 4 != 4 || (p[0] & 15) < 5)
		return false;
	s->family = 4;
	s->protocol = p[9];
	s->forged = memcmp(p + 12, guest, sizeof(guest)) != 0;
	memcpy(s->addr, p + 16, 4);
	more = ((size_t)(p[0] & 15) - 5) * 4;
	if (rd_take(r, more) && ((p[6] & 0x1f) | p[7]) == 0)
		take_port(s, r);
	else
		s->kind = kind_of(s->protocol);
	return true;
}

/* RFC 8200 3. What the guest's kernel says by itself when IPv6 is on (neighbours, routers, groups: multicast) is no attempt of
 * anybody's. */
static bool take_v6(struct seen *s, struct rd *r)
{
	const uint8_t *p = rd_take(r, 40);

	if (!p || p[0] >> 4 != 6)
		return false;
	s->family = 6;
	s->protocol = p[6];
	memcpy(s->addr, p + 24, 16);
	if (s->addr[0] == 0xff && (s->protocol == 58 || s->protocol == 0))
		return false;
	take_port(s, r);
	return true;
}

static bool take(struct dropped *d)
{
	uint8_t bytes[LOOK_MAX];
	struct sockaddr_ll from = { 0 };
	socklen_t len = sizeof(from);
	ssize_t n = recvfrom(d->watch.fd, bytes, sizeof(bytes), MSG_DONTWAIT,
			     (struct sockaddr *)&from, &len);
	struct seen s = { 0 };
	struct rd r;
	bool known;

	if (n < 0)
		return errno != EAGAIN;
	if (from.sll_pkttype == PACKET_OUTGOING)
		return true;
	r = rd_init(bytes, (size_t)n);
	known = from.sll_protocol == htons(ETH_P_IPV6) ? take_v6(&s, &r)
		: from.sll_protocol == htons(ETH_P_IP) ? take_v4(&s, &r)
						       : false;
	if (known)
		note(d, &s);
	return true;
}

static void on_packet(struct watch *w, uint32_t events)
{
	(void)events;
	for (int i = 0; i < BATCH && take((struct dropped *)w); i++)
		;
}

int dropped_open(struct proxy *p)
{
	struct dropped *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	p->dropped = d;
	d->p = p;
	d->watch.run = on_packet;
	(void)uv_timer_init(&p->loop.uv, &d->timer);
	d->timer.data = d;
	return loop_add(&p->loop, &d->watch, FD_PACKET, EPOLLIN);
}
