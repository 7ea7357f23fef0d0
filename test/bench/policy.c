/* How long a decision takes with ten thousand rules, against asking every rule with fnmatch(3), in one run.
 *
 * The rules are what a long list looks like: names with a port, domains with all below them, single labels, partial
 * labels, ranges of addresses, an HTTP rule here and there. Half of the destinations match one, half match none. Each sort is
 * also timed alone, and a name of 127 labels, which a guest may ask for on purpose. */
#include <fnmatch.h>
#include <stdio.h>
#include <time.h>

#include "base/check.h"
#include "policy/net.h"

enum { RULES = NET_RULES_MAX, HOSTS = 4096, ROUNDS = 200, SLOW_HOSTS = 256 };

static char resources[RULES][64], globs[RULES][64];
static bool ranges[RULES];

static const struct {
	unsigned percent;
	const char *resource, *glob; /* glob NULL: a range */
} sorts[] = {
	{ 60, "h%zu.d%zu.example:443", "h%zu.d%zu.example" },
	{ 75, "**.s%zu.d%zu.example", "*.s%zu.d%zu.example" },
	{ 85, "*.o%zu.d%zu.example:443,8000-8010", "*.o%zu.d%zu.example" },
	{ 95, "g*.p%zu.d%zu.example", "g*.p%zu.d%zu.example" },
	{ 100, "11.%zu.%zu.0/24", NULL },
};

static void make_rules(void)
{
	size_t i, s;

	for (i = 0; i < RULES; i++) {
		for (s = 0; 100 * i / RULES >= sorts[s].percent; s++)
			;
		ranges[i] = !sorts[s].glob;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		check(snprintf(resources[i], sizeof(resources[i]), sorts[s].resource,
			       ranges[i] ? i % 250 : i, ranges[i] ? i / 250 : i % 97) > 0);
		if (sorts[s].glob)
			check(snprintf(globs[i], sizeof(globs[i]), sorts[s].glob, i, i % 97) > 0);
#pragma GCC diagnostic pop
	}
}

static struct net_policy *freeze(void)
{
	_cleanup_(net_builder_freep) struct net_builder *b = NULL;
	struct net_policy *p;
	char id[16];
	struct err e;
	size_t i;

	check(net_builder_new(&b) == 0);
	for (i = 0; i < RULES; i++) {
		struct net_rule r = {
			.id = id, .scope = NET_GLOBAL, .allow = i % 16, .resource = resources[i]
		};

		if (i % 50 == 7 && !ranges[i]) {
			r.method = "GET";
			r.path = "/v1/**";
		}
		check(snprintf(id, sizeof(id), "r%zu", i) > 0);
		check(net_builder_add(b, &r, &e) == 0);
	}
	check(net_freeze(b, &p) == 0);
	return p;
}

static struct host hosts[HOSTS];
static char texts[HOSTS][96];

static void make_host(size_t i, const char *text)
{
	struct err e;

	check(snprintf(texts[i], sizeof(texts[i]), "%s", text) > 0);
	check(host_parse(&hosts[i], text, strlen(text), &e) == 0);
}

static const char *const shapes[] = { "h%zu.d%zu.example",          "x.y.s%zu.d%zu.example",
				      "x.o%zu.d%zu.example",        "gx.p%zu.d%zu.example",
				      "miss%zu.d%zu.example",       "www.miss%zu.other%zu.net",
				      "a.b.c.miss%zu.d%zu.example", "11.%zu.%zu.9" };

static void make_hosts(void)
{
	size_t i, at;
	char text[96];

	for (i = 0; i < HOSTS; i++) {
		bool v4 = i % ARRAY_SIZE(shapes) == ARRAY_SIZE(shapes) - 1;

		at = i * 2654435761U % RULES;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		check(snprintf(text, sizeof(text), shapes[i % ARRAY_SIZE(shapes)],
			       v4 ? at % 250 : at, v4 ? at / 250 : at % 97) > 0);
#pragma GCC diagnostic pop
		make_host(i, text);
	}
}

static double now(void)
{
	struct timespec t;

	check(clock_gettime(CLOCK_MONOTONIC, &t) == 0);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ns a decision over all hosts whose number leaves this rest; rest >= n: all. */
static double time_index(const struct net_policy *p, size_t rest)
{
	size_t round, i, n = 0, allowed = 0;
	double start = now();

	for (round = 0; round < ROUNDS; round++)
		for (i = 0; i < HOSTS; i++) {
			struct net_request q = { .host = &hosts[i], .port = 443 };

			if (rest < ARRAY_SIZE(shapes) && i % ARRAY_SIZE(shapes) != rest)
				continue;
			allowed += net_decide(p, &q).verdict != NET_DENY;
			n++;
		}
	check(n && allowed <= n);
	return (now() - start) / (double)n;
}

/* Every rule is asked, as deny beats allow: none can be left out. */
static double time_scan(void)
{
	size_t i, k, hits = 0;
	double start = now();

	for (i = 0; i < SLOW_HOSTS; i++)
		for (k = 0; k < RULES; k++)
			hits += !ranges[k] && fnmatch(globs[k], texts[i], 0) == 0;
	check(hits <= (size_t)SLOW_HOSTS * RULES);
	return (now() - start) / SLOW_HOSTS;
}

static double time_long(const struct net_policy *p)
{
	char text[HOST_NAME_MAX_LEN + 1];
	struct host h;
	struct net_request q = { .host = &h, .port = 443 };
	struct err e;
	size_t i, denied = 0;
	double start;

	for (i = 0; i < 240; i++)
		text[i] = i % 2 ? '.' : 'a';
	check(snprintf(text + i, sizeof(text) - i, "d1.example") > 0);
	check(host_parse(&h, text, strlen(text), &e) == 0);
	start = now();
	for (i = 0; i < 100000; i++)
		denied += net_decide(p, &q).verdict == NET_DENY;
	check(denied == 100000);
	return (now() - start) / 100000;
}

int main(void)
{
	_cleanup_(net_policy_freep) struct net_policy *p = NULL;
	double start, frozen, index, scan;
	size_t i;

	make_rules();
	make_hosts();
	start = now();
	p = freeze();
	frozen = (now() - start) / 1e6;
	(void)time_index(p, SIZE_MAX); /* warm */
	index = time_index(p, SIZE_MAX);
	scan = time_scan();
	(void)printf("rules                        %d\n", RULES);
	(void)printf("read and frozen in           %.1f ms\n", frozen);
	(void)printf("a decision, index            %.0f ns\n", index);
	(void)printf("a decision, fnmatch of each  %.0f ns\n", scan);
	(void)printf("ratio                        %.0f\n", scan / index);
	(void)printf("decisions per second         %.0f\n", 1e9 / index);
	for (i = 0; i < ARRAY_SIZE(shapes); i++)
		(void)printf("  %-26s %.0f ns\n", texts[i], time_index(p, i));
	(void)printf("  a name of 122 labels       %.0f ns\n", time_long(p));
	return index < 2000 ? 0 : 1;
}
