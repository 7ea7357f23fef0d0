/* Files of logins: what is made of templates and structures, where they may be, and what is refused. */
#include <stdio.h>

#include "base/check.h"
#include "kit/login-file.h"
#include "policy/service.h"

static const struct login_values values = { .access = "access-sentinel",
					    .refresh = "refresh-sentinel",
					    .expires_ms = 1700000000123,
					    .scopes = "user:inference, user:profile",
					    .id_token = "a.e30.s",
					    .account = "account-1",
					    .stored = 1700000000 };

static int make(const struct login_file *f, struct buf *out, struct err *e)
{
	buf_init(out, LOGIN_FILE_MAX);
	return login_file_make(f, &values, out, e);
}

static void template_is(const char *text, const char *want)
{
	const struct login_file f = { .path = "x", .template = text };
	struct buf out;
	struct err e;

	check(make(&f, &out, &e) == 0);
	check(streq(out.n ? buf_str(&out) : "", want));
	buf_done(&out);
}

static void template_fails(const char *text, int code, const char *msg)
{
	const struct login_file f = { .path = "x", .template = text };
	struct buf out;
	struct err e;

	check(make(&f, &out, &e) == code);
	check(strstr(e.msg, msg));
	buf_done(&out);
}

static void templates(void)
{
	char large[LOGIN_FILE_MAX + 2];

	template_is("", "");
	template_is("no placeholder } {", "no placeholder } {");
	template_is("a={{.RefreshToken}}\n", "a=refresh-sentinel\n");
	template_is("{{ .ExpiresAt }}{{ExpiresAt}}", "17000000001231700000000123");
	template_is("{{.Scopes}} {{.ScopesJSON}}",
		    "user:inference user:profile [\"user:inference\",\"user:profile\"]");
	template_is("{{.AccessToken}}", "access-sentinel");
	template_is("{{.IdToken}} {{.AccountID}}", "a.e30.s account-1");
	template_is("{{.LastRefresh}}", "2023-11-14T22:13:20Z");
	template_fails("{{.Token}}", -EINVAL, "'{{.Token}}' is no placeholder");
	template_fails("{{.AccessToken", -EINVAL, "is no placeholder");
	template_fails("{{", -EINVAL, "is no placeholder");
	template_fails("{{}}", -EINVAL, "is no placeholder");
	template_fails("{{.AccessTokenX}}", -EINVAL, "is no placeholder");
	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	template_fails(large, -E2BIG, "16384 bytes at most");
}

/* A login that does not say whose it is has no such file; one that does not ask is made. */
static void nobody(void)
{
	static const struct login_values v = { .access = "a", .refresh = "r", .scopes = "" };
	static const char *const texts[] = { "{{.IdToken}}", "{{.AccountID}}", "{{.AccessToken}}" };
	struct buf out;
	struct err e;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		const struct login_file f = { .path = "x", .template = texts[i] };

		buf_init(&out, LOGIN_FILE_MAX);
		check(login_file_make(&f, &v, &out, &e) == (i < 2 ? -ENODATA : 0));
		check(i == 2 || strstr(e.msg, "of which account"));
		buf_done(&out);
	}
	check(login_file_knows("LastRefresh", 11) && !login_file_knows("LastRefresh", 4));
}

/* What becomes of a YAML map; NULL: it is refused, with msg. */
static void structure(const char *text, const char *want, const char *msg)
{
	struct yaml y = { 0 };
	const struct login_file f = { .path = "x", .structure = &y };
	struct buf out;
	struct err e = { 0 };
	int r;

	check(yaml_parse(text, strlen(text), &y, &e) == 0);
	r = make(&f, &out, &e);
	if (want && (r < 0 || !streq(buf_str(&out), want)))
		(void)fprintf(stderr, "%s\n", r < 0 ? e.msg : buf_str(&out));
	check(want ? r == 0 && streq(buf_str(&out), want) : r < 0 && strstr(e.msg, msg));
	buf_done(&out);
	yaml_done(&y);
}

static void structures(void)
{
	structure(
		"o:\n  a: '{{.AccessToken}}'\n  e: '{{.ExpiresAt}}'\n  s: '{{.Scopes}}'\n",
		"{\n  \"o\": {\n    \"a\": \"access-sentinel\",\n    \"e\": 1700000000123,\n"
		"    \"s\": [\n      \"user:inference\",\n      \"user:profile\"\n    ]\n  }\n}\n",
		NULL);
	structure("a: 'Bearer {{.RefreshToken}} until {{.ExpiresAt}}'\n",
		  "{\n  \"a\": \"Bearer refresh-sentinel until 1700000000123\"\n}\n", NULL);
	structure("t: true\nn: null\ni: -12\nz: 007\nv: 1.5\nl: [a, 'false']\n",
		  "{\n  \"t\": true,\n  \"n\": null,\n  \"i\": -12,\n  \"z\": \"007\",\n  \"v\": "
		  "\"1.5\",\n  \"l\": [\n    \"a\",\n    false\n  ]\n}\n",
		  NULL);
	structure("a: '\"\\'\n", "{\n  \"a\": \"\\\"\\\\\"\n}\n", NULL);
	structure("a: ['{{.Nothing}}']\n", NULL, "is no placeholder");
}

static void paths(void)
{
	static const char *const bad[] = {
		"",
		"x",
		"/etc/passwd",
		"/home/agent",
		"/home/agent/",
		"/home/agentx/y",
		"~",
		"~/",
		"~root/x",
		"~/../x",
		"~/a/..",
		"~/a/../../etc/x",
		"~/./x",
		"~/a//x",
		"~/a/",
		"~//etc/passwd",
		"/home/agent/../root/x",
		"~/a\nb",
		"~/a\x7f",
		"../x",
	};
	char longest[LOGIN_PATH_MAX + 4] = "~/";
	const char *rel = NULL;
	struct err e;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		if (login_file_path(bad[i], &rel, &e) != -EINVAL)
			(void)fprintf(stderr, "'%s' was taken\n", bad[i]);
		check(!rel);
	}
	check(login_file_path("~/.claude/.credentials.json", &rel, &e) == 0);
	check(streq(rel, ".claude/.credentials.json"));
	check(login_file_path("/home/agent/..a/b c", &rel, &e) == 0 && streq(rel, "..a/b c"));
	memset(longest + 2, 'x', LOGIN_PATH_MAX);
	check(login_file_path(longest, &rel, &e) == 0);
	longest[LOGIN_PATH_MAX + 2] = 'x';
	check(login_file_path(longest, &rel, &e) == -EINVAL);
}

/* Those that bac knows of itself: each can be made, and is JSON as YAML knows it too. */
static void services(void)
{
	struct services all = { 0 };
	struct buf out;
	struct err e;
	size_t i, n = 0;

	check(services_load(&all, &e) == 0);
	for (i = 0; i < all.n; i++) {
		struct login_file f = { .template = all.v[i].file_text };
		struct yaml y = { 0 };

		if (!all.v[i].file)
			continue;
		n++;
		check(all.v[i].n_oauth && login_file_path(all.v[i].file, &f.path, &e) == 0);
		buf_init(&out, LOGIN_FILE_MAX);
		check(login_file_make(&f, &values, &out, &e) == 0);
		check(yaml_parse(buf_str(&out), out.n, &y, &e) == 0 && y.kind == YAML_MAP);
		yaml_done(&y);
		buf_done(&out);
	}
	check(n);
	services_done(&all);
}

int main(void)
{
	templates();
	nobody();
	structures();
	paths();
	services();
	return 0;
}
