/* Messages of the proxy: each there and back, wrong senders, cuts at every byte, limits at their edge. */
#include "base/check.h"
#include "wire/proxy.h"

static uint8_t bytes[PROXY_MSG_MAX + 1];

static struct proxy_msg again(const struct proxy_msg *m, char from, size_t fds)
{
	ssize_t n = proxy_put(m, bytes, sizeof(bytes));
	struct proxy_msg got;

	check(n > 0);
	check(proxy_parse(&got, from, bytes, (size_t)n, fds) == WIRE_OK);
	for (size_t cut = 0; cut < (size_t)n && cut < 4096; cut++) {
		struct proxy_msg none;

		check(proxy_parse(&none, from, bytes, cut, fds) == WIRE_E_MALFORMED);
	}
	check(proxy_parse(&got, from == 'S' ? 'P' : 'S', bytes, (size_t)n, fds) != WIRE_OK);
	check(proxy_parse(&got, from, bytes, (size_t)n, fds + 1) == WIRE_E_MALFORMED);
	check(proxy_parse(&got, from, bytes, (size_t)n, fds) == WIRE_OK);
	return got;
}

static void config(void)
{
	struct proxy_msg m = { .type = PROXY_CONFIG,
			       .config = { .sandbox = "web",
					   .upstream = "http://a:1",
					   .no_proxy = "x,y",
					   .generation = 7,
					   .n_connect = PROXY_CONNECT_MAX } };
	struct proxy_msg got;

	for (size_t i = 0; i < PROXY_CONNECT_MAX; i++)
		m.config.connect[i] = "a.example:443=127.0.0.1:1";
	got = again(&m, 'S', 0);
	check(streq(got.config.sandbox, "web") && streq(got.config.upstream, "http://a:1"));
	check(streq(got.config.no_proxy, "x,y") && got.config.generation == 7);
	check(got.config.n_connect == PROXY_CONNECT_MAX);
	check(streq(got.config.connect[63], "a.example:443=127.0.0.1:1"));
	m.config.n_connect++;
	check(proxy_put(&m, bytes, sizeof(bytes)) == -ENOBUFS);
}

static void resolver(void)
{
	char *conf = calloc(1, PROXY_RESOLV_MAX + 2), *hosts = calloc(1, PROXY_HOSTS_MAX + 1);
	struct proxy_msg m = { .type = PROXY_RESOLVER, .resolver = { conf, hosts } };
	struct proxy_msg got;

	check(conf && hosts);
	memset(conf, 'c', PROXY_RESOLV_MAX);
	memset(hosts, 'h', PROXY_HOSTS_MAX);
	got = again(&m, 'M', 0);
	check(strlen(got.resolver.conf) == PROXY_RESOLV_MAX);
	check(strlen(got.resolver.hosts) == PROXY_HOSTS_MAX);
	conf[PROXY_RESOLV_MAX] = 'c';
	check(proxy_put(&m, bytes, sizeof(bytes)) == -ENOBUFS);
	free(conf);
	free(hosts);
}

static void numbers(void)
{
	char text[PROXY_TEXT_MAX + 10] = { 0 };
	const struct proxy_msg ping = { .type = PROXY_PING, .number = 5 };
	const struct proxy_msg policy = { .type = PROXY_POLICY, .number = 6 };
	const struct proxy_msg cred = { .type = PROXY_CREDENTIALS, .number = 7 };
	const struct proxy_msg keeper = { .type = PROXY_KEEPER };
	const struct proxy_msg trust = { .type = PROXY_TRUST };
	const struct proxy_msg pong = { .type = PROXY_PONG, .number = 5 };
	const struct proxy_msg ready = { .type = PROXY_READY };
	struct proxy_msg m = { .type = PROXY_APPLIED,
			       .applied = { .number = 3, .code = -22, .text = text } };

	memset(text, 't', sizeof(text) - 1);
	check(again(&ping, 'S', 0).number == 5);
	check(again(&policy, 'S', 1).number == 6);
	check(again(&cred, 'S', 1).number == 7);
	check(again(&keeper, 'M', 1).type == PROXY_KEEPER);
	check(again(&trust, 'M', 1).type == PROXY_TRUST);
	check(again(&pong, 'P', 0).number == 5);
	check(again(&ready, 'P', 0).type == PROXY_READY);
	check(strlen(again(&m, 'P', 0).applied.text) == PROXY_TEXT_MAX);
	check(again(&m, 'P', 0).applied.code == -22);
	m = (struct proxy_msg) { .type = PROXY_SAY, .say = "so" };
	check(streq(again(&m, 'P', 0).say, "so"));
	check(proxy_parse(&m, 'P', bytes, PROXY_MSG_MAX + 1, 0) == WIRE_E_TOO_LARGE);
}

static void marks(void)
{
	uint8_t *p = calloc(1, PROXY_MARKS_MAX + 1);
	struct proxy_msg m = { .type = PROXY_MARKS, .marks = { p, PROXY_MARKS_MAX } };
	struct proxy_msg got;

	check(p);
	memset(p, 'm', PROXY_MARKS_MAX);
	got = again(&m, 'S', 0);
	check(got.marks.n == PROXY_MARKS_MAX && memcmp(got.marks.p, p, PROXY_MARKS_MAX) == 0);
	m.marks.n++;
	check(proxy_put(&m, bytes, sizeof(bytes)) == -ENOBUFS);
	m.marks.n = 0;
	check(again(&m, 'S', 0).marks.n == 0);
	free(p);
}

int main(void)
{
	config();
	resolver();
	numbers();
	marks();
	return 0;
}
