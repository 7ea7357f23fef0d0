/* A head that was accepted, written anew, is accepted again and says the same: no two readers can differ about it. */
#include "proxy/http-write.h"

enum { OURS = 3 }; /* Host, Connection, Proxy-Authorization */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
	if (!good)
		abort();
}

static void request(const uint8_t *data, size_t size, bool absolute)
{
	struct http_head h = { 0 }, again = { 0 };
	struct buf out = BUF_INIT((size_t)256 * 1024);
	struct http_rewrite w = {
		.head = &h, .bytes = data, .basic = "Basic eA==", .port = 80, .forward = true
	};

	if (http_request(&h, data, size) != HTTP_OK || h.form == TARGET_AUTHORITY)
		return;
	w.absolute = absolute && h.has_host && h.form != TARGET_ASTERISK;
	w.port = h.port ? h.port : 80;
	w.keep = h.keep_alive;
	w.upgrade = h.upgrade && !h.h2c;
	w.http10 = h.minor == 0;
	must(http_write_request(&out, &w) == 0);
	/* a few bytes may have come with the authority, and a few fields of ours */
	if (out.n <= HTTP_HEAD_MAX && h.n_fields <= HTTP_FIELDS_MAX - OURS) {
		must(http_request(&again, buf_data(&out), out.n) == HTTP_OK);
		must(again.size == out.n && again.body == h.body && again.length == h.length &&
		     again.minor == h.minor);
		must(streq(again.method, h.method) && streq(again.path, h.path));
		must(again.has_host == h.has_host &&
		     (!h.has_host || host_same(&again.host, &h.host)));
		must(again.keep_alive == w.keep || w.upgrade);
	}
	buf_done(&out);
}

static void response(const uint8_t *data, size_t size)
{
	struct http_head h = { 0 }, again = { 0 };
	struct buf out = BUF_INIT((size_t)256 * 1024);
	struct http_rewrite w = { .head = &h, .bytes = data, .keep = true };

	if (http_response(&h, data, size, "GET") != HTTP_OK)
		return;
	w.upgrade = h.status == 101;
	must(http_write_response(&out, &w) == 0);
	if (out.n <= HTTP_HEAD_MAX && h.n_fields <= HTTP_FIELDS_MAX - OURS) {
		must(http_response(&again, buf_data(&out), out.n, "GET") == HTTP_OK);
		must(again.size == out.n && again.status == h.status && again.body == h.body &&
		     again.length == h.length);
	}
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	request(data, size, false);
	request(data, size, true);
	response(data, size);
	return 0;
}
