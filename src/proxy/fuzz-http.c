/* Any bytes as a request, as a response, and as a body, chosen by the first byte. In how many pieces the bytes come never changes
 * the result, and what is taken obeys what the header promises. */
#include "base/check.h"
#include "proxy/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static struct http_head head, part;

static enum http_result parse(struct http_head *h, const uint8_t *p, size_t n, uint8_t how)
{
	static const char *const methods[] = { NULL, "GET", "HEAD", "CONNECT" };

	memset(h, how, sizeof(*h));
	return how % 4 ? http_response(h, p, n, methods[how % 4]) : http_request(h, p, n);
}

static void field_holds(const uint8_t *p, const struct http_field *f)
{
	check(f->name.len && f->name.at + f->name.len < head.size);
	check(f->value.at > f->name.at + f->name.len &&
	      f->value.at + f->value.len + 2 <= head.size);
	check(!memchr(p + f->value.at, '\r', f->value.len));
	check(!memchr(p + f->value.at, '\n', f->value.len));
	check(!memchr(p + f->value.at, '\0', f->value.len));
}

static void holds(const uint8_t *p, size_t n, bool request)
{
	check(head.size >= 4 && head.size <= n && head.size <= HTTP_HEAD_MAX);
	check(!memcmp(p + head.size - 4, "\r\n\r\n", 4) && head.n_fields <= HTTP_FIELDS_MAX);
	for (uint16_t i = 0; i < head.n_fields; i++)
		field_holds(p, &head.fields[i]);
	check(head.body != BODY_CHUNKED || !http_find(&head, p, "content-length"));
	check(head.body == BODY_LENGTH || !head.length);
	check(memchr(head.path, 0, sizeof(head.path)));
	check(!head.path[0] || (request && head.path[0] == '/'));
	check(!strstr(head.path, "/../") && !strstr(head.path, "//"));
	check(head.has_host == (head.host.kind != HOST_NONE));
	check(!request || !head.minor || head.has_host);
	check(!request || (head.method[0] && head.target.len && head.body != BODY_UNTIL_CLOSE));
	(void)http_wants_json(&head, p);
}

static void one_head(const uint8_t *p, size_t n, uint8_t how)
{
	enum http_result res = parse(&head, p, n, how), first = HTTP_MORE;
	const size_t step = n > 2000 ? n / 61 : 1;

	if (res == HTTP_OK)
		holds(p, n, how % 4 == 0);
	for (size_t cut = 0; cut < n && first == HTTP_MORE; cut += step)
		first = parse(&part, p, cut, how);
	check(first == HTTP_MORE || first == res);
	if (first == HTTP_OK)
		check(part.size == head.size && part.body == head.body &&
		      part.length == head.length && streq(part.path, head.path) &&
		      streq(part.host.text, head.host.text) && part.port == head.port &&
		      part.keep_alive == head.keep_alive);
	if (first == HTTP_BAD)
		check(part.why && part.why == head.why);
}

static ssize_t scan(const uint8_t *p, size_t n, size_t step, bool *ret_done)
{
	const struct http_head h = { .body = BODY_CHUNKED };
	struct http_bodyscan s;
	size_t at = 0;
	ssize_t r;

	http_body_begin(&s, &h);
	while (at < n && !s.done) {
		size_t len = MIN(step, n - at);

		r = http_body_scan(&s, p + at, len);
		if (r < 0)
			return r;
		check((size_t)r <= len && ((size_t)r == len || s.done));
		at += (size_t)r;
	}
	*ret_done = s.done;
	return (ssize_t)at;
}

static void one_body(const uint8_t *p, size_t n, uint8_t how)
{
	bool whole = false, split = false;
	ssize_t r = scan(p, n, n, &whole);

	check(scan(p, n, 1 + how / 8, &split) == r && split == whole);
	check(scan(p, n, 1, &split) == r && split == whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	if (!n)
		return 0;
	if (p[0] % 8 < 5)
		one_head(p + 1, n - 1, p[0] % 8 == 4 ? 0 : p[0] % 8);
	else
		one_body(p + 1, n - 1, p[0]);
	return 0;
}
