/* Uses of credentials: the text, its limits, and which destination a use speaks of. */
#include "base/check.h"
#include "policy/cred.h"

#define FIRST "bac-credentials 1\n"
#define GITHUB \
	"github:api\theader\tready\tbuiltin\tgithub\tglobal/service/" \
	"github\tapi.github.com\tauthorization\ttoken %s\t-\t-\t-\t-\t-\t-\n"
#define BASIC \
	"github:git\tbasic\tready\tbuiltin\tgithub\tglobal/service/" \
	"github\tgithub.com\t-\t-\tx-access-token\t-\t-\t-\t-\t-\n"
#define CUSTOM(id, key, holder) \
	id "\tcustom\tmissing\tuser\tTOKEN\t" key "\t*.a.x:8443\t-\t-\t-\t" holder \
	   "\t-\theaders,basic\t-\t-\n"
#define OAUTH \
	"o1\toauth\tready\tbuiltin\tanthropic\tglobal/oauth/" \
	"anthropic\tapi.anthropic.com\t-\t-\t-\tsk-ant-oat01-proxy-managed\t-\t-\t-\t-\n"
#define TOKEN \
	"o2\ttoken\tunapproved\tkit:k\tanthropic\tglobal/oauth/" \
	"anthropic\tplatform.claude.com\t-\t-\t-\tsk-ant-ort01-proxy-managed\tsk-ant-oat01-proxy-" \
	"managed\t-\t/v1/oauth/token\taccess_token,refresh_token,expires_in,scope\n"
#define HOLDER "sbx-cs-abcdefgh"

static const struct {
	const char *text, *msg; /* NULL: taken */
} texts[] = {
	{ FIRST "end 0\n", NULL },
	{ FIRST GITHUB BASIC CUSTOM("c", "s1/custom/TOKEN", HOLDER) OAUTH TOKEN "end 5\n", NULL },
	{ FIRST CUSTOM("c", "s/custom/T", HOLDER) CUSTOM("d", "s/custom/T", HOLDER) "end 2\n",
	  NULL },
	{ FIRST CUSTOM("c", "s/custom/T", HOLDER) CUSTOM("d", "s/custom/U", HOLDER) "end 2\n",
	  "line 3: column 57: the placeholder of d is that of c too" },
	{ "", "line 1: column 1: 'bac-credentials 1' stands here" },
	{ "bac-credentials 2\nend 0\n", "line 1: column 1: 'bac-cred" },
	{ FIRST, "line 2: column 1: the text was cut" },
	{ FIRST "end 0", "line 2: column 1: the line does not end" },
	{ FIRST "end 1\n", "line 2: column 1: 'end 0' is the last line" },
	{ FIRST "end 0\nend 0\n", "line 2: column 1: 'end 0' is the last line" },
	{ FIRST GITHUB GITHUB "end 2\n", "line 3: column 1: there is a use github:api already" },
	{ FIRST "a\tb\nend 1\n", "line 2: column 1: a use has 15 fields" },
	{ FIRST CUSTOM("c", "s/custom/T", "short") "end 1\n",
	  "line 2: column 57: placeholder 'short' is not 12 to" },
	{ FIRST CUSTOM("c", "custom/T", HOLDER) "end 1\n",
	  "line 2: column 29: key 'custom/T' is not SCOPE/KIND/NAME" },
	{ FIRST CUSTOM("c", "s/custom/T/U", HOLDER) "end 1\n", "line 2: column 29: key" },
	{ FIRST CUSTOM("c d", "s/custom/T", HOLDER) "end 1\n", "line 2: column 1: id 'c d'" },
	{ FIRST CUSTOM("-", "s/custom/T", HOLDER) "end 1\n",
	  "line 2: column 1: a use of this kind has a id" },
};

static void lines(void)
{
	struct err e;
	size_t i;
	int r;

	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_(cred_set_freep) struct cred_set *s = NULL;

		r = cred_text_parse(texts[i].text, strlen(texts[i].text), &s, &e);
		if (r < 0 && (!texts[i].msg || !starts_with(e.msg, texts[i].msg)))
			(void)fprintf(stderr, "%zu: %s\n", i, e.msg);
		check(r == (texts[i].msg ? -EINVAL : 0) && !s == !!r);
		check(r == 0 || starts_with(e.msg, texts[i].msg));
	}
}

/* Uses that are fine. */
#define BASE .id = "a", .state = CRED_READY, .origin = "builtin", .service = "s", .resource = "a.x"
static const struct cred_use header = { BASE, .kind = CRED_HEADER, .key = "global/service/s",
					.header = "x-api-key", .format = "%s" };
static const struct cred_use basic = { BASE, .kind = CRED_BASIC, .key = "global/service/s",
				       .username = "u" };

/* And one field of them changed. */
#define TEXT(name, value) offsetof(struct cred_use, name), value
static const struct {
	const struct cred_use *base;
	size_t at;
	const char *value;
	bool fine;
} uses[] = {
	{ &header, TEXT(format, "Bearer %s"), true },
	{ &header, TEXT(format, "Bearer %d"), false },
	{ &header, TEXT(format, "%s%s"), false },
	{ &header, TEXT(format, "a\r\nb: %s"), false },
	{ &header, TEXT(format, "\xc3\xa4%s"), false },
	{ &header, TEXT(format, " %s"), false },
	{ &header, TEXT(format, NULL), false },
	{ &header, TEXT(path, "/x"), false },
	{ &header, TEXT(username, "u"), false },
	{ &header, TEXT(placeholder, HOLDER), false },
	{ &header, TEXT(header, "X-Api-Key"), false },
	{ &header, TEXT(header, "host"), false },
	{ &header, TEXT(header, "content-length"), false },
	{ &header, TEXT(header, "transfer-encoding"), false },
	{ &header, TEXT(header, ":path"), false },
	{ &header, TEXT(header, "a b"), false },
	{ &header, TEXT(header, ""), false },
	{ &header, TEXT(header, NULL), false },
	{ &header, TEXT(origin, "kit:a-b"), true },
	{ &header, TEXT(origin, "file:a.yaml"), true },
	{ &header, TEXT(origin, "kit:"), false },
	{ &header, TEXT(origin, "other"), false },
	{ &header, TEXT(service, "a/b"), false },
	{ &header, TEXT(key, "global/service/"), false },
	{ &header, TEXT(key, "a\tb/service/c"), false },
	{ &header, TEXT(resource, "a..x"), false },
	{ &header, TEXT(resource, "https://a.x"), false },
	{ &header, TEXT(resource, "*.x:1-5,8443"), true },
	{ &basic, TEXT(username, "x-access-token"), true },
	{ &basic, TEXT(username, "u:v"), false },
	{ &basic, TEXT(username, "-"), false },
	{ &basic, TEXT(username, "u\tv"), false },
	{ &basic, TEXT(username, NULL), false },
	{ &basic, TEXT(header, "authorization"), false },
};

static void try(const struct cred_use *u, bool fine, size_t i)
{
	struct buf out = BUF_INIT(8192);
	struct err e;
	int r;

	r = cred_text_use(&out, u, &e);
	if ((r == 0) != fine)
		(void)fprintf(stderr, "use %zu: %d %s\n", i, r, r ? e.msg : "");
	check(r == (fine ? 0 : -EINVAL) && !out.n == !!r);
	buf_done(&out);
}

static void fields(void)
{
	struct cred_use u;
	size_t i;

	try(&header, true, 0);
	try(&basic, true, 0);
	for (i = 0; i < ARRAY_SIZE(uses); i++) {
		u = *uses[i].base;
		*(const char **)((uint8_t *)&u + uses[i].at) = uses[i].value;
		try(&u, uses[i].fine, i);
	}
}

static void numbers(void)
{
	struct cred_use u = header;

	u.kind = CRED_KIND_NONE;
	try(&u, false, 0);
	u.kind = CRED_KIND_N;
	try(&u, false, 0);
	u.kind = CRED_BASIC;
	try(&u, false, 0);
	u.kind = CRED_HEADER;
	u.state = CRED_STATE_NONE;
	try(&u, false, 0);
	u.state = CRED_STATE_N;
	try(&u, false, 0);
	u.state = CRED_MISSING;
	try(&u, true, 0);
	u.where = CRED_IN_BODY;
	try(&u, false, 0);
}

static const struct {
	const char *resource, *where;
	bool matches;
} places[] = {
	{ "a.x", "a.x:443", true },
	{ "a.x", "a.x:8443", false },
	{ "a.x", "a.x:80", false },
	{ "a.x:8443", "a.x:8443", true },
	{ "a.x:8443", "a.x:443", false },
	{ "a.x:*", "a.x:1", true },
	{ "a.x:1-65535", "a.x:7", true },
	{ "a.x:80,443,8000-8010", "a.x:8005", true },
	{ "a.x", "b.a.x:443", false },
	{ "A.X", "a.x:443", true },
	{ "*.a.x", "b.a.x:443", true },
	{ "*.a.x", "a.x:443", false },
	{ "*.a.x", "c.b.a.x:443", false },
	{ "*.a.x", "ba.x:443", false },
	{ "**.a.x", "c.b.a.x:443", true },
	{ "**.a.x", "a.x:443", false },
	{ "**.a.x", "xa.x:443", false },
	{ "api*.a.x", "api2.a.x:443", true },
	{ "api*.a.x", "api.b.a.x:443", false },
	{ "api*.a.x", "xapi.a.x:443", false },
	{ "a.*.x", "a.b.x:443", true },
	{ "a.*", "a.b:443", true },
	{ "a.*", "a.b.c:443", false },
	{ "a*", "ab:443", true },
	{ "**", "anything.example:443", true },
	{ "**", "192.0.2.1:443", false },
	{ "**", "8.8.8.8:443", true },
	{ "**", "127.0.0.1:443", false },
	{ "**", "localhost:443", false },
	{ "localhost", "127.0.0.1:443", true },
	{ "127.0.0.1:9000", "localhost:9000", true },
	{ "192.0.2.7", "192.0.2.7:443", true },
	{ "192.0.2.7", "192.0.2.8:443", false },
	{ "192.0.2.0/24", "192.0.2.8:443", true },
	{ "192.0.2.0/24", "a.x:443", false },
	{ "[2001:db8::1]:8443", "[2001:db8::1]:8443", true },
	{ "2001:db8::/32", "[2001:db8:1::1]:443", true },
	{ "2001:db8::/32", "192.0.2.1:443", false },
	{ "a.x", "192.0.2.1:443", false },
};

static void destinations(void)
{
	struct cred_use u = { 0 };
	uint16_t port;
	struct host h;
	struct err e;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(places); i++) {
		const char *w = places[i].where;

		check(host_port_parse(&h, &port, w, strlen(w), &e) == 0);
		u.resource = places[i].resource;
		if (cred_matches(&u, &h, port) != places[i].matches)
			(void)fprintf(stderr, "%s at %s\n", u.resource, w);
		check(cred_matches(&u, &h, port) == places[i].matches);
	}
	check(!cred_matches(NULL, &h, 443));
	u.resource = "a..b";
	check(!cred_matches(&u, &h, 443));
}

static void sets(void)
{
	static const char text[] = FIRST GITHUB BASIC CUSTOM("c", "s/custom/T", HOLDER) "end 3\n";
	_cleanup_(cred_set_freep) struct cred_set *s = NULL;
	const struct cred_use *u;
	struct host h;
	struct err e;
	size_t at = 0;

	check(cred_text_parse(text, strlen(text), &s, &e) == 0);
	check(host_parse(&h, "github.com", 10, &e) == 0);
	u = cred_next(s, &h, 443, &at);
	check(u && u->kind == CRED_BASIC && streq(u->username, "x-access-token") && !u->header);
	check(!cred_next(s, &h, 443, &at) && cred_opens(s, &h, 443) && !cred_opens(s, &h, 80));
	check(cred_find(s, "c") && cred_find(s, "c")->where == (CRED_IN_HEADERS | CRED_IN_BASIC));
	check(cred_find(s, "c")->state == CRED_MISSING && !cred_find(s, "d"));
	check(streq(cred_at(s, 0)->format, "token %s") && cred_at(s, 2) && !cred_at(s, 3));
	at = 0;
	check(!cred_next(NULL, &h, 443, &at) && !cred_opens(NULL, &h, 443));
	check(!cred_find(NULL, "c") && !cred_at(NULL, 0));
}

static void files(void)
{
	static const struct {
		const char *text;
		int text_n; /* -1: refused */
	} t[] = {
		{ FIRST "end 0\n", 24 },           { FIRST "end 0\nenv A=b\nenv _C=\n", 24 },
		{ FIRST "end 0\nenv A\n", -1 },    { FIRST "end 0\nenv =b\n", -1 },
		{ FIRST "end 0\nenv 1A=b\n", -1 }, { FIRST "end 0\nenv A-B=b\n", -1 },
		{ FIRST "end 0\nother\n", -1 },    { FIRST "end 0\nenv A=b", -1 },
		{ FIRST "env A=b\n", -1 },         { "", -1 },
	};
	size_t i, n;
	int r;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		n = 0;
		r = cred_file_split(t[i].text, strlen(t[i].text), &n);
		check(t[i].text_n < 0 ? r == -EINVAL : r == 0 && n == (size_t)t[i].text_n);
	}
	check(cred_file_split("end 0\nenv A=\0b\n", 15, &n) == -EINVAL);
}

static void limits(void)
{
	struct buf out = BUF_INIT(CRED_TEXT_MAX + 1);
	struct cred_use u = header;
	_cleanup_(cred_set_freep) struct cred_set *s = NULL;
	char id[16], cut[] = FIRST GITHUB "end 1\n";
	struct err e;
	size_t i, n;

	for (n = CRED_USES_MAX; n <= CRED_USES_MAX + 1; n++) {
		check(cred_text_begin(&out) == 0);
		for (i = 0; i < n; i++) {
			(void)snprintf(id, sizeof(id), "u%zu", i);
			u.id = id;
			check(cred_text_use(&out, &u, &e) == 0);
		}
		check(cred_text_end(&out, n) == 0);
		check(cred_text_parse((const char *)buf_data(&out), out.n, &s, &e) ==
		      (n > CRED_USES_MAX ? -E2BIG : 0));
		buf_done(&out);
	}
	check(cred_text_parse("", CRED_TEXT_MAX + 1, &s, &e) == -E2BIG);
	check(cred_at(s, CRED_USES_MAX - 1));
	s = cred_set_free(s);
	for (n = 0; n < strlen(cut); n++)
		check(cred_text_parse(cut, n, &s, &e) == -EINVAL);
}

int main(void)
{
	lines();
	fields();
	numbers();
	destinations();
	sets();
	files();
	limits();
	return 0;
}
