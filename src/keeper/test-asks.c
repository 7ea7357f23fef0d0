/* What the proxy may ask: the whole of a keeper, with the test as its supervisor, its proxy and its bac-fetch. */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "io/fd.h"
#include "keeper/keeper.h"

static struct keeper k;
static int sup, proxy, fetch; /* our ends */
static uint32_t last;

static int pair(int *ret_ours)
{
	int p[2];

	check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p) == 0);
	*ret_ours = p[0];
	return p[1];
}

/* What the keeper said there; it must be of this type. The texts live until the next call. */
static struct keeper_msg hear(int fd, uint8_t type)
{
	static uint8_t bytes[KEEPER_MSG_MAX];
	struct keeper_msg m = { 0 };
	ssize_t n = recv(fd, bytes, sizeof(bytes), 0);

	check(n > 0 && keeper_parse(&m, 'K', bytes, (size_t)n, 0) == WIRE_OK);
	if (m.type != type)
		(void)fprintf(stderr, "%u instead of %u: %s\n", m.type, type, m.text ? m.text : "");
	check(m.type == type);
	return m;
}

static bool silent(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_PEEK) < 0 && errno == EAGAIN;
}

static bool closed(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_PEEK) == 0;
}

static void order(char from, uint8_t type, int fd)
{
	const struct keeper_msg m = { .type = type, .number = ++last };

	check(keeper_order(&k, from, &m, fd) == 0);
}

static int memory(const char *text)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	check(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
	return fd;
}

/* Its answer, after the certificate if that is another. */
static int32_t applied(bool renewed)
{
	struct keeper_msg m;

	if (renewed)
		check(starts_with(hear(sup, KEEPER_CA).text, "-----BEGIN CERTIFICATE-----\n"));
	m = hear(sup, KEEPER_APPLIED);
	check(m.number == last);
	return m.code;
}

/* "id kind state key resource" for each. */
static char *uses(const char *lines)
{
	struct buf out = BUF_INIT(CRED_TEXT_MAX);
	char *text = strdup(lines), *rest = NULL, *line;
	size_t n = 0;
	struct err e;

	check(text && cred_text_begin(&out) == 0);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), n++) {
		char id[64], kind[16], state[16], key[64], resource[64], refresh[96];
		struct cred_use u = { .id = id,
				      .origin = "user",
				      .service = "svc",
				      .key = key,
				      .resource = resource };

		check(sscanf(line, "%63s %15s %15s %63s %63s", id, kind, state, key, resource) ==
		      5);
		u.kind = streq(kind, "token")   ? CRED_TOKEN
			 : streq(kind, "oauth") ? CRED_OAUTH
						: CRED_HEADER;
		u.state = streq(state, "ready")     ? CRED_READY
			  : streq(state, "missing") ? CRED_MISSING
						    : CRED_UNAPPROVED;
		if (u.kind == CRED_HEADER) {
			u.header = "authorization";
			u.format = "Bearer %s";
		} else {
			(void)snprintf(refresh, sizeof(refresh), "%s-refresh-proxy-managed", id);
			u.placeholder = u.kind == CRED_TOKEN ? refresh : "access-proxy-managed";
		}
		if (u.kind == CRED_TOKEN) {
			u.placeholder2 = "access-proxy-managed";
			u.path = "/v1/oauth/token";
			u.fields = "access_token,refresh_token,expires_in,scope";
		}
		if (cred_text_use(&out, &u, &e) < 0)
			(void)fprintf(stderr, "%s: %s\n", line, e.msg);
		else
			continue;
		check(false);
	}
	check(cred_text_end(&out, n) == 0);
	free(text);
	text = strdup(buf_str(&out));
	buf_done(&out);
	return text;
}

static void credentials(const char *lines, bool renewed)
{
	_free_ char *text = uses(lines);

	order('S', KEEPER_CREDENTIALS, memory(text));
	check(applied(renewed) == 0);
}

static void begin(const char *lines)
{
	int s = pair(&sup);

	memset(&k, 0, sizeof(k));
	check(keeper_open(&k, "web", s, -1) == 0);
	order('M', KEEPER_FETCH, pair(&fetch));
	order('M', KEEPER_PROXY, pair(&proxy));
	credentials(lines, true);
}

static void end(void)
{
	keeper_done(&k);
	(void)close(sup);
	(void)close(proxy);
	(void)close(fetch);
}

static int ask(uint8_t type, uint32_t number, const char *use, const char *host, uint16_t port)
{
	const struct keeper_msg m = { .type = type,
				      .number = number,
				      .text = host,
				      .text2 = use,
				      .text3 = "",
				      .port = port };

	return asks_take(&k, &m);
}

static void fetch_says(uint8_t type, uint32_t number, const char *value, uint64_t when)
{
	const struct keeper_msg m = { .type = type,
				      .number = number,
				      .text = value,
				      .bytes = { (const uint8_t *)value, (uint32_t)strlen(value) },
				      .when = when };

	check(asks_answer(&k, &m) == 0);
}

static bool is(struct keeper_bytes b, const char *s)
{
	return b.n == strlen(s) && !memcmp(b.p, s, b.n);
}

/* The peek at one key, answered: it must be made. */
static void peeked(void)
{
	fetch_says(KEEPER_NOT, hear(fetch, KEEPER_PEEK).number, "", 0);
}

static const char one[] = "u1 header ready global/service/svc api.example";

static void value(void)
{
	struct keeper_msg m;

	begin(one);
	m = hear(fetch, KEEPER_PEEK);
	check(streq(m.text, "global/service/svc"));
	check(ask(KEEPER_VALUE, 5, "u1", "api.example", 443) == 0);
	check(ask(KEEPER_VALUE, 6, "u1", "API.example.", 443) == 0);
	check(silent(fetch) && silent(proxy)); /* it is on its way */
	fetch_says(KEEPER_GOT, m.number, "sk-test-0123456789abcdef", UINT64_MAX);
	check(hear(sup, KEEPER_MARKS).bytes.n > 16);
	m = hear(proxy, KEEPER_VALUE_IS);
	check(m.number == 5 && is(m.bytes, "sk-test-0123456789abcdef"));
	check(hear(proxy, KEEPER_VALUE_IS).number == 6);
	check(ask(KEEPER_VALUE, 7, "u1", "api.example", 443) == 0);
	check(hear(proxy, KEEPER_VALUE_IS).number == 7 && silent(fetch));
	/* another value: asked for anew, and only then another mark */
	credentials(one, false);
	m = hear(fetch, KEEPER_PEEK);
	fetch_says(KEEPER_GOT, m.number, "sk-test-0123456789abcdef", UINT64_MAX);
	check(silent(sup));
	end();
}

/* A command: not run to be marked, run once for all who ask at once, and again when its value is old. */
static void command(void)
{
	struct keeper_msg m;

	begin(one);
	peeked();
	check(silent(fetch) && silent(sup));
	for (uint32_t i = 1; i <= 100; i++)
		check(ask(KEEPER_VALUE, i, "u1", "api.example", 443) == 0);
	m = hear(fetch, KEEPER_GET);
	check(silent(fetch));
	fetch_says(KEEPER_GOT, m.number, "made-0123456789abcdef", 0);
	for (uint32_t i = 1; i <= 100; i++)
		check(hear(proxy, KEEPER_VALUE_IS).number == i);
	check(ask(KEEPER_VALUE, 101, "u1", "api.example", 443) == 0);
	m = hear(fetch, KEEPER_GET);
	fetch_says(KEEPER_NOT, m.number, "op: you are not signed in", 0);
	m = hear(proxy, KEEPER_NO);
	check(m.number == 101 && m.code == KEEPER_NO_FAILED &&
	      streq(m.text, "op: you are not signed in"));
	check(ask(KEEPER_VALUE, 102, "u1", "api.example", 443) == 0);
	check(hear(proxy, KEEPER_NO).number == 102 && silent(fetch)); /* remembered */
	end();
}

enum { NEVER = 100 };

/* What is asked, and the answer: LEAF_IS, GET (nothing yet), a reason of NO, or NEVER. */
static void refusals(void)
{
	static const char lines[] = "u1 header ready global/service/a api.example\n"
				    "u2 header missing global/service/b miss.example\n"
				    "u3 header unapproved global/service/c kit.example:8443\n"
				    "u4 header ready global/service/d *.star.example";
	static const struct {
		const char *use, *host;
		uint16_t port;
		int want; /* 0: it is got */
	} rows[] = {
		{ "u1", "api.example", 443, 0 },
		{ "u1", "api.example", 80, NEVER },
		{ "u1", "miss.example", 443, NEVER },
		{ "u1", "x.api.example", 443, NEVER },
		{ "u9", "api.example", 443, NEVER },
		{ "", "api.example", 443, NEVER },
		{ "u1", "", 443, NEVER },
		{ "u1", "a b", 443, NEVER },
		{ "u2", "miss.example", 443, KEEPER_NO_MISSING },
		{ "u3", "kit.example", 8443, KEEPER_NO_UNAPPROVED },
		{ "u3", "kit.example", 443, NEVER },
		{ "u4", "a.star.example", 443, 0 },
		{ "u4", "star.example", 443, NEVER },
		{ "global/service/a", "api.example", 443, NEVER },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int r;

		begin(lines);
		peeked();
		peeked();
		r = ask(KEEPER_VALUE, 1, rows[i].use, rows[i].host, rows[i].port);
		if (r != (rows[i].want == NEVER ? -EPROTO : 0))
			(void)fprintf(stderr, "%s %s: %d\n", rows[i].use, rows[i].host, r);
		check(r == (rows[i].want == NEVER ? -EPROTO : 0));
		if (rows[i].want == 0)
			check(hear(fetch, KEEPER_GET).number);
		else if (rows[i].want != NEVER)
			check(hear(proxy, KEEPER_NO).code == rows[i].want);
		check(silent(proxy) && silent(fetch));
		end();
	}
}

static const char rules[] = "bac-net-policy 1\n"
			    "r1\tglobal\tallow\tGET\t-\tread.example\n"
			    "r2\tglobal\tallow\t-\t-\tplain.example\n"
			    "end 2\n";

static void leaves(void)
{
	static const struct {
		const char *host;
		uint16_t port;
		bool yes;
	} rows[] = {
		{ "api.example", 443, true },    { "api.example", 80, false },
		{ "read.example", 443, true },   { "read.example", 80, true },
		{ "plain.example", 443, false }, { "other.example", 443, false },
		{ "192.0.2.1", 443, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		begin(one);
		order('S', KEEPER_POLICY, memory(rules));
		check(applied(true) == 0);
		check(ask(KEEPER_LEAF, 3, NULL, rows[i].host, rows[i].port) ==
		      (rows[i].yes ? 0 : -EPROTO));
		if (rows[i].yes) {
			struct keeper_msg m = hear(proxy, KEEPER_LEAF_IS);

			check(m.number == 3 && m.bytes.n > 500 && m.bytes2.n > 100);
		}
		check(silent(proxy));
		end();
	}
}

/* What was allowed is answered; what was before that, is not known any more. */
static void before(void)
{
	begin(one);
	peeked();
	credentials("", true);
	check(ask(KEEPER_LEAF, 1, NULL, "api.example", 443) == 0);
	check(hear(proxy, KEEPER_NO).code == KEEPER_NO_LONGER);
	check(ask(KEEPER_VALUE, 2, "u1", "api.example", 443) == 0);
	check(hear(proxy, KEEPER_NO).code == KEEPER_NO_LONGER);
	credentials("", false);
	check(ask(KEEPER_VALUE, 3, "u1", "api.example", 443) == -EPROTO);
	check(strstr(k.why, "api.example:443"));
	check(ask(KEEPER_LEAF, 4, NULL, "api.example", 443) == -EPROTO);
	end();
}

/* The credentials change while a value is on its way. */
static void meanwhile(void)
{
	struct keeper_msg m;
	uint32_t old;

	begin(one);
	peeked();
	check(ask(KEEPER_VALUE, 1, "u1", "api.example", 443) == 0);
	old = hear(fetch, KEEPER_GET).number;
	credentials(one, false);
	m = hear(fetch, KEEPER_GET); /* what was on its way may be the old one */
	fetch_says(KEEPER_GOT, old, "old-0123456789abcdef", UINT64_MAX);
	check(silent(proxy));
	fetch_says(KEEPER_GOT, m.number, "new-0123456789abcdef", UINT64_MAX);
	check(is(hear(proxy, KEEPER_VALUE_IS).bytes, "new-0123456789abcdef"));
	/* revoked */
	(void)hear(sup, KEEPER_MARKS);
	credentials(one, false);
	peeked();
	check(ask(KEEPER_VALUE, 2, "u1", "api.example", 443) == 0);
	(void)hear(fetch, KEEPER_GET);
	credentials("", true);
	m = hear(fetch, KEEPER_GET);
	fetch_says(KEEPER_GOT, m.number, "new-0123456789abcdef", UINT64_MAX);
	check(hear(proxy, KEEPER_NO).code == KEEPER_NO_LONGER);
	/* the same use, by another key */
	credentials("u1 header ready global/service/svc api.example", true);
	peeked();
	check(ask(KEEPER_VALUE, 3, "u1", "api.example", 443) == 0);
	(void)hear(fetch, KEEPER_GET);
	credentials("u1 header ready 0123/service/svc api.example", false);
	m = hear(fetch, KEEPER_GET);
	check(streq(m.text, "global/service/svc"));
	old = m.number;
	peeked();
	fetch_says(KEEPER_GOT, old, "new-0123456789abcdef", UINT64_MAX);
	m = hear(fetch, KEEPER_GET);
	check(streq(m.text, "0123/service/svc") && silent(proxy));
	end();
}

static void broken_text(void)
{
	begin(one);
	order('S', KEEPER_CREDENTIALS, memory("bac-credentials 1\nend 7\n"));
	check(applied(true) < 0); /* no use, another certificate */
	order('S', KEEPER_POLICY, memory("nonsense"));
	check(applied(false) < 0);
	check(ask(KEEPER_VALUE, 1, "u1", "api.example", 443) == 0);
	check(hear(proxy, KEEPER_NO).code == KEEPER_NO_LONGER);
	end();
}

static void fetch_dies(void)
{
	begin(one);
	peeked();
	check(ask(KEEPER_VALUE, 1, "u1", "api.example", 443) == 0);
	(void)close(fetch);
	order('M', KEEPER_FETCH, pair(&fetch));
	check(hear(proxy, KEEPER_NO).code == KEEPER_NO_FAILED);
	peeked();
	check(ask(KEEPER_VALUE, 2, "u1", "api.example", 443) == 0);
	(void)hear(fetch, KEEPER_GET);
	end();
}

static void proxy_dies(void)
{
	struct keeper_msg m;
	int old;

	begin(one);
	peeked();
	check(ask(KEEPER_VALUE, 1, "u1", "api.example", 443) == 0);
	m = hear(fetch, KEEPER_GET);
	old = proxy;
	order('M', KEEPER_PROXY, pair(&proxy));
	check(closed(old));
	(void)close(old);
	fetch_says(KEEPER_GOT, m.number, "val-0123456789abcdef", UINT64_MAX);
	check(silent(proxy)); /* the new one has not asked */
	check(ask(KEEPER_VALUE, 1, "u1", "api.example", 443) == 0);
	check(is(hear(proxy, KEEPER_VALUE_IS).bytes, "val-0123456789abcdef"));
	end();
}

static int tokens(uint32_t number, const char *use, const char *access, const char *refresh)
{
	const struct keeper_msg m = {
		.type = KEEPER_TOKENS,
		.number = number,
		.text = "auth.example",
		.text2 = use,
		.text3 = "",
		.port = 443,
		.bytes = { (const uint8_t *)access, (uint32_t)strlen(access) },
		.bytes2 = { (const uint8_t *)refresh, (uint32_t)strlen(refresh) }
	};

	return asks_take(&k, &m);
}

static void oauth(void)
{
	static const char lines[] = "t token ready global/oauth/svc.refresh auth.example\n"
				    "r oauth missing global/oauth/svc.access api.example\n"
				    "h header ready global/service/x auth.example";
	struct keeper_msg m;
	uint32_t put;

	begin(lines);
	peeked();
	peeked();
	check(ask(KEEPER_VALUE, 1, "t", "auth.example", 443) == 0);
	m = hear(fetch, KEEPER_TURN);
	fetch_says(KEEPER_NOT, m.number, "no such key", 0);
	check(hear(proxy, KEEPER_NO).code == KEEPER_NO_FAILED);
	check(hear(fetch, KEEPER_LOOSE).number == m.number);
	check(tokens(2, "t", "access-0123456789abcdef", "refresh-0123456789abcdef") == 0);
	(void)hear(sup, KEEPER_MARKS);
	(void)hear(sup, KEEPER_MARKS);
	m = hear(fetch, KEEPER_PUT);
	check(streq(m.text, "global/oauth/svc.access") && is(m.bytes, "access-0123456789abcdef"));
	put = m.number;
	m = hear(fetch, KEEPER_PUT);
	check(streq(m.text, "global/oauth/svc.refresh") && is(m.bytes, "refresh-0123456789abcdef"));
	/* good at once, though the text says that there is none */
	check(ask(KEEPER_VALUE, 3, "r", "api.example", 443) == 0);
	check(is(hear(proxy, KEEPER_VALUE_IS).bytes, "access-0123456789abcdef"));
	fetch_says(KEEPER_PUT_DONE, put, "", 0);
	check(silent(proxy));
	fetch_says(KEEPER_PUT_DONE, m.number, "", 0);
	m = hear(proxy, KEEPER_KEPT);
	check(m.number == 2);
	/* from then on the store is asked, which another sandbox may write as well */
	check(ask(KEEPER_VALUE, 4, "r", "api.example", 443) == 0);
	m = hear(fetch, KEEPER_GET);
	fetch_says(KEEPER_GOT, m.number, "access-of-another-0123456789", 60);
	check(is(hear(proxy, KEEPER_VALUE_IS).bytes, "access-of-another-0123456789"));
	/* the refresh token is as before; the store does not take the other */
	check(tokens(5, "t", "access2-0123456789abcdef", "") == 0);
	m = hear(fetch, KEEPER_PUT);
	fetch_says(KEEPER_NOT, m.number, "disk full", 0);
	check(hear(proxy, KEEPER_NO).code == KEEPER_NO_FAILED && silent(fetch));
	check(ask(KEEPER_VALUE, 6, "r", "api.example", 443) == 0);
	check(is(hear(proxy, KEEPER_VALUE_IS).bytes, "access2-0123456789abcdef"));
	/* what it did not take goes before what it has */
	check(tokens(7, "t", "access3-0123456789abcdef", "refresh3-0123456789abcdef") == 0);
	fetch_says(KEEPER_PUT_DONE, hear(fetch, KEEPER_PUT).number, "", 0);
	fetch_says(KEEPER_NOT, hear(fetch, KEEPER_PUT).number, "disk full", 0);
	(void)hear(proxy, KEEPER_NO);
	check(ask(KEEPER_VALUE, 8, "t", "auth.example", 443) == 0);
	fetch_says(KEEPER_GOT, hear(fetch, KEEPER_TURN).number, "refresh-0123456789abcdef", 60);
	check(is(hear(proxy, KEEPER_VALUE_IS).bytes, "refresh3-0123456789abcdef"));
	check(tokens(9, "h", "a", "b") == -EPROTO);
	end();
	begin("t token unapproved global/oauth/svc.refresh auth.example");
	check(tokens(1, "t", "a", "b") == 0);
	check(hear(proxy, KEEPER_NO).code == KEEPER_NO_UNAPPROVED && silent(fetch));
	end();
}

static int over(uint32_t number)
{
	return ask(KEEPER_OVER, number, "", "", 0);
}

/* One after the other, whether the one before got tokens, gave up or never heard of its turn. */
static void turns(void)
{
	static const char lines[] = "t token ready global/oauth/svc.refresh auth.example\n"
				    "o token ready global/oauth/other.refresh other.example";
	struct keeper_msg m;
	uint32_t first, other;

	begin(lines);
	peeked();
	peeked();
	for (uint32_t i = 1; i <= 4; i++)
		check(ask(KEEPER_VALUE, i, "t", "auth.example", 443) == 0);
	first = hear(fetch, KEEPER_TURN).number;
	check(silent(fetch));
	check(ask(KEEPER_VALUE, 5, "o", "other.example", 443) == 0); /* another login */
	other = hear(fetch, KEEPER_TURN).number;
	fetch_says(KEEPER_GOT, first, "refresh-0123456789abcdef", 60);
	check(hear(proxy, KEEPER_VALUE_IS).number == 1 && silent(proxy) && silent(fetch));
	check(over(99) == 0 && over(3) == 0 && silent(fetch)); /* 3 does not wait any more */
	check(over(1) == 0);
	check(hear(fetch, KEEPER_LOOSE).number == first);
	m = hear(fetch, KEEPER_TURN);
	fetch_says(KEEPER_GOT, m.number, "refresh2-0123456789abcdef", 60);
	check(is(hear(proxy, KEEPER_VALUE_IS).bytes, "refresh2-0123456789abcdef"));
	fetch_says(KEEPER_NOT, m.number, "it took too long", 0); /* nobody hears of that */
	check(silent(proxy));
	check(hear(fetch, KEEPER_LOOSE).number == m.number);
	m = hear(fetch, KEEPER_TURN);
	order('M', KEEPER_PROXY, pair(&proxy)); /* which leaves both */
	first = hear(fetch, KEEPER_LOOSE).number;
	check(first == other || first == m.number);
	check(hear(fetch, KEEPER_LOOSE).number == (first == other ? m.number : other));
	check(silent(fetch));
	for (uint32_t i = 1; i <= TURNS_MAX; i++)
		check(ask(KEEPER_VALUE, i, "t", "auth.example", 443) == 0 && silent(proxy));
	check(ask(KEEPER_VALUE, 100, "t", "auth.example", 443) == 0);
	check(hear(proxy, KEEPER_NO).code == KEEPER_NO_FAILED);
	(void)close(fetch);
	order('M', KEEPER_FETCH, pair(&fetch));
	for (uint32_t i = 1; i <= TURNS_MAX; i++)
		check(hear(proxy, KEEPER_NO).number == i);
	check(silent(proxy));
	end();
}

/* Types that others send, or nobody. */
static void table(void)
{
	static const uint8_t types[] = { 0,          KEEPER_CONFIG, KEEPER_PING, KEEPER_PROXY,
					 KEEPER_GOT, KEEPER_PONG,   KEEPER_GET,  200,
					 255 };

	begin(one);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		check(ask(types[i], 1, "u1", "api.example", 443) == -EPROTO);
	end();
}

int main(void)
{
	value();
	command();
	refusals();
	leaves();
	before();
	meanwhile();
	broken_text();
	fetch_dies();
	proxy_dies();
	oauth();
	turns();
	table();
	return 0;
}
