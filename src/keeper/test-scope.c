/* Which names an authority is for: nothing twice, nothing below what is there, and never more than fits. */
#include "base/check.h"
#include "keeper/scope.h"

static struct scope of(const char *resources, int want)
{
	struct buf out = BUF_INIT(NET_TEXT_MAX);
	char *text = strdup(resources), *rest = NULL, id[32];
	struct net_policy *net;
	struct scope s = { 0 };
	size_t n = 0;
	struct err e;

	check(text && net_text_begin(&out) == 0);
	for (char *r = strtok_r(text, " ", &rest); r; r = strtok_r(NULL, " ", &rest), n++) {
		struct net_rule rule = {
			.id = id, .scope = NET_GLOBAL, .allow = true, .resource = r, .method = "GET"
		};

		(void)snprintf(id, sizeof(id), "r%zu", n);
		check(net_text_rule(&out, &rule) == 0);
	}
	check(net_text_end(&out, n) == 0);
	check(net_text_parse((const char *)buf_data(&out), out.n, &net, &e) == 0);
	check(scope_make(NULL, net, &s) == want);
	(void)net_policy_free(net);
	buf_done(&out);
	free(text);
	return s;
}

static void expect(const char *resources, const char *names)
{
	struct scope s = of(resources, 0);
	char got[512] = "";
	size_t at = 0;

	if (s.all)
		at += (size_t)snprintf(got, sizeof(got), " *");
	for (size_t i = 0; i < s.n_names; i++)
		at += (size_t)snprintf(got + at, sizeof(got) - at, " %s", s.names[i]);
	if (!streq(got, names))
		(void)fprintf(stderr, "%s:%s, not%s\n", resources, got, names);
	check(streq(got, names));
	scope_done(&s);
	check(!s.names && !s.n_names);
}

static void names(void)
{
	expect("", "");
	expect("a.example", " a.example");
	expect("a.example a.example:443 A.example", " a.example");
	expect("b.a.example a.example", " a.example");
	expect("a.example b.a.example c.b.a.example ba.example", " a.example ba.example");
	expect("a-b.example b.example x.b.example", " b.example a-b.example");
	expect("*.a.example a.example z*.y.a.example", " a.example");
	expect("** a.example", " *");
	expect("*com", " *");
	expect("localhost:1 x.example", " x.example localhost");
}

static void same(void)
{
	struct scope a = of("a.example b.example", 0), b = of("b.example a.example b.example", 0),
		     c = of("a.example", 0), d = of("**", 0), none = { 0 };

	check(scope_same(&a, &b) && !scope_same(&a, &c) && !scope_same(&c, &d));
	check(!scope_same(&d, &none) && scope_same(&none, &none));
	scope_done(&a);
	scope_done(&b);
	scope_done(&c);
	scope_done(&d);
}

/* 400 names of three labels below four of two; 400 of two. */
static void coarse(void)
{
	struct buf out = BUF_INIT(1 << 20), two = BUF_INIT(1 << 20);
	struct scope s;

	for (unsigned i = 0; i < 400; i++) {
		check(buf_printf(&out, "host-number-%u.d%u.example ", i, i % 4) == 0);
		check(buf_printf(&two, "host-number-%u.example ", i) == 0);
	}
	s = of(buf_str(&out), 1);
	check(s.n_names == 4 && !s.all && streq(s.names[0], "d0.example"));
	scope_done(&s);
	s = of(buf_str(&two), 1);
	check(s.all && !s.n_names);
	scope_done(&s);
	buf_done(&out);
	buf_done(&two);
}

int main(void)
{
	names();
	same();
	coarse();
	return 0;
}
