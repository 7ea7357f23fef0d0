/* Values by key: each asked for once, kept as long as they are good, forgotten when told so. */
#include "base/check.h"
#include "keeper/cache.h"

static const uint64_t S = 1000000000;
static struct cache *c;
static struct cache_wait w[8];

static int want(const char *key, uint64_t now, unsigned i, struct cache_reply *r)
{
	return cache_want(c, key, now, &w[i], r);
}

static unsigned count(const struct cache_wait *all)
{
	unsigned n = 0;

	for (; all; all = all->next)
		n++;
	return n;
}

static unsigned got(uint32_t number, const char *value, uint64_t seconds, uint64_t now)
{
	struct cache_wait *all;
	const char *key;

	cache_got(c, number, (const uint8_t *)value, strlen(value), seconds, now, &key, &all);
	return key ? count(all) : 99;
}

static bool holds(const struct cache_reply *r, const char *value)
{
	return r->n == strlen(value) && !memcmp(r->value, value, r->n);
}

static void folded(void)
{
	struct cache_reply r;

	check(cache_new(&c) == 0);
	check(want("a", 0, 0, &r) == CACHE_ASK);
	check(want("a", 0, 1, &r) == CACHE_WAIT && want("a", 0, 2, &r) == CACHE_WAIT);
	check(want("b", 0, 3, &(struct cache_reply) { 0 }) == CACHE_ASK);
	check(got(r.number, "one", UINT64_MAX, 0) == 3);
	check(got(r.number, "two", UINT64_MAX, 0) == 99); /* nobody asked again */
	check(want("a", UINT64_MAX - 1, 0, &r) == CACHE_HAVE && holds(&r, "one"));
	check(count(cache_take_all(c, true)) == 1);
	c = cache_free(c);
}

static void times(void)
{
	struct cache_reply r;

	check(cache_new(&c) == 0);
	check(want("a", 0, 0, &r) == CACHE_ASK && got(r.number, "x", 10, 0) == 1);
	check(want("a", 10 * S - 1, 0, &r) == CACHE_HAVE);
	check(want("a", 10 * S, 0, &r) == CACHE_ASK);
	check(want("a", 10 * S, 1, &(struct cache_reply) { 0 }) == CACHE_WAIT);
	check(got(r.number, "y", 0, 10 * S) == 2); /* once: for those who wait, and nobody else */
	check(want("a", 10 * S, 0, &r) == CACHE_ASK);
	check(got(r.number, "z", UINT64_MAX - 1, 10 * S) == 1);
	check(want("a", UINT64_MAX - 1, 0, &r) == CACHE_HAVE && holds(&r, "z"));
	c = cache_free(c);
}

static void failures(void)
{
	struct cache_wait *all;
	struct cache_reply r;
	uint32_t again = 0;
	const char *key;

	check(cache_new(&c) == 0);
	check(want("a", 0, 0, &r) == CACHE_ASK);
	check(cache_not(c, r.number, "why", 0, &key, &all, &again) == 0);
	check(streq(key, "a") && count(all) == 1);
	check(want("a", S, 0, &r) == CACHE_FAILED && streq(r.text, "why"));
	check(want("a", CACHE_FAILED_MS * (S / 1000), 0, &r) == CACHE_ASK);
	cache_forget(c); /* what is on its way does not count any more */
	check(got(r.number, "old", UINT64_MAX, 0) == 99);
	c = cache_take_all(c, true) ? cache_free(c) : NULL;
}

static void peeks(void)
{
	struct cache_wait *all;
	struct cache_reply r;
	uint32_t again = 0, first;
	const char *key;

	check(cache_new(&c) == 0);
	check(cache_peek(c, "a", &r) == CACHE_ASK && cache_peeking(c) == 1);
	check(cache_peek(c, "a", &(struct cache_reply) { 0 }) == CACHE_WAIT);
	check(got(r.number, "x", UINT64_MAX, 0) == 0 && !cache_peeking(c));
	check(cache_peek(c, "a", &r) == CACHE_HAVE && holds(&r, "x"));
	/* it must be made, and nobody waits: that is no failure */
	check(cache_peek(c, "b", &r) == CACHE_ASK);
	check(cache_not(c, r.number, "", 0, &key, &all, &again) == 0 && !all);
	check(want("b", 0, 0, &r) == CACHE_ASK);
	/* somebody waits: it is asked for */
	check(cache_peek(c, "c", &r) == CACHE_ASK);
	first = r.number;
	check(want("c", 0, 1, &r) == CACHE_WAIT);
	check(cache_not(c, first, "", 0, &key, &all, &again) == CACHE_ASK && again != first);
	check(got(again, "made", 0, 0) == 1);
	check(count(cache_take_all(c, false)) == 1);
	c = cache_free(c);
}

static void forgotten(void)
{
	struct cache_reply r;
	uint32_t number, old;
	const char *key;
	bool peek;

	check(cache_new(&c) == 0);
	check(want("kept", 0, 0, &r) == CACHE_ASK && got(r.number, "1", UINT64_MAX, 0) == 1);
	check(want("asked", 0, 0, &r) == CACHE_ASK);
	old = r.number;
	check(cache_peek(c, "peeked", &r) == CACHE_ASK);
	cache_forget(c);
	check(want("asked", 0, 1, &r) == CACHE_WAIT);
	key = cache_again(c, &number, &peek);
	check(streq(key, "asked") && !peek && number != old);
	check(got(old, "old", UINT64_MAX, 0) == 99);
	check(got(number, "new", UINT64_MAX, 0) == 2);
	check(streq(cache_again(c, &number, &peek), "peeked") && peek);
	check(!cache_again(c, &number, &peek));
	check(want("kept", 0, 2, &r) == CACHE_ASK);
	check(count(cache_take_all(c, true)) == 1 && !cache_peeking(c));
	c = cache_free(c);
}

static void put(void)
{
	struct cache_wait *all;
	struct cache_reply r;
	uint32_t number;

	check(cache_new(&c) == 0);
	check(cache_put(c, "a", (const uint8_t *)"x", 1, &all) == 0 && !all);
	check(want("a", 0, 0, &r) == CACHE_HAVE && holds(&r, "x"));
	check(want("b", 0, 0, &r) == CACHE_ASK);
	number = r.number;
	check(cache_put(c, "b", (const uint8_t *)"new", 3, &all) == 0 && count(all) == 1);
	check(got(number, "old", UINT64_MAX, 0) == 99);
	check(want("b", 0, 0, &r) == CACHE_HAVE && holds(&r, "new"));
	c = cache_free(c);
}

static void limits(void)
{
	static struct cache_wait many[CACHE_WAITS_MAX + 1];
	struct cache_reply r;
	char key[32];

	check(cache_new(&c) == 0);
	for (unsigned i = 0; i < CACHE_KEYS_MAX; i++) {
		(void)snprintf(key, sizeof(key), "k%u", i);
		check(cache_want(c, key, 0, &many[i], &r) == CACHE_ASK);
	}
	check(want("more", 0, 0, &r) == -E2BIG);
	for (unsigned i = CACHE_KEYS_MAX; i < CACHE_WAITS_MAX; i++)
		check(cache_want(c, "k0", 0, &many[i], &r) == CACHE_WAIT);
	check(cache_want(c, "k0", 0, &many[CACHE_WAITS_MAX], &r) == -E2BIG);
	check(count(cache_take_all(c, true)) == CACHE_WAITS_MAX);
	check(cache_want(c, "k0", 0, &many[0], &r) == CACHE_ASK);
	(void)cache_take_all(c, true);
	c = cache_free(c);
}

/* What was put is ours until it is where it is asked for. */
static void unsaved(void)
{
	struct cache_reply r;
	struct cache_wait *all;

	check(cache_new(&c) == 0);
	check(want("a", 0, 0, &r) == CACHE_ASK && got(r.number, "x", UINT64_MAX, 0) == 1);
	check(!cache_unsaved(c, "a", &r) && !cache_unsaved(c, "b", &r));
	cache_saved(c, "a"); /* which it was before */
	check(want("a", 0, 0, &r) == CACHE_HAVE);
	check(cache_put(c, "a", (const uint8_t *)"yy", 2, &all) == 0);
	check(cache_unsaved(c, "a", &r) && holds(&r, "yy"));
	cache_saved(c, "a");
	cache_saved(c, "b");
	check(!cache_unsaved(c, "a", &r));
	check(want("a", 0, 0, &r) == CACHE_ASK && got(r.number, "z", 60, 0) == 1);
	check(cache_put(c, "a", (const uint8_t *)"yy", 2, &all) == 0);
	cache_doubt(c, "a");
	cache_doubt(c, "b");
	check(cache_unsaved(c, "a", &r));
	cache_forget(c);
	check(!cache_unsaved(c, "a", &r));
	check(want("a", 0, 0, &r) == CACHE_ASK && got(r.number, "z", 60, 0) == 1);
	cache_doubt(c, "a");
	check(want("a", 0, 0, &r) == CACHE_ASK && got(r.number, "z", 60, 0) == 1);
	c = cache_free(c);
}

int main(void)
{
	folded();
	times();
	failures();
	peeks();
	forgotten();
	put();
	limits();
	unsaved();
	return 0;
}
