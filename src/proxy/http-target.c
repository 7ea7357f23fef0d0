/* Where a request goes, and its path as rules see it.
 *
 * A path is only decided on if every server that is known to us would understand it alike. Servers differ about escaped and
 * repeated slashes, about backslashes, about "..;" and about escapes of escapes; such a path becomes "". */
#include "proxy/http-priv.h"

enum { PORT_HTTP = 80, PORT_HTTPS = 443 };

/* ---- the path ---- */

static int hex(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (uint8_t)http_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_escape(const char *p, size_t n)
{
	return n > 2 && p[0] == '%' && hex((uint8_t)p[1]) >= 0 && hex((uint8_t)p[2]) >= 0;
}

/* Escapes taken out. Bytes written, or -1: not to be decided on. */
static ssize_t unescape(const uint8_t *p, size_t n, char *dst, size_t max)
{
	size_t len = 0;

	for (size_t i = 0; i < n && p[i] != '?'; i++) {
		bool escaped = p[i] == '%';
		uint8_t c = p[i];

		if (escaped) {
			const int high = n - i < 3 ? -1 : hex(p[i + 1]);
			const int low = n - i < 3 ? -1 : hex(p[i + 2]);

			if (high < 0 || low < 0)
				return -1;
			c = (uint8_t)(high * 16 + low);
			i += 2;
		}
		if (c < ' ' || c == 0x7f || c == '\\' || (escaped && c == '/') || len == max)
			return -1;
		dst[len++] = (char)c;
	}
	for (size_t i = 0; i < len; i++)
		if (is_escape(dst + i, len - i))
			return -1;
	return (ssize_t)len;
}

/* RFC 3986 5.2.4, in place; p begins with '/'. Bytes, or -1. */
static ssize_t undot(char *p, size_t n)
{
	size_t out = 0, at = 0;

	while (at < n) {
		const size_t seg = at + 1; /* behind the slash */
		size_t end = seg;

		while (end < n && p[end] != '/')
			end++;
		if (end == seg && end < n)
			return -1; /* "//" */
		if (end - seg > 1 && p[seg] == '.' &&
		    (p[seg + 1] == ';' ||
		     (p[seg + 1] == '.' && end - seg > 2 && p[seg + 2] == ';')))
			return -1;
		if (end - seg == 2 && p[seg] == '.' && p[seg + 1] == '.') {
			if (!out)
				return -1;
			while (p[--out] != '/')
				;
		} else if (!(end - seg == 1 && p[seg] == '.')) {
			memmove(p + out, p + at, end - at);
			out += end - at;
			at = end;
			continue;
		}
		if (end == n)
			p[out++] = '/'; /* "/a/.." is "/", "/a/." is "/a/" */
		at = end;
	}
	return (ssize_t)out;
}

/* h->path, from the target behind its authority. */
static void path_take(struct http_head *h, const uint8_t *p, size_t n)
{
	ssize_t len;

	h->path[0] = '\0';
	if (!n || p[0] == '?') {
		memcpy(h->path, "/", 2);
		return;
	}
	len = unescape(p, n, h->path, sizeof(h->path) - 1);
	if (len > 0)
		len = undot(h->path, (size_t)len);
	h->path[len > 0 ? len : 0] = '\0';
}

/* ---- the target ---- */

static const char *authority(struct host *ret, uint16_t *ret_port, const uint8_t *p, size_t n)
{
	struct err e;

	if (!n)
		return "an empty host";
	if (memchr(p, '@', n))
		return "user information in the host";
	if (host_port_parse(ret, ret_port, (const char *)p, n, &e) < 0)
		return "a host that is none";
	return NULL;
}

static const char *host_field(struct http_head *h, const uint8_t *p, size_t n)
{
	if (!p)
		return NULL;
	h->has_host = true;
	return authority(&h->host, &h->port, p, n);
}

/* Default ports are written or not: it is the same. */
static bool port_same(uint16_t a, uint16_t b, uint16_t otherwise)
{
	return (a ? a : otherwise) == (b ? b : otherwise);
}

static const char *absolute(struct http_head *h, const uint8_t *p, size_t n, const uint8_t *field,
			    size_t field_n)
{
	const size_t scheme = h->https ? 8 : 7;
	const char *why = host_field(h, field, field_n);
	struct host host;
	uint16_t port;
	size_t end = scheme;

	while (end < n && p[end] != '/' && p[end] != '?')
		end++;
	if (!why)
		why = authority(&host, &port, p + scheme, end - scheme);
	if (why)
		return why;
	if (h->has_host && (!host_same(&host, &h->host) ||
			    !port_same(port, h->port, h->https ? PORT_HTTPS : PORT_HTTP)))
		return "Host and the target disagree";
	h->form = TARGET_ABSOLUTE;
	h->has_host = true;
	h->host = host;
	h->port = port;
	path_take(h, p + end, n - end);
	return NULL;
}

/* Only CONNECT. A Host field may leave the port out, and some clients do. */
static const char *connect_to(struct http_head *h, const uint8_t *p, size_t n, const uint8_t *field,
			      size_t field_n)
{
	const char *why = host_field(h, field, field_n);
	struct host host;
	uint16_t port;

	if (!why)
		why = authority(&host, &port, p, n);
	if (why)
		return why;
	if (!port)
		return "CONNECT without a port";
	if (h->has_host && (!host_same(&host, &h->host) || (h->port && h->port != port)))
		return "Host and the target disagree";
	h->form = TARGET_AUTHORITY;
	h->has_host = true;
	h->host = host;
	h->port = port;
	return NULL;
}

const char *http_target(struct http_head *h, const uint8_t *target, size_t n, const uint8_t *host,
			size_t host_n)
{
	if (streq(h->method, "CONNECT"))
		return connect_to(h, target, n, host, host_n);
	h->https = n > 8 && http_word_is(target, 8, "https://");
	if (h->https || (n > 7 && http_word_is(target, 7, "http://")))
		return absolute(h, target, n, host, host_n);
	if (target[0] == '/') {
		h->form = TARGET_ORIGIN;
		path_take(h, target, n);
		return host_field(h, host, host_n);
	}
	if (n == 1 && target[0] == '*' && streq(h->method, "OPTIONS")) {
		h->form = TARGET_ASTERISK;
		return host_field(h, host, host_n);
	}
	return "a target that is neither a path nor an http address";
}
