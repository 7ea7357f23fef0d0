/* A request of any bytes, to any of the hosts of a set with every kind of use; and its body.
 *
 * Input: u8 host, u8 flags (1: TLS, 2: a value of odd bytes), u8 size of a body's pieces, a head, its body. */
#include <strings.h>

#include "proxy/inject-test.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static const char *const hosts[] = {
	"api.anthropic.com", "api.github.com", "github.com",    "api.openai.com",
	"google.test",       "a.test",         "b.test",        "api.x.ai",
	"kit.test",          "two.test",       "resource.test", "token.test",
	"token2.test",       "other.test",     "x.test"
};

static const struct cred_set *set(void)
{
	static struct cred_set *s;

	if (!s)
		s = inject_test_set(inject_test_uses, ARRAY_SIZE(inject_test_uses));
	return s;
}

static bool has(const char *p, size_t n, const char *what)
{
	return memmem(p, n, what, strlen(what)) != NULL;
}

/* Every byte is one that a field may have. */
static void well_formed(const struct xhead *h)
{
	size_t i, k, bytes = 0;

	for (i = 0; i < h->fields.n; i++) {
		const struct hfield *f = &h->fields.v[i];

		check(f->name_len && f->value_len == strlen(f->value));
		bytes += f->name_len + f->value_len + 4;
		for (k = 0; k < f->value_len; k++)
			check((unsigned char)f->value[k] >= ' ' || f->value[k] == '\t');
	}
	check(bytes == h->fields.bytes && bytes <= HTTP_HEAD_MAX);
	check(strlen(h->target) <= HTTP_TARGET_MAX && !strpbrk(h->target, " \r\n\t"));
}

/* No value but those of the plan, and no placeholder of another host. */
static void right_values(const struct inject_plan *p, const struct xhead *h, bool values)
{
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(inject_test_uses); i++) {
		const struct cred_use *u = &inject_test_uses[i];
		char real[80];
		bool in_plan = false, seen;

		(void)snprintf(real, sizeof(real), "REAL-%s", u->id);
		for (k = 0; k < p->n; k++)
			in_plan |= starts_with(p->v[k].use->id, u->id);
		seen = has(h->target, strlen(h->target), real);
		for (k = 0; k < h->fields.n; k++)
			seen |= has(h->fields.v[k].value, h->fields.v[k].value_len, real);
		check(!values || !seen || in_plan);
	}
}

static bool elsewhere(const struct xhead *h, const struct host *host, bool tls)
{
	bool any = false;
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(inject_test_uses); i++) {
		const struct cred_use *u = &inject_test_uses[i];

		if (u->kind != CRED_CUSTOM || (tls && cred_matches(u, host, 443)))
			continue;
		any |= has(h->target, strlen(h->target), u->placeholder);
		for (k = 0; k < h->fields.n; k++)
			any |= has(h->fields.v[k].value, h->fields.v[k].value_len, u->placeholder);
	}
	return any;
}

static bool came_with_value(const struct xhead *h)
{
	bool any = has(h->target, strlen(h->target), "REAL-");
	size_t i;

	for (i = 0; i < h->fields.n; i++)
		any |= has(h->fields.v[i].value, h->fields.v[i].value_len, "REAL-");
	return any;
}

/* In pieces it is what it is as a whole. */
static void body(const struct inject_plan *p, const struct host *host, const uint8_t *in, size_t n,
		 size_t piece)
{
	struct buf whole = BUF_INIT(n * 50 + 100), parts = BUF_INIT(n * 50 + 100);
	struct inject_body *a = NULL, *b = NULL;
	const char *x = NULL, *y = NULL;
	size_t at = 0, one;
	int r, q = 0;

	check(inject_body_new(p, set(), host, 443, &a) == 0);
	check(inject_body_new(p, set(), host, 443, &b) == 0);
	r = inject_body(a, in, n, true, &whole, &x);
	do {
		one = MIN(piece, n - at);
		q = inject_body(b, in + at, one, at + one == n, &parts, &y);
		at += one;
	} while (at < n && q == 0);
	check(r == q && (r == 0 || (r == -EPERM && x && y)));
	check(r || (whole.n == parts.n &&
		    (!whole.n || memcmp(buf_data(&whole), buf_data(&parts), whole.n) == 0)));
	check(r || p->body || whole.n == n);
	buf_done(&whole);
	buf_done(&parts);
	(void)inject_body_free(a);
	(void)inject_body_free(b);
}

static void one(struct xhead *h, const char *at, uint8_t flags, const uint8_t *rest, size_t n,
		size_t piece)
{
	static const char odd[] = "a\r\nX-Evil: 1";
	char values[INJECT_NEEDS_MAX][80];
	struct inject_plan p;
	struct host host;
	struct err e;
	const bool tls = flags & 1, came = came_with_value(h);
	size_t i, before = h->fields.n;
	int r;

	check(host_parse(&host, at, strlen(at), &e) == 0);
	inject_plan(&p, set(), h, &host, tls ? 443 : 80, tls, "box");
	check(p.n <= INJECT_NEEDS_MAX && (!p.status || (p.reason && p.text[0] && !p.n)));
	check(tls || (!p.n && !p.token && !p.body));
	if (p.status)
		return;
	check(!elsewhere(h, &host, tls));
	inject_test_values(&p, values);
	for (i = 0; (flags & 2) && i < p.n; i++) {
		p.v[i].value = (const uint8_t *)odd;
		p.v[i].n = strlen(odd);
	}
	r = inject_apply(&p, h);
	check(r == 0 || r == -E2BIG || (r == -EINVAL && (flags & 2)));
	check(!(flags & 2) || r || !p.n || p.token || h->fields.n <= before);
	if (r == 0) {
		well_formed(h);
		right_values(&p, h, !came);
	}
	if ((p.body || p.search) && !(flags & 2))
		body(&p, &host, rest, n, piece);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct http_head head;
	struct xhead h;
	const uint8_t *text;
	size_t size;

	if (n < 3)
		return 0;
	text = p + 3;
	n -= 3;
	if (http_request(&head, text, n) != HTTP_OK || xhead_from_http1(&h, &head, text) < 0)
		return 0;
	size = head.size;
	one(&h, hosts[p[0] % ARRAY_SIZE(hosts)], p[1], text + size, n - size, 1UL + p[2]);
	xhead_done(&h);
	return 0;
}
