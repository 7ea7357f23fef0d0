/* Policies as text, and the presets. */
#include "base/buf.h"
#include "base/check.h"
#include "policy/net.h"

static const struct {
	const char *text, *msg; /* NULL: taken */
} texts[] = {
	{ "bac-net-policy 1\nend 0\n", NULL },
	{ "bac-net-policy 1\na\tglobal\tallow\t-\t-\ta.x\nend 1\n", NULL },
	{ "bac-net-policy 1\na\tkit\tdeny\tGET\t/x\ta.x:80\nb\tsandbox\tallow\tANY\t-\ta.x\nend "
	  "2\n",
	  NULL },
	{ "", "line 1: column 1: 'bac-net-policy 1'" },
	{ "bac-net-policy 2\nend 0\n", "line 1: column 1: 'bac-net-policy 1'" },
	{ "bac-net-policy 1\n", "line 2: column 1: the text was cut" },
	{ "bac-net-policy 1\nend 0", "line 2: column 1: the line does not end" },
	{ "bac-net-policy 1\nend 1\n", "line 2: column 1: 'end 0'" },
	{ "bac-net-policy 1\nend 0\nend 0\n", "line 2: column 1: 'end 0' is the last" },
	{ "bac-net-policy 1\na\tglobal\tallow\t-\t-\ta.x\n",
	  "line 3: column 1: the text was cut: there is no 'end 1'" },
	{ "bac-net-policy 1\na\tglobal\tallow\t-\ta.x\nend 1\n",
	  "line 2: column 1: a rule has 6 fields" },
	{ "bac-net-policy 1\na\tglobal\tallow\t-\t-\ta.x\tb\nend 1\n",
	  "line 2: column 1: a rule has 6 fields" },
	{ "bac-net-policy 1\na\tworld\tallow\t-\t-\ta.x\nend 1\n",
	  "line 2: column 3: not a scope" },
	{ "bac-net-policy 1\na\tglobal\tperhaps\t-\t-\ta.x\nend 1\n",
	  "line 2: column 10: neither" },
	{ "bac-net-policy 1\na\tglobal\tallow\t-\t-\ta..x\nend 1\n",
	  "line 2: column 20: resource 'a..x'" },
	{ "bac-net-policy 1\na\tkit\tdeny\t-\t-\ta\na\tkit\tdeny\t-\t-\ta\nend 2\n",
	  "line 3: column 16: rule a is there" },
};

static void lines(void)
{
	struct err e;
	size_t i;
	int r;

	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_(net_policy_freep) struct net_policy *p = NULL;

		r = net_text_parse(texts[i].text, strlen(texts[i].text), &p, &e);
		if (r < 0 && (!texts[i].msg || !starts_with(e.msg, texts[i].msg)))
			(void)fprintf(stderr, "%zu: %s\n", i, e.msg);
		check(r == (texts[i].msg ? -EINVAL : 0) && !p == !!r);
		check(r == 0 || starts_with(e.msg, texts[i].msg));
	}
}

static void cut(void)
{
	static const char text[] = "bac-net-policy 1\na\tglobal\tallow\t-\t-\ta.x\nend 1\n";
	struct net_policy *p = NULL;
	char nul[] = "bac-net-policy 1\na\0b\nend 0\n";
	struct err e;
	size_t n;

	for (n = 0; n < sizeof(text) - 1; n++)
		check(net_text_parse(text, n, &p, &e) == -EINVAL && !p);
	check(net_text_parse(nul, sizeof(nul) - 1, &p, &e) == -EINVAL);
	check(starts_with(e.msg, "line 2: column 2: a NUL"));
	check(net_text_parse(nul, NET_TEXT_MAX + 1, &p, &e) == -E2BIG);
}

static void round_trip(void)
{
	struct buf out = BUF_INIT(NET_TEXT_MAX), small = BUF_INIT(20);
	struct net_rule r = { "default:1", NET_SANDBOX, true, "**.x:443", "GET", "/a/**" };
	struct host h;
	struct net_request q = { .host = &h, .port = 443, .method = "GET", .path = "/a/b" };
	_cleanup_(net_policy_freep) struct net_policy *p = NULL;
	struct err e;

	check(net_text_begin(&out) == 0 && net_text_rule(&out, &r) == 0);
	r.resource = "a\tb";
	check(net_text_rule(&out, &r) == -EINVAL);
	r.resource = "";
	check(net_text_rule(&out, &r) == -EINVAL);
	check(net_text_end(&out, 1) == 0);
	check(net_text_parse((const char *)buf_data(&out), out.n, &p, &e) == 0);
	check(host_parse(&h, "a.b.x", 5, &e) == 0);
	check(streq(net_decide(p, &q).rule, "default:1"));
	check(net_text_begin(&small) == 0);
	r.resource = "a";
	check(net_text_rule(&small, &r) == -ENOBUFS);
	buf_done(&out);
	buf_done(&small);
}

/* ---- presets ---- */
struct seen {
	size_t n;
	char last[NET_RESOURCE_MAX + 1], group[64];
	struct net_builder *b;
};

static int see(void *arg, const char *group, const char *resource, struct err *e)
{
	struct seen *s = arg;
	char id[32];
	struct net_rule r = { id, NET_GLOBAL, true, resource, NULL, NULL };

	check(snprintf(id, sizeof(id), "p%zu", s->n++) > 0);
	check(snprintf(s->last, sizeof(s->last), "%s", resource) > 0);
	check(snprintf(s->group, sizeof(s->group), "%s", group) > 0);
	return net_builder_add(s->b, &r, e);
}

static int parse(struct seen *s, const char *text, struct err *e)
{
	int r;

	*s = (struct seen) { 0 };
	check(net_builder_new(&s->b) == 0);
	r = net_preset_parse(text, strlen(text), see, s, e);
	s->b = net_builder_free(s->b);
	return r;
}

static void preset_lines(void)
{
	struct seen s;
	struct err e;

	check(parse(&s, "# x\n\n  g  a.X \n", &e) == 0 && s.n == 1);
	check(streq(s.last, "a.x") && streq(s.group, "g"));
	check(parse(&s, "g +**.x:443", &e) == 0 && s.n == 2 && streq(s.last, "**.x:443"));
	check(parse(&s, "g\n", &e) == -EINVAL && starts_with(e.msg, "line 1: column 2"));
	check(parse(&s, "\ng a b\n", &e) == -EINVAL && starts_with(e.msg, "line 2: column 5"));
	check(parse(&s, "g +a\n", &e) == -EINVAL && strstr(e.msg, "'+' stands before"));
	check(parse(&s, "g a..b\n", &e) == -EINVAL &&
	      starts_with(e.msg, "line 1: column 3: column 3"));
}

static void presets(void)
{
	static const struct {
		const char *name;
		size_t least, most;
	} t[] = { { "allow-all", 1, 1 }, { "balanced", 150, 400 }, { "deny-all", 0, 0 } };
	struct seen s;
	struct err e;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		const char *text = net_preset_find(t[i].name);

		check(text);
		if (parse(&s, text, &e) < 0)
			(void)fprintf(stderr, "%s: %s\n", t[i].name, e.msg);
		check(parse(&s, text, &e) == 0 && s.n >= t[i].least && s.n <= t[i].most);
	}
	check(!net_preset_find("open"));
}

int main(void)
{
	lines();
	cut();
	round_trip();
	preset_lines();
	presets();
	return 0;
}
