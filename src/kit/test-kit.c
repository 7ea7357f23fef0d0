/* Kits, and what is made of them: cases in text files (test/kits), each with the exact result.
 *
 *     %case NAME            a specification, and what comes of it; %show NAME: with its normal form
 *     %mixin, %sandbox      (first line) it begins as such a kit does
 *     %args A=B             (before the specification) what was given
 *     %compose NAME         several: each behind "%kit base", "%kit parent" (nearest first), "%kit mixin"
 *     %fault, %warn, %ok, %normal      the result
 *
 * "test-kit --print FILE" prints the file with the results as they are: read what changed before you keep it. */
#include <jansson.h>
#include <stdio.h>

#include "base/check.h"
#include "kit/kit.h"

enum { TEXT_MAX = 1024 * 1024, KITS_MAX = 80 };

struct input {
	char role[8]; /* "base", "parent", "mixin" */
	struct buf text;
};

struct one {
	char name[160];
	bool show, compose;
	struct input in[KITS_MAX];
	size_t n;
	struct kit_args args;
	struct buf want;
};

static const char begin[] = "schemaVersion: \"2\"\nname: k\n";

static void put(struct buf *b, const char *s, size_t n)
{
	check(buf_add(b, s, n) == 0);
}

static struct input *input(struct one *t, const char *role)
{
	struct input *i = &t->in[t->n++];

	check(t->n <= KITS_MAX);
	*i = (struct input) { .text = BUF_INIT(TEXT_MAX) };
	(void)snprintf(i->role, sizeof(i->role), "%s", role);
	return i;
}

/* ---- what comes of it ---- */
static void put_report(struct buf *out, const struct kit_report *rep)
{
	size_t i;

	for (i = 0; i < rep->n; i++)
		check(buf_printf(out, "%%fault %s\n", rep->v[i].text) == 0);
	for (i = 0; i < rep->n_warnings; i++)
		check(buf_printf(out, "%%warn %s\n", rep->warnings[i]) == 0);
}

/* The normal form is read into the same; the JSON is JSON. */
static void check_again(const struct kit *k, struct buf *normal)
{
	struct buf again = BUF_INIT(TEXT_MAX), json = BUF_INIT(TEXT_MAX),
		   other = BUF_INIT(TEXT_MAX);
	struct kit_report rep = { 0 };
	struct kit copy = { 0 };
	struct err e;
	json_t *j;

	check(kit_write_json(k, &json) == 0);
	j = json_loadb((const char *)buf_data(&json), json.n, 0, NULL);
	check(j);
	json_decref(j);
	if (kit_parse("again", buf_str(normal), normal->n, NULL, &copy, &rep, &e) < 0)
		(void)fprintf(stderr, "%s\n%s", e.msg, buf_str(normal));
	else
		check(kit_write(&copy, &again) == 0 && kit_write_json(&copy, &other) == 0);
	check(streq(buf_str(&again), buf_str(normal)) && streq(buf_str(&json), buf_str(&other)));
	kit_done(&copy);
	report_done(&rep);
	buf_done(&again);
	buf_done(&json);
	buf_done(&other);
}

static void put_normal(struct buf *out, const struct kit *k, bool show)
{
	struct buf normal = BUF_INIT(TEXT_MAX);
	size_t i;

	check(kit_write(k, &normal) == 0 && buf_str(&normal));
	check_again(k, &normal);
	check(buf_printf(out, show ? "%%normal\n%s" : "%%ok\n", buf_str(&normal)) == 0);
	for (i = 1; show && i < k->n_instructions; i++)
		check(buf_printf(out, "# of %s: %s\n", k->instructions[i].kit,
				 k->instructions[i].content) == 0);
	buf_done(&normal);
}

static void run_case(struct one *t, struct buf *out)
{
	struct input *in = &t->in[0];
	struct kit_report rep = { 0 };
	struct kit k = { 0 };
	struct err e;
	int r = kit_parse("spec.yaml", buf_str(&in->text), in->text.n, &t->args, &k, &rep, &e);

	check(r == 0 || (r == -EINVAL && rep.n && streq(e.msg, rep.v[0].text)));
	put_report(out, &rep);
	if (r == 0)
		put_normal(out, &k, t->show);
	kit_done(&k);
	report_done(&rep);
}

static void run_compose(struct one *t, struct buf *out)
{
	const struct kit *base = NULL, *parents[KITS_MAX], *mixins[KITS_MAX];
	size_t n_parents = 0, n_mixins = 0, i;
	struct kit *v = calloc(t->n, sizeof(*v)), all = { 0 };
	struct kit_report rep = { 0 };
	struct err e = { 0 };
	int r = 0;

	check(v);
	for (i = 0; i < t->n && r == 0; i++) {
		struct input *in = &t->in[i];

		r = kit_parse("spec.yaml", buf_str(&in->text), in->text.n, &t->args, &v[i], &rep,
			      &e);
		if (streq(in->role, "base"))
			base = &v[i];
		else if (streq(in->role, "parent"))
			parents[n_parents++] = &v[i];
		else
			mixins[n_mixins++] = &v[i];
	}
	if (r == 0)
		r = kit_compose(base, parents, n_parents, mixins, n_mixins, &all, &rep, &e);
	check(r <= 0);
	put_report(out, &rep);
	if (r == 0)
		put_normal(out, &all, true);
	else if (!rep.n)
		check(buf_printf(out, "%%fault %s\n", e.msg) == 0);
	kit_done(&all);
	for (i = 0; i < t->n; i++)
		kit_done(&v[i]);
	free(v);
	report_done(&rep);
}

/* ---- the files ---- */
static bool is_result(const char *line)
{
	return starts_with(line, "%fault") || starts_with(line, "%warn") ||
	       starts_with(line, "%ok") || starts_with(line, "%normal");
}

static bool is_start(const char *line)
{
	return starts_with(line, "%case ") || starts_with(line, "%show ") ||
	       starts_with(line, "%compose ");
}

static void take_line(struct one *t, const char *line, size_t n, bool *result)
{
	struct err e;

	*result |= is_result(line);
	if (*result) {
		put(&t->want, line, n);
	} else if (starts_with(line, "%args ")) {
		_free_ char *text = strndup(line + 6, n - 7);

		check(kit_args_add(&t->args, text, &e) == 0);
	} else if (starts_with(line, "%kit ")) {
		_free_ char *role = strndup(line + 5, n - 6);

		(void)input(t, role);
	} else {
		struct input *in = t->n ? &t->in[t->n - 1] : input(t, "base");

		if (starts_with(line, "%mixin"))
			check(buf_printf(&in->text, "%skind: mixin\n", begin) == 0);
		else if (starts_with(line, "%sandbox"))
			check(buf_printf(&in->text, "%skind: sandbox\nsandbox: {image: i}\n",
					 begin) == 0);
		else
			put(&in->text, line, n);
	}
}

/* One case from p; where the next begins. */
static const char *take_case(struct one *t, const char *p)
{
	const char *eol = strchr(p, '\n'), *name = strchr(p, ' ') + 1;
	bool result = false;

	*t = (struct one) { .want = BUF_INIT(TEXT_MAX) };
	t->show = p[1] == 's';
	t->compose = starts_with(p, "%compose ");
	(void)snprintf(t->name, sizeof(t->name), "%.*s", (int)(eol - name), name);
	for (p = eol + 1; *p && !is_start(p); p = eol + 1) {
		eol = strchr(p, '\n');
		check(eol);
		take_line(t, p, (size_t)(eol + 1 - p), &result);
	}
	if (!t->n)
		(void)input(t, "base");
	return p;
}

static void case_done(struct one *t)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		buf_done(&t->in[i].text);
	kit_args_done(&t->args);
	buf_done(&t->want);
}

/* The case as it is written, without its result. */
static void print_input(const char *from, const char *to)
{
	while (from < to && !is_result(from)) {
		const char *eol = strchr(from, '\n');

		(void)printf("%.*s", (int)(eol + 1 - from), from);
		from = eol + 1;
	}
}

/* How many cases, and how many of them are not as they should be. */
static size_t run_file(const char *path, bool print, size_t *wrong)
{
	char *text = calloc(1, TEXT_MAX);
	FILE *f = fopen(path, "re");
	size_t cases = 0;
	const char *p;

	check(text && f && fread(text, 1, TEXT_MAX - 1, f) > 0 && fclose(f) == 0);
	for (p = text; *p && !is_start(p); p = strchr(p, '\n') + 1)
		if (print)
			(void)printf("%.*s", (int)(strchr(p, '\n') + 1 - p), p);
	while (*p) {
		static struct one t;
		struct buf got = BUF_INIT(TEXT_MAX);
		const char *from = p;

		p = take_case(&t, p);
		(t.compose ? run_compose : run_case)(&t, &got);
		if (print) {
			print_input(from, p);
			(void)printf("%s", buf_str(&got));
		} else if (!streq(buf_str(&got), t.want.n ? buf_str(&t.want) : "")) {
			(void)fprintf(stderr, "%s: %s\n--- wanted\n%s--- got\n%s", path, t.name,
				      t.want.n ? buf_str(&t.want) : "", buf_str(&got));
			*wrong += 1;
		}
		cases++;
		buf_done(&got);
		case_done(&t);
	}
	free(text);
	return cases;
}

/* ---- what cannot stand in a file of cases ---- */
/* All faults of a text, as they are told; "" for a kit. */
static const char *faults(const char *text, size_t n)
{
	static char all[4096];
	struct kit_report rep = { 0 };
	struct kit k = { 0 };
	size_t at = 0, i;
	struct err e;

	all[0] = '\0';
	if (kit_parse("f", text, n, NULL, &k, &rep, &e) == 0)
		check(rep.n == 0);
	for (i = 0; i < rep.n && at < sizeof(all); i++)
		at += (size_t)snprintf(all + at, sizeof(all) - at, "%s\n", rep.v[i].text);
	kit_done(&k);
	report_done(&rep);
	return all;
}

#define FAULTS(literal) faults(literal, sizeof(literal) - 1)
#define HEAD            "schemaVersion: \"2\"\nkind: mixin\nname: m\n"

static void odd_bytes(void)
{
	check(streq(FAULTS("\xef\xbb\xbf" HEAD), ""));
	check(streq(FAULTS("schemaVersion: \"2\"\r\nkind: mixin\r\nname: m\r\nports:\r\n  - "
			   "container: 0\r\n"),
		    "f:5:16: ports[0].container: found '0', expected a port from 1 to 65535\n"));
	check(streq(FAULTS(HEAD "description: \xff\n"), "f: found bytes that are not UTF-8\n"));
	check(streq(FAULTS("\xff\xfek\0i\0"), "f: found bytes that are not UTF-8\n"));
	check(starts_with(FAULTS(HEAD "description: a\0b\n"), "f:"));
	check(starts_with(FAULTS("\0"), "f:"));
	check(streq(FAULTS(HEAD "description: \"\xef\xb7\x90${{ kit.args.a }}\"\n"),
		    "f: found U+FDD0 or U+FDD1, which are no characters\n"));
}

static void big(void)
{
	enum { TEN_MB = 10 * 1024 * 1024 };
	char *text = malloc(TEN_MB);
	size_t n = strlen(HEAD), i;

	check(text);
	memset(text, 'a', TEN_MB);
	memcpy(text, HEAD, n);
	check(streq(faults(text, TEN_MB), "f: found 10485760 bytes, expected 262144 at most\n"));
	for (i = 0; i < 9000; i++) {
		memcpy(text + n, i ? "- a\n" : "a:\n- ", i ? 4 : 5);
		n += i ? 4 : 5;
	}
	check(strstr(faults(text, n), "found more than 8192 values"));
	free(text);
}

/* Aliases of aliases: what they stand for is counted. */
static void laughs(void)
{
	check(strstr(FAULTS(HEAD "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
				 "b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
				 "c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n"
				 "d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n"),
		     "found too much that aliases stand for"));
}

static void many_faults(void)
{
	char text[8192];
	struct kit_report rep = { 0 };
	struct kit k = { 0 };
	struct err e;
	size_t n = 0, i;

	n += (size_t)snprintf(text, sizeof(text), HEAD "ports:\n");
	for (i = 0; i < 200; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "- x%zu\n", i);
	check(kit_parse("f", text, n, NULL, &k, &rep, &e) == -EINVAL);
	check(rep.n == KIT_FAULTS_MAX && streq(e.msg, rep.v[0].text) && rep.v[0].line == 5);
	report_done(&rep);
}

/* ---- arguments in other files, from files ---- */
static void arguments(void)
{
	static const char file[] = "# comment\n\n a=1\r\nk.b=two words = 2\na=3\n";
	static const char spec[] = HEAD "args: {a: {default: x}}\n";
	struct kit_args a = { 0 };
	struct buf out = BUF_INIT(1000);
	struct kit_report rep = { 0 };
	struct kit k = { 0 };
	struct err e;

	check(kit_args_file(&a, "f", file, strlen(file), &e) == 0 && a.n == 2);
	check(streq(a.v[0].value, "3") && streq(a.v[1].kit, "k") &&
	      streq(a.v[1].value, "two words = 2"));
	check(kit_args_add(&a, "a", &e) == -EINVAL && kit_args_add(&a, "=b", &e) == -EINVAL);
	check(kit_args_add(&a, ".a=b", &e) == -EINVAL && kit_args_add(&a, "a b=c", &e) == -EINVAL);
	check(kit_args_add(&a, "a=${{ kit.args.b }}", &e) == -EINVAL);
	check(kit_args_file(&a, "f", "x\n", 2, &e) == -EINVAL && starts_with(e.msg, "f:1: "));
	check(kit_parse("f", spec, strlen(spec), &a, &k, &rep, &e) == 0 && rep.n == 0);
	check(kit_args_used(&a, &e) == -EINVAL && streq(e.msg, "no kit has an argument 'k.b'"));
	check(kit_args_apply(&k.args, "1 ${{ kit.args.a }} ${{ x }} ${{", 32, &out, &e) == 0);
	check(streq(buf_str(&out), "1 3 ${{ x }} ${{"));
	check(kit_args_apply(&k.args, "\n ${{ kit.args.b }}", 20, &out, &e) == -EINVAL);
	check(starts_with(e.msg, "2:2: found '${{ kit.args.b }}'"));
	kit_args_done(&a);
	kit_done(&k);
	buf_done(&out);
}

static int note(void *arg, const char *service, const char *resource)
{
	return buf_printf(arg, "%s %s\n", service, resource);
}

/* What only a credential opens. */
static void unlisted(void)
{
	static const char spec[] = HEAD "permissions: {network: {allow: [a.example, '*.b.example', "
					"'c.example:8443', '**.d.example'], deny: [x.b.example]}}\n"
					"credentials:\n- service: s\n  apiKey:\n    inject:\n"
					"    - {domain: a.example, scheme: bearer}\n    - {domain: "
					"y.b.example, scheme: bearer}\n"
					"    - {domain: x.b.example, scheme: bearer}\n    - "
					"{domain: b.example, scheme: bearer}\n"
					"    - {domain: c.example, scheme: bearer}\n    - {domain: "
					"c.example:8443, scheme: bearer}\n"
					"    - {domain: '*.d.example', scheme: bearer}\n    - "
					"{domain: '*.e.example', scheme: bearer}\n"
					"    - {domain: b.example, header: x}\n";
	struct buf out = BUF_INIT(1000);
	struct kit_report rep = { 0 };
	struct kit k = { 0 };
	struct err e;

	check(kit_parse("f", spec, strlen(spec), NULL, &k, &rep, &e) == 0);
	check(kit_unlisted(&k, note, &out) == 0);
	check(streq(buf_str(&out), "s x.b.example\ns b.example\ns c.example\ns *.e.example\n"));
	kit_done(&k);
	buf_done(&out);
}

static void variables(void)
{
	static const char env[] = "# A=1\nexport B=2\n C = 3\nDD=4\nE_A=5\n";
	static const char json[] =
		"{ // A\n  \"containerEnv\": { \"A\": \"x\", \"B\" : \"${A}\" },\n}\n";
	static const char yaml[] = "environment:\n  - A=1\n  B: 2\n";
	struct buf out = BUF_INIT(1000);

	check(!kit_sets(env, strlen(env), "A") && kit_sets(env, strlen(env), "B"));
	check(kit_sets(env, strlen(env), "C") && !kit_sets(env, strlen(env), "D"));
	check(kit_sets(json, strlen(json), "A") && kit_sets(json, strlen(json), "B") &&
	      !kit_sets(json, strlen(json), "x"));
	check(kit_sets(yaml, strlen(yaml), "A") && kit_sets(yaml, strlen(yaml), "B"));
	check(kit_sets("ENV A b\n", 8, "A") && !kit_sets("RUN echo $A = b\n", 16, "A") &&
	      !kit_sets("", 0, "A"));
	check(kit_path("/a:${PATH}:/b", "/x:/y", &out) == 0 && streq(buf_str(&out), "/a:/x:/y:/b"));
	buf_done(&out);
	check(streq(kit_reserved(".codex/config.toml"), "codex") && !kit_reserved(".codex/config"));
}

/* The kit of the tutorial: nothing is said about it. */
static void tutorial(const char *path)
{
	char *text = calloc(1, TEXT_MAX);
	struct kit_report rep = { 0 };
	struct kit k = { 0 };
	FILE *f = fopen(path, "re");
	struct err e;
	size_t n;

	check(text && f);
	n = fread(text, 1, TEXT_MAX - 1, f);
	check(n > 0 && fclose(f) == 0);
	check(kit_parse("spec.yaml", text, n, NULL, &k, &rep, &e) == 0);
	check(!rep.n && !rep.n_warnings && k.n_vars == 3 && k.allow.n == 5 && k.entrypoint.n == 2);
	check(streq(k.credentials.origin, "kit:pi"));
	check(k.credentials.n == 1 && k.credentials.v[0].required && k.credentials.v[0].managed);
	kit_done(&k);
	free(text);
}

int main(int argc, char **argv)
{
	bool print = argc > 1 && streq(argv[1], "--print");
	size_t wrong = 0, cases = 0;
	int i;

	for (i = 1 + print; i < argc; i++)
		if (strstr(argv[i], ".yaml"))
			tutorial(argv[i]);
		else
			cases += run_file(argv[i], print, &wrong);
	if (!print) {
		odd_bytes();
		big();
		laughs();
		many_faults();
		arguments();
		unlisted();
		variables();
	}
	if (!print)
		(void)printf("%zu cases, %zu wrong\n", cases, wrong);
	check(cases > 0 && !wrong);
	return 0;
}
