/* Secrets in streams: every form of one, every way to cut a stream, and what is like a secret and is none. */
#include "base/leak.h"

#include <stdio.h>
#include <time.h>

#include "base/check.h"

static const uint64_t key = 0x9e3779b97f4a7c15;
static const char value[] = "sk-ant-api03-Zq\"7/+\\x%9~*\303\251_end";
static const char other[] = "sk-ant-api03-Zq-but-another";

static const struct {
	const char *what, *text;
} forms[] = {
	{ "plain", "sk-ant-api03-Zq\"7/+\\x%9~*\303\251_end" },
	{ "b64 0", "c2stYW50LWFwaTAzLVpxIjcvK1x4JTl+KsOpX2VuZHRhaWw=" },
	{ "b64 0", "c2stYW50LWFwaTAzLVpxIjcvK1x4JTl-KsOpX2VuZHRhaWw=" },
	{ "b64 1", "dXNrLWFudC1hcGkwMy1acSI3LytceCU5firDqV9lbmR0YWls" },
	{ "b64 1", "dXNrLWFudC1hcGkwMy1acSI3LytceCU5firDqV9lbmR0YWls" },
	{ "b64 2", "dXNzay1hbnQtYXBpMDMtWnEiNy8rXHglOX4qw6lfZW5kdGFpbA==" },
	{ "b64 2", "dXNzay1hbnQtYXBpMDMtWnEiNy8rXHglOX4qw6lfZW5kdGFpbA==" },
	{ "hex", "736b2d616e742d61706930332d5a7122372f2b5c7825397e2ac3a95f656e64" },
	{ "HEX", "736B2D616E742D61706930332D5A7122372F2B5C7825397E2AC3A95F656E64" },
	{ "pct", "sk-ant-api03-Zq%227%2F%2B%5Cx%259~%2A%C3%A9_end" },
	{ "pctl", "sk-ant-api03-Zq%227%2f%2b%5cx%259~%2a%c3%a9_end" },
	{ "js", "sk-ant-api03-Zq%227%2F%2B%5Cx%259~*%C3%A9_end" },
	{ "json", "sk-ant-api03-Zq\\\"7/+\\\\x%9~*\303\251_end" },
	{ "json2", "sk-ant-api03-Zq\\\"7\\/+\\\\x%9~*\303\251_end" },
};

static const char *const not_forms[] = {
	"sk-ant-api03-Zq\"7/+\\x%9~*\303\251_en",
	"sk-ant-api03-Zq",
	"SK-ANT-API03-ZQ\"7/+\\X%9~*\303\251_END",
	"k-ant-api03-Zq\"7/+\\x%9~*\303\251_end",
	"",
};

static void set_of(struct leak_set *s, const char *const *values, size_t n)
{
	struct leak_mark *v = calloc(n * LEAK_FORMS_MAX, sizeof(*v));
	size_t i, have = 0;
	char name[16];

	check(v);
	for (i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "v%zu", i);
		have += leak_marks(key, name, (const uint8_t *)values[i], strlen(values[i]),
				   v + have, LEAK_FORMS_MAX);
	}
	check(leak_set_init(s, key, v, have) == 0);
}

static const uint8_t *bytes(const char *s)
{
	return (const uint8_t *)s;
}

/* Each form, behind and before other bytes, cut at every place. */
static void every_form(void)
{
	const char *const values[] = { value, other };
	struct leak_set s;
	struct leak_scan c;
	struct leak_hit hit, late;
	char text[400];
	size_t i, cut, n, used;

	set_of(&s, values, 2);
	for (i = 0; i < ARRAY_SIZE(forms); i++) {
		(void)snprintf(text, sizeof(text), "{\"a\": [%s], \"b\": 12}\n", forms[i].text);
		n = strlen(text);
		for (cut = 0; cut <= n; cut++) {
			memset(&c, 0, sizeof(c));
			used = leak_scan(&c, &s, bytes(text), cut, &hit);
			late = hit;
			if (!hit.length) {
				check(used == cut);
				(void)leak_scan(&c, &s, bytes(text) + cut, n - cut, &late);
			}
			check(late.length >= LEAK_WINDOW && streq(late.name, "v0"));
			check(late.start >= 7 && late.start < 7 + strlen(forms[i].text));
			check(late.start + late.length == c.seen);
		}
	}
	leak_set_done(&s);
}

static void no_form(void)
{
	const char *const values[] = { value, "too short", "" };
	struct leak_set s;
	struct leak_scan c = { 0 };
	struct leak_hit hit;
	size_t i;

	set_of(&s, values, 3);
	for (i = 0; i < ARRAY_SIZE(not_forms); i++) {
		check(leak_scan(&c, &s, bytes(not_forms[i]), strlen(not_forms[i]), &hit) ==
		      strlen(not_forms[i]));
		check(!hit.length);
		check(leak_scan(&c, &s, bytes("\n"), 1, &hit) == 1 && !hit.length);
	}
	check(leak_scan(&c, &s, bytes("too short"), 9, &hit) == 9 && !hit.length);
	leak_set_done(&s);
}

/* Two that begin alike, one in the other: the longest of those that end together, and each that ends. */
static void alike(void)
{
	const char *const values[] = { "prefix-of-all-of-them-A",
				       "prefix-of-all-of-them-A-and-more",
				       "all-of-them-A-and-more" };
	const char text[] =
		"x prefix-of-all-of-them-A-and-more prefix-of-all-of-them-B or something";
	struct leak_set s;
	struct leak_scan c = { 0 };
	struct leak_hit hit;
	size_t at;

	set_of(&s, values, 3);
	at = leak_scan(&c, &s, bytes(text), strlen(text), &hit);
	check(at == 25 && hit.start == 2 && hit.length == 23 && streq(hit.name, "v0"));
	check(leak_held(&c) == 2);
	at += leak_scan(&c, &s, bytes(text) + at, strlen(text) - at, &hit);
	check(at == 34 && hit.start == 2 && hit.length == 32 && streq(hit.name, "v1"));
	check(leak_held(&c) == c.seen);
	check(leak_scan(&c, &s, bytes(text) + at, strlen(text) - at, &hit) == strlen(text) - at);
	check(!hit.length && leak_held(&c) == c.seen);
	leak_set_done(&s);
}

/* The part that has begun is held until it is clear. */
static void held(void)
{
	const char *const values[] = { value };
	struct leak_set s;
	struct leak_scan c = { 0 };
	struct leak_hit hit;

	set_of(&s, values, 1);
	check(leak_held(&c) == 0);
	(void)leak_scan(&c, &s, bytes("abc"), 3, &hit);
	(void)leak_scan(&c, &s, bytes(value), 15, &hit);
	check(leak_held(&c) == 18);
	(void)leak_scan(&c, &s, bytes(value) + 15, 1, &hit);
	check(leak_held(&c) == 3);
	(void)leak_scan(&c, &s, bytes("and something else than the rest of it"), 30, &hit);
	check(!hit.length && leak_held(&c) == c.seen);
	leak_set_done(&s);
}

/* A set that comes in the middle of a secret finds it if its first bytes are still there; another set forgets what had begun. */
static void replaced(void)
{
	const char *const values[] = { value };
	const char *const others[] = { other };
	struct leak_set s, t;
	struct leak_scan c = { 0 };
	struct leak_hit hit;

	set_of(&s, values, 1);
	set_of(&t, others, 1);
	check(leak_scan(&c, NULL, bytes(value), 10, &hit) == 10 && !hit.length);
	(void)leak_scan(&c, &s, bytes(value) + 10, strlen(value) - 10, &hit);
	check(hit.start == 0 && hit.length == strlen(value));
	(void)leak_scan(&c, &s, bytes(value), 20, &hit);
	check(leak_held(&c) == c.seen - 20);
	(void)leak_scan(&c, &t, bytes(value) + 20, strlen(value) - 20, &hit);
	check(!hit.length && leak_held(&c) == c.seen);
	leak_set_done(&s);
	leak_set_done(&t);
}

/* Long pieces go the quick way: a secret at every seventh place of one, and so at each within a word. */
static void long_pieces(void)
{
	enum { N = 9000 };
	const char *const values[] = { value };
	uint8_t *p = malloc(N);
	struct leak_set s;
	struct leak_hit hit;
	struct leak_scan c;
	size_t at, i;

	check(p);
	set_of(&s, values, 1);
	for (at = 0; at + strlen(value) <= N; at += 7) {
		for (i = 0; i < N; i++)
			p[i] = (uint8_t)(i * i >> 3);
		memcpy(p + at, value, strlen(value));
		memset(&c, 0, sizeof(c));
		i = leak_scan(&c, &s, p, N, &hit);
		check(i == at + strlen(value) && hit.start == at);
		check(leak_scan(&c, &s, p + i, N - i, &hit) == N - i && !hit.length);
		check(c.seen == N);
	}
	leak_set_done(&s);
	free(p);
}

/* One of many secrets, anywhere in a stream that comes in pieces of any size: nothing but it is found, where it is. */
static void crowded(void)
{
	enum { N = 400, MANY = 140 };
	const char *many[MANY];
	char text[MANY][48];
	uint8_t p[N];
	struct leak_set s;
	struct leak_hit hit;
	struct leak_scan c;
	size_t i, at, piece, n;

	for (i = 0; i < MANY; i++) {
		(void)snprintf(text[i], sizeof(text[i]), "%zu/a/secret?of-some=length&%zu", i,
			       i * 7919);
		many[i] = text[i];
	}
	set_of(&s, many, MANY);
	for (piece = 1; piece < N; piece += piece < 80 ? 1 : 19) {
		at = piece * 7 % 300;
		for (i = 0; i < N; i++)
			p[i] = (uint8_t)((i * i * 2654435761U) >> 11);
		n = strlen(text[piece % MANY]);
		memcpy(p + at, text[piece % MANY], n);
		memset(&c, 0, sizeof(c));
		for (i = 0, hit.length = 0; i < N && !hit.length;)
			i += leak_scan(&c, &s, p + i, MIN(piece, N - i), &hit);
		check(hit.length == n && hit.start == at && i == at + n);
		while (i < N) {
			i += leak_scan(&c, &s, p + i, MIN(piece, N - i), &hit);
			check(!hit.length);
		}
	}
	leak_set_done(&s);
}

static void as_bytes(void)
{
	const char *const values[] = { value, other };
	struct buf b = BUF_INIT(LEAK_SET_MAX);
	struct leak_set s, t;
	uint8_t *p;
	size_t n, i;

	set_of(&s, values, 2);
	check(leak_set_put(&b, &s) == 0);
	check(leak_set_parse(&t, buf_data(&b), b.n) == 0);
	check(t.n == s.n && t.stamp == s.stamp && t.key == s.key);
	leak_set_done(&t);
	for (n = 0; n < b.n; n++)
		check(leak_set_parse(&t, buf_data(&b), n) == -EPROTO);
	p = calloc(1, b.n + 1);
	check(p);
	memcpy(p, buf_data(&b), b.n);
	p[b.n] = 0;
	check(leak_set_parse(&t, p, b.n + 1) == -EPROTO);
	for (i = 0; i < 12; i++) {
		memcpy(p, buf_data(&b), b.n);
		p[i] = (uint8_t)(i == 7 ? 0 : i < 8 ? p[i] : 0xff);
		n = (size_t)leak_set_parse(&t, p, b.n);
		check(i < 7 ? n == 0 : (ssize_t)n == -EPROTO);
		if (n == 0)
			leak_set_done(&t);
	}
	free(p);
	buf_done(&b);
	leak_set_done(&s);
	check(leak_set_init(&s, 1, NULL, 0) == 0 && leak_set_put(&b, &s) == 0);
	check(b.n == 12 && leak_set_parse(&t, buf_data(&b), b.n) == 0 && t.n == 0);
	leak_set_done(&t);
	leak_set_done(&s);
	buf_done(&b);
}

static void limits(void)
{
	struct leak_mark *v = calloc(LEAK_MARKS_MAX + 1, sizeof(*v));
	struct buf b = BUF_INIT(LEAK_SET_MAX);
	char *long_one = malloc(LEAK_LENGTH_MAX + 1);
	struct leak_set s;
	size_t i;

	check(v && long_one);
	check(leak_set_init(&s, 1, v, LEAK_MARKS_MAX + 1) == -E2BIG);
	for (i = 0; i < LEAK_MARKS_MAX; i++) {
		v[i].length = LEAK_WINDOW;
		memset(v[i].name, 'n', LEAK_NAME_MAX);
	}
	check(leak_set_init(&s, 1, v, LEAK_MARKS_MAX) == 0);
	check(leak_set_put(&b, &s) == -ENOBUFS && b.n == 0);
	leak_set_done(&s);
	memset(long_one, 'x', LEAK_LENGTH_MAX + 1);
	v = calloc(LEAK_FORMS_MAX, sizeof(*v));
	check(v);
	check(leak_marks(1, "\n", bytes(long_one), LEAK_LENGTH_MAX, v, LEAK_FORMS_MAX) == 1);
	check(streq(v[0].name, "?"));
	check(leak_marks(1, "x", bytes(long_one), LEAK_LENGTH_MAX + 1, v, LEAK_FORMS_MAX) == 0);
	check(leak_marks(1, "x", bytes(value), strlen(value), v, 2) == 2);
	free(v);
	free(long_one);
}

/* For people: what a byte costs. `speed` as an argument. */
static void speed(void)
{
	enum { N = 64 * 1024, ROUNDS = 4000 };
	const char *many[100];
	char text[100][48];
	struct timespec a, b;
	struct leak_scan c = { 0 };
	struct leak_set s;
	struct leak_hit hit;
	uint8_t *p = malloc(N);
	size_t i, n;

	check(p);
	for (i = 0; i < N; i++)
		p[i] = (uint8_t)(i * 2654435761U >> 13);
	for (i = 0; i < 100; i++) {
		(void)snprintf(text[i], sizeof(text[i]), "%zu-another-secret-of-some-length-%zu", i,
			       i * 7919);
		many[i] = text[i];
	}
	for (n = 1; n <= 100; n *= 10) {
		set_of(&s, many, n);
		(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
		for (i = 0; i < ROUNDS; i++)
			check(leak_scan(&c, &s, p, N, &hit) == N);
		(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
		printf("%zu secrets, %u marks: %.2f ns a byte\n", n, s.n,
		       ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / N /
			       ROUNDS);
		leak_set_done(&s);
	}
	free(p);
}

int main(int argc, char **argv)
{
	if (argc > 1 && streq(argv[1], "speed")) {
		speed();
		return 0;
	}
	every_form();
	no_form();
	alike();
	held();
	replaced();
	long_pieces();
	crowded();
	as_bytes();
	limits();
	return 0;
}
