/* Any policy and any destination: "HOST:PORT METHOD PATH\n", then the text. What the index decides is what asking every
 * rule gives. */
#include "base/check.h"
#include "policy/net-test.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

enum { WORD_MAX = 1200, SLOW_RULES = 200 };

/* The next word, as a text; false if it is too long. */
static bool word(const char **s, const char *end, char ret[WORD_MAX + 1])
{
	const char *stop = *s;

	while (stop < end && *stop != ' ')
		stop++;
	if (stop - *s > WORD_MAX)
		return false;
	memcpy(ret, *s, (size_t)(stop - *s));
	ret[stop - *s] = '\0';
	*s = stop < end ? stop + 1 : stop;
	return true;
}

static void compare(const struct net_policy *pol, const struct net_request *q)
{
	struct net_answer a = net_decide(pol, q);

	check(a.verdict <= NET_NEEDS_HTTP && a.reason && !a.rule == !a.text);
	check(a.verdict != NET_NEEDS_HTTP || !q->method);
	check(a.verdict == NET_DENY || a.rule);
	if (pol->n_rules > SLOW_RULES)
		return;
	check(a.verdict == slow_decide(pol, q));
	if (a.verdict != NET_DENY)
		check(net_may_look_up(pol, q->host));
	if (q->host->kind == HOST_V4 && a.verdict == NET_ALLOW && !q->method)
		check(net_decide_addr(pol, q->host->addr, 4, q->port).verdict == NET_ALLOW);
}

static void decide(const struct net_policy *pol, const char *s, const char *end)
{
	char where[WORD_MAX + 1], method[WORD_MAX + 1], path[WORD_MAX + 1];
	struct host h;
	struct net_request q = { .host = &h };
	struct err e;

	if (!word(&s, end, where) || !word(&s, end, method) || !word(&s, end, path))
		return;
	if (host_port_parse(&h, &q.port, where, strlen(where), &e) < 0)
		return;
	compare(pol, &q);
	q.method = method;
	q.path = path;
	compare(pol, &q);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	const char *s = (const char *)p, *eol = n ? memchr(s, '\n', n) : NULL;
	_cleanup_(net_policy_freep) struct net_policy *pol = NULL;
	struct err e;

	if (!eol)
		return 0;
	if (net_text_parse(eol + 1, n - (size_t)(eol + 1 - s), &pol, &e) < 0) {
		check(starts_with(e.msg, "line ") || n > NET_TEXT_MAX);
		return 0;
	}
	decide(pol, s, eol);
	return 0;
}
