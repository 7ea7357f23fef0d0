#include "base/check.h"
#include "proxy/head.h"

static struct xhead request(const char *text)
{
	struct http_head h;
	struct xhead x = { 0 };

	check(http_request(&h, (const uint8_t *)text, strlen(text)) == HTTP_OK);
	check(xhead_from_http1(&x, &h, (const uint8_t *)text) == 0);
	return x;
}

static struct xhead answer(const char *text, const char *method)
{
	struct http_head h;
	struct xhead x = { 0 };

	check(http_response(&h, (const uint8_t *)text, strlen(text), method) == HTTP_OK);
	check(xhead_from_http1(&x, &h, (const uint8_t *)text) == 0);
	return x;
}

static const char *value(struct xhead *x, const char *name)
{
	const struct hfield *f = hfields_find(&x->fields, name);

	return f ? f->value : NULL;
}

static void requests(void)
{
	struct xhead x = request("POST /a%20b?q=1 HTTP/1.1\r\nHost: A.example:443\r\nX-A: 1\r\n"
				 "Connection: x-b, close\r\nX-B: 2\r\nTE: gzip, trailers\r\n"
				 "Content-Length: 5\r\nExpect: 100-continue\r\n"
				 "Proxy-Authorization: x\r\nKeep-Alive: 5\r\n\r\n");

	check(streq(x.method, "POST") && streq(x.target, "/a%20b?q=1") && streq(x.path, "/a b"));
	check(streq(x.host.text, "a.example") && x.port == 443 && x.close && x.expect_continue);
	check(x.has_length && x.length == 5 && !x.no_body && x.fields.n == 2);
	check(streq(value(&x, "x-a"), "1") && streq(value(&x, "TE"), "trailers"));
	xhead_done(&x);

	x = request("GET http://a.example?x HTTP/1.1\r\nHost: a.example\r\n"
		    "Connection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n");
	check(streq(x.target, "/?x") && streq(x.protocol, "websocket") && x.no_body && !x.close);
	check(!x.has_length && x.fields.n == 0);
	xhead_done(&x);

	x = request("GET / HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade, HTTP2-Settings\r\n"
		    "Upgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n");
	check(!x.protocol[0] && x.fields.n == 0);
	xhead_done(&x);

	x = request("PUT / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n");
	check(!x.no_body && !x.has_length && x.fields.n == 0);
	xhead_done(&x);
}

static void answers(void)
{
	struct xhead x = answer("HTTP/1.1 200 OK\r\nContent-Length: 12\r\nX: y\r\n\r\n", "HEAD");

	check(x.status == 200 && x.has_length && x.length == 12 && x.no_body && !x.close);
	xhead_done(&x);
	x = answer("HTTP/1.1 200 OK\r\n\r\n", "GET");
	check(!x.has_length && !x.no_body && x.close);
	xhead_done(&x);
	x = answer("HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
		   "GET");
	check(x.status == 101 && streq(x.protocol, "websocket"));
	xhead_done(&x);
}

static void fields(void)
{
	struct hfields f = { 0 };
	static char big[HTTP_HEAD_MAX];

	check(hfields_add(&f, "a b", 3, "", 0) == -EINVAL &&
	      hfields_add(&f, "", 0, "", 0) == -EINVAL);
	check(hfields_add(&f, "a", 1, " x", 2) == -EINVAL &&
	      hfields_add(&f, "a", 1, "x\r", 2) == -EINVAL);
	check(hfields_add(&f, "a", 1, "x\0y", 3) == -EINVAL);
	for (int i = 0; i < HTTP_FIELDS_MAX; i++)
		check(hfields_add(&f, i % 3 ? "Odd" : "Third", i % 3 ? 3 : 5, "v\tw", 3) == 0);
	check(hfields_add(&f, "a", 1, "", 0) == -E2BIG);
	check(hfields_remove(&f, "odd") == 85 && f.n == 43 && f.bytes == 43 * 12);
	for (int i = 0; i < 85; i++)
		check(hfields_add(&f, "b", 1, "", 0) == 0);
	check(hfields_remove(&f, "b") == 85 && hfields_remove(&f, "b") == 0);
	check(hfield_set(&f, &f.v[0], "secret", 6, true) == 0 && f.v[0].secret &&
	      f.bytes == 43 * 12 + 3);
	check(hfield_set(&f, &f.v[0], "se\ncret", 7, true) == -EINVAL);
	memset(big, 'x', sizeof(big));
	check(hfield_set(&f, &f.v[0], big, sizeof(big), true) == -E2BIG);
	check(hfields_add(&f, "big", 3, big, sizeof(big) - f.bytes - 7) == 0 &&
	      f.bytes == HTTP_HEAD_MAX);
	check(hfields_add(&f, "a", 1, "", 0) == -E2BIG);
	hfields_done(&f);
	check(hfields_add(&f, "a", 1, "x", 1) == 0 && hfields_find(&f, "A"));
	hfields_done(&f);
}

int main(void)
{
	requests();
	answers();
	fields();
	return 0;
}
