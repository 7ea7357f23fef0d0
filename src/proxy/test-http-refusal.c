/* Refusals: what they say, in which form, and that nothing of a guest's gets into them raw. Our own parser reads them. */
#include <stdio.h>

#include "base/check.h"
#include "proxy/http.h"

static char out[8192];
static struct http_head head;

/* The body. */
static const char *refuse(const struct http_refusal *r)
{
	size_t n = http_refusal(r, out, sizeof(out) - 1);

	check(n > 0);
	out[n] = '\0';
	check(http_response(&head, (const uint8_t *)out, n, r->head_only ? "HEAD" : "GET") ==
	      HTTP_OK);
	check(head.status == r->status && head.keep_alive == r->keep_alive);
	if (r->head_only)
		check(head.size == n);
	else
		check(head.body == BODY_LENGTH && head.size + head.length == n);
	check(strlen(out) == n);
	return out + head.size;
}

static const struct http_refusal denied = {
	.status = 403,
	.host = "evil.example",
	.port = 443,
	.method = "GET",
	.path = "/x",
	.reason = "default-deny",
	.sandbox = "web",
	.remedy = "bac policy allow network --sandbox web evil.example:443",
};

static void text(void)
{
	struct http_refusal r = denied;
	const char *b = refuse(&r);

	check(streq(
		b, "bac: refused by network policy: evil.example:443\n"
		   "The request was GET /x\n"
		   "No rule allows it.\n"
		   "A human can allow it on the host with:  bac policy allow network --sandbox web "
		   "evil.example:443\n"
		   "Do not try another route: every route ends here.\n"));
	check(strstr(out, "X-Bac-Refused: default-deny\r\n"));
	r.rule = "f00-ba4";
	r.remedy = NULL;
	r.host = "2001:db8::1";
	b = refuse(&r);
	check(starts_with(b, "bac: refused by network policy: [2001:db8::1]:443\n"));
	check(strstr(b, "The rule that decided: f00-ba4\n") && !strstr(b, "A human"));
	r.head_only = r.keep_alive = true;
	check(streq(refuse(&r), ""));
	r = (struct http_refusal) { .status = 502, .detail = "connection refused" };
	b = refuse(&r);
	check(streq(b, "bac: allowed by network policy, but not reached\nconnection refused\n"));
}

static void every_status(void)
{
	static const uint16_t all[] = { 400, 403, 413, 421, 431, 502, 503, 504 };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		for (int json = 0; json < 2; json++)
			check(refuse(&(struct http_refusal) { .status = all[i], .json = json })[0]);
	check(http_refusal(&(struct http_refusal) { .status = 200 }, out, sizeof(out)) == 0);
	check(http_refusal(&denied, out, 100) == 0 && http_refusal(&denied, out, 0) == 0);
}

static void json(void)
{
	struct http_refusal r = denied;
	const char *b;

	r.json = true;
	b = refuse(&r);
	check(strstr(out, "Content-Type: application/json\r\n"));
	check(starts_with(b, "{\"error\": \"refused by network policy\", \"by\": \"bac\", "
			     "\"status\": 403, \"port\": 443, \"host\": \"evil.example\", "
			     "\"method\": \"GET\", \"path\": \"/x\", \"rule\": null, "));
	r.path = "/\"\\\x1b\n\xc3\xa4";
	check(strstr(refuse(&r), "\"path\": \"/\\\"\\\\\\u001b\\u000a\xc3\xa4\""));
	r.path = "/\xff";
	check(strstr(refuse(&r), "\"path\": \"/\\ufffd\""));
}

static void hostile(void)
{
	static char big[70000];
	struct http_refusal r = denied;

	r.host = "a\r\nX: y";
	r.path = "/\x1b[2J\x07\xff";
	r.reason = "a\r\nSet-Cookie: b";
	r.detail = "\r\n\r\n";
	check(starts_with(refuse(&r), "bac: refused by network policy: [a??X: y]:443\n"
				      "The request was GET /?[2J??\n????\n"));
	check(!http_find(&head, (const uint8_t *)out, "set-cookie"));
	memset(big, 1, sizeof(big) - 1);
	r = (struct http_refusal) {
		.status = 403, .path = big, .method = "GET", .reason = big, .detail = big
	};
	(void)refuse(&r);
	memset(big, '"', sizeof(big) - 1);
	r.json = true;
	r.host = r.rule = r.remedy = r.sandbox = "x";
	(void)refuse(&r);
}

static const struct {
	const char *accept;
	bool want;
} accepts[] = {
	{ "application/json", true },
	{ "APPLICATION/JSON", true },
	{ "application/json, text/plain, */*", true },
	{ "text/html, application/json;q=0.9", false },
	{ "text/html;q=0.5, application/json;q=0.9", true },
	{ "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*", true },
	{ "application/problem+json", true },
	{ "*/*", false },
	{ "text/*, application/*", false },
	{ "application/json;q=0", false },
	{ "application/json;q=0.000", false },
	{ "application/json;q=0.001", true },
	{ "application/json;charset=utf-8;q=0.2, text/plain; q=0.3", false },
	{ "application/jsonx", false },
	{ "json", false },
	{ "", false },
	{ ",,;q=,", false },
	{ "application/json;q=", false },
};

static void accept_fields(void)
{
	char in[300];
	int n;

	for (size_t i = 0; i < ARRAY_SIZE(accepts); i++) {
		n = snprintf(in, sizeof(in), "GET / HTTP/1.1\r\nHost: a\r\nAccept: %s\r\n\r\n",
			     accepts[i].accept);
		check(http_request(&head, (const uint8_t *)in, (size_t)n) == HTTP_OK);
		if (http_wants_json(&head, (const uint8_t *)in) != accepts[i].want)
			(void)fprintf(stderr, "Accept: %s\n", accepts[i].accept);
		check(http_wants_json(&head, (const uint8_t *)in) == accepts[i].want);
	}
	n = snprintf(in, sizeof(in), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	check(http_request(&head, (const uint8_t *)in, (size_t)n) == HTTP_OK);
	check(!http_wants_json(&head, (const uint8_t *)in));
}

int main(void)
{
	text();
	every_status();
	json();
	hostile();
	accept_fields();
	return 0;
}
