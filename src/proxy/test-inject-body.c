/* Placeholders in bodies, in pieces of every size. */
#include "proxy/inject-test.h"

enum { CHANGE = 1, SEARCH = 2 };

static const struct {
	uint8_t mode, form;
	const char *host, *body, *want, *name; /* want NULL: refused for name */
} rows[] = {
	{ CHANGE, INJECT_FORM_RAW, "b.test", "a bac-cs-BBBBBBBB b", "a v\"/+&\n b", NULL },
	{ CHANGE, INJECT_FORM_QUERY, "b.test", "k=bac-cs-BBBBBBBB&x=1", "k=v%22%2F%2B%26%0A&x=1",
	  NULL },
	{ CHANGE, INJECT_FORM_JSON, "b.test", "{\"k\":\"bac-cs-BBBBBBBB\"}",
	  "{\"k\":\"v\\\"/+&\\n\"}", NULL },
	{ CHANGE, INJECT_FORM_RAW, "b.test", "bac-cs-BBBBBBBBbac-cs-BBBBBBBBB", "v\"/+&\nv\"/+&\nB",
	  NULL },
	{ CHANGE, INJECT_FORM_RAW, "b.test", "bac-cs-BBBBBBB", "bac-cs-BBBBBBB", NULL },
	{ CHANGE, INJECT_FORM_RAW, "b.test", "bbac-cs-BBBBbac-cs-BBBBBBBB bac-cs-",
	  "bbac-cs-BBBBv\"/+&\n bac-cs-", NULL },
	{ CHANGE, INJECT_FORM_RAW, "b.test", "", "", NULL },
	{ CHANGE, INJECT_FORM_RAW, "b.test", "x bac-cs-AAAAAAAA", NULL, "A_TOKEN" },
	{ CHANGE, INJECT_FORM_RAW, "b.test", "bac-cs-BBBBBBBB bac-cs-DDDDDDDD", NULL, "D_TOKEN" },
	/* C_TOKEN is of this host, and for other places of a request */
	{ CHANGE, INJECT_FORM_RAW, "b.test", "p:h/x+y=z&12%34", "p:h/x+y=z&12%34", NULL },
	{ SEARCH, INJECT_FORM_RAW, "a.test", "x bac-cs-AAAAAAAA bac-cs-BBBBBBB",
	  "x bac-cs-AAAAAAAA bac-cs-BBBBBBB", NULL },
	{ SEARCH, INJECT_FORM_RAW, "a.test", "x bac-cs-BBBBBBBB", NULL, "B_TOKEN" },
	{ SEARCH, INJECT_FORM_RAW, "other.test", "bac-cs-AAAAAAAA", NULL, "A_TOKEN" },
	{ SEARCH, INJECT_FORM_RAW, "other.test", "p:h/x+y=z&12%34", NULL, "C_TOKEN" },
	{ SEARCH, INJECT_FORM_RAW, "other.test", "bac-cs-AAAAAAA bac-cs-bac-cs-B",
	  "bac-cs-AAAAAAA bac-cs-bac-cs-B", NULL },
};

static struct inject_body *make(const struct cred_set *s, size_t i)
{
	static const char value[] = "v\"/+&\n";
	struct inject_plan p = { 0 };
	struct inject_body *b = NULL;
	struct host host;
	struct err e;

	check(host_parse(&host, rows[i].host, strlen(rows[i].host), &e) == 0);
	p.body = rows[i].mode == CHANGE;
	p.search = !p.body;
	p.form = rows[i].form;
	if (p.body) {
		p.v[0].use = cred_find(s, "b");
		p.v[0].value = (const uint8_t *)value;
		p.v[0].n = strlen(value);
		p.n = 1;
	}
	check(inject_body_new(&p, s, &host, 443, &b) == 0);
	return b;
}

/* In pieces of `piece` bytes; the last one says so, or an empty one after it. */
static void row(const struct cred_set *s, size_t i, size_t piece, bool empty_last)
{
	struct inject_body *b = make(s, i);
	struct buf out = BUF_INIT(4096);
	const char *name = NULL, *body = rows[i].body;
	size_t n = strlen(body), at = 0, one;
	int r = 0;

	do {
		one = MIN(piece, n - at);
		r = inject_body(b, (const uint8_t *)body + at, one, !empty_last && at + one == n,
				&out, &name);
		at += one;
		check(r || rows[i].mode == CHANGE || out.n == at);
	} while (at < n && r == 0);
	if (r == 0 && empty_last)
		r = inject_body(b, (const uint8_t *)"", 0, true, &out, &name);
	if (rows[i].want)
		check(r == 0 && streq(buf_str(&out), rows[i].want));
	else
		check(r == -EPERM && streq(name, rows[i].name));
	buf_done(&out);
	check(!inject_body_free(b));
}

/* Long bodies, where the looking up has edges of its own. */
static void long_body(const struct cred_set *s)
{
	static const char text[] = "bac-cs-BBBBBBBB", value[] = "v\"/+&\n";
	const size_t n = 100000;
	_free_ uint8_t *p = malloc(n);
	struct inject_body *b = make(s, 0);
	struct buf out = BUF_INIT(2 * n);
	const char *name;
	size_t at, piece;

	check(p);
	memset(p, 'b', n);
	for (at = 0; at + 100 < n; at += 1009)
		memcpy(p + at, text, strlen(text));
	for (at = 0, piece = 1; at < n; at += piece, piece = piece * 7 % 4093 + 1) {
		piece = MIN(piece, n - at);
		check(inject_body(b, p + at, piece, at + piece == n, &out, &name) == 0);
	}
	check(out.n == n - (n - 100 + 1008) / 1009 * (strlen(text) - strlen(value)));
	check(!memmem(buf_data(&out), out.n, text, strlen(text)));
	buf_done(&out);
	check(!inject_body_free(b));
}

/* Another set comes while a body passes. */
static void outlives(void)
{
	struct cred_set *s = inject_test_set(inject_test_uses, ARRAY_SIZE(inject_test_uses));
	struct inject_body *a = make(s, 0), *b = make(s, 11);
	struct buf out = BUF_INIT(100);
	const char *name;

	(void)cred_set_free(s);
	check(inject_body(a, (const uint8_t *)"bac-cs-BBBBBBBB", 15, true, &out, &name) == 0);
	check(streq(buf_str(&out), "v\"/+&\n"));
	check(inject_body(b, (const uint8_t *)"bac-cs-BBBBBBBB", 15, true, &out, &name) == -EPERM);
	check(streq(name, "B_TOKEN"));
	buf_done(&out);
	check(!inject_body_free(a) && !inject_body_free(b));
}

static void limits(const struct cred_set *s)
{
	struct inject_body *b = make(s, 0);
	struct buf out = BUF_INIT(8);
	const char *name;

	check(inject_body(b, (const uint8_t *)"123456789", 9, false, &out, &name) == -ENOBUFS);
	buf_done(&out);
	check(!inject_body_free(b));
	check(!inject_body_free(NULL));
}

int main(void)
{
	struct cred_set *s = inject_test_set(inject_test_uses, ARRAY_SIZE(inject_test_uses));
	size_t i, piece;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		for (piece = 1; piece <= 40; piece++) {
			row(s, i, piece, false);
			row(s, i, piece, true);
		}
	}
	long_body(s);
	limits(s);
	outlives();
	(void)cred_set_free(s);
	return 0;
}
