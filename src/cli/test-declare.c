/* Declarations of credentials, and approvals: what is taken, and what is refused with its line. */
#include <stdio.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/need.h"
#include "io/fd.h"
#include "sys/dirs.h"

static const char whole[] =
	"credentials:\n"
	"  - service: acme\n"
	"    description: what for\n"
	"    required: true\n"
	"    apiKey:\n"
	"      name: ACME_KEY\n"
	"      proxyManaged: true\n"
	"      inject:\n"
	"        - {domain: API.acme.example, header: X-Acme-Key, format: 'key %s'}\n"
	"        - {domain: '*.acme.example:8443', scheme: bearer}\n"
	"        - {domain: git.acme.example, scheme: basic, username: token}\n"
	"        - {domain: plain.acme.example, header: X-Key}\n"
	"  - service: login\n"
	"    oauth:\n"
	"      tokenEndpoint: {host: auth.example, path: /oauth/token}\n"
	"      resourceHosts: [api.example, '**.api.example']\n"
	"      sentinels: {accessToken: access-sentinel, refreshToken: refresh-sentinel}\n"
	"      responseFields: {expiresIn: lifetime}\n"
	"      credentialFile:\n"
	"        path: ~/.login/auth.json\n"
	"        structure: {token: '{{.AccessToken}}', until: '{{.ExpiresAt}}'}\n";

static void taken(void)
{
	struct declarations d = { 0 };
	const struct cred_use *u;
	struct err e;

	if (declare_parse("file", "a.yaml", whole, strlen(whole), &d, &e) < 0)
		(void)fprintf(stderr, "%s\n", e.msg);
	check(d.n == 2 && streq(d.origin, "file:a.yaml") && !d.v[0].file.path);
	check(streq(d.v[1].file.path, ".login/auth.json") && d.v[1].file.structure &&
	      streq(d.v[1].access, "access-sentinel") && streq(d.v[1].refresh, "refresh-sentinel"));
	check(streq(d.v[0].service, "acme") && d.v[0].required && streq(d.v[0].env, "ACME_KEY"));
	check(d.v[0].n == 4);
	u = d.v[0].v;
	check(u[0].kind == CRED_HEADER && streq(u[0].resource, "api.acme.example"));
	check(streq(u[0].header, "x-acme-key") && streq(u[0].format, "key %s"));
	check(streq(u[1].header, "authorization") && streq(u[1].format, "Bearer %s"));
	check(u[2].kind == CRED_BASIC && streq(u[2].username, "token") && !u[2].header);
	check(streq(u[3].format, "%s"));
	u = d.v[1].v;
	check(d.v[1].n == 3 && !d.v[1].env && !d.v[1].required);
	check(u[0].kind == CRED_TOKEN && streq(u[0].path, "/oauth/token"));
	check(streq(u[0].fields, "access_token,refresh_token,lifetime,scope"));
	check(u[1].kind == CRED_OAUTH && streq(u[1].placeholder, "access-sentinel"));
	check(streq(u[2].resource, "**.api.example"));
	declare_done(&d);
}

#define ITEM(rest)   "credentials:\n  - service: s\n" rest
#define INJECT(rest) ITEM("    apiKey:\n      inject:\n        - {" rest "}\n")
#define OAUTH(rest)  ITEM("    oauth: {" rest "}\n")
#define LOGIN(rest) \
	OAUTH("tokenEndpoint: {host: a.x, path: /p}, sentinels: {accessToken: access-sentinel, " \
	      "refreshToken: refresh-sentinel}, credentialFile: {" rest "}")

#define INJECTED "line 5:11: credentials[0].apiKey.inject[0]: "
#define LOGGED   "line 3:126: credentials[0].oauth.credentialFile: "

static void refused(void)
{
	static const struct {
		const char *text, *msg;
	} t[] = {
		{ "", "found nothing, expected a map" },
		{ "a: 1\n", "line 1:1: a: found an unknown field, expected 'credentials'" },
		{ "credentials: x\n", "line 1:14: credentials: found 'x', expected a list" },
		{ "credentials:\n  - x\n", "line 2:5: credentials[0]: found 'x', expected a map" },
		{ "credentials:\n  - apiKey: {name: A}\n",
		  "line 2:5: credentials[0]: found no 'service'" },
		{ ITEM(""),
		  "line 2:5: credentials[0]: found no 'apiKey', expected it, or 'oauth'" },
		{ ITEM("    apikey: {}\n"), "line 2:5: credentials[0]: found no 'apiKey'" },
		{ ITEM("    apiKey: {name: 1A}\n"),
		  "line 3:20: credentials[0].apiKey.name: found '1A', expected the name" },
		{ ITEM("    apiKey: {name: A, proxyManaged: perhaps}\n"),
		  "line 3:37: credentials[0].apiKey.proxyManaged: found 'perhaps', expected true" },
		{ INJECT("header: a"),
		  "line 5:11: credentials[0].apiKey.inject[0]: found no 'domain'" },
		{ INJECT("domain: a.x"),
		  "line 5:11: credentials[0].apiKey.inject[0]: found no 'header'" },
		{ INJECT("domain: a..x, header: a"),
		  "line 5:11: credentials[0].apiKey.inject[0]: found 'a..x', expected HOST" },
		{ INJECT("domain: 'https://a.x', header: a"),
		  "line 5:11: credentials[0].apiKey.inject[0]: found 'https://a.x', expected" },
		{ INJECT("domain: a.x, header: a, format: b"), INJECTED "format 'b' is not" },
		{ INJECT("domain: a.x, header: a, format: '%s%s'"), INJECTED "format" },
		{ INJECT("domain: a.x, header: a, format: \"%s\\r\\nb: c\""), INJECTED "format" },
		{ INJECT("domain: a.x, header: host"), INJECTED "header 'host' is not" },
		{ INJECT("domain: a.x, header: 'a: b'"), INJECTED "header" },
		{ INJECT("domain: a.x, scheme: digest"),
		  "line 5:33: credentials[0].apiKey.inject[0].scheme: found 'digest', expected "
		  "bearer" },
		{ INJECT("domain: a.x, scheme: bearer, format: '%s'"),
		  INJECTED "found both 'scheme' and" },
		{ INJECT("domain: a.x, scheme: bearer, username: u"),
		  INJECTED "found 'username', expected" },
		{ INJECT("domain: a.x, scheme: basic"), INJECTED "found no 'username'" },
		{ INJECT("domain: a.x, scheme: basic, username: 'u:v'"), INJECTED "username" },
		{ OAUTH(""), "line 3:5: credentials[0].oauth: found no 'tokenEndpoint'" },
		{ OAUTH("passthrough: true"), "line 3:5: credentials[0].oauth: found no" },
		{ LOGIN("template: a"), LOGGED "found no 'path'" },
		{ LOGIN("path: ~/a"), LOGGED "found no 'structure'" },
		{ LOGIN("path: ~/a, template: a, structure: [1]"), "line 3:" },
		{ LOGIN("path: ~/a, structure: a"),
		  "line 3:165: credentials[0].oauth.credentialFile.structure: found 'a', expected "
		  "a map" },
		{ LOGIN("path: /etc/a, template: a"), LOGGED "path: a file below" },
		{ LOGIN("path: ~/../a, template: a"), LOGGED "path: no '.'" },
		{ LOGIN("path: ~/a, template: '{{.Password}}'"),
		  LOGGED "'{{.Password}}' is no placeholder" },
		{ LOGIN("path: ~/a, structure: {a: ['{{.Password}}']}"),
		  LOGGED "'{{.Password}}' is no placeholder" },
		{ LOGIN("path: ~/a, mode: 0644"), LOGGED "found no 'structure'" },
		{ OAUTH("tokenEndpoint: {host: a.x, path: p}, sentinels: {accessToken: "
			"access-token, refreshToken: refresh-token}"),
		  "line 3:46: credentials[0].oauth.tokenEndpoint.path: found 'p', expected a "
		  "path" },
		{ OAUTH("tokenEndpoint: {host: a.x, path: /p}, sentinels: {accessToken: short, "
			"refreshToken: refresh-token}"),
		  "line 3:76: credentials[0].oauth.sentinels.accessToken: found 'short', expected "
		  "12" },
	};
	struct declarations d = { 0 };
	struct err e;
	size_t i, wrong = 0;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		int r = declare_parse("file", "f", t[i].text, strlen(t[i].text), &d, &e);

		if (r == 0 || !starts_with(e.msg, t[i].msg))
			wrong++;
		if (r == 0 || !starts_with(e.msg, t[i].msg))
			(void)fprintf(stderr, "%zu: %d %s\n", i, r, r ? e.msg : "");
		check(r == -EINVAL && !d.n);
	}
	check(!wrong);
}

/* ---- approvals ---- */
static void approvals_refused(void)
{
	static const struct {
		const char *text, *msg;
	} t[] = {
		{ "x: 1\n", "line 1: unknown key 'x'" },
		{ "bindings: [a]\n", "line 1: bindings is a map" },
		{ "bindings:\n  a b: {}\n", "line 2: 'a b' is not the name" },
		{ "bindings:\n  s: {key: {}}\n", "line 2: unknown key 'key'" },
		{ "bindings:\n  s:\n    apiKey:\n      domains: a.x\n",
		  "line 4: domains is a list" },
		{ "bindings:\n  s:\n    apiKey:\n      domains:\n        - a..x\n",
		  "line 5: 'a..x'" },
		{ "bindings: &a {s: *a}\n", "line 1: anchors" },
	};
	struct approvals a = { 0 };
	struct err e;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		int r = approve_parse(t[i].text, strlen(t[i].text), &a, &e);

		if (r == 0 || !starts_with(e.msg, t[i].msg))
			(void)fprintf(stderr, "%zu: %d %s\n", i, r, r ? e.msg : "");
		check(r == -EINVAL && starts_with(e.msg, t[i].msg) && !a.n);
	}
}

static void approvals_kept(const char *dir)
{
	_free_ char *path = dirs_join(dir, "credentials.yaml"), *text = NULL;
	struct approvals more = { 0 }, a;
	struct err e;

	check(approve_load(dir, &a, &e) == 0 && !a.n);
	check(approve_add(&more, "acme", false, "*.acme.example:8443") == 0);
	check(approve_add(&more, "acme", true, "auth.acme.example") == 0);
	check(approve_add(&more, "zed", false, "z.example") == 0);
	check(approve_save(dir, &more, &e) == 0 && approve_save(dir, &more, &e) == 0);
	check(approve_load(dir, &a, &e) == 0 && a.n == 3);
	check(approve_has(&a, "acme", false, "*.acme.example:8443"));
	check(!approve_has(&a, "acme", true, "*.acme.example:8443"));
	check(!approve_has(&a, "acme", false, "x.acme.example"));
	check(approve_has(&a, "acme", true, "auth.acme.example"));
	approve_done(&a);
	approve_done(&more);
	check(chmod(path, 0620) == 0 && approve_load(dir, &a, &e) == -EPERM);
	check(chmod(path, 0600) == 0);
	check(fd_replace_file(AT_FDCWD, path, 0600, "bindings: [", 11) == 0);
	check(approve_load(dir, &a, &e) == -EINVAL && strstr(e.msg, "credentials.yaml: line "));
	check(approve_save(dir, &more, &e) == -EINVAL);
	check(fd_read_file(AT_FDCWD, path, 100, &text, NULL) == 0 && streq(text, "bindings: ["));
}

/* ---- what is missing ---- */
static enum need_kind stored(void *arg, const char *service)
{
	(void)service;
	return *(const enum need_kind *)arg;
}

static void missing_is(const struct need *n, const struct declarations *d, const char *want)
{
	struct buf out = BUF_INIT(4096);

	check(need_line(n, d, 1, &out) == 0);
	if (!streq(out.n ? buf_str(&out) : "", want))
		(void)fprintf(stderr, "%s\n", out.n ? buf_str(&out) : "");
	check(streq(out.n ? buf_str(&out) : "", want));
	buf_done(&out);
}

#define WANTS "file:f requires the secret 's'"

static void missing(void)
{
	static const char both[] =
		ITEM("    required: true\n"
		     "    apiKey: {inject: [{domain: a.x, scheme: bearer}, {domain: b.x, scheme: "
		     "bearer}]}\n"
		     "    oauth: {tokenEndpoint: {host: t.x, path: /p}, resourceHosts: [l.x], "
		     "sentinels: "
		     "{accessToken: access-sentinel, refreshToken: refresh-sentinel}}\n");
	enum need_kind kind = NEED_NONE;
	struct approvals have = { 0 };
	struct need n = { &have, stored, &kind };
	struct declarations d = { 0 };
	struct err e;

	check(declare_parse("file", "f", both, strlen(both), &d, &e) == 0);
	missing_is(
		&n, &d,
		WANTS
		", and there is none (bac secret set s); " WANTS
		" at a.x, b.x, and nobody has approved that (add --approve s=a.x --approve s=b.x)");
	n.stored = NULL; /* the machine alone is to start */
	missing_is(
		&n, &d,
		WANTS
		" at a.x, b.x, and nobody has approved that (add --approve s=a.x --approve s=b.x)");
	check(approve_add(&have, "s", false, "a.x") == 0);
	missing_is(&n, &d, WANTS " at b.x, and nobody has approved that (add --approve s=b.x)");
	check(approve_add(&have, "s", false, "b.x") == 0);
	missing_is(&n, &d, "");
	n.stored = stored;
	missing_is(&n, &d, WANTS ", and there is none (bac secret set s)");
	kind = NEED_KEY;
	missing_is(&n, &d, "");
	kind = NEED_LOGIN;
	missing_is(
		&n, &d,
		WANTS
		" at t.x, l.x, and nobody has approved that (add --approve s=t.x --approve s=l.x)");
	n.have = NULL;
	missing_is(&n, &d, "");
	approve_done(&have);
	declare_done(&d);
}

static void not_required(void)
{
	static const char text[] = INJECT("domain: a.x, scheme: bearer");
	enum need_kind kind = NEED_NONE;
	struct approvals have = { 0 };
	struct need n = { &have, stored, &kind };
	struct declarations d = { 0 };
	struct err e;

	check(declare_parse("file", "f", text, strlen(text), &d, &e) == 0);
	missing_is(&n, &d, "");
	declare_done(&d);
}

int main(void)
{
	char top[] = "/tmp/test-bac-declare-XXXXXX";

	taken();
	refused();
	approvals_refused();
	missing();
	not_required();
	check(mkdtemp(top));
	approvals_kept(top);
	check(dirs_remove(AT_FDCWD, top) == 0);
	return 0;
}
