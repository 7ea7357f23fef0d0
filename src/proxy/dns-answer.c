/* A name that may be reached at some port gets an address of our own that stands for it; so does one that may not, from another range: the
 * connection will come to us, and is told why it goes nowhere. */
#include "proxy/dns-answer.h"

#include <stdio.h>
#include <strings.h>

#include "base/text.h"

enum { FOLD_S = 60 };

static uint64_t hash(const char *s, unsigned more)
{
	uint64_t h = 0xcbf29ce484222325 + more;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b3;
	return h | 1;
}

struct verdict {
	bool allowed;
	const char *rule, *reason, *note;
};

/* True if there is a receipt now: one a minute is enough for one name. */
static bool receipt(struct proxy *p, const char *host, uint16_t type, const struct verdict *v)
{
	const uint64_t key = hash(host, (unsigned)type << 1 | v->allowed), now = proxy_now_s(p);
	struct dns_fold *f = &p->folds[key % DNS_FOLDS_MAX];
	struct receipt r = { .event = RECEIPT_DECISION,
			     .kind = RK_DNS,
			     .via = RV_DNS,
			     .allowed = v->allowed,
			     .port = 53,
			     .count = 1,
			     .host = host,
			     .address = "",
			     .method = "",
			     .path = "",
			     .rule = v->rule ? v->rule : "",
			     .reason = v->reason,
			     .note = v->note };

	if (f->key == key && f->until_s > now) {
		f->count++;
		return false;
	}
	if (f->key == key)
		r.count += f->count;
	*f = (struct dns_fold) { .key = key, .until_s = now + FOLD_S };
	receipts_add(p->receipts, &r);
	return true;
}

static void put(struct dns_reply *ret, const struct dns_query *q, bool tcp, struct dns_answer a)
{
	a.tcp = tcp;
	a.ttl = NAMES_TTL_S;
	ret->n = dns_answer(q, &a, ret->bytes, sizeof(ret->bytes));
}

static void refuse_type(struct proxy *p, const struct dns_query *q, bool tcp, struct dns_reply *ret)
{
	char note[32];

	(void)snprintf(note, sizeof(note), "type %u", q->type);
	(void)receipt(p, q->name, q->type,
		      &(struct verdict) { .reason = "type-refused", .note = note });
	put(ret, q, tcp,
	    (struct dns_answer) { .rcode = DNS_REFUSED,
				  .why = "bac: only addresses of names can be asked for" });
}

/* "4.3.2.1.in-addr.arpa" */
static bool reverse_parse(const char *name, uint8_t ret[static 4])
{
	unsigned a, b, c, d;
	int n = 0;

	if (sscanf(name, "%3u.%3u.%3u.%3u%n", &d, &c, &b, &a, &n) != 4 || !n ||
	    strcasecmp(name + n, ".in-addr.arpa") != 0 || (a | b | c | d) > 255)
		return false;
	ret[0] = (uint8_t)a;
	ret[1] = (uint8_t)b;
	ret[2] = (uint8_t)c;
	ret[3] = (uint8_t)d;
	return true;
}

static const struct {
	const char *name;
	uint8_t addr[4];
} fixed[] = {
	{ "gateway.docker.internal", { 198, 18, 0, 1 } },
	{ "host.docker.internal", { 198, 18, 0, 5 } },
};

static void pointer(struct proxy *p, const struct dns_query *q, bool tcp, struct dns_reply *ret)
{
	const char *text = NULL;
	uint8_t addr[4];

	if (!reverse_parse(q->name, addr) || !names_ours(addr)) {
		refuse_type(p, q, tcp, ret);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		if (memcmp(fixed[i].addr, addr, 4) == 0)
			text = fixed[i].name;
	if (!text) {
		const struct host *h = names_find(p->names, addr, proxy_now_s(p));

		text = h ? h->text : NULL;
	}
	put(ret, q, tcp,
	    (struct dns_answer) { .rcode = text ? DNS_NOERROR : DNS_NXDOMAIN, .ptr = text });
}

/* An address, if that is what is asked for. */
static void address(const struct dns_query *q, bool tcp, const uint8_t addr[static 4],
		    struct dns_reply *ret)
{
	put(ret, q, tcp,
	    q->type == DNS_A ? (struct dns_answer) { .addr = addr, .addr_len = 4 }
			     : (struct dns_answer) { 0 });
}

static void name(struct proxy *p, const struct dns_query *q, const struct host *h, bool tcp,
		 struct dns_reply *ret)
{
	const bool may = net_may_look_up(p->policy, h);
	uint8_t addr[4];

	ret->wait = receipt(p, h->text, 0,
			    &(struct verdict) { .allowed = may,
						.reason = may ? "domain-allowed" : "default-deny",
						.note = "" }) &&
		    may;
	if (q->type == DNS_A && names_get(p->names, h, !may, proxy_now_s(p), addr) < 0)
		put(ret, q, tcp,
		    (struct dns_answer) { .rcode = DNS_SERVFAIL,
					  .why = "bac: too many names are in use" });
	else
		address(q, tcp, addr, ret);
}

static void question(struct proxy *p, const struct dns_query *q, bool tcp, struct dns_reply *ret)
{
	const uint8_t loopback[4] = { 127, 0, 0, 1 };
	struct host h;
	struct err e;

	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++) {
		if (strcasecmp(q->name, fixed[i].name) == 0) {
			address(q, tcp, fixed[i].addr, ret);
			return;
		}
	}
	if (host_parse(&h, q->name, strlen(q->name), &e) < 0 || h.kind != HOST_NAME) {
		(void)receipt(p, q->name, 1,
			      &(struct verdict) { .reason = "not-a-name", .note = "" });
		put(ret, q, tcp, (struct dns_answer) { .rcode = DNS_NXDOMAIN });
		return;
	}
	if (streq(h.text, "localhost")) /* the sandbox itself */
		address(q, tcp, loopback, ret);
	else
		name(p, q, &h, tcp, ret);
}

void dns_reply(struct proxy *p, const uint8_t *bytes, size_t n, bool tcp, struct dns_reply *ret)
{
	struct dns_query q;
	int r = dns_parse(&q, bytes, n);

	ret->n = 0;
	ret->wait = false;
	if (r < 0)
		return;
	if (r > 0)
		put(ret, &q, tcp, (struct dns_answer) { .rcode = (uint8_t)r });
	else if (q.type == DNS_A || q.type == DNS_AAAA || q.type == DNS_HTTPS || q.type == DNS_SVCB)
		question(p, &q, tcp, ret);
	else if (q.type == DNS_PTR)
		pointer(p, &q, tcp, ret);
	else
		refuse_type(p, &q, tcp, ret);
}
