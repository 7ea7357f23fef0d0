#include "proxy/route.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <strings.h>

#include "base/base64.h"
#include "base/text.h"
#include "policy/no-proxy.h"
#include "proxy/control.h"

/* "192.0.2.1:80", "[2001:db8::1]:80". An address as it is: 127.0.0.2 is not "localhost" here. */
static int target(struct detour *d, const char *text)
{
	const char *colon = strrchr(text, ':');
	char addr[INET6_ADDRSTRLEN];
	uint64_t port;
	size_t n;

	if (!colon || text_u64(colon + 1, UINT16_MAX, &port) < 0 || !port)
		return -EINVAL;
	n = (size_t)(colon - text);
	if (n > 2 && text[0] == '[' && text[n - 1] == ']') {
		text++;
		n -= 2;
	}
	if (n >= sizeof(addr))
		return -EINVAL;
	memcpy(addr, text, n);
	addr[n] = 0;
	d->to_port = (uint16_t)port;
	d->addr_len = inet_pton(AF_INET, addr, d->addr) == 1 ? 4 : 16;
	return d->addr_len == 4 || inet_pton(AF_INET6, addr, d->addr) == 1 ? 0 : -EINVAL;
}

static int detour(struct proxy *p, const char *text, struct err *e)
{
	struct detour *d = &p->detours[p->n_detours];
	const char *to = strchr(text, '=');
	int r;

	if (!to)
		return err_set(e, -EINVAL, "it has no '='");
	r = host_port_parse(&d->host, &d->port, text, (size_t)(to - text), e);
	if (r < 0)
		return r;
	if (!d->port)
		return err_set(e, -EINVAL, "a port is missing");
	if (target(d, to + 1) < 0)
		return err_set(e, -EINVAL, "'%s' is no address with a port", to + 1);
	p->n_detours++;
	return 0;
}

/* 0 to 15, or 16: no digit. */
static unsigned hex(unsigned char c)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (unsigned)(at - digits) & 15 : 16;
}

/* n bytes of a URL into dst, percent-decoded. */
static int unescape(char *dst, size_t max, const char *s, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == '%' && n - i > 2) {
			unsigned hi = hex((unsigned char)s[i + 1]),
				 lo = hex((unsigned char)s[i + 2]);

			if (hi > 15 || lo > 15)
				return -EINVAL;
			c = (unsigned char)(hi << 4 | lo);
			i += 2;
		}
		if (k + 1 >= max || !c)
			return -EINVAL;
		dst[k++] = (char)c;
	}
	dst[k] = 0;
	return 0;
}

static int user_pass(struct upstream *u, const char *s, size_t n)
{
	const char *colon = memchr(s, ':', n);
	size_t user = colon ? (size_t)(colon - s) : n;
	char both[sizeof(u->user) + sizeof(u->pass)];
	int len;

	if (unescape(u->user, sizeof(u->user), s, user) < 0 ||
	    (colon && unescape(u->pass, sizeof(u->pass), colon + 1, n - user - 1) < 0))
		return -EINVAL;
	len = snprintf(both, sizeof(both), "%s:%s", u->user, u->pass);
	if (len < 0 || (size_t)len >= sizeof(both))
		return -EINVAL;
	(void)memcpy(u->basic, "Basic ", 6);
	*base64_put(u->basic + 6, both, (size_t)len, BASE64) = '\0';
	return 0;
}

static const struct {
	const char *prefix;
	uint8_t kind;
	uint16_t port;
} schemes[] = {
	{ "http://", UPSTREAM_HTTP, 80 },
	{ "socks5://", UPSTREAM_SOCKS5, 1080 },
	{ "socks5h://", UPSTREAM_SOCKS5, 1080 },
};

static int upstream(struct upstream *u, const char *text, struct err *e)
{
	const char *at;
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		if (strncasecmp(text, schemes[i].prefix, strlen(schemes[i].prefix)) != 0)
			continue;
		text += strlen(schemes[i].prefix);
		u->kind = schemes[i].kind;
		u->port = schemes[i].port;
	}
	if (!u->kind && strstr(text, "://"))
		return err_set(e, -EINVAL, "it is neither http:// nor socks5://");
	if (!u->kind) { /* "host:port", as many write it */
		u->kind = UPSTREAM_HTTP;
		u->port = 80;
	}
	n = strcspn(text, "/");
	at = memrchr(text, '@', n);
	if (at && user_pass(u, text, (size_t)(at - text)) < 0)
		return err_set(e, -EINVAL, "its user or password is too long");
	if (at) {
		n -= (size_t)(at + 1 - text);
		text = at + 1;
	}
	{
		uint16_t port = 0;
		int r = host_port_parse(&u->host, &port, text, n, e);

		if (r < 0)
			return r;
		if (port)
			u->port = port;
	}
	return 0;
}

int route_config(struct proxy *p, const struct proxy_config *c)
{
	struct err e = { 0 };

	if (text_copy(p->sandbox, sizeof(p->sandbox), c->sandbox) < 0)
		return -EPROTO;
	p->generation = c->generation;
	p->n_detours = 0;
	for (uint32_t i = 0; i < c->n_connect; i++)
		if (detour(p, c->connect[i], &e) < 0)
			control_say(p, "net.connectTo '%.200s' is left out: %s", c->connect[i],
				    e.msg);
	p->upstream = (struct upstream) { 0 };
	if (text_copy(p->upstream.no_proxy, sizeof(p->upstream.no_proxy), c->no_proxy) < 0)
		return -EPROTO;
	if (c->upstream[0] && upstream(&p->upstream, c->upstream, &e) < 0) {
		/* not its text: there may be a password in it */
		control_say(p, "the host's upstream proxy cannot be used: %s", e.msg);
		p->upstream.kind = UPSTREAM_HTTP;
		p->upstream.host.kind = HOST_NONE;
	}
	return 0;
}

const struct detour *route_detour(const struct proxy *p, const struct host *h, uint16_t port)
{
	for (size_t i = 0; i < p->n_detours; i++)
		if (p->detours[i].port == port && host_same(&p->detours[i].host, h))
			return &p->detours[i];
	return NULL;
}

bool route_by_upstream(const struct proxy *p, const struct host *h)
{
	return p->upstream.kind && strcmp(h->text, "localhost") != 0 &&
	       !no_proxy_has(p->upstream.no_proxy, h);
}
