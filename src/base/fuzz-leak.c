/* Scanner against a naive search; and sets from any bytes.
 *
 * Input: u8 what. Even: a set's bytes. Odd: u8 how often, u8 length of a secret, its bytes, and the stream, in pieces of that length. */
#include "base/check.h"
#include "base/leak.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

enum { SECRETS = 3, KEY = 12345 };

struct secret {
	const uint8_t *p;
	size_t n;
};

static void as_set(const uint8_t *p, size_t n)
{
	struct buf b = BUF_INIT(LEAK_SET_MAX);
	struct leak_scan c = { 0 };
	struct leak_set s, t;
	struct leak_hit hit;

	if (leak_set_parse(&s, p, n) < 0)
		return;
	check(s.n <= LEAK_MARKS_MAX && s.stamp);
	check(leak_set_put(&b, &s) == 0 && b.n == n);
	check(leak_set_parse(&t, buf_data(&b), b.n) == 0);
	check(t.stamp == s.stamp);
	(void)leak_scan(&c, &s, p, n, &hit);
	leak_set_done(&t);
	leak_set_done(&s);
	buf_done(&b);
}

/* Does the stream have one that ends here? The longest. */
static size_t ends_here(const struct secret *v, const uint8_t *p, size_t end)
{
	size_t best = 0, i;

	for (i = 0; i < SECRETS; i++) {
		if (v[i].n >= LEAK_WINDOW && v[i].n <= end && v[i].n > best &&
		    memcmp(p + end - v[i].n, v[i].p, v[i].n) == 0)
			best = v[i].n;
	}
	return best;
}

/* Is what the scanner found there? Forms of a value other than itself are longer, and not looked at here. */
static void found(const struct secret *v, const uint8_t *p, const struct leak_hit *hit)
{
	const size_t end = (size_t)hit->start + hit->length;
	size_t i;

	for (i = 0; i < SECRETS; i++) {
		if (hit->length == v[i].n && memcmp(p + end - v[i].n, v[i].p, v[i].n) == 0)
			return;
	}
	for (i = 0; i < SECRETS && hit->length <= v[i].n; i++)
		;
	check(i < SECRETS); /* an encoded form */
}

/* The same bytes one by one: a hit at the last of them, the same one, or none. Until more than it looks at have begun, none is missed. */
static void one_by_one(struct leak_scan *c, const struct leak_set *s, const struct secret *v,
		       const uint8_t *stream, size_t n, const struct leak_hit *want, bool *exact)
{
	struct leak_hit hit;
	size_t i, end, one;

	for (i = 0; i < n; i++) {
		end = (size_t)c->seen + 1;
		check(leak_scan(c, s, stream + c->seen, 1, &hit) == 1);
		*exact &= c->n_open < LEAK_OPEN_MAX;
		one = ends_here(v, stream, end);
		check(!*exact || hit.length >= one);
		check(!hit.length || (i + 1 == n && hit.start == want->start));
		check(!hit.length || hit.start + hit.length == end);
	}
	check(!n || hit.length == want->length);
}

static void compare(const struct leak_set *s, const struct secret *v, const uint8_t *p, size_t n,
		    size_t piece)
{
	struct leak_scan c = { 0 }, slow = { 0 };
	struct leak_hit hit;
	size_t at = 0, used, one;
	bool exact = true;

	while (at < n) {
		one = MIN(piece, n - at);
		used = leak_scan(&c, s, p + at, one, &hit);
		check(used <= one && (hit.length || used == one));
		at += used;
		check(c.seen == at && leak_held(&c) <= at);
		if (hit.length)
			found(v, p, &hit);
		one_by_one(&slow, s, v, p, used, &hit, &exact);
		check(leak_held(&c) == leak_held(&slow));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct leak_mark *marks;
	struct secret v[SECRETS] = { 0 };
	struct leak_set s;
	size_t i, have = 0, piece, len;

	if (n < 4)
		return 0;
	if (!(p[0] & 1)) {
		as_set(p + 1, n - 1);
		return 0;
	}
	piece = p[1] ? p[1] * 4UL : 1;
	p += 2;
	n -= 2;
	marks = calloc((size_t)SECRETS * LEAK_FORMS_MAX, sizeof(*marks));
	check(marks);
	for (i = 0; i < SECRETS && n; i++) {
		len = MIN(p[0], n - 1);
		v[i].p = p + 1;
		v[i].n = len;
		have += leak_marks(KEY, "x", p + 1, len, marks + have, LEAK_FORMS_MAX);
		p += len + 1;
		n -= len + 1;
	}
	check(leak_set_init(&s, KEY, marks, have) == 0);
	compare(&s, v, p, n, piece);
	leak_set_done(&s);
	return 0;
}
