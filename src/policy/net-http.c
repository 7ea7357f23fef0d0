/* Methods and paths of HTTP rules.
 *
 * A path of a request is compared after one decoding of %XX, as a server would read it. Where readers
 * disagree (an encoded '/', '%' or NUL, "//", dot segments, a backslash) it cannot be compared: such a request is refused
 * where a path would decide. */
#include "policy/net-priv.h"

static const char *const methods[] = { "GET",    "HEAD",    "POST",    "PUT",  "PATCH",
				       "DELETE", "OPTIONS", "CONNECT", "TRACE" };

uint16_t net_method_bit(const char *method, size_t n)
{
	size_t i;

	if (n == 3 && !strncasecmp(method, "ANY", 3))
		return NET_METHOD_ANY;
	for (i = 0; i < ARRAY_SIZE(methods); i++)
		if (strlen(methods[i]) == n && !strncasecmp(method, methods[i], n))
			return (uint16_t)(1U << i);
	return 0;
}

int net_method_check(const char *text, char *ret, size_t ret_max, struct err *e)
{
	uint16_t bit = net_method_bit(text, strlen(text));
	const char *name = "ANY";
	size_t i;

	if (!bit)
		return err_set(e, -EINVAL,
			       "column 1: '%.40s' is no method; one of GET, HEAD, POST, PUT, "
			       "PATCH, DELETE, "
			       "OPTIONS, CONNECT, TRACE, ANY",
			       text);
	for (i = 0; i < ARRAY_SIZE(methods); i++)
		if (bit == 1U << i)
			name = methods[i];
	if (strlen(name) >= ret_max)
		return err_set(e, -EINVAL, "column 1: no room for the method");
	memcpy(ret, name, strlen(name) + 1);
	return 0;
}

/* ---- patterns ---- */
static const char *segment_fault(const char *s, size_t n)
{
	size_t i;

	if (!n)
		return "an empty segment; '/' stands once, and not at the end";
	if ((n == 1 && s[0] == '.') || (n == 2 && !memcmp(s, "..", 2)))
		return "a dot segment";
	for (i = 0; i + 1 < n; i++)
		if (n > 2 && s[i] == '*' && s[i + 1] == '*')
			return "'**' is a segment of its own; write '*' within one";
	return NULL;
}

int net_path_check(const char *text, struct err *e)
{
	static const char never[] = "?#%\\";
	size_t n = strlen(text), i, at;

	if (text[0] != '/')
		return err_set(e, -EINVAL, "column 1: a path begins with '/'");
	if (n > NET_PATH_MAX)
		return err_set(e, -EINVAL, "column %d: a path has %d bytes at most",
			       NET_PATH_MAX + 1, NET_PATH_MAX);
	for (i = 0; i < n; i++)
		if ((uint8_t)text[i] <= ' ' || text[i] == 0x7f || strchr(never, text[i]))
			return err_set(
				e, -EINVAL,
				"column %zu: a path has no query, fragment, '%%', '\\', space or "
				"control byte",
				i + 1);
	for (at = 1; n > 1 && at <= n; at += strcspn(text + at, "/") + 1) {
		const char *fault = segment_fault(text + at, strcspn(text + at, "/"));

		if (fault)
			return err_set(e, -EINVAL, "column %zu: %s", at + 1, fault);
	}
	return 0;
}

/* ---- requests ---- */
static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The next byte of a path, decoded; -1 if readers would disagree. */
static int next_byte(const char **s)
{
	int hi, lo, c = (uint8_t) * (*s)++;

	if (c == '%') {
		hi = hex((*s)[0]);
		lo = hi < 0 ? -1 : hex((*s)[1]);
		if (lo < 0)
			return -1;
		*s += 2;
		c = hi << 4 | lo;
		if (c == '/' || c == '%')
			return -1;
	}
	return c < ' ' || c == 0x7f || c == '\\' ? -1 : c;
}

static bool is_dots(const char *s, size_t n)
{
	return (n == 1 && s[0] == '.') || (n == 2 && !memcmp(s, "..", 2));
}

bool net_path_clean(const char *path, char ret[NET_PATH_MAX + 1])
{
	size_t n = 0, at = 1;

	if (!path || path[0] != '/')
		return false;
	while (*path) {
		int c = next_byte(&path);

		if (c < 0 || n == NET_PATH_MAX)
			return false;
		if (c == '/' && n) {
			if (n == at || is_dots(ret + at, n - at))
				return false;
			at = n + 1;
		}
		ret[n++] = (char)c;
	}
	if (is_dots(ret + at, n - at))
		return false;
	if (n > 1 && ret[n - 1] == '/')
		n--;
	ret[n] = '\0';
	return true;
}

static bool segment_match(const char *g, size_t g_len, const char *s, size_t s_len)
{
	size_t i = 0, j = 0, star = SIZE_MAX, again = 0;

	while (j < s_len) {
		if (i < g_len && g[i] == '*') {
			star = ++i;
			again = j;
		} else if (i < g_len && g[i] == s[j]) {
			i++;
			j++;
		} else if (star != SIZE_MAX) {
			i = star;
			j = ++again;
		} else {
			return false;
		}
	}
	while (i < g_len && g[i] == '*')
		i++;
	return i == g_len;
}

/* Both stand at a '/' or at the end. "**" is any number of segments, also none: the last one met is tried with one more
 * each time, and an earlier one need never be tried again. */
bool net_path_match(const char *g, const char *s)
{
	const char *many = NULL, *again = NULL;

	if (streq(s, "/"))
		s = "";
	if (streq(g, "/"))
		g = "";
	for (;;) {
		size_t g_len = *g ? strcspn(g + 1, "/") : 0, s_len = *s ? strcspn(s + 1, "/") : 0;

		if (g_len == 2 && !memcmp(g + 1, "**", 2)) {
			g += 3;
			many = g;
			again = s;
			continue;
		}
		if (!*g && !*s)
			return true;
		if (*g && *s && segment_match(g + 1, g_len, s + 1, s_len)) {
			g += g_len + 1;
			s += s_len + 1;
			continue;
		}
		if (!many || !*again)
			return false;
		again += 1 + strcspn(again + 1, "/");
		g = many;
		s = again;
	}
}
