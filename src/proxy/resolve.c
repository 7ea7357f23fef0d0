/* One query a name is under way, however many wait for it. A and AAAA are two questions; when A is there, AAAA has AAAA_LATE_MS
 * left: there are name servers that never answer it.
 *
 * The number of a question is drawn by us: c-ares takes its own from a file, which a cage does not have. */
#include "proxy/resolve.h"

#include <ares.h>
#include <arpa/inet.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/text.h"
#include "io/fd.h"

enum {
	TIMEOUT_MS = 1000,
	TRIES = 3,
	AAAA_LATE_MS = 50,
	KEEP_MS = 60 * 1000,
	QUERIES_MAX = 1024,
	HOSTS_ENTRIES_MAX = 8192,
	SERVERS_MAX = 8,
	TTLS_MAX = 64
};

struct lookup {
	struct lookup *next;
	struct query *query;
	void (*done)(void *arg, int code, const struct addrs *a);
	void *arg;
};

/* One family of one query, as c-ares is handed it. */
struct half {
	struct query *query;
	int type; /* 1: A, 28: AAAA */
	bool under_way, resend;
};

struct query {
	struct query *next;
	struct resolver *r;
	uv_timer_t late;
	struct half a, aaaa;
	struct lookup *waiters;
	struct addrs addrs;
	uint64_t expires; /* once it is answered; milliseconds */
	uint32_t ttl;
	int code;
	bool answered, dead;
	bool starting; /* c-ares may answer at once, if it cannot send: not into the caller's arms */
	char name[HOST_NAME_MAX_LEN + 1];
};

struct socket_watch {
	struct watch watch; /* first */
	struct socket_watch *next;
	struct resolver *r;
};

struct hosts_entry {
	const char *name;
	struct addr addr;
};

struct resolver {
	struct loop *loop;
	ares_channel channel;
	uv_timer_t timer;
	struct socket_watch *sockets; /* also those that are closed: used again */
	struct query *queries;
	unsigned n_queries;
	struct hosts_entry *hosts;
	size_t n_hosts;
	char *hosts_text; /* names borrow from it */
	char servers[SERVERS_MAX * 64];
};

static void rearm(struct resolver *r);

static void on_socket(struct watch *w, uint32_t events)
{
	struct resolver *r = ((struct socket_watch *)w)->r;
	int fd = w->fd;

	ares_process_fd(r->channel, events & (EPOLLIN | EPOLLERR | EPOLLHUP) ? fd : ARES_SOCKET_BAD,
			events & (EPOLLOUT | EPOLLERR | EPOLLHUP) ? fd : ARES_SOCKET_BAD);
	rearm(r);
}

static struct socket_watch *find_socket(struct resolver *r, int fd)
{
	struct socket_watch *s = r->sockets;

	while (s && s->watch.fd != fd)
		s = s->next;
	return s;
}

/* c-ares opens and closes; here it is only watched. */
static void socket_state(void *data, ares_socket_t fd, int readable, int writable)
{
	const uint32_t events = (readable ? EPOLLIN : 0) | (writable ? EPOLLOUT : 0);
	struct resolver *r = data;
	struct socket_watch *s = find_socket(r, fd);

	if (s && !events) {
		(void)loop_take(r->loop, &s->watch);
		return;
	}
	if (s) {
		loop_events(r->loop, &s->watch, events);
		return;
	}
	if (!events)
		return;
	s = find_socket(r, -1);
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return; /* the question runs into its time-out */
		s->r = r;
		s->watch.fd = -1;
		s->watch.run = on_socket;
		s->next = r->sockets;
		r->sockets = s;
	}
	(void)!loop_add(r->loop, &s->watch, fd, events);
}

static void on_timer(uv_timer_t *t)
{
	struct resolver *r = t->data;

	ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	rearm(r);
}

static void rearm(struct resolver *r)
{
	struct timeval tv, *got = ares_timeout(r->channel, NULL, &tv);

	if (got)
		(void)uv_timer_start(
			&r->timer, on_timer,
			(uint64_t)got->tv_sec * 1000 + (uint64_t)got->tv_usec / 1000 + 1, 0);
	else
		(void)uv_timer_stop(&r->timer);
}

/* ---- queries ---- */

static void query_closed(uv_handle_t *h)
{
	free(h->data);
}

/* Not while c-ares has it, or somebody waits. */
static void query_drop(struct query *q)
{
	struct query **p = &q->r->queries;

	if (q->dead || q->waiters || q->a.under_way || q->aaaa.under_way)
		return;
	while (*p != q)
		p = &(*p)->next;
	*p = q->next;
	q->r->n_queries--;
	q->dead = true;
	uv_close((uv_handle_t *)&q->late, query_closed);
}

static void finish(struct query *q)
{
	struct lookup *k;

	q->answered = true;
	(void)uv_timer_stop(&q->late);
	if (q->addrs.n)
		q->code = 0;
	else if (q->code == 0)
		q->code = -ENOENT;
	q->expires = q->code == 0 ? loop_now(q->r->loop) +
					    MIN((uint64_t)q->ttl * 1000, (uint64_t)KEEP_MS)
				  : 0;
	while ((k = q->waiters)) {
		q->waiters = k->next;
		k->done(k->arg, q->code, &q->addrs);
		free(k);
	}
}

static void on_late(uv_timer_t *t)
{
	finish(t->data);
}

static void take_addr(struct query *q, const void *p, uint8_t len, int ttl)
{
	struct addr *a = &q->addrs.v[q->addrs.n];

	if (q->addrs.n == ADDRS_MAX || q->answered)
		return;
	a->len = len;
	memcpy(a->b, p, len);
	q->addrs.n++;
	q->ttl = MIN(q->ttl, (uint32_t)MAX(ttl, 0));
}

static void take_answer(struct half *h, unsigned char *p, int n)
{
	struct ares_addr6ttl v6[TTLS_MAX];
	struct ares_addrttl v4[TTLS_MAX];
	int k = TTLS_MAX;

	if (h->type == 1 && ares_parse_a_reply(p, n, NULL, v4, &k) == ARES_SUCCESS)
		for (int i = 0; i < k; i++)
			take_addr(h->query, &v4[i].ipaddr, 4, v4[i].ttl);
	if (h->type == 28 && ares_parse_aaaa_reply(p, n, NULL, v6, &k) == ARES_SUCCESS)
		for (int i = 0; i < k; i++)
			take_addr(h->query, &v6[i].ip6addr, 16, v6[i].ttl);
}

static void on_answer(void *arg, int status, int timeouts, unsigned char *p, int n)
{
	struct half *h = arg;
	struct query *q = h->query;
	const size_t before = q->addrs.n;

	(void)timeouts;
	h->under_way = false;
	if (status == ARES_ECANCELLED || status == ARES_EDESTRUCTION) {
		h->resend = true;
		return;
	}
	if (status == ARES_SUCCESS)
		take_answer(h, p, n);
	else if (status == ARES_ETIMEOUT)
		q->code = -ETIMEDOUT;
	else if (status != ARES_ENODATA && status != ARES_ENOTFOUND)
		q->code = -EIO;
	if (q->answered || q->starting)
		return;
	if (!q->a.under_way && !q->aaaa.under_way)
		finish(q);
	else if (q->addrs.n > before && h->type == 1)
		(void)uv_timer_start(&q->late, on_late, AAAA_LATE_MS, 0);
}

static void half_send(struct half *h)
{
	struct query *q = h->query;
	unsigned char *p = NULL;
	uint16_t id = 0;
	int n = 0;

	h->resend = false;
	h->under_way = true;
	if (getrandom(&id, sizeof(id), 0) != sizeof(id) ||
	    ares_create_query(q->name, 1, h->type, id, 1, &p, &n, 0) != ARES_SUCCESS) {
		on_answer(h, ARES_ENOMEM, 0, NULL, 0);
		return;
	}
	ares_send(q->r->channel, p, n, on_answer, h);
	ares_free_string(p);
}

/* Those halves that are not answered. */
static void query_send(struct query *q)
{
	q->starting = true;
	if (q->aaaa.resend)
		half_send(&q->aaaa);
	if (q->a.resend)
		half_send(&q->a);
	q->starting = false;
	if (!q->a.under_way && !q->aaaa.under_way)
		(void)uv_timer_start(&q->late, on_late, 0, 0);
	rearm(q->r);
}

static struct query *find_query(struct resolver *r, const char *name)
{
	struct query *q = r->queries;

	while (q && !streq(q->name, name))
		q = q->next;
	return q;
}

/* Answers that are too old go. */
static void sweep(struct resolver *r)
{
	const uint64_t now = loop_now(r->loop);
	struct query *q, *next;

	for (q = r->queries; q; q = next) {
		next = q->next;
		if (q->answered && q->expires <= now)
			query_drop(q);
	}
}

static struct query *query_new(struct resolver *r, const char *name)
{
	struct query *q;

	sweep(r);
	if (r->n_queries >= QUERIES_MAX)
		return NULL;
	q = calloc(1, sizeof(*q));
	if (!q)
		return NULL;
	q->r = r;
	q->ttl = UINT32_MAX;
	q->a = (struct half) { .query = q, .type = 1, .resend = true };
	q->aaaa = (struct half) { .query = q, .type = 28, .resend = true };
	(void)!text_copy(q->name, sizeof(q->name), name);
	(void)uv_timer_init(&r->loop->uv, &q->late);
	q->late.data = q;
	q->next = r->queries;
	r->queries = q;
	r->n_queries++;
	return q;
}

struct lookup *resolver_look(struct resolver *r, const struct host *name,
			     void (*done)(void *arg, int code, const struct addrs *a), void *arg)
{
	struct query *q = find_query(r, name->text);
	struct lookup *k;
	bool fresh = false;

	if (q && q->answered) { /* too old: resolver_known() would have taken it */
		query_drop(q);
		q = NULL;
	}
	if (!q) {
		q = query_new(r, name->text);
		fresh = true;
	}
	k = q ? calloc(1, sizeof(*k)) : NULL;
	if (!k)
		return NULL;
	*k = (struct lookup) { .next = q->waiters, .query = q, .done = done, .arg = arg };
	q->waiters = k;
	if (fresh)
		query_send(q);
	return k;
}

void resolver_cancel(struct lookup *k)
{
	struct lookup **p;

	if (!k)
		return;
	p = &k->query->waiters;
	while (*p && *p != k)
		p = &(*p)->next;
	if (*p)
		*p = k->next;
	free(k);
}

/* ---- configuration ---- */

static bool take_hosts(struct resolver *r, const char *name, struct addrs *ret)
{
	ret->n = 0;
	for (size_t i = 0; i < r->n_hosts && ret->n < ADDRS_MAX; i++)
		if (streq(r->hosts[i].name, name))
			ret->v[ret->n++] = r->hosts[i].addr;
	return ret->n > 0;
}

int resolver_known(struct resolver *r, const struct host *name, struct addrs *ret)
{
	const struct query *q;

	if (take_hosts(r, name->text, ret))
		return 1;
	q = find_query(r, name->text);
	if (!q || !q->answered || q->expires <= loop_now(r->loop))
		return 0;
	*ret = q->addrs;
	return 1;
}

static bool addr_parse(struct addr *ret, const char *s)
{
	ret->len = strchr(s, ':') ? 16 : 4;
	return inet_pton(ret->len == 16 ? AF_INET6 : AF_INET, s, ret->b) == 1;
}

/* A line of hosts: an address and its names. text is cut up. */
static void hosts_line(struct resolver *r, char *line)
{
	char *save = NULL, *word = strtok_r(line, " \t\r", &save);
	struct err e;
	struct addr a;

	if (!word || !addr_parse(&a, word))
		return;
	while ((word = strtok_r(NULL, " \t\r", &save)) && r->n_hosts < HOSTS_ENTRIES_MAX) {
		struct host h;

		if (host_parse(&h, word, strlen(word), &e) < 0 || h.kind != HOST_NAME ||
		    strlen(h.text) > strlen(word))
			continue;
		memcpy(word, h.text, strlen(h.text) + 1); /* as it is asked for */
		r->hosts[r->n_hosts++] = (struct hosts_entry) { .name = word, .addr = a };
	}
}

static void set_hosts(struct resolver *r, const char *text)
{
	char *save = NULL, *line;

	free(r->hosts_text);
	r->hosts_text = strdup(text);
	r->n_hosts = 0;
	if (!r->hosts)
		r->hosts = calloc(HOSTS_ENTRIES_MAX, sizeof(*r->hosts));
	if (!r->hosts_text || !r->hosts)
		return;
	for (line = strtok_r(r->hosts_text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		line[strcspn(line, "#")] = 0;
		hosts_line(r, line);
	}
}

/* The list of name servers as c-ares wants it: commas between. */
static void servers_from(const char *conf, char *ret, size_t max)
{
	size_t used = 0, n = 0;

	ret[0] = 0;
	for (const char *line = conf; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		char word[INET6_ADDRSTRLEN + 32];
		struct addr a;
		int k;

		if (n == SERVERS_MAX ||
		    sscanf(line, "nameserver%*[ \t]%77[0-9A-Fa-f.:]", word) != 1 ||
		    !addr_parse(&a, word))
			continue;
		k = snprintf(ret + used, max - used, a.len == 16 ? "%s[%s]:53" : "%s%s:53",
			     n ? "," : "", word);
		if (k < 0 || (size_t)k >= max - used)
			return;
		used += (size_t)k;
		n++;
	}
	if (!n) /* resolv.conf(5) */
		(void)!text_copy(ret, max, "127.0.0.1:53");
}

static void resend(struct resolver *r)
{
	for (struct query *q = r->queries; q; q = q->next)
		if (q->a.resend || q->aaaa.resend)
			query_send(q);
}

void resolver_set(struct resolver *r, const char *conf, const char *hosts)
{
	char servers[sizeof(r->servers)];

	set_hosts(r, hosts);
	servers_from(conf, servers, sizeof(servers));
	if (streq(servers, r->servers))
		return;
	(void)!text_copy(r->servers, sizeof(r->servers), servers);
	for (struct query *q = r->queries; q;
	     q = q->next) /* another network may know another answer */
		q->expires = 0;
	ares_cancel(r->channel);
	(void)ares_set_servers_ports_csv(r->channel, servers);
	resend(r);
}

int resolver_new(struct loop *l, struct resolver **ret)
{
	struct ares_options o = { .flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
				  .timeout = TIMEOUT_MS,
				  .tries = TRIES,
				  .sock_state_cb = socket_state };
	char lookups[] = "b";
	struct resolver *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->loop = l;
	o.sock_state_cb_data = r;
	o.lookups = lookups;
	if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS ||
	    ares_init_options(&r->channel, &o,
			      ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
				      ARES_OPT_SOCK_STATE_CB | ARES_OPT_LOOKUPS) != ARES_SUCCESS) {
		free(r);
		return -ENOMEM;
	}
	(void)uv_timer_init(&l->uv, &r->timer);
	r->timer.data = r;
	*ret = r;
	return 0;
}
