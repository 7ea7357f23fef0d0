/* Any text as a resource, a path and a preset; what is kept is its own spelling. */
#include "base/check.h"
#include "policy/net-priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static int each(void *arg, const char *group, const char *resource, struct err *e)
{
	(void)arg;
	(void)e;
	check(*group && *resource);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char out[NET_RESOURCE_MAX + 1], again[NET_RESOURCE_MAX + 1], clean[NET_PATH_MAX + 1];
	_free_ char *s = malloc(n + 1);
	struct err e;

	check(s);
	if (n)
		memcpy(s, p, n);
	s[n] = '\0';
	if (net_resource_check(s, out, sizeof(out), &e) == 0) {
		check(net_resource_check(out, again, sizeof(again), &e) == 0);
		check(streq(out, again));
	} else {
		check(starts_with(e.msg, "column "));
	}
	if (net_path_check(s, &e) < 0)
		check(starts_with(e.msg, "column "));
	else if (!strpbrk(s, "*"))
		check(net_path_clean(s, clean) && net_path_match(s, clean));
	if (net_preset_parse((const char *)p, n, each, NULL, &e) < 0)
		check(starts_with(e.msg, "line "));
	return 0;
}
