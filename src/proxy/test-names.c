/* The table of names: two ranges, slices, age, and a table that is full. */
#include <stdio.h>

#include "base/check.h"
#include "proxy/names.h"

static struct host named(const char *text)
{
	struct host h = { .kind = HOST_NAME };

	(void)snprintf(h.text, sizeof(h.text), "%s", text);
	return h;
}

static struct host numbered(unsigned i)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "n%u.example", i);
	return named(text);
}

static bool host_is(const struct host *a, const struct host *b)
{
	return a && streq(a->text, b->text);
}

static void stable(void)
{
	_cleanup_(names_freep) struct names *t = NULL;
	const struct host a = named("a.example"), b = named("b.example");
	uint8_t a1[4], a2[4], ar[4], b1[4];

	check(names_new(0, &t) == 0);
	check(names_get(t, &a, false, 10, a1) == 0 && names_get(t, &b, false, 10, b1) == 0);
	check(a1[0] == 198 && a1[1] == 18 && a1[2] == 1 && memcmp(a1, b1, 4) != 0);
	check(names_get(t, &a, false, 99999999, a2) == 0 && !memcmp(a1, a2, 4));
	check(!names_find(t, (uint8_t[]) { 198, 19, 0, a1[3] }, 0)); /* never given */
	check(names_get(t, &a, true, 10, ar) == 0 && ar[0] == 198 && ar[1] == 19);
	check(streq(names_find(t, a1, 10)->text, "a.example"));
	check(streq(names_find(t, ar, 10)->text, "a.example"));
	check(streq(names_find(t, b1, 10)->text, "b.example"));
	check(!names_find(t, (uint8_t[]) { 198, 18, 1, 2 }, 0));
	check(!names_find(t, (uint8_t[]) { 198, 18, 0, 1 }, 0));
	check(!names_find(t, (uint8_t[]) { 198, 18, 0, 255 }, 0));
	check(!names_find(t, (uint8_t[]) { 192, 0, 2, 1 }, 0));
	check(names_get(t, &(struct host) { .kind = HOST_V4 }, false, 0, a1) == -EINVAL);
}

static void ranges(void)
{
	check(names_ours((uint8_t[]) { 198, 18, 0, 0 }) &&
	      names_ours((uint8_t[]) { 198, 19, 255, 255 }));
	check(!names_ours((uint8_t[]) { 198, 17, 255, 255 }));
	check(!names_ours((uint8_t[]) { 198, 20, 0, 0 }));
}

/* Each generation's addresses stand for nothing in the next. */
static void generations(void)
{
	const struct host a = named("a.example");
	uint8_t addr[4], old[4] = { 0 };

	for (uint32_t g = 0; g < 22; g++) { /* over the end of both ranges */
		_cleanup_(names_freep) struct names *t = NULL;

		check(names_new(g, &t) == 0);
		for (unsigned i = 0; i < NAMES_MAX; i++) {
			struct host h = numbered(i);

			check(names_get(t, &h, i % 2, 1, addr) == 0);
			check(names_ours(addr) && addr[1] == 18 + i % 2 &&
			      (addr[1] == 19 || addr[2]));
			check(host_is(names_find(t, addr, 1), &h));
		}
		memcpy(old, addr, 4);
	}
	for (uint32_t g = 0; g < 50; g++) {
		_cleanup_(names_freep) struct names *t = NULL;

		check(names_new(g, &t) == 0);
		check(!names_find(t, old, 1));
		check(names_get(t, &a, true, 1, addr) == 0 && memcmp(addr, old, 4) != 0);
		memcpy(old, addr, 4);
	}
}

static void full(void)
{
	_cleanup_(names_freep) struct names *t = NULL;
	struct host h, extra = named("extra.example");
	uint8_t addr[4], held[4], first[4];

	check(names_new(3, &t) == 0);
	for (unsigned i = 0; i < NAMES_MAX; i++) {
		h = numbered(i);
		check(names_get(t, &h, false, 1000 + i, addr) == 0);
		if (i == 0)
			memcpy(held, addr, 4);
		if (i == 1)
			memcpy(first, addr, 4);
	}
	names_hold(t, held);
	names_hold(t, held);
	check(names_get(t, &extra, false, 1000 + NAMES_KEEP_S, addr) == -ENOSPC);
	check(names_get(t, &extra, false, 1001 + NAMES_KEEP_S, addr) == 0 &&
	      !memcmp(addr, first, 4));
	check(streq(names_find(t, first, 1001 + NAMES_KEEP_S)->text, "extra.example"));
	h = numbered(1); /* gone; it gets number 2's place once that is old */
	check(names_get(t, &h, false, 1001 + NAMES_KEEP_S, addr) == -ENOSPC);
	check(names_get(t, &h, false, 1002 + NAMES_KEEP_S, addr) == 0);
	check(streq(names_find(t, held, 1)->text,
		    "n0.example")); /* time that goes back does no harm */
	names_release(t, held, 5000000);
	names_release(t, held, 5000000);
	names_release(t, held, 5000000); /* one too many */
	h = numbered(99999);
	check(names_get(t, &h, false, 4999999, addr) == 0 && memcmp(addr, held, 4) != 0);
	check(streq(names_find(t, held, 5000000)->text, "n0.example"));
}

/* What was only ever refused makes room after minutes, and its allowed address was nobody's. */
static void refused_goes_first(void)
{
	_cleanup_(names_freep) struct names *t = NULL;
	struct host h, extra = named("extra.example");
	uint8_t addr[4], kept[4];

	check(names_new(3, &t) == 0);
	h = named("kept.example");
	check(names_get(t, &h, false, 1, kept) == 0);
	for (unsigned i = 1; i < NAMES_MAX; i++) {
		h = numbered(i);
		check(names_get(t, &h, true, 100, addr) == 0);
	}
	check(names_get(t, &extra, false, 99 + NAMES_KEEP_REFUSED_S, addr) == -ENOSPC);
	check(names_get(t, &extra, false, 100 + NAMES_KEEP_REFUSED_S, addr) == 0);
	check(addr[1] == 18 && memcmp(addr, kept, 4) != 0);
	addr[1] = 19;
	addr[2]--;
	check(!names_find(t, addr, 1)); /* the refused one stands for nobody now */
	check(streq(names_find(t, kept, 1)->text, "kept.example"));
}

int main(void)
{
	stable();
	ranges();
	generations();
	full();
	refused_goes_first();
	check(!names_free(NULL));
	return 0;
}
