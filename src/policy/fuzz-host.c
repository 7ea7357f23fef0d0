/* Any bytes as a host; what comes out is its own spelling, and has a class that does not depend on it. */
#include "base/check.h"
#include "policy/host.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void check_host(const struct host *h)
{
	struct host again;
	struct err e;
	size_t len = strlen(h->text);

	check(h->kind >= HOST_NAME && h->kind <= HOST_V6 && len && len <= HOST_NAME_MAX_LEN);
	check(host_parse(&again, h->text, len, &e) == 0 && host_same(h, &again));
	check(streq(h->text, again.text));
	if (h->kind == HOST_NAME) {
		check(strspn(h->text, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == len);
		return;
	}
	host_from_addr(&again, h->addr, h->kind == HOST_V4 ? 4 : 16);
	check(host_same(h, &again) && streq(h->text, again.text));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	const char *s = (const char *)p;
	struct host h;
	struct err e;
	uint16_t port;

	if (host_parse(&h, s, n, &e) == 0)
		check_host(&h);
	else
		check(starts_with(e.msg, "column "));
	if (host_port_parse(&h, &port, s, n, &e) == 0)
		check_host(&h);
	else
		check(starts_with(e.msg, "column "));
	if (n == 4 || n == 16) {
		unsigned bits;
		const char *name = host_addr_range(p, n, &bits);

		check(!name == !bits && bits <= 8 * n);
		check(streq(name, host_addr_class(p, n)));
	}
	return 0;
}
