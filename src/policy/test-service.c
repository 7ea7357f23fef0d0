/* The table of services: every line of it makes a use that is fine, and faults in it are named. */
#include "base/check.h"
#include "policy/service.h"

static void fine(const struct service *s, const struct cred_use *pattern)
{
	struct cred_use u = *pattern;
	struct buf out = BUF_INIT(8192);
	struct err e;

	u.id = "x";
	u.state = CRED_READY;
	u.origin = "builtin";
	u.service = s->name;
	u.key = "global/service/x";
	if (cred_text_use(&out, &u, &e) < 0)
		(void)fprintf(stderr, "%s %s: %s\n", s->name, u.resource, e.msg);
	check(out.n);
	buf_done(&out);
}

static void table(void)
{
	struct services all = { 0 };
	const struct service *s;
	struct err e;
	size_t i, k;

	check(services_load(&all, &e) == 0);
	check(all.n >= 13);
	for (i = 0; i < all.n; i++) {
		s = &all.v[i];
		check(s->n_uses && s->n_envs && services_find(&all, s->name) == s);
		for (k = 0; k < s->n_uses; k++)
			fine(s, &s->uses[k]);
		for (k = 0; k < s->n_oauth; k++)
			fine(s, &s->oauth[k]);
	}
	s = services_find(&all, "github");
	check(s && s->n_envs == 2 && streq(s->envs[1], "GITHUB_TOKEN"));
	check(streq(s->uses[0].format, "token %s"));
	check(streq(s->uses[4].username, "x-access-token") && s->uses[4].kind == CRED_BASIC);
	check(streq(s->uses[6].resource, "**.githubcopilot.com") &&
	      streq(s->uses[6].format, "Bearer %s"));
	s = services_find(&all, "anthropic");
	check(s && s->n_oauth == 2 && streq(s->oauth[1].path, "/v1/oauth/token"));
	check(streq(s->oauth[1].placeholder2, s->oauth[0].placeholder));
	s = services_find(&all, "openai");
	check(s && streq(s->file, "~/.codex/auth.json") && strstr(s->file_text, "{{.IdToken}}"));
	check(!services_find(&all, "moon"));
	services_done(&all);
}

static void faults(void)
{
	static const char *const texts[] = {
		"env A",
		"service",
		"service a\nmoon b",
		"service a\nheader a.x authorization",
		"service a\nbasic a.x",
		"service a\ntoken a.x /p b c",
		"service a\nenv A\nenv B\nenv C\nenv D\nenv E",
	};
	struct services all;
	struct err e;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		check(services_parse(&all, texts[i], &e) == -EINVAL);
		check(starts_with(e.msg, "services: line "));
		services_done(&all);
	}
}

int main(void)
{
	table();
	faults();
	return 0;
}
