#include "policy/no-proxy.h"

static bool is_entry(const char *s, size_t n, const char *host)
{
	size_t len = strlen(host);

	if (n == 1 && *s == '*')
		return true;
	if (n && *s == '.') {
		s++;
		n--;
	}
	if (!n || n > len || strncasecmp(host + len - n, s, n) != 0)
		return false;
	return n == len || host[len - n - 1] == '.';
}

bool no_proxy_has(const char *list, const struct host *h)
{
	size_t n;

	for (; *list; list += n) {
		list += strspn(list, ", ");
		n = strcspn(list, ", ");
		if (n && is_entry(list, n, h->text))
			return true;
	}
	return false;
}
