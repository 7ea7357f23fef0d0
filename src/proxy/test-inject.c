/* Requests, and what becomes of them. */
#include "proxy/inject-test.h"

/* A request line without version, then fields. */
static const struct {
	const char *what, *host;
	bool tls;
	const char *request, *want, *reason, *names;
} rows[] = {
	{ "a header", "api.anthropic.com", true, "GET /v1\nX-Other: 1",
	  "/v1\nX-Other: 1\nx-api-key: REAL-anthropic\n", NULL, "anthropic" },
	{ "overwritten", "api.anthropic.com", true,
	  "GET /\nX-Api-Key: proxy-managed\nX-API-KEY: sk-of-the-client\nx-api-key: third",
	  "/\nx-api-key: REAL-anthropic\n", NULL, "anthropic" },
	{ "a format", "api.github.com", true, "GET /user\nAuthorization: Bearer proxy-managed",
	  "/user\nauthorization: token REAL-api-github\n", NULL, "github" },
	{ "all of the same name", "api.github.com", true,
	  "GET /user\nAuthorization: Bearer x\nA: 1\nauthorization: Basic eDp5",
	  "/user\nA: 1\nauthorization: token REAL-api-github\n", NULL, "github" },
	{ "bearer", "api.openai.com", true,
	  "POST /v1/responses\nAuthorization: Bearer proxy-managed",
	  "/v1/responses\nauthorization: Bearer REAL-openai\n", NULL, "openai" },
	{ "basic (git push)", "github.com", true,
	  "POST /a/b.git/git-receive-pack\nAuthorization: Basic "
	  "eC1hY2Nlc3MtdG9rZW46cHJveHktbWFuYWdlZA==",
	  "/a/b.git/git-receive-pack\nauthorization: Basic eC1hY2Nlc3MtdG9rZW46UkVBTC1naXRodWI=\n",
	  NULL, "github" },
	{ "basic without one of the client", "github.com", true,
	  "GET /a/b.git/info/refs?service=git-upload-pack",
	  "/a/b.git/info/refs?service=git-upload-pack\nauthorization: Basic "
	  "eC1hY2Nlc3MtdG9rZW46UkVBTC1naXRodWI=\n",
	  NULL, "github" },
	{ "the sentinel in another field goes", "api.anthropic.com", true,
	  "GET /\nAuthorization: Bearer proxy-managed\nA: b",
	  "/\nA: b\nx-api-key: REAL-anthropic\n", NULL, "anthropic" },
	{ "so does one of OAuth: the key wins", "api.anthropic.com", true,
	  "GET /\nAuthorization: Bearer sk-ant-oat01-proxy-managed",
	  "/\nx-api-key: REAL-anthropic\n", NULL, "anthropic" },
	{ "and one within Basic", "api.anthropic.com", true,
	  "GET /\nAuthorization: Basic bWU6cHJveHktbWFuYWdlZA==", "/\nx-api-key: REAL-anthropic\n",
	  NULL, "anthropic" },
	{ "and one in the query", "google.test", true, "GET /v1/m?key=proxy-managed&alt=sse",
	  "/v1/m?alt=sse\nx-goog-api-key: REAL-google\n", NULL, "google" },
	{ "alone in the query", "google.test", true, "GET /v1/m?key=proxy-managed",
	  "/v1/m\nx-goog-api-key: REAL-google\n", NULL, "google" },
	{ "between others", "google.test", true, "GET /v1/m?a=1&key=proxy-managed&b=2&&c",
	  "/v1/m?a=1&b=2&&c\nx-goog-api-key: REAL-google\n", NULL, "google" },
	{ "what only looks like one stays", "api.anthropic.com", true,
	  "GET /?q=about-proxy-managed+keys\nUser-Agent: proxy-managed/1.0 (x)\nAuthorization: "
	  "Bearer mine",
	  "/?q=about-proxy-managed+keys\nUser-Agent: proxy-managed/1.0 (x)\nAuthorization: Bearer "
	  "mine\nx-api-key: REAL-anthropic\n",
	  NULL, "anthropic" },
	{ "a sentinel elsewhere is no secret", "other.test", true,
	  "GET /?k=proxy-managed\nAuthorization: Bearer proxy-managed",
	  "/?k=proxy-managed\nAuthorization: Bearer proxy-managed\n", NULL, "" },
	{ "nor is one of OAuth", "other.test", true,
	  "GET /\nAuthorization: Bearer sk-ant-oat01-proxy-managed",
	  "/\nAuthorization: Bearer sk-ant-oat01-proxy-managed\n", NULL, "" },
	{ "nothing goes on without TLS", "api.anthropic.com", false,
	  "GET /\nx-api-key: proxy-managed", "/\nx-api-key: proxy-managed\n", NULL, "" },
	{ "not even a refusal", "api.x.ai", false, "GET /", "/\n", NULL, "" },
	{ "custom in a field", "a.test", true, "GET /\nAuthorization: Bearer bac-cs-AAAAAAAA",
	  "/\nAuthorization: Bearer REAL-a\n", NULL, "A_TOKEN" },
	{ "custom in any field, twice", "a.test", true,
	  "GET /\nX-K: k=bac-cs-AAAAAAAA,bac-cs-AAAAAAAA;\nY: 1",
	  "/\nX-K: k=REAL-a,REAL-a;\nY: 1\n", NULL, "A_TOKEN" },
	{ "in a cookie", "a.test", true, "GET /\nCookie: a=1; session=bac-cs-AAAAAAAA; b=2",
	  "/\nCookie: a=1; session=REAL-a; b=2\n", NULL, "A_TOKEN" },
	{ "curl -u user:$TOKEN", "a.test", true,
	  "GET /\nAuthorization: Basic dXNlcjpiYWMtY3MtQUFBQUFBQUE=",
	  "/\nAuthorization: Basic dXNlcjpSRUFMLWE=\n", NULL, "A_TOKEN" },
	{ "curl -u $TOKEN:", "a.test", true, "GET /\nAuthorization: Basic YmFjLWNzLUFBQUFBQUFBOg==",
	  "/\nAuthorization: Basic UkVBTC1hOg==\n", NULL, "A_TOKEN" },
	{ "npm _auth, docker login: lower case, no padding", "a.test", true,
	  "GET /v2/\nauthorization: basic QVdTOmJhYy1jcy1BQUFBQUFBQQ",
	  "/v2/\nauthorization: Basic QVdTOlJFQUwtYQ==\n", NULL, "A_TOKEN" },
	{ "in the query", "a.test", true, "GET /x?token=bac-cs-AAAAAAAA&a=b",
	  "/x?token=REAL-a&a=b\n", NULL, "A_TOKEN" },
	{ "in the path", "a.test", true, "GET /botbac-cs-AAAAAAAA/send", "/botREAL-a/send\n", NULL,
	  "A_TOKEN" },
	{ "percent-encoded where that is not needed", "a.test", true,
	  "GET /x?t=bac%2dcs%2DAAAAAAAA", "/x?t=REAL-a\n", NULL, "A_TOKEN" },
	{ "a placeholder that has to be encoded", "b.test", true,
	  "GET /x?t=p%3Ah%2Fx%2By%3Dz%2612%2534&u", "/x?t=REAL-b-basic&u\n", NULL, "C_TOKEN" },
	{ "in a field, encoded", "b.test", true,
	  "GET /\nReferer: https://b.test/?t=p%3Ah%2Fx%2By%3Dz%2612%2534",
	  "/\nReferer: https://b.test/?t=REAL-b-basic\n", NULL, "C_TOKEN" },
	{ "two of one host", "b.test", true, "GET /?a=bac-cs-BBBBBBBB\nX: p:h/x+y=z&12%34",
	  "/?a=REAL-b\nX: REAL-b-basic\n", NULL, "B_TOKEN, C_TOKEN" },
	{ "where it is not to be: Basic", "b.test", true,
	  "GET /\nAuthorization: Basic dTpwOmgveCt5PXomMTIlMzQ=",
	  "/\nAuthorization: Basic dTpwOmgveCt5PXomMTIlMzQ=\n", NULL, "" },
	{ "elsewhere: a field", "b.test", true, "GET /\nX: bac-cs-AAAAAAAA", NULL,
	  "placeholder-elsewhere", "" },
	{ "without TLS: a field", "a.test", false, "GET /\nX: bac-cs-AAAAAAAA", NULL,
	  "placeholder-elsewhere", "" },
	{ "elsewhere: the query", "b.test", true, "GET /?a=bac-cs-AAAAAAAA", NULL,
	  "placeholder-elsewhere", "" },
	{ "without TLS: the query", "a.test", false, "GET /?a=bac-cs-AAAAAAAA", NULL,
	  "placeholder-elsewhere", "" },
	{ "elsewhere: the path", "b.test", true, "GET /bac-cs-AAAAAAAA", NULL,
	  "placeholder-elsewhere", "" },
	{ "without TLS: the path", "a.test", false, "GET /bac-cs-AAAAAAAA", NULL,
	  "placeholder-elsewhere", "" },
	{ "elsewhere: Basic", "b.test", true,
	  "GET /\nAuthorization: Basic dTpiYWMtY3MtQUFBQUFBQUE=", NULL, "placeholder-elsewhere",
	  "" },
	{ "without TLS: Basic", "a.test", false,
	  "GET /\nAuthorization: Basic dTpiYWMtY3MtQUFBQUFBQUE=", NULL, "placeholder-elsewhere",
	  "" },
	{ "elsewhere: Basic, first", "b.test", true,
	  "GET /\nAuthorization: Basic YmFjLWNzLUFBQUFBQUFBOg==", NULL, "placeholder-elsewhere",
	  "" },
	{ "without TLS: Basic, first", "a.test", false,
	  "GET /\nAuthorization: Basic YmFjLWNzLUFBQUFBQUFBOg==", NULL, "placeholder-elsewhere",
	  "" },
	{ "elsewhere: a cookie", "b.test", true, "GET /\nCookie: s=bac-cs-AAAAAAAA", NULL,
	  "placeholder-elsewhere", "" },
	{ "without TLS: a cookie", "a.test", false, "GET /\nCookie: s=bac-cs-AAAAAAAA", NULL,
	  "placeholder-elsewhere", "" },
	{ "elsewhere: encoded", "b.test", true, "GET /?a=%62ac-cs-AAAAAAAA", NULL,
	  "placeholder-elsewhere", "" },
	{ "without TLS: encoded", "a.test", false, "GET /?a=%62ac-cs-AAAAAAAA", NULL,
	  "placeholder-elsewhere", "" },
	{ "elsewhere: a name", "b.test", true, "GET /\nbac-cs-AAAAAAAA: 1", NULL,
	  "placeholder-elsewhere", "" },
	{ "without TLS: a name", "a.test", false, "GET /\nbac-cs-AAAAAAAA: 1", NULL,
	  "placeholder-elsewhere", "" },
	{ "elsewhere, at a host without a use", "other.test", true, "GET /\nX: bac-cs-AAAAAAAA",
	  NULL, "placeholder-elsewhere", "" },
	{ "elsewhere, without TLS", "other.test", false, "GET /\nX: bac-cs-AAAAAAAA", NULL,
	  "placeholder-elsewhere", "" },
	{ "at a host with a key", "api.anthropic.com", true, "GET /\nX: bac-cs-AAAAAAAA", NULL,
	  "placeholder-elsewhere", "" },
	{ "a part of one is none", "b.test", true, "GET /?a=bac-cs-AAAAAAA", "/?a=bac-cs-AAAAAAA\n",
	  NULL, "" },
	{ "missing", "api.x.ai", true, "GET /", NULL, "credential-missing", "" },
	{ "missing, custom", "a.test", true, "GET /\nX: bac-cs-DDDDDDDD", NULL,
	  "credential-missing", "" },
	{ "missing, custom, not asked for", "a.test", true, "GET /", "/\n", NULL, "" },
	{ "unapproved", "kit.test", true, "GET /", NULL, "credential-unapproved", "" },
	{ "another use of the service is ready", "api.github.com", true, "GET /",
	  "/\nauthorization: token REAL-api-github\n", NULL, "github" },
	{ "two of one field: the first that is ready; and another field", "two.test", true,
	  "GET /\nX-Two: mine", "/\nx-two: <REAL-two-second>\nx-three: REAL-two-other\n", NULL,
	  "second, fourth" },
	{ "oauth", "resource.test", true, "GET /\nAuthorization: Bearer sk-ant-oat01-proxy-managed",
	  "/\nAuthorization: Bearer REAL-claude\n", NULL, "claude" },
	{ "oauth where it is not asked for", "resource.test", true, "GET /\nX-Api-Key: mine",
	  "/\nX-Api-Key: mine\n", NULL, "" },
	{ "oauth in another field", "resource.test", true,
	  "GET /\nX-Api-Key: sk-ant-oat01-proxy-managed",
	  "/\nX-Api-Key: sk-ant-oat01-proxy-managed\n", NULL, "" },
	{ "token, unapproved", "token2.test", true, "POST /token", NULL, "credential-unapproved",
	  "" },
	{ "nothing of ours goes out", "other.test", true,
	  "GET /\nProxy-Authorization: Basic eDp5\nX-Bac-Refused: 1\nA: 1",
	  "/\nX-Bac-Refused: 1\nA: 1\n", NULL, "" },
};

static struct xhead head(const char *text, const char *host)
{
	struct buf b = BUF_INIT(2UL * HTTP_HEAD_MAX);
	const size_t line = strcspn(text, "\n");
	struct http_head h;
	struct xhead x = { 0 };

	check(buf_printf(&b, "%.*s HTTP/1.1\r\nHost: %s\r\n", (int)line, text, host) == 0);
	for (text += line; *text; text += 1 + strcspn(text + 1, "\n"))
		check(buf_printf(&b, "%.*s\r\n", (int)strcspn(text + 1, "\n"), text + 1) == 0);
	check(buf_add(&b, "\r\n", 2) == 0);
	check(http_request(&h, buf_data(&b), b.n) == HTTP_OK);
	check(xhead_from_http1(&x, &h, buf_data(&b)) == 0);
	buf_done(&b);
	return x;
}

static bool is(const struct xhead *h, const char *want)
{
	struct buf b = BUF_INIT(2UL * HTTP_HEAD_MAX);
	bool same;
	size_t i;

	check(buf_printf(&b, "%s\n", h->target) == 0);
	for (i = 0; i < h->fields.n; i++)
		check(buf_printf(&b, "%s: %s\n", h->fields.v[i].name, h->fields.v[i].value) == 0);
	same = streq(buf_str(&b), want);
	if (!same)
		(void)fprintf(stderr, "is:\n%s", buf_str(&b));
	buf_done(&b);
	return same;
}

/* What holds a value is marked, and nothing else. */
static void marked(const struct xhead *h)
{
	size_t i;

	for (i = 0; i < h->fields.n; i++) {
		const struct hfield *f = &h->fields.v[i];
		const bool basic = strstr(f->value, "UkVBTC") || strstr(f->value, "JFQUwt") ||
				   strstr(f->value, "SRUFML");

		check(f->secret == (strstr(f->value, "REAL-") || basic));
	}
}

static void table(const struct cred_set *s)
{
	char values[INJECT_NEEDS_MAX][80];
	struct inject_plan p;
	struct host host;
	struct xhead h;
	struct err e;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		(void)fprintf(stderr, "%s\n", rows[i].what);
		check(host_parse(&host, rows[i].host, strlen(rows[i].host), &e) == 0);
		h = head(rows[i].request, rows[i].host);
		inject_plan(&p, s, &h, &host, rows[i].tls ? 443 : 80, rows[i].tls, "box");
		check(rows[i].reason ? p.status == 403 && streq(p.reason, rows[i].reason)
				     : !p.status);
		check(streq(p.names, rows[i].names) && (!p.status || (p.text[0] && !p.n)));
		if (!p.status) {
			inject_test_values(&p, values);
			check(inject_apply(&p, &h) == 0);
			check(is(&h, rows[i].want));
			marked(&h);
		}
		xhead_done(&h);
	}
}

static void plan(struct inject_plan *ret, const struct cred_set *s, const char *request,
		 const char *at, const char *sandbox)
{
	struct xhead h = head(request, at);
	struct host host;
	struct err e;

	check(host_parse(&host, at, strlen(at), &e) == 0);
	inject_plan(ret, s, &h, &host, 443, true, sandbox);
	xhead_done(&h);
}

/* What people are told is a command that they can run. */
static void texts(const struct cred_set *s)
{
	static const struct {
		const char *host, *request, *remedy, *text;
	} said[] = {
		{ "api.x.ai", "GET /", "bac secret set xai",
		  "The credential 'xai' belongs on this request, and the host's store has no value "
		  "for it. Set it on the host with: bac secret set xai" },
		{ "x.test", "GET /", "bac secret set xai --sandbox box", NULL },
		{ "a.test", "GET /?x\nX: bac-cs-DDDDDDDD",
		  "bac secret set-custom --env D_TOKEN --host a.test --sandbox box", NULL },
		{ "kit.test", "GET /", "bac run --name box --approve github=kit.test",
		  "kit:tool wants the credential 'github' on requests to kit.test, and nobody has "
		  "approved that. Approve it on the host with: bac run --name box --approve "
		  "github=kit.test" },
		{ "login.test", "GET /\nAuthorization: Bearer gone-oat-proxy-managed",
		  "bac secret set gone --oauth", NULL },
		{ "b.test", "GET /?x\nX: bac-cs-AAAAAAAA", "",
		  "The request holds the placeholder of 'A_TOKEN', which is for a.test and not for "
		  "b.test." },
	};
	struct inject_plan p;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(said); i++) {
		plan(&p, s, said[i].request, said[i].host, "box");
		check(p.status == 403 && streq(p.remedy, said[i].remedy));
		check(!said[i].text || streq(p.text, said[i].text));
	}
	plan(&p, s, "GET /", "x.test", NULL);
	check(streq(p.remedy, "bac secret set xai"));
	plan(&p, s, "GET /", "kit.test", NULL);
	check(streq(p.remedy, "bac create --approve github=kit.test"));
}

static void bodies(const struct cred_set *s)
{
	static const struct {
		const char *host, *request;
		bool body, search, token;
		uint8_t form;
		size_t needs;
	} v[] = {
		{ "b.test", "POST /\nContent-Length: 5", true, true, false, INJECT_FORM_RAW, 1 },
		{ "b.test",
		  "POST /\nContent-Length: 5\nContent-Type: application/json; charset=utf-8", true,
		  true, false, INJECT_FORM_JSON, 1 },
		{ "b.test",
		  "POST /\nContent-Length: 5\nContent-Type: application/x-www-form-urlencoded",
		  true, true, false, INJECT_FORM_QUERY, 1 },
		{ "b.test", "GET /", false, false, false, INJECT_FORM_RAW, 0 },
		{ "other.test", "POST /\nContent-Length: 5", false, true, false, INJECT_FORM_RAW,
		  0 },
		{ "token.test", "POST /v1/oauth/token\nContent-Length: 5", false, false, true,
		  INJECT_FORM_RAW, 1 },
		{ "token.test", "POST /v1/oauth/%74oken?x\nContent-Length: 5", false, false, true,
		  INJECT_FORM_RAW, 1 },
		{ "token.test", "POST /v1/oauth/other\nContent-Length: 5", false, true, false,
		  INJECT_FORM_RAW, 0 },
		{ "token.test", "GET /v1/oauth/token", false, false, false, INJECT_FORM_RAW, 0 },
	};
	struct inject_plan p;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(v); i++) {
		plan(&p, s, v[i].request, v[i].host, NULL);
		check(!p.status && p.body == v[i].body && p.search == v[i].search);
		check(p.form == v[i].form && p.n == v[i].needs && !p.token == !v[i].token);
	}
}

/* Values that no field may have, and such that are too long. */
static void values(const struct cred_set *s)
{
	static const struct {
		const char *value;
		size_t n;
	} bad[] = { { "a\rb", 3 },  { "a\nb", 3 },      { "a\0b", 3 }, { "a\x7f", 2 },
		    { "a\x1b", 2 }, { "a\r\nX: 1", 7 }, { "\n", 1 } };
	static const char *const at[][2] = {
		{ "api.anthropic.com", "GET /" },
		{ "github.com", "GET /" },
		{ "a.test", "GET /\nX: bac-cs-AAAAAAAA" },
		{ "a.test", "GET /?bac-cs-AAAAAAAA" },
		{ "a.test", "GET /\nAuthorization: Basic YmFjLWNzLUFBQUFBQUFBOg==" },
		{ "resource.test", "GET /\nAuthorization: Bearer sk-ant-oat01-proxy-managed" },
	};
	_free_ uint8_t *longest = malloc(HTTP_HEAD_MAX);
	struct inject_plan p;
	struct host host;
	struct xhead h;
	struct err e;
	size_t i, k;
	int r;

	check(longest);
	memset(longest, 'v', HTTP_HEAD_MAX);
	for (i = 0; i < ARRAY_SIZE(at); i++) {
		check(host_parse(&host, at[i][0], strlen(at[i][0]), &e) == 0);
		for (k = 0; k < ARRAY_SIZE(bad) + 3; k++) {
			h = head(at[i][1], at[i][0]);
			inject_plan(&p, s, &h, &host, 443, true, NULL);
			check(!p.status && p.n == 1);
			check(inject_apply(&p, &h) == -EINVAL);
			p.v[0].value = longest;
			p.v[0].n = k == ARRAY_SIZE(bad)       ? HTTP_HEAD_MAX
				   : k == ARRAY_SIZE(bad) + 1 ? HTTP_HEAD_MAX + 1UL
							      : 12000;
			if (k < ARRAY_SIZE(bad)) {
				p.v[0].value = (const uint8_t *)bad[k].value;
				p.v[0].n = bad[k].n;
			}
			r = inject_apply(&p, &h);
			check(r == (k < ARRAY_SIZE(bad)       ? -EINVAL
				    : k < ARRAY_SIZE(bad) + 2 ? -E2BIG
							      : 0));
			xhead_done(&h);
		}
	}
}

/* More than are put on one request. */
static void many(void)
{
	struct cred_use v[INJECT_NEEDS_MAX + 1];
	char id[INJECT_NEEDS_MAX + 1][8];
	struct inject_plan p;
	struct cred_set *s;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(v); i++) {
		v[i] = inject_test_uses[0];
		(void)snprintf(id[i], sizeof(id[i]), "x-%zu", i);
		v[i].id = v[i].header = v[i].service = id[i];
	}
	s = inject_test_set(v, INJECT_NEEDS_MAX);
	plan(&p, s, "GET /", "api.anthropic.com", NULL);
	check(!p.status && p.n == INJECT_NEEDS_MAX);
	(void)cred_set_free(s);
	s = inject_test_set(v, INJECT_NEEDS_MAX + 1);
	plan(&p, s, "GET /", "api.anthropic.com", NULL);
	check(p.status == 403 && streq(p.reason, "credential-many") && !p.n);
	(void)cred_set_free(s);
	plan(&p, NULL, "GET /\nX: bac-cs-AAAAAAAA", "b.test", NULL);
	check(!p.status && !p.n && !p.search);
}

int main(void)
{
	struct cred_set *s = inject_test_set(inject_test_uses, ARRAY_SIZE(inject_test_uses));

	table(s);
	texts(s);
	bodies(s);
	values(s);
	many();
	(void)cred_set_free(s);
	return 0;
}
