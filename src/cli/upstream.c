#include "cli/upstream.h"

/* The setting, else the first of the variables that says something. */
static int get(struct ctx *c, const char *key, const char *const *names, char **ret, struct err *e)
{
	_free_ char *v = NULL;
	const char *env = "", *said;
	int r = setting_get(c->state, key, &v, NULL, e);

	if (r < 0)
		return r;
	for (; !*v && *names && !*env; names++) {
		said = getenv(*names);
		if (said)
			env = said;
	}
	*ret = strdup(*v ? v : env);
	return *ret ? 0 : err_errno(e, -ENOMEM, "%s", key);
}

int upstream_get(struct ctx *c, char **ret_proxy, char **ret_no_proxy, struct err *e)
{
	static const char *const proxies[] = { "https_proxy", "HTTPS_PROXY", "all_proxy",
					       "ALL_PROXY",   "http_proxy",  NULL };
	static const char *const no[] = { "no_proxy", "NO_PROXY", NULL };
	_free_ char *proxy = NULL;
	int r = get(c, "net.upstreamProxy", proxies, &proxy, e);

	if (r == 0)
		r = get(c, "net.noProxy", no, ret_no_proxy, e);
	if (r == 0)
		*ret_proxy = take_ptr(proxy);
	return r;
}
