/* YAML: what is taken, and with which line the rest is refused. */
#include "base/check.h"
#include "kit/yaml.h"

static int parse(const char *text, struct yaml *y, struct err *e)
{
	return yaml_parse(text, strlen(text), y, e);
}

static void taken(void)
{
	static const char text[] = "# comment\na: 1\nb:\n  - x\n  - {c: 'y: z', d: [1, 2]}\ne:\n";
	static const char *const keys[] = { "a", "b", "domains", NULL };
	const struct yaml *b;
	const char *s = NULL;
	struct yaml y = { 0 };
	bool yes = true;
	struct err e;

	check(parse(text, &y, &e) == 0 && y.kind == YAML_MAP && y.n == 3);
	check(yaml_text(&y, "a", &s, &e) == 0 && streq(s, "1"));
	check(yaml_text(&y, "z", &s, &e) == 0 && !s);
	b = yaml_get(&y, "b");
	check(b && b->kind == YAML_LIST && b->n == 2 && streq(b->v[0].text, "x"));
	check(streq(yaml_get(&b->v[1], "c")->text, "y: z") && yaml_get(&b->v[1], "d")->n == 2);
	check(streq(yaml_get(&y, "e")->text, ""));
	check(b->v[1].line == 5 && yaml_get(&y, "a")->line == 2);
	check(yaml_text(&y, "b", &s, &e) == -EINVAL &&
	      streq(e.msg, "line 3: b is a text, not a list"));
	check(yaml_bool(&y, "a", &yes, &e) == -EINVAL && yes);
	check(yaml_bool(&y, "no", &yes, &e) == 0 && yes);
	check(yaml_keys(&y, keys, "the file", &e) == -EINVAL);
	check(starts_with(e.msg, "line 6: unknown key 'e' in the file"));
	yaml_done(&y);
	check(parse("", &y, &e) == 0 && y.kind == YAML_NONE);
	check(parse("# nothing\n", &y, &e) == 0 && y.kind == YAML_NONE);
	check(parse("{\"a\": [\"b\"]}", &y, &e) == 0 && y.kind == YAML_MAP);
	yaml_done(&y);
}

static void refused(void)
{
	static const struct {
		const char *text, *msg;
	} t[] = {
		{ "a: 1\na: 2\n", "line 2: found the key 'a' a second time" },
		{ "a: &x 1\n", "line 1: anchors" },
		{ "a: &x [1]\nb: *x\n", "line 1: anchors" },
		{ "b: *x\n", "line 1: anchors" },
		{ "a: !!str 1\n", "line 1: anchors" },
		{ "a: 1\n---\nb: 2\n", "line 2: found another document" },
		{ "a: [1\n", "line " },
		{ "a: b: c\n", "line 1" },
		{ "a:\n\t- b\n", "line 2" },
		{ "? [a]\n: b\n", "line 1: found something else as a key" },
		{ "[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", "line 1: found more than 16 levels" },
		{ "a: \"x\\0y\"\n", "line 1: found a NUL" },
		{ "a: \xff\n", "it is not UTF-8" },
	};
	struct yaml y = { 0 };
	struct err e;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		int r = parse(t[i].text, &y, &e);

		if (r == 0 || !starts_with(e.msg, t[i].msg))
			(void)fprintf(stderr, "%zu: %d %s\n", i, r, r ? e.msg : "");
		check(r == -EINVAL && starts_with(e.msg, t[i].msg) && y.kind == YAML_NONE);
	}
}

static void limits(void)
{
	char *big = calloc(1, YAML_MAX + 2);
	struct yaml y = { 0 };
	struct err e;
	size_t i;

	check(big);
	memset(big, ' ', YAML_MAX + 1);
	check(parse(big, &y, &e) == -E2BIG);
	for (i = 0; i < YAML_NODES_MAX; i++)
		memcpy(big + 4 * i, "- a\n", 4);
	big[4 * i] = '\0';
	check(parse(big, &y, &e) == -EINVAL && strstr(e.msg, "more than"));
	big[4 * (i - 1)] = '\0';
	check(parse(big, &y, &e) == 0 && y.n == YAML_NODES_MAX - 1);
	yaml_done(&y);
	free(big);
}

int main(void)
{
	taken();
	refused();
	limits();
	return 0;
}
