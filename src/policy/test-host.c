/* Spellings of hosts: one host, one text; and the classes of addresses. */
#include "policy/host.h"

#include <arpa/inet.h>

#include "base/check.h"
#include "policy/no-proxy.h"

static const struct {
	const char *in, *out; /* out NULL: refused */
	uint8_t kind;
} hosts[] = {
	{ "a.example", "a.example", HOST_NAME },
	{ "A.Example.", "a.example", HOST_NAME },
	{ "x_y.example", "x_y.example", HOST_NAME },
	{ "b\303\274cher.example", "xn--bcher-kva.example", HOST_NAME },
	{ "B\303\234CHER.example", "xn--bcher-kva.example", HOST_NAME },
	{ "XN--BCHER-KVA.example", "xn--bcher-kva.example", HOST_NAME },
	{ "a\343\200\202example", "a.example", HOST_NAME }, /* ideographic full stop */
	/* all spellings of the host's own loopback */
	{ "localhost", "localhost", HOST_NAME },
	{ "LOCALHOST.", "localhost", HOST_NAME },
	{ "x.localhost", "localhost", HOST_NAME },
	{ "host.docker.internal", "localhost", HOST_NAME },
	{ "Host.Docker.Internal.", "localhost", HOST_NAME },
	{ "127.0.0.1", "localhost", HOST_NAME },
	{ "127.0.0.1.", "localhost", HOST_NAME },
	{ "127.255.1.2", "localhost", HOST_NAME },
	{ "127.1", "localhost", HOST_NAME },
	{ "127.0.1", "localhost", HOST_NAME },
	{ "2130706433", "localhost", HOST_NAME },
	{ "0x7f000001", "localhost", HOST_NAME },
	{ "0X7F.1", "localhost", HOST_NAME },
	{ "017700000001", "localhost", HOST_NAME },
	{ "0177.0.0.01", "localhost", HOST_NAME },
	{ "0", "localhost", HOST_NAME },
	{ "0x", "localhost", HOST_NAME },
	{ "0.0.0.0", "localhost", HOST_NAME },
	{ "::1", "localhost", HOST_NAME },
	{ "[::1]", "localhost", HOST_NAME },
	{ "::", "localhost", HOST_NAME },
	{ "[0:0:0:0:0:0:0:1]", "localhost", HOST_NAME },
	{ "::ffff:127.0.0.1", "localhost", HOST_NAME },
	{ "[::ffff:7f00:1]", "localhost", HOST_NAME },
	{ "\357\274\221\357\274\222\357\274\227.1", "localhost", HOST_NAME }, /* full-width 127 */
	{ "notlocalhost", "notlocalhost", HOST_NAME },
	{ "localhost.example", "localhost.example", HOST_NAME },
	{ "gateway.docker.internal", "gateway.docker.internal", HOST_NAME },
	/* addresses */
	{ "192.0.2.7", "192.0.2.7", HOST_V4 },
	{ "0xc0000207", "192.0.2.7", HOST_V4 },
	{ "3221225991", "192.0.2.7", HOST_V4 },
	{ "192.519", "192.0.2.7", HOST_V4 },
	{ "[2001:DB8::0:1]", "2001:db8::1", HOST_V6 },
	{ "::ffff:192.0.2.7", "192.0.2.7", HOST_V4 },
	{ "255.255.255.255", "255.255.255.255", HOST_V4 },
	/* refused */
	{ "", NULL, 0 },
	{ ".", NULL, 0 },
	{ "a..b", NULL, 0 },
	{ "a.b..", NULL, 0 },
	{ ".a", NULL, 0 },
	{ "-a.b", NULL, 0 },
	{ "a-.b", NULL, 0 },
	{ "a b", NULL, 0 },
	{ "a\tb", NULL, 0 },
	{ "a%00b", NULL, 0 },
	{ "fe80::1%eth0", NULL, 0 },
	{ "a/b", NULL, 0 },
	{ "user@a", NULL, 0 },
	{ "*.a", NULL, 0 },
	{ "256.1.1.1", NULL, 0 },
	{ "1.2.3.4.5", NULL, 0 },
	{ "4294967296", NULL, 0 },
	{ "09.0.0.1", NULL, 0 },
	{ "a.1", NULL, 0 },
	{ "a.0x1", NULL, 0 },
	{ "[::1", NULL, 0 },
	{ "[1.2.3.4]", NULL, 0 },
	{ "a:b", NULL, 0 },
	{ "a\377b", NULL, 0 },
	{ "a\342\200\213\357\274\217b", NULL, 0 }, /* full-width '/' */
	{ "a\357\274\232443", NULL, 0 },           /* full-width ':' */
};

static void spellings(void)
{
	struct host h;
	struct err e;
	size_t i;
	int r;

	for (i = 0; i < ARRAY_SIZE(hosts); i++) {
		r = host_parse(&h, hosts[i].in, strlen(hosts[i].in), &e);
		if ((r == 0) != !!hosts[i].out || (r == 0 && !streq(h.text, hosts[i].out)))
			(void)fprintf(stderr, "'%s': %s\n", hosts[i].in, r < 0 ? e.msg : h.text);
		check((r == 0) == !!hosts[i].out);
		check(r == 0 || (r == -EINVAL && starts_with(e.msg, "column ")));
		check(r < 0 || (streq(h.text, hosts[i].out) && h.kind == hosts[i].kind));
	}
	check(host_parse(&h, "a\0b", 3, &e) == -EINVAL && starts_with(e.msg, "column 2: a NUL"));
	check(host_parse(&h, "a.b\0", 4, &e) == -EINVAL);
}

static void limits(void)
{
	char s[1100];
	struct host h;
	struct err e;
	size_t i;

	memset(s, 'a', sizeof(s));
	check(host_parse(&h, s, 63, &e) == 0);
	check(host_parse(&h, s, 64, &e) == -EINVAL);
	check(host_parse(&h, s, 1025, &e) == -EINVAL);
	for (i = 1; i < sizeof(s); i += 2)
		s[i] = '.';
	check(host_parse(&h, s, 253, &e) == 0 && strlen(h.text) == 253);
	check(host_parse(&h, s, 254, &e) == 0 && strlen(h.text) == 253);
	check(host_parse(&h, s, 255, &e) == -EINVAL);
}

static const struct {
	const char *in, *out;
	uint16_t port;
} ported[] = {
	{ "a.b:443", "a.b", 443 },
	{ "a.b", "a.b", 0 },
	{ "[::1]:80", "localhost", 80 },
	{ "2001:db8::1", "2001:db8::1", 0 },
	{ "[2001:db8::1]", "2001:db8::1", 0 },
	{ "1.2.3.4:65535", "1.2.3.4", 65535 },
	{ "a:0", NULL, 0 },
	{ "a:", NULL, 0 },
	{ "a:65536", NULL, 0 },
	{ "a:4x", NULL, 0 },
	{ ":80", NULL, 0 },
	{ "[::1]x:80", NULL, 0 },
	{ "a:99999999999999999999", NULL, 0 },
};

static void ports(void)
{
	struct host h;
	struct err e;
	uint16_t port;
	size_t i;
	int r;

	for (i = 0; i < ARRAY_SIZE(ported); i++) {
		r = host_port_parse(&h, &port, ported[i].in, strlen(ported[i].in), &e);
		check((r == 0) == !!ported[i].out);
		check(r < 0 || (streq(h.text, ported[i].out) && port == ported[i].port));
	}
}

static const struct {
	const char *addr, *name;
} classes[] = {
	{ "1.1.1.1", NULL },
	{ "127.0.0.1", "loopback" },
	{ "0.0.0.0", "loopback" },
	{ "0.1.2.3", "reserved" },
	{ "10.0.0.1", "private" },
	{ "172.15.255.255", NULL },
	{ "172.16.0.0", "private" },
	{ "172.31.255.255", "private" },
	{ "172.32.0.0", NULL },
	{ "192.168.3.4", "private" },
	{ "169.254.1.1", "link-local" },
	{ "169.254.169.254", "metadata" },
	{ "169.254.170.2", "metadata" },
	{ "100.100.100.200", "metadata" },
	{ "168.63.129.16", "metadata" },
	{ "168.63.129.17", NULL },
	{ "100.64.0.1", "carrier-grade NAT" },
	{ "100.128.0.1", NULL },
	{ "192.0.2.1", "reserved" },
	{ "198.18.0.1", "benchmark" },
	{ "198.19.255.255", "benchmark" },
	{ "198.20.0.0", NULL },
	{ "224.0.0.1", "multicast" },
	{ "239.1.1.1", "multicast" },
	{ "240.0.0.1", "reserved" },
	{ "255.255.255.255", "reserved" },
	{ "2606:4700::1111", NULL },
	{ "::1", "loopback" },
	{ "::", "loopback" },
	{ "::ffff:10.0.0.1", "private" },
	{ "::ffff:1.1.1.1", NULL },
	{ "::10.0.0.1", "private" },
	{ "::1.1.1.1", "reserved" },
	{ "::ffff:0:10.0.0.1", "private" },
	{ "64:ff9b::a00:1", "private" },
	{ "64:ff9b::a9fe:a9fe", "metadata" },
	{ "64:ff9b::101:101", NULL },
	{ "64:ff9b:1::101:101", "private" },
	{ "2002:a00:1::", "private" },
	{ "2002:7f00:1::1", "loopback" },
	{ "2002:101:101::1", NULL },
	{ "2001:0:4136:e378:8000:63bf:3fff:fdd2", "reserved" }, /* Teredo, client 192.0.2.45 */
	{ "2001:0:a00:1:0:0:fefe:fefe", "private" },
	{ "2606:4700::5efe:a00:1", "private" },
	{ "2606:4700::200:5efe:192.168.0.1", "private" },
	{ "fe80::1", "link-local" },
	{ "fe80::5efe:1.1.1.1", "link-local" },
	{ "fec0::1", "private" },
	{ "fc00::1", "private" },
	{ "fd00:ec2::254", "metadata" },
	{ "fd20:ce::254", "metadata" },
	{ "ff02::1", "multicast" },
	{ "2001:db8::1", "reserved" },
	{ "3fff::1", "reserved" },
	{ "100::1", "reserved" },
	{ "4000::1", "reserved" },
	{ "2001:2::1", "benchmark" },
};

static void class_table(void)
{
	uint8_t addr[16];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(classes); i++) {
		bool v6 = strchr(classes[i].addr, ':');
		const char *name;

		check(inet_pton(v6 ? AF_INET6 : AF_INET, classes[i].addr, addr) == 1);
		name = host_addr_class(addr, v6 ? 16 : 4);
		if (!streq(name, classes[i].name))
			(void)fprintf(stderr, "%s is %s\n", classes[i].addr,
				      name ? name : "public");
		check(streq(name, classes[i].name));
	}
}

static void addresses(void)
{
	static const uint8_t v4[] = { 192, 0, 2, 7 };
	struct host a, b;
	struct err e;

	host_from_addr(&a, v4, 4);
	check(a.kind == HOST_V4 && streq(a.text, "192.0.2.7"));
	check(host_parse(&b, "0xc0000207", 10, &e) == 0 && host_same(&a, &b));
	check(host_parse(&b, "192.0.2.8", 9, &e) == 0 && !host_same(&a, &b));
	host_from_addr(&a, v4, 3);
	check(a.kind == HOST_NONE && !host_same(&a, &a));
}

static const struct {
	const char *list, *host;
	bool has;
} lists[] = {
	{ "", "a.x", false },
	{ "*", "a.x", true },
	{ "a.x", "a.x", true },
	{ "x", "a.x", true },
	{ ".x", "a.x", true },
	{ "b.x, A.X", "a.x", true },
	{ "b.x a.x", "a.x", true },
	{ "b.x", "ab.x", false },
	{ "aa.x", "a.x", false },
	{ " ,,", "a.x", false },
	{ "10.0.0.1", "10.0.0.1", true },
	{ ".", "a.x", false },
};

static void no_proxy(void)
{
	struct host h;
	struct err e;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		check(host_parse(&h, lists[i].host, strlen(lists[i].host), &e) == 0);
		check(no_proxy_has(lists[i].list, &h) == lists[i].has);
	}
}

int main(void)
{
	no_proxy();
	spellings();
	limits();
	ports();
	class_table();
	addresses();
	return 0;
}
