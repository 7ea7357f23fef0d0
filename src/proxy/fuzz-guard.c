/* A body with secrets, in any pieces. Input: u8 piece, u8 length of a secret, its bytes, the body. */
#include "base/check.h"
#include "proxy/inject.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static const uint64_t key = 0x9e3779b97f4a7c15;

static struct leak_set set_of(const uint8_t *p, size_t n)
{
	struct leak_mark *v = calloc(1, LEAK_FORMS_MAX * sizeof(*v));
	struct leak_set s;

	check(v);
	check(leak_set_init(&s, key, v, leak_marks(key, "x", p, n, v, LEAK_FORMS_MAX)) == 0);
	return s;
}

static void through(const struct leak_set *s, const uint8_t *p, size_t n, size_t piece,
		    struct buf *out, unsigned *ret_hits)
{
	struct guard g = { 0 };
	const char *name = NULL;
	unsigned hits;
	size_t at = 0, one;

	*ret_hits = 0;
	do {
		one = MIN(piece, n - at);
		check(guard_answer(&g, s, p + at, one, at + one == n, out, &hits, &name) == 0);
		at += one;
		*ret_hits += hits;
		check(out->n <= at && out->n + g.held.n == at);
	} while (at < n);
	check(!*ret_hits || streq(name, "x"));
	guard_done(&g);
}

/* What is not the same is a star. */
static unsigned stars(const struct buf *out, const uint8_t *p, size_t n)
{
	unsigned changed = 0;
	size_t i;

	check(out->n == n);
	for (i = 0; i < n; i++) {
		changed += buf_data(out)[i] != p[i];
		check(buf_data(out)[i] == p[i] || buf_data(out)[i] == '*');
	}
	return changed;
}

/* A value that begins like itself further on, as a run of one byte does: leak.h promises less for it. */
static bool repeats(const uint8_t *p, size_t n)
{
	size_t i;

	for (i = 1; i < n; i++)
		if (memcmp(p, p + i, MIN((size_t)LEAK_WINDOW, n - i)) == 0)
			return true;
	return false;
}

static void head(const struct leak_set *s, const uint8_t *p, size_t n)
{
	struct xhead h = { 0 };
	const char *name = NULL;
	bool found;

	if (hfields_add(&h.fields, "a", 1, (const char *)p, n) == 0) {
		found = guard_request_head(s, &h, NULL, NULL, &name);
		check(found == (guard_head(s, &h, &name) > 0) && found == (name != NULL));
		check(strlen(h.fields.v[0].value) == n);
	}
	xhead_done(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct buf whole = BUF_INIT(1UL << 20), parts = BUF_INIT(1UL << 20);
	const uint8_t *secret;
	unsigned a, b, changed;
	struct leak_set s;
	size_t piece, len;

	if (n < 2)
		return 0;
	piece = p[0] ? p[0] * 3UL : 1;
	len = MIN(p[1], n - 2);
	secret = p + 2;
	p += 2 + len;
	n -= 2 + len;
	s = set_of(secret, len);
	through(&s, p, n, n ? n : 1, &whole, &a);
	through(&s, p, n, piece, &parts, &b);
	check(a == b);
	changed = stars(&whole, p, n);
	check(a || !changed);
	(void)stars(&parts, p, n);
	/* of a secret that has no star itself nothing whole remains */
	if (len >= LEAK_WINDOW && !memchr(secret, '*', len) && !repeats(secret, len) && n) {
		check(!memmem(buf_data(&whole), n, secret, len) || !a);
		check(!memmem(buf_data(&parts), n, secret, len) || !b);
	}
	head(&s, p, n);
	leak_set_done(&s);
	buf_done(&whole);
	buf_done(&parts);
	return 0;
}
