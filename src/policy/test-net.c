/* Network rules: a table for the grammar, one for decisions. */
#include "policy/net.h"

#include <arpa/inet.h>

#include "base/check.h"

/* ---- what may be written, and how it is kept ---- */
static const struct {
	const char *in, *out; /* out: kept as this; NULL: refused */
	const char *msg;      /* how the message begins */
} resources[] = {
	{ "a.example", "a.example", NULL },
	{ "A.Example.", "a.example", NULL },
	{ "a.example:443", "a.example:443", NULL },
	{ "a.example:*", "a.example", NULL },
	{ "a.example:1-65535", "a.example", NULL },
	{ "a.example:443,80", "a.example:80,443", NULL },
	{ "a.example:80,81,82-90,85", "a.example:80-90", NULL },
	{ "a.example:8000-8010", "a.example:8000-8010", NULL },
	{ "*.e.com", "*.e.com", NULL },
	{ "**.E.com.", "**.e.com", NULL },
	{ "*", "**", NULL },
	{ "**", "**", NULL },
	{ "**:443", "**:443", NULL },
	{ "*com", "*com", NULL },
	{ "*.com", "*.com", NULL },
	{ "a.*.com", "a.*.com", NULL },
	{ "crl*.digicert.com:80", "crl*.digicert.com:80", NULL },
	{ "*-aiplatform.googleapis.com", "*-aiplatform.googleapis.com", NULL },
	{ "**.*.x", "**.*.x", NULL },
	{ "b\303\274cher.example", "xn--bcher-kva.example", NULL },
	{ "192.0.2.7", "192.0.2.7", NULL },
	{ "0xc0000207:80", "192.0.2.7:80", NULL },
	{ "192.0.2.7/32", "192.0.2.7", NULL },
	{ "192.0.2.0/24", "192.0.2.0/24", NULL },
	{ "192.0.2.0/24:22", "192.0.2.0/24:22", NULL },
	{ "2001:db8::1", "[2001:db8::1]", NULL },
	{ "[2001:DB8::1]:8080", "[2001:db8::1]:8080", NULL },
	{ "2001:db8::/32", "2001:db8::/32", NULL },
	{ "[2001:db8::]/32:443", "[2001:db8::/32]:443", NULL },
	{ "[2001:db8::/32]:443", "[2001:db8::/32]:443", NULL },
	{ "2001:db8::/32:443", "[2001:db8::/32]:443", NULL },
	{ "::ffff:10.0.0.0/104", "10.0.0.0/8", NULL },
	{ "0.0.0.0/0", "0.0.0.0/0", NULL },
	{ "::/0", "::/0", NULL },
	{ "127.0.0.1:80", "localhost:80", NULL },
	{ "127.0.0.0/8", "localhost", NULL },
	{ "[::1]:80", "localhost:80", NULL },
	{ "::1", "localhost", NULL },
	{ "host.docker.internal:80", "localhost:80", NULL },
	{ "", NULL, "column 1: the resource is empty" },
	{ "a b", NULL, "column 2: a space" },
	{ "https://a.example/x", NULL, "column 1: a resource has no scheme; write a.example" },
	{ ":443", NULL, "column 1: a host stands before the port" },
	{ "a.example/x", NULL, "column 1: 'a.example' is not an address; a rule has no path" },
	{ "a..b", NULL, "column 3: an empty label" },
	{ "*..b", NULL, "column 3: an empty label" },
	{ "a.**.b", NULL, "column 3: '**' stands only in front" },
	{ "**a.b", NULL, "column 2: '**' is a label of its own" },
	{ "a**.b", NULL, "column 3: '**' is a label of its own" },
	{ "***", NULL, "column 2: '**' is a label" },
	{ "-*.b", NULL, "column 1: a label neither" },
	{ "*.b!c", NULL, "column 4: '!' is part of no name" },
	{ "b!c", NULL, "column 2: '!' is part of no name" },
	{ "10.*", NULL, "column 1: a range of addresses is written as CIDR" },
	{ "192.168.*.*:80", NULL, "column 1: a range of addresses is written as CIDR" },
	{ "10.0.0.1/8", NULL,
	  "column 1: the address has bits behind the prefix; write 10.0.0.0/8" },
	{ "10.0.0.0/33", NULL, "column 10: behind '/' stands" },
	{ "10.0.0.0/", NULL, "column 10: behind '/' stands" },
	{ "10.0.0.0/8x", NULL, "column 10: behind '/' stands" },
	{ "10.1/16", NULL, "column 1: '10.1' is not an address" },
	{ "256.0.0.1", NULL, "column 1: '256.0.0.1' ends in a number" },
	{ "a:", NULL, "column 3: a port is a number" },
	{ "a:0", NULL, "column 3: a port is a number" },
	{ "a:65536", NULL, "column 3: a port is a number" },
	{ "a:80,", NULL, "column 6: a port is a number" },
	{ "a:80;81", NULL, "column 5: behind a port stands" },
	{ "a:90-80", NULL, "column 3: the range is empty; write 80-90" },
	{ "b\303\274*.example", NULL, "column 2: '*' goes with ASCII only" },
};

static void grammar(void)
{
	char out[NET_RESOURCE_MAX + 1], again[NET_RESOURCE_MAX + 1];
	struct err e;
	size_t i;
	int r;

	for (i = 0; i < ARRAY_SIZE(resources); i++) {
		r = net_resource_check(resources[i].in, out, sizeof(out), &e);
		if ((r == 0) != !!resources[i].out || (r == 0 && !streq(out, resources[i].out)))
			(void)fprintf(stderr, "'%s': %s\n", resources[i].in, r < 0 ? e.msg : out);
		check((r == 0) == !!resources[i].out);
		if (r < 0 && !starts_with(e.msg, resources[i].msg))
			(void)fprintf(stderr, "'%s': %s\n", resources[i].in, e.msg);
		check(r == 0 || (r == -EINVAL && starts_with(e.msg, resources[i].msg)));
		check(r < 0 || streq(out, resources[i].out));
		if (r == 0) /* what is kept is its own spelling */
			check(net_resource_check(out, again, sizeof(again), &e) == 0 &&
			      streq(out, again));
	}
}

static void grammar_limits(void)
{
	char in[700] = "a", out[NET_RESOURCE_MAX + 1];
	struct err e;
	size_t i, n = 1;

	for (i = 0; i < NET_PORTS_MAX; i++)
		n += (size_t)snprintf(in + n, sizeof(in) - n, "%c%zu", i ? ',' : ':', 2 * i + 1);
	check(net_resource_check(in, out, sizeof(out), &e) == 0 && streq(in, out));
	check(snprintf(in + n, sizeof(in) - n, ",9999") > 0);
	check(net_resource_check(in, out, sizeof(out), &e) == -EINVAL && strstr(e.msg, "at most"));
	memset(in, 'a', sizeof(in) - 1);
	check(net_resource_check(in, out, sizeof(out), &e) == -EINVAL);
	check(net_resource_check("a.example", out, 3, &e) == -EINVAL);
}

/* ---- decisions ---- */
static struct net_policy *policy_of(const char *const *rules)
{
	_cleanup_(net_builder_freep) struct net_builder *b = NULL;
	struct net_policy *p;
	char text[128], id[16];
	struct err e;
	size_t i;

	check(net_builder_new(&b) == 0);
	for (i = 0; rules[i]; i++) {
		struct net_rule r = { .id = id, .scope = NET_GLOBAL };
		char *method, *path;

		check(snprintf(id, sizeof(id), "r%zu", i + 1) > 0);
		check(snprintf(text, sizeof(text), "%s", rules[i]) < (int)sizeof(text));
		r.allow = text[0] == '+';
		r.resource = text + 1;
		method = strchr(text, ' ');
		path = method ? strchr(method + 1, ' ') : NULL;
		if (method)
			*method++ = '\0';
		if (path)
			*path++ = '\0';
		r.method = method;
		r.path = path;
		if (net_builder_add(b, &r, &e) < 0) {
			(void)fprintf(stderr, "%s: %s\n", rules[i], e.msg);
			check(0);
		}
	}
	check(net_freeze(b, &p) == 0);
	return p;
}

static struct net_answer ask(const struct net_policy *p, const char *where, const char *method,
			     const char *path)
{
	struct host h;
	struct net_request q = { .host = &h, .method = method, .path = path };
	struct err e;

	if (host_port_parse(&h, &q.port, where, strlen(where), &e) < 0) {
		(void)fprintf(stderr, "%s: %s\n", where, e.msg);
		check(0);
	}
	if (!q.port)
		q.port = 443;
	return net_decide(p, &q);
}

/* NP-13: each pattern against each name; 1 where it matches. */
static const char *const names[] = { "e.com",
				     "a.e.com",
				     "a.b.e.com",
				     "ae.com",
				     "E.COM",
				     "a.e.com.",
				     "xn--bcher-kva.e.com",
				     "a.e.com:8443",
				     "a.e.com.evil.net",
				     "com",
				     "xcom",
				     "a.x.com",
				     "b.x.com" };
static const struct {
	const char *pattern;
	const char *cells; /* in the order of names */
} grid[] = {
	/*		 e a ab ae E a. xn :8443 evil com xcom ax bx */
	{ "e.com", "1000100000000" },
	{ "*.e.com", "0100011100000" },
	{ "**.e.com", "0110011100000" },
	{ "*.e.com:443", "0100011000000" },
	{ "**.e.com:8443", "0000000100000" },
	{ "*e.com", "1001100000000" },
	{ "*", "1111111111111" },
	{ "**", "1111111111111" },
	{ "*com", "0000000001100" },
	{ "*m", "0000000001100" },
	{ "*.com", "1001100000000" },
	{ "**.com", "1111111100011" },
	{ "a.*.com", "0100010100010" },
	{ "a*.e.com", "0100010100000" },
	{ "xn--*.e.com", "0000001000000" },
	{ "*.*.e.com", "0010000000000" },
	{ "**.b.e.com", "0010000000000" },
	{ "**.*.e.com", "0010000000000" },
	{ "**.a*", "0000000000000" },
	{ "a.**", NULL },
};

static void cells(void)
{
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(grid); i++) {
		char allow[64], deny[64], out[NET_RESOURCE_MAX + 1];
		struct net_policy *yes, *no;
		struct err e;

		check((net_resource_check(grid[i].pattern, out, sizeof(out), &e) == 0) ==
		      !!grid[i].cells);
		if (!grid[i].cells)
			continue;
		check(strlen(grid[i].cells) == ARRAY_SIZE(names));
		check(snprintf(allow, sizeof(allow), "+%s", grid[i].pattern) > 0);
		check(snprintf(deny, sizeof(deny), "-%s", grid[i].pattern) > 0);
		yes = policy_of((const char *const[]) { allow, NULL });
		no = policy_of((const char *const[]) { "+**", deny, NULL });
		for (j = 0; j < ARRAY_SIZE(names); j++) {
			bool want = grid[i].cells[j] == '1';
			bool got = ask(yes, names[j], NULL, NULL).verdict == NET_ALLOW;

			if (want != got)
				(void)fprintf(stderr, "%s %s: %d\n", grid[i].pattern, names[j],
					      got);
			check(want == got);
			check(want == (ask(no, names[j], NULL, NULL).verdict == NET_DENY));
		}
		net_policy_free(yes);
		net_policy_free(no);
	}
}

enum { D = NET_DENY, A = NET_ALLOW, H = NET_NEEDS_HTTP, RULES = 6 };

static const struct decision {
	const char *rules[RULES];
	const char *where, *method, *path;
	uint8_t verdict;
	const char *rule, *reason;
} decisions[] = {
	{ { NULL }, "a.x", NULL, NULL, D, NULL, "default-deny" },
	/* NP-10: deny wins, whichever is narrower and whichever came first */
	{ { "+a.x", "-a.x" }, "a.x", NULL, NULL, D, "r2", "domain-blocked" },
	{ { "-*.x", "+a.x" }, "a.x", NULL, NULL, D, "r1", "domain-blocked" },
	{ { "+a.x", "-**" }, "a.x", NULL, NULL, D, "r2", "domain-blocked" },
	{ { "+**", "-a.x:80" }, "a.x:443", NULL, NULL, A, "r1", "domain-allowed" },
	{ { "+**", "-a.x:80" }, "a.x:80", NULL, NULL, D, "r2", "domain-blocked" },
	/* the narrowest rule is named */
	{ { "+**", "+**.x", "+a.x" }, "a.x", NULL, NULL, A, "r3", "domain-allowed" },
	{ { "+**", "+**.x" }, "a.x", NULL, NULL, A, "r2", "domain-allowed" },
	/* addresses */
	{ { "+8.8.8.8" }, "8.8.8.8", NULL, NULL, A, "r1", "address-allowed" },
	{ { "+8.8.8.0/24:53" }, "8.8.8.8:53", NULL, NULL, A, "r1", "address-allowed" },
	{ { "+8.8.8.0/24:53" }, "8.8.8.8:443", NULL, NULL, D, NULL, "default-deny" },
	{ { "+8.8.0.0/16", "-8.8.8.8" }, "8.8.8.8", NULL, NULL, D, "r2", "address-blocked" },
	{ { "+8.8.8.8", "-8.0.0.0/8" }, "0x08080808", NULL, NULL, D, "r2", "address-blocked" },
	{ { "+**" }, "8.8.8.8", NULL, NULL, A, "r1", "address-allowed" },
	{ { "+2606:4700::/32" }, "[2606:4700::1]", NULL, NULL, A, "r1", "address-allowed" },
	{ { "+**", "-2606:4700::/32" }, "[2606:4700::1]", NULL, NULL, D, "r2", "address-blocked" },
	/* classes: only what names them */
	{ { "+**" }, "10.0.0.1", NULL, NULL, D, NULL, "private-address" },
	{ { "+**", "+0.0.0.0/0" }, "10.0.0.1", NULL, NULL, D, NULL, "private-address" },
	{ { "+10.0.0.0/8" }, "10.0.0.1", NULL, NULL, A, "r1", "address-allowed" },
	{ { "+10.1.0.0/16" }, "10.0.0.1", NULL, NULL, D, NULL, "private-address" },
	{ { "+**", "+169.254.0.0/16" }, "169.254.169.254", NULL, NULL, D, NULL, "private-address" },
	{ { "+169.254.0.0/16" }, "169.254.1.1", NULL, NULL, A, "r1", "address-allowed" },
	{ { "+169.254.169.254:80" }, "169.254.169.254:80", NULL, NULL, A, "r1", "address-allowed" },
	{ { "+**" }, "[fd00:ec2::254]", NULL, NULL, D, NULL, "private-address" },
	{ { "+fc00::/7" }, "[fd00:ec2::254]", NULL, NULL, D, NULL, "private-address" },
	{ { "+**" }, "[64:ff9b::a00:1]", NULL, NULL, D, NULL, "private-address" },
	{ { "+64:ff9b::/96" }, "[64:ff9b::a00:1]", NULL, NULL, D, NULL, "private-address" },
	{ { "+64:ff9b::a00:1" }, "[64:ff9b::a00:1]", NULL, NULL, A, "r1", "address-allowed" },
	{ { "+**", "-8.8.8.8" }, "[64:ff9b::808:808]", NULL, NULL, D, "r2", "address-blocked" },
	{ { "+**", "-8.8.8.8" }, "[64:ff9b::808:809]", NULL, NULL, A, "r1", "address-allowed" },
	{ { "+**", "-8.8.0.0/16" }, "[2002:808:808::1]", NULL, NULL, D, "r2", "address-blocked" },
	{ { "+**" }, "localhost", NULL, NULL, D, NULL, "private-address" },
	{ { "+*", "+local*", "+**:80" }, "127.0.0.1:80", NULL, NULL, D, NULL, "private-address" },
	{ { "+localhost:80" }, "127.1:80", NULL, NULL, A, "r1", "domain-allowed" },
	{ { "+localhost:80" }, "127.1:81", NULL, NULL, D, NULL, "private-address" },
	{ { "+localhost", "-126.0.0.0/7" }, "localhost", NULL, NULL, D, "r2", "domain-blocked" },
	{ { "+localhost", "-::/0" }, "localhost", NULL, NULL, D, "r2", "domain-blocked" },
	{ { "+localhost", "-local*" }, "localhost", NULL, NULL, D, "r2", "domain-blocked" },
	{ { "+localhost", "-**" }, "localhost", NULL, NULL, D, "r2", "domain-blocked" },
	/* HTTP */
	{ { "+a.x GET" }, "a.x", NULL, NULL, H, "r1", "method-allowed" },
	{ { "+a.x GET" }, "a.x", "get", "/x", A, "r1", "method-allowed" },
	{ { "+a.x GET" }, "a.x", "POST", "/x", D, NULL, "method-blocked" },
	{ { "+a.x GET /v1/**" }, "a.x", "GET", "/v1/y/z", A, "r1", "method-allowed" },
	{ { "+a.x GET /v1/**" }, "a.x", "GET", "/v1", A, "r1", "method-allowed" },
	{ { "+a.x GET /v1/**" }, "a.x", "GET", "/v2", D, NULL, "method-blocked" },
	{ { "+a.x GET /v1/*" }, "a.x", "GET", "/v1/y/z", D, NULL, "method-blocked" },
	{ { "+a.x ANY /v1/*" }, "a.x", "PROPFIND", "/v1/y/", A, "r1", "method-allowed" },
	{ { "+a.x GET /v1/**" }, "a.x", "GET", "/v1/../v2", D, NULL, "not-a-path" },
	{ { "+a.x GET /v1/**" }, "a.x", "GET", "/v1/%2e%2e/v2", D, NULL, "not-a-path" },
	{ { "+a.x GET /v1/**" }, "a.x", "GET", "/v1/%2fv2", D, NULL, "not-a-path" },
	{ { "+a.x GET /v1/**" }, "a.x", "GET", "//v1", D, NULL, "not-a-path" },
	{ { "+a.x GET /v1/**" }, "a.x", "GET", "/%761/y", A, "r1", "method-allowed" },
	{ { "+a.x GET /v1/**" }, "a.x", "GET", NULL, D, NULL, "not-a-path" },
	{ { "+a.x GET" }, "a.x", "GET", "/a/../b", A, "r1", "method-allowed" },
	{ { "+a.x", "-a.x ANY /admin/**" }, "a.x", NULL, NULL, H, "r2", "method-allowed" },
	{ { "+a.x", "-a.x ANY /admin/**" }, "a.x", "GET", "/admin/x", D, "r2", "method-blocked" },
	{ { "+a.x", "-a.x ANY /admin/**" }, "a.x", "GET", "/ADMIN", A, "r1", "domain-allowed" },
	{ { "+a.x", "-a.x ANY /admin/**" }, "a.x", "GET", "/%61dmin/", D, "r2", "method-blocked" },
	{ { "+a.x", "-a.x ANY /admin/**" }, "a.x", "GET", "/a//b", D, NULL, "not-a-path" },
	{ { "+a.x:80", "-a.x:80 POST" }, "a.x:80", "GET", "/a//b", A, "r1", "domain-allowed" },
	{ { "+a.x", "-a.x:80 POST" }, "a.x:443", NULL, NULL, A, "r1", "domain-allowed" },
	{ { "-a.x POST" }, "a.x", NULL, NULL, D, NULL, "default-deny" },
	{ { "-a.x", "+a.x GET" }, "a.x", "GET", "/", D, "r1", "domain-blocked" },
	{ { "+**.x GET /**/z" }, "a.x", "GET", "/p/q/z", A, "r1", "method-allowed" },
	{ { "+**.x GET /**/z" }, "a.x", "GET", "/z", A, "r1", "method-allowed" },
	{ { "+**.x GET /a*/**/z" }, "a.x", "GET", "/ab/z/z", A, "r1", "method-allowed" },
	{ { "+**.x GET /" }, "a.x", "GET", "/", A, "r1", "method-allowed" },
	{ { "+localhost:80 GET" }, "localhost:80", "GET", "/", A, "r1", "method-allowed" },
	{ { "+** GET" }, "localhost:80", "GET", "/", D, NULL, "private-address" },
};

static void decide(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(decisions); i++) {
		const struct decision *d = &decisions[i];
		struct net_policy *p;
		struct net_answer a;

		p = policy_of(d->rules);
		a = ask(p, d->where, d->method, d->path);
		if (a.verdict != d->verdict || !streq(a.rule, d->rule) ||
		    !streq(a.reason, d->reason))
			(void)fprintf(stderr, "%zu (%s): %u %s %s\n", i, d->where, a.verdict,
				      a.rule ? a.rule : "-", a.reason);
		check(a.verdict == d->verdict && streq(a.rule, d->rule) &&
		      streq(a.reason, d->reason));
		check(!a.rule == !a.text);
		net_policy_free(p);
	}
}

/* NP-07: a deny of any spelling of the host's loopback holds for every spelling. */
static void one_loopback(void)
{
	static const char *const spelt[] = { "localhost",
					     "127.0.0.1",
					     "[::1]",
					     "0.0.0.0",
					     "127.1",
					     "2130706433",
					     "host.docker.internal",
					     "x.localhost",
					     "0x7f.1",
					     "[::ffff:127.0.0.1]" };
	char deny[64], where[64];
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(spelt); i++) {
		struct net_policy *p;

		check(snprintf(deny, sizeof(deny), "-%s", spelt[i]) > 0);
		p = policy_of((const char *const[]) { "+localhost:18095", deny, NULL });
		for (j = 0; j < ARRAY_SIZE(spelt); j++) {
			check(snprintf(where, sizeof(where), "%s:18095", spelt[j]) > 0);
			check(streq(ask(p, where, NULL, NULL).rule, "r2"));
		}
		net_policy_free(p);
	}
}

static struct net_answer ask_addr(const struct net_policy *p, const char *addr, uint16_t port)
{
	uint8_t bytes[16];
	bool v6 = strchr(addr, ':');

	check(inet_pton(v6 ? AF_INET6 : AF_INET, addr, bytes) == 1);
	return net_decide_addr(p, bytes, v6 ? 16 : 4, port);
}

static void resolved(void)
{
	static const struct {
		const char *rules[RULES];
		const char *addr;
		uint8_t verdict;
		const char *rule, *reason;
	} t[] = {
		{ { "+a.x" }, "8.8.8.8", A, NULL, "address-allowed" },
		{ { "+a.x", "-8.0.0.0/8" }, "8.8.8.8", D, "r2", "address-blocked" },
		{ { "+a.x", "-8.0.0.0/8:80" }, "8.8.8.8", A, NULL, "address-allowed" },
		{ { "+a.x", "+**" }, "10.0.0.1", D, NULL, "private-address" },
		{ { "+a.x", "+10.0.0.0/8:443" }, "10.0.0.1", A, "r2", "address-allowed" },
		{ { "+a.x", "+10.0.0.0/8:80" }, "10.0.0.1", D, NULL, "private-address" },
		{ { "+a.x" }, "127.0.0.1", D, NULL, "private-address" },
		{ { "+localhost:443" }, "127.0.0.1", A, "r1", "address-allowed" },
		{ { "+localhost:443" }, "::1", A, "r1", "address-allowed" },
		{ { "+a.x", "+localhost:443 GET" }, "127.0.0.1", D, NULL, "private-address" },
		{ { "+a.x", "+** GET" }, "8.8.8.8", A, NULL, "address-allowed" },
		{ { "+localhost:443", "-[::1]" }, "127.0.0.1", D, "r2", "address-blocked" },
		{ { "+a.x" }, "169.254.169.254", D, NULL, "private-address" },
		{ { "+a.x" }, "::ffff:169.254.169.254", D, NULL, "private-address" },
		{ { "+a.x" }, "fd00:ec2::254", D, NULL, "private-address" },
		{ { "+a.x", "-8.8.8.8" }, "64:ff9b::808:808", D, "r2", "address-blocked" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct net_policy *p = policy_of(t[i].rules);
		struct net_answer a = ask_addr(p, t[i].addr, 443);

		if (a.verdict != t[i].verdict || !streq(a.rule, t[i].rule) ||
		    !streq(a.reason, t[i].reason))
			(void)fprintf(stderr, "%zu %s: %u %s %s\n", i, t[i].addr, a.verdict,
				      a.rule ? a.rule : "-", a.reason);
		check(a.verdict == t[i].verdict && streq(a.rule, t[i].rule) &&
		      streq(a.reason, t[i].reason));
		net_policy_free(p);
	}
}

static void look_ups(void)
{
	static const struct {
		const char *rules[RULES];
		const char *name;
		bool may;
	} t[] = {
		{ { NULL }, "a.x", false },
		{ { "+a.x" }, "a.x", true },
		{ { "+a.x:22" }, "a.x", true },
		{ { "+a.x:22" }, "b.x", false },
		{ { "+a.x GET /" }, "a.x", true },
		{ { "-a.x GET /" }, "a.x", false },
		{ { "+a.x", "-a.x" }, "a.x", false },
		{ { "+a.x", "-a.x:80" }, "a.x", true },
		{ { "+a.x:80", "-a.x:80" }, "a.x", false },
		{ { "+a.x:80", "-a.x:1-1000" }, "a.x", false },
		{ { "+a.x:80,90", "-a.x:80", "-**:85-95" }, "a.x", false },
		{ { "+a.x:80,96", "-a.x:80", "-**:85-95" }, "a.x", true },
		{ { "+a.x", "-a.x:1-32000", "-a.x:32001-65535" }, "a.x", false },
		{ { "+a.x", "-a.x:1-32000", "-a.x:32002-65535" }, "a.x", true },
		{ { "+**", "-a.x GET" }, "a.x", true },
		{ { "+**" }, "localhost", false },
		{ { "+localhost:80" }, "localhost", true },
		{ { "+10.0.0.0/8:80", "-10.0.0.1" }, "10.0.0.1", false },
	};
	struct host h;
	struct err e;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct net_policy *p = policy_of(t[i].rules);

		check(host_parse(&h, t[i].name, strlen(t[i].name), &e) == 0);
		if (net_may_look_up(p, &h) != t[i].may)
			(void)fprintf(stderr, "look-up %zu\n", i);
		check(net_may_look_up(p, &h) == t[i].may);
		net_policy_free(p);
	}
}

static void nothing(void)
{
	_free_ void *zeros = calloc(1, 4096);
	struct host h = { 0 };
	struct err e;

	check(zeros && ask(NULL, "a.x", NULL, NULL).verdict == NET_DENY);
	check(ask(zeros, "a.x", NULL, NULL).verdict == NET_DENY);
	check(streq(ask(zeros, "a.x", NULL, NULL).reason, "no-policy"));
	check(ask_addr(NULL, "8.8.8.8", 1).verdict == NET_DENY);
	check(!net_may_look_up(NULL, &h));
	check(host_parse(&h, "a.x", 3, &e) == 0 && !net_may_look_up(zeros, &h));
	check(net_policy_free(NULL) == NULL && net_builder_free(NULL) == NULL);
}

static const struct {
	struct net_rule rule;
	int code;
	const char *msg;
} refused[] = {
	{ { "a", NET_GLOBAL, true, "a.x", NULL, NULL }, -EEXIST, "rule a is there already" },
	{ { "", NET_GLOBAL, true, "a.x", NULL, NULL }, -EINVAL, "a rule's id" },
	{ { "x y", NET_GLOBAL, true, "a.x", NULL, NULL }, -EINVAL, "a rule's id" },
	{ { "b", 0, true, "a.x", NULL, NULL }, -EINVAL, "rule b has no scope" },
	{ { "b", NET_KIT, true, "a..x", NULL, NULL }, -EINVAL, "resource 'a..x': column 3" },
	{ { "b", NET_KIT, true, "a.x", NULL, "/" }, -EINVAL, "a path needs a method" },
	{ { "b", NET_KIT, true, "1.2.3.4", "GET", NULL }, -EINVAL, "a method goes with a name" },
	{ { "b", NET_KIT, true, "a.x", "FETCH", NULL },
	  -EINVAL,
	  "method: column 1: 'FETCH' is no method" },
	{ { "b", NET_KIT, true, "a.x", "GET", "x" }, -EINVAL, "path 'x': column 1: a path begins" },
	{ { "b", NET_KIT, true, "a.x", "GET", "/a?b" }, -EINVAL, "path '/a?b': column 3" },
	{ { "b", NET_KIT, true, "a.x", "GET", "/a%20" }, -EINVAL, "path '/a%20': column 3" },
	{ { "b", NET_KIT, true, "a.x", "GET", "/a/" }, -EINVAL, "path '/a/': column 4" },
	{ { "b", NET_KIT, true, "a.x", "GET", "//a" }, -EINVAL, "path '//a': column 2" },
	{ { "b", NET_KIT, true, "a.x", "GET", "/a/../b" },
	  -EINVAL,
	  "path '/a/../b': column 4: a dot" },
	{ { "b", NET_KIT, true, "a.x", "GET", "/a**" },
	  -EINVAL,
	  "path '/a**': column 2: '**' is a segment" },
};

static void builder(void)
{
	_cleanup_(net_builder_freep) struct net_builder *b = NULL;
	struct net_rule r = { "a", NET_GLOBAL, true, "a.x", NULL, NULL };
	_cleanup_(net_policy_freep) struct net_policy *p = NULL;
	char id[16];
	struct err e;
	size_t i;

	check(net_builder_new(&b) == 0 && net_builder_add(b, &r, &e) == 0);
	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		check(net_builder_add(b, &refused[i].rule, &e) == refused[i].code);
		if (!starts_with(e.msg, refused[i].msg))
			(void)fprintf(stderr, "%s\n", e.msg);
		check(starts_with(e.msg, refused[i].msg));
	}
	r.id = id;
	for (i = 1; i < NET_RULES_MAX; i++) {
		check(snprintf(id, sizeof(id), "i%zu", i) > 0);
		check(net_builder_add(b, &r, &e) == 0);
	}
	check(snprintf(id, sizeof(id), "last") > 0);
	check(net_builder_add(b, &r, &e) == -E2BIG);
	check(net_freeze(b, &p) == 0 && streq(ask(p, "a.x", NULL, NULL).rule, "a"));
}

/* ---- spans ---- */
static const struct {
	const char *in, *name; /* name: "*" is all; NULL: an address */
	unsigned bits;
} spans[] = {
	{ "a.example:443", "a.example", 0 },
	{ "*.e.com", "e.com", 0 },
	{ "**.e.com", "e.com", 0 },
	{ "a*b.x", "x", 0 },
	{ "a.*.com", "com", 0 },
	{ "**", "*", 0 },
	{ "*com", "*", 0 },
	{ "localhost:80", "localhost", 0 },
	{ "192.0.2.7", NULL, 32 },
	{ "192.0.2.0/24", NULL, 24 },
	{ "[2001:db8::1]:8080", NULL, 128 },
	{ "2001:db8::/32", NULL, 32 },
	{ "x", "x", 0 },
};

static void span_table(void)
{
	struct net_span s;

	for (size_t i = 0; i < ARRAY_SIZE(spans); i++) {
		check(net_resource_span(spans[i].in, &s) == 0);
		check(s.all == streq(spans[i].name, "*"));
		check(!s.n_addr == !!spans[i].name && s.bits == spans[i].bits);
		if (spans[i].name && !s.all)
			check(streq(s.name, spans[i].name));
	}
	check(net_resource_span("a..b", &s) == -EINVAL);
}

static void http_resources(void)
{
	static const char text[] = "bac-net-policy 1\n"
				   "1\tglobal\tallow\t-\t-\ta.example\n"
				   "2\tglobal\tallow\tGET\t-\tb.example\n"
				   "3\tglobal\tdeny\tPUT\t/x\t*.c.example:443\n"
				   "end 3\n";
	struct net_policy *p;
	struct err e;
	size_t at = 0;

	check(net_text_parse(text, sizeof(text) - 1, &p, &e) == 0);
	check(streq(net_http_resource(p, &at), "b.example"));
	check(streq(net_http_resource(p, &at), "*.c.example:443"));
	check(!net_http_resource(p, &at));
	at = 0;
	check(!net_http_resource(NULL, &at));
	(void)net_policy_free(p);
}

int main(void)
{
	span_table();
	http_resources();
	grammar();
	grammar_limits();
	cells();
	decide();
	one_loopback();
	resolved();
	look_ups();
	nothing();
	builder();
	return 0;
}
