/* Bodies of token endpoints. */
#include "proxy/inject-test.h"

#define SENTINEL "sk-ant-ort01-proxy-managed"
#define ACCESS   "sk-ant-oat01-proxy-managed"

/* {"email":"a@b","at_hash":"x"}, and of it what stays */
#define SIGNED   "eyJhbGciOiJSUzI1NiJ9.eyJlbWFpbCI6ImFAYiIsImF0X2hhc2giOiJ4In0.c2lnbmF0dXJl"
#define STAND_IN "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJlbWFpbCI6ImFAYiJ9.not-signed-proxy-managed"

static const struct {
	const char *in, *out; /* out NULL: r is an error; "=": as it was */
	int r;
} requests[] = {
	{ "grant_type=refresh_token&refresh_token=" SENTINEL "&client_id=x",
	  "grant_type=refresh_token&refresh_token=r%2Fe%2Bal&client_id=x", 0 },
	{ "refresh_token=sk-ant-ort01%2dproxy%2Dmanaged", "refresh_token=r%2Fe%2Bal", 0 },
	{ "refresh%5Ftoken=" SENTINEL "&a=", "refresh%5Ftoken=r%2Fe%2Bal&a=", 0 },
	{ "grant_type=authorization_code&code=abc", "=", 1 },
	{ "", "=", 1 },
	{ "a=1&b=%C3%A9+x", "=", 1 },
	{ "refresh_token=mine&grant_type=refresh_token", NULL, -EPERM },
	{ "refresh_token=", NULL, -EPERM },
	{ "refresh_token=" SENTINEL "x", NULL, -EPERM },
	{ "refresh_token=" SENTINEL "&refresh_token=mine", NULL, -EINVAL },
	{ "refresh_token=" SENTINEL "&refresh%5ftoken=mine", NULL, -EINVAL },
	{ "refresh_token", NULL, -EINVAL },
	{ "=x", NULL, -EINVAL },
	{ "a=1&", NULL, -EINVAL },
	{ "a=1&&b=2", NULL, -EINVAL },
	{ "a=%4", NULL, -EINVAL },
	{ "a=%zz", NULL, -EINVAL },
	{ "a=1\r\nb=2", NULL, -EINVAL },
	{ "a=\303\251", NULL, -EINVAL },
	{ "{\"grant_type\":\"refresh_token\",\"refresh_token\":\"" SENTINEL "\",\"n\":1}",
	  "{\"grant_type\":\"refresh_token\",\"refresh_token\":\"r/e+al\",\"n\":1}", 0 },
	{ " {\"refresh_token\": \"sk-ant-ort01\\u002dproxy-managed\"}",
	  "{\"refresh_token\":\"r/e+al\"}", 0 },
	{ "{\"grant_type\":\"authorization_code\",\"code\":\"a\"}", "=", 1 },
	{ "{\"refresh_token\":null}", "=", 1 },
	{ "{\"refresh_token\":\"mine\"}", NULL, -EPERM },
	{ "{\"refresh_token\":1}", NULL, -EINVAL },
	{ "{\"refresh_token\":\"mine\",\"refresh_token\":\"" SENTINEL "\"}", NULL, -EINVAL },
	{ "{\"refresh_token\":\"" SENTINEL "\"} x", NULL, -EINVAL },
	{ "{\"refresh_token\":\"" SENTINEL "\"", NULL, -EINVAL },
	{ "[{\"refresh_token\":\"" SENTINEL "\"}]", NULL, -EINVAL },
};

static const struct {
	const char *in, *out, *access, *refresh, *scope;
	uint64_t expires;
	int r;
} answers[] = {
	{ "{\"access_token\":\"AT-1\",\"refresh_token\":\"RT-1\",\"expires_in\":3600,\"scope\":\"a "
	  "b\",\"x\":{\"y\":[1,2.5,null]}}",
	  "{\"access_token\":\"" ACCESS "\",\"refresh_token\":\"" SENTINEL
	  "\",\"expires_in\":3600,\"scope\":\"a b\",\"x\":{\"y\":[1,2.5,null]}}",
	  "AT-1", "RT-1", "a b", 3600, 0 },
	{ "{\"token_type\":\"Bearer\",\"access_token\":\"AT-1\"}",
	  "{\"token_type\":\"Bearer\",\"access_token\":\"" ACCESS "\"}", "AT-1", NULL, NULL, 0, 0 },
	{ "{\"access_token\":\"AT-1\",\"expires_in\":\"60\"}",
	  "{\"access_token\":\"" ACCESS "\",\"expires_in\":\"60\"}", "AT-1", NULL, NULL, 60, 0 },
	{ "{\"access_token\":\"AT-1\",\"expires_in\":59.9}",
	  "{\"access_token\":\"" ACCESS "\",\"expires_in\":59.899999999999999}", "AT-1", NULL, NULL,
	  59, 0 },
	{ "{\"access_token\":\"AT-1\",\"expires_in\":-5}",
	  "{\"access_token\":\"" ACCESS "\",\"expires_in\":-5}", "AT-1", NULL, NULL, 0, 0 },
	{ "{\"refresh_token\":\"RT-1\"}", NULL, NULL, NULL, NULL, 0, -EINVAL },
	{ "\x1f\x8b\x08 compressed", NULL, NULL, NULL, NULL, 0, -EINVAL },
	{ "\xff\xfe", NULL, NULL, NULL, NULL, 0, -EINVAL },
	{ "not found \303\251\r\n", "=", NULL, NULL, NULL, 0, 1 },
	{ "{\"access_token\":\"AT-1\",\"again\":[{\"b\":\"x AT-1 y\"}]}",
	  "{\"access_token\":\"" ACCESS "\",\"again\":[{\"b\":\"" ACCESS "\"}]}", "AT-1", NULL,
	  NULL, 0, 0 },
	{ "{\"access_token\":\"AT-1\",\"AT-1\":1}", NULL, NULL, NULL, NULL, 0, -EINVAL },
	{ "{\"access_token\":\"a b\"}", NULL, NULL, NULL, NULL, 0, -EINVAL },
	{ "{\"access_token\":\"a\\u0000b\"}", NULL, NULL, NULL, NULL, 0, -EINVAL },
	{ "{\"access_token\":\"a\\r\\nb\"}", NULL, NULL, NULL, NULL, 0, -EINVAL },
	{ "{\"access_token\":\"\"}", NULL, NULL, NULL, NULL, 0, -EINVAL },
	{ "{\"access_token\":{\"v\":\"AT-1\"}}", NULL, NULL, NULL, NULL, 0, -EINVAL },
	{ "{\"access_token\":\"AT-1\"", NULL, NULL, NULL, NULL, 0, -EINVAL },
	{ "{\"access_token\":\"AT-1\",\"access_token\":\"AT-2\"}", NULL, NULL, NULL, NULL, 0,
	  -EINVAL },
	{ "access_token=AT-1&scope=", NULL, NULL, NULL, NULL, 0, -EINVAL },
	{ "{\"error\":\"invalid_grant\",\"error_description\":\"x\"}", "=", NULL, NULL, NULL, 0,
	  1 },
	{ "<html>502</html>", "=", NULL, NULL, NULL, 0, 1 },
	{ "", "=", NULL, NULL, NULL, 0, 1 },
	{ "[]", "=", NULL, NULL, NULL, 0, 1 },
	{ "{\"access_token\":null}", "=", NULL, NULL, NULL, 0, 1 },
	/* an id_token loses its signature, wherever it is, and what is none goes */
	{ "{\"access_token\":\"AT-1\",\"id_token\":\"" SIGNED "\"}",
	  "{\"access_token\":\"" ACCESS "\",\"id_token\":\"" STAND_IN "\"}", "AT-1", NULL, NULL, 0,
	  0 },
	{ "{\"id_token\":\"" SIGNED "\",\"x\":1}", "{\"id_token\":\"" STAND_IN "\",\"x\":1}", NULL,
	  NULL, NULL, 0, 0 },
	{ "{\"error\":\"x\",\"y\":[{\"id_token\":\"" SIGNED "\"}]}",
	  "{\"error\":\"x\",\"y\":[{\"id_token\":\"" STAND_IN "\"}]}", NULL, NULL, NULL, 0, 0 },
	{ "{\"access_token\":\"AT-1\",\"id_token\":\"AT-1\"}", "{\"access_token\":\"" ACCESS "\"}",
	  "AT-1", NULL, NULL, 0, 0 },
	{ "{\"access_token\":\"AT-1\",\"id_token\":{\"v\":\"" SIGNED "\"}}",
	  "{\"access_token\":\"" ACCESS "\"}", "AT-1", NULL, NULL, 0, 0 },
	{ "{\"id_token\":null}", "{}", NULL, NULL, NULL, 0, 0 },
};

static const struct cred_use *use(void)
{
	size_t i = 0;

	while (!streq(inject_test_uses[i].id, "token"))
		i++;
	return &inject_test_uses[i];
}

static void ask(void)
{
	struct buf out;
	struct err e;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(requests); i++) {
		const char *in = requests[i].in, *want = requests[i].out;

		(void)fprintf(stderr, "%s\n", in);
		buf_init(&out, INJECT_BODY_MAX);
		check(inject_token_request(use(), (const uint8_t *)in, strlen(in),
					   (const uint8_t *)"r/e+al", 6, &out,
					   &e) == requests[i].r);
		if (requests[i].r >= 0)
			check(streq(buf_str(&out), streq(want, "=") ? in : want));
		else
			check(!out.n && strstr(e.msg, "'claude'"));
		buf_done(&out);
	}
	buf_init(&out, INJECT_BODY_MAX);
	check(inject_token_request(use(), (const uint8_t *)"refresh_token=" SENTINEL, 40, NULL, 0,
				   &out, &e) == -ENOENT);
	check(inject_token_request(use(), (const uint8_t *)"a=b", 3, NULL, 0, &out, &e) == 1);
	buf_done(&out);
	buf_init(&out, 20);
	check(inject_token_request(use(), (const uint8_t *)"refresh_token=" SENTINEL, 40,
				   (const uint8_t *)"r/e+al", 6, &out, &e) == -ENOBUFS);
	buf_done(&out);
}

static void get(void)
{
	struct inject_tokens t;
	struct buf out;
	struct err e;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(answers); i++) {
		const char *in = answers[i].in, *want = answers[i].out;

		(void)fprintf(stderr, "%s\n", in);
		buf_init(&out, INJECT_BODY_MAX);
		memset(&t, 0, sizeof(t));
		check(inject_token_answer(use(), (const uint8_t *)in, strlen(in), &t, &out, &e) ==
		      answers[i].r);
		check(streq(t.access, answers[i].access) && streq(t.refresh, answers[i].refresh));
		check(streq(t.scope, answers[i].scope) && t.expires_in == answers[i].expires);
		if (answers[i].r >= 0)
			check(streq(buf_str(&out), streq(want, "=") ? in : want));
		else
			check(!out.n && strstr(e.msg, "'claude'"));
		inject_tokens_done(&t);
		check(!t.access && !t.refresh);
		buf_done(&out);
	}
}

/* Deep, and long. */
static void hostile(void)
{
	const size_t n = INJECT_BODY_MAX + 1;
	_free_ char *p = malloc(n);
	struct buf out = BUF_INIT(4 * n);
	struct inject_tokens t = { 0 };
	struct err e;

	check(p);
	memset(p, '[', n);
	check(inject_token_answer(use(), (uint8_t *)p, n - 1, &t, &out, &e) == 1);
	check(inject_token_answer(use(), (uint8_t *)p, n, &t, &out, &e) == -EINVAL);
	check(inject_token_request(use(), (uint8_t *)p, n - 1, NULL, 0, &out, &e) == -EINVAL);
	check(inject_token_request(use(), (uint8_t *)p, n, NULL, 0, &out, &e) == -EINVAL);
	memset(p, 'a', n);
	check(inject_token_request(use(), (uint8_t *)p, n - 1, NULL, 0, &out, &e) == -EINVAL);
	memcpy(p, "{\"access_token\":\"", 17);
	memcpy(p + n - 3, "\"}", 2);
	check(inject_token_answer(use(), (uint8_t *)p, n - 1, &t, &out, &e) == -EINVAL);
	buf_done(&out);
	inject_tokens_done(&t);
}

int main(void)
{
	ask();
	get();
	hostile();
	return 0;
}
