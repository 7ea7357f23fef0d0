/* Path rules: what patterns match, who wins, the way to a rule, and the limits. */
#include "policy/path.h"

#include <stdio.h>
#include <time.h>

#include "base/check.h"
#include "policy/path-file.h"
#include "policy/path-priv.h"
#include "policy/path-test.h"

static struct path_rules *rules_of(const char *text)
{
	struct path_builder *b;
	struct path_rules *r;
	struct err e;

	check(path_builder_new(&b) == 0);
	if (text)
		check(path_file_add(b, text, strlen(text), "test", &e) == 0);
	else
		check(path_file_add_defaults(b, &e) == 0);
	check(path_rules_freeze(b, &r) == 0);
	path_builder_free(b);
	return r;
}

static enum path_rule_kind kind_of(const struct path_rules *r, const char *rel)
{
	return path_rules_decide(r, rel, strlen(rel)).kind;
}

static enum path_rule_kind below(const struct path_rules *r, const char *rel)
{
	return path_rules_below(r, rel, strlen(rel));
}

static bool may_move(const struct path_rules *r, const char *from, const char *to)
{
	check(path_rules_may_move(r, from, strlen(from), to, strlen(to)) ==
	      path_rules_may_move(r, to, strlen(to), from, strlen(from)));
	return path_rules_may_move(r, from, strlen(from), to, strlen(to));
}

static const struct {
	const char *pattern, *yes[6], *no[6];
} matches[] = {
	{ ".env",
	  { ".env", "a/.env", "a/b/.env", ".ENV", ".env/x", "a/.Env/b/c" },
	  { "env", "x.env", ".env2", ".envrc" } },
	{ "./.env", { ".env", ".env/x" }, { "a/.env", "a/b/.env" } },
	{ ".env.*", { ".env.x", "a/.env.", ".env.a.b" }, { ".env", ".enva", "a.env.b" } },
	{ "*.pem",
	  { ".pem", "a.pem", "x/y.PEM", "a.pem.pem", "d.pem/f" },
	  { "pem", "a.pem2", "a.pe" } },
	{ "*", { "a", "a/b", ".x" }, { NULL } },
	{ "**", { "a", "a/b", ".x" }, { NULL } },
	{ "**/**", { "a", "a/b", ".x" }, { NULL } },
	{ "a/b", { "a/b", "a/b/c", "A/B" }, { "a", "b", "x/a/b", "a/bb", "a/x/b" } },
	{ "a/**", { "a/b", "a/b/c" }, { "a", "b", "x/a/b", "ab/c" } },
	{ "a/*", { "a/b", "a/b/c" }, { "a" } },
	{ "a/**/b", { "a/b", "a/x/b", "a/x/y/b", "a/b/c" }, { "a", "a/x", "b", "x/a/b" } },
	{ "a/**/**/b", { "a/b", "a/x/b", "a/x/y/b" }, { "a/c" } },
	{ "**/a/b", { "a/b", "x/a/b", "x/a/a/b", "x/y/a/b/z" }, { "a", "b", "a/x/b" } },
	{ "**/a/**", { "a/b", "x/a/b" }, { "a", "x/a" } },
	{ "?", { "a", "x/b", "a/bc" }, { "ab", "ab/cd" } },
	{ "a?c/*d", { "abc/d", "a?c/xd", "a*c/dd" }, { "ac/d", "a/c/d", "abc/dx" } },
	{ "a*b*c", { "abc", "axbxc", "abcbc", "aXXbYYc" }, { "ab", "acb", "abcx", "a/b/c" } },
	{ "*a*a*b", { "aab", "aaaaaab", "xaxaxb" }, { "ab", "aaaaaa" } },
	{ "[a]", { "[a]", "[A]" }, { "a" } },
	{ "a b", { "a b" }, { "ab" } },
	{ "\xff\xfe*", { "\xff\xfe", "\xff\xfe\x80", "d/\xff\xfe" }, { "\xff" } },
	{ "\xc3\x84", { "\xc3\x84" }, { "\xc3\xa4" } }, /* other alphabets do not fold */
	{ "**/.git/hooks/**",
	  { ".git/hooks/pre-commit", "a/.git/hooks/x", ".GIT/Hooks/x" },
	  { ".git", ".git/hooks", "git/hooks/x", ".git/x/hooks/y" } },
};

static void patterns(void)
{
	size_t i, n;

	for (i = 0; i < ARRAY_SIZE(matches); i++) {
		char text[64];
		struct path_rules *r;

		(void)snprintf(text, sizeof(text), "hide %s\n", matches[i].pattern);
		r = rules_of(text);
		for (n = 0; n < ARRAY_SIZE(matches[i].yes) && matches[i].yes[n]; n++) {
			struct path_answer a =
				path_rules_decide(r, matches[i].yes[n], strlen(matches[i].yes[n]));

			check(a.kind == PATH_HIDE && streq(a.rule, matches[i].pattern) &&
			      streq(a.origin, "test"));
			check(slow_match(matches[i].pattern, matches[i].yes[n], true));
		}
		for (n = 0; n < ARRAY_SIZE(matches[i].no) && matches[i].no[n]; n++) {
			check(kind_of(r, matches[i].no[n]) == PATH_FREE);
			check(!slow_match(matches[i].pattern, matches[i].no[n], true));
		}
		check(kind_of(r, "") == PATH_FREE);
		path_rules_free(r);
	}
}

static const struct {
	const char *pattern, *text;
} refused[] = {
	{ "", "column 1: the pattern is empty" },
	{ "/a", "column 1: a pattern is relative" },
	{ "/", "column 1: a pattern is relative" },
	{ "~", "column 1: " },
	{ "~/x", "column 1: " },
	{ "!x", "column 1: '!'" },
	{ "a/", "column 2: a final '/'" },
	{ "./", "column 2: a final '/'" },
	{ "a//b", "column 3: an empty component" },
	{ "a/./b", "column 3: '.' and '..'" },
	{ "../b", "column 1: '.' and '..'" },
	{ ".", "column 1: '.' and '..'" },
	{ "././a", "column 3: '.' and '..'" },
	{ "a/b**", "column 4: '**' stands alone" },
	{ "***", "column 1: '**' stands alone" },
	{ "ab/**c/d", "column 4: '**' stands alone" },
};

static void refusals(void)
{
	char name[300], text[PATH_PATTERN_MAX + 2];
	struct path_builder *b;
	struct err e;
	size_t i;

	check(path_builder_new(&b) == 0);
	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		check(path_builder_add(b, PATH_HIDE, refused[i].pattern, "t", &e) == -EINVAL);
		if (!strstr(e.msg, refused[i].text))
			(void)fprintf(stderr, "%s\n", e.msg);
		check(strstr(e.msg, refused[i].text));
	}
	memset(name, 'x', sizeof(name));
	name[PATH_PART_MAX + 1] = '\0';
	check(path_builder_add(b, PATH_HIDE, name, "t", &e) == -EINVAL);
	name[PATH_PART_MAX] = '\0';
	check(path_builder_add(b, PATH_HIDE, name, "t", &e) == 0);
	for (i = 0; i < PATH_PATTERN_MAX + 1; i++)
		text[i] = i % 2 ? '/' : 'a';
	text[PATH_PATTERN_MAX + 1] = '\0';
	check(path_builder_add(b, PATH_HIDE, text, "t", &e) == -EINVAL);
	check(strstr(e.msg, "column 1025: too long"));
	text[PATH_PATTERN_MAX - 1] = '\0';
	check(path_builder_add(b, PATH_HIDE, text, "t", &e) == 0);
	check(path_builder_add(b, PATH_FREE, "x", "t", &e) == -EINVAL);
	check(path_builder_add(b, (enum path_rule_kind)7, "x", "t", &e) == -EINVAL);
	path_builder_free(b);
	check(!path_builder_free(NULL) && !path_rules_free(NULL));
}

/* Rules, path, who wins. */
static const struct {
	const char *rules, *path;
	enum path_rule_kind kind;
	const char *rule;
} wins[] = {
	{ "protect a\nhide a\n", "a", PATH_HIDE, "a" },
	{ "hide *.x\nprotect a.x\n", "a.x", PATH_HIDE, "*.x" },
	{ "protect d/**\nhide *.x\n", "d/a.x", PATH_HIDE, "*.x" },
	{ "protect d/**\nhide *.x\n", "d/a.y", PATH_PROTECT, "d/**" },
	{ "hide .env.*\nallow .env.example\n", "x/.env.example", PATH_FREE, NULL },
	{ "hide .env.*\nallow .env.example\n", "x/.env.other", PATH_HIDE, ".env.*" },
	/* exceptions match as they are written */
	{ "hide .env.*\nallow .env.example\n", ".ENV.example", PATH_HIDE, ".env.*" },
	{ "hide .ENV.*\nallow .env.example\n", ".env.example", PATH_FREE, NULL },
	/* an exception that comes before does not count */
	{ "allow .env.example\nhide .env.*\n", ".env.example", PATH_HIDE, ".env.*" },
	/* one that is not a part of the rule neither */
	{ "hide s/**\nallow .env.example\n", "s/.env.example", PATH_HIDE, "s/**" },
	{ "hide .env*\nallow *.example\n", ".env.example", PATH_HIDE, ".env*" },
	{ "hide a\nallow *\n", "a", PATH_HIDE, "a" },
	/* it frees from each rule for itself */
	{ "hide *.x\nprotect d/**\nallow a.x\n", "d/a.x", PATH_PROTECT, "d/**" },
	{ "hide *.x\nprotect d/**\nallow d/a.x\n", "d/a.x", PATH_FREE, NULL },
	{ "hide *.x\nprotect a.?\nallow a.x\nhide a.*\n", "a.x", PATH_HIDE, "a.*" },
	/* the same pattern switches off, however it is written and in either case of the path */
	{ "hide .env\nallow .env\n", ".ENV", PATH_FREE, NULL },
	{ "hide .env\nallow **/.env\n", "d/.env", PATH_FREE, NULL },
	{ "hide a/**\nallow a/*\n", "a/b", PATH_FREE, NULL },
	{ "hide a\nallow a\nprotect a\n", "a", PATH_PROTECT, "a" },
	/* folders, and parts of them */
	{ "hide s\nallow s/open\n", "s/open/x/y", PATH_FREE, NULL },
	{ "hide s\nallow ./s/open\n", "s/shut", PATH_HIDE, "s" },
	{ "hide s\nallow s/open\n", "t/s/open", PATH_HIDE, "s" },
	{ "hide **\nallow build\n", "a/build/x", PATH_FREE, NULL },
	{ "hide *\nallow build/**\n", "build", PATH_HIDE, "*" },
	{ "hide ?\nallow **/?\n", "a/b", PATH_FREE, NULL },
	{ "hide *.pem\nallow **/m/**/*.pem\n", "a/m/b/c/k.pem", PATH_FREE, NULL },
	{ "hide *.pem\nallow **/m/**/*.pem\n", "a/k.pem", PATH_HIDE, "*.pem" },
	{ "hide *.pem\nallow **/m/**/*.pem\n", "k.pem/m/k.pem", PATH_FREE, NULL },
	{ "hide a/**/b\nallow a/x/**/b\n", "a/x/b", PATH_FREE, NULL },
	{ "hide a/x/**/b\nallow a/**/b\n", "a/x/b", PATH_HIDE, "a/x/**/b" },
	{ "hide a?\nallow a*\n", "ab", PATH_HIDE, "a?" },
	{ "hide a*\nallow a?\n", "ab", PATH_FREE, NULL },
	{ "hide a*\nallow A?\n", "Ab", PATH_FREE, NULL },
	{ "", "a", PATH_FREE, NULL },
	{ "allow a\n", "a", PATH_FREE, NULL },
};

static void precedence(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wins); i++) {
		struct path_rules *r = rules_of(wins[i].rules);
		struct path_answer a = path_rules_decide(r, wins[i].path, strlen(wins[i].path));

		if (a.kind != wins[i].kind || !streq(a.rule, wins[i].rule))
			(void)fprintf(stderr, "%s%s: %d %s\n", wins[i].rules, wins[i].path, a.kind,
				      a.rule ? a.rule : "-");
		check(a.kind == wins[i].kind && streq(a.rule, wins[i].rule));
		path_rules_free(r);
	}
}

static void no_paths(void)
{
	static const char *const bad[] = { "/",  "/a",     "a/",  "a//b", ".",
					   "..", "a/../b", "a/.", "./a" };
	struct path_rules *r = rules_of(""), *zeros = calloc(1, sizeof(*zeros));
	size_t i;

	check(zeros);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		check(kind_of(r, bad[i]) == PATH_HIDE && below(r, bad[i]) == PATH_HIDE);
		check(!path_rules_may_move(r, bad[i], strlen(bad[i]), "a", 1));
		check(!path_rules_may_move(r, "a", 1, bad[i], strlen(bad[i])));
	}
	check(path_rules_decide(r, "a\0b", 3).kind == PATH_HIDE);
	check(kind_of(r, "...") == PATH_FREE && kind_of(r, "..a") == PATH_FREE);
	check(kind_of(zeros, "a") == PATH_HIDE && kind_of(zeros, "") == PATH_HIDE);
	check(path_rules_decide(zeros, "a", 1).rule && below(zeros, "a") == PATH_HIDE);
	check(!path_rules_may_move(zeros, "a", 1, "b", 1));
	free(zeros);
	path_rules_free(r);
}

static void the_way(void)
{
	struct path_rules *r = rules_of("protect **/.git/hooks/**\nhide *.pem\nhide s/t\n"
					"allow **/m/**/*.pem\n");

	check(below(r, "") == PATH_HIDE);
	check(below(r, "a") == PATH_FREE && below(r, "a/b") == PATH_FREE);
	check(below(r, ".git") == PATH_PROTECT && below(r, "a/.git/hooks") == PATH_PROTECT);
	check(below(r, ".git/objects") == PATH_FREE && below(r, ".git/hooks/x") == PATH_PROTECT);
	check(below(r, "s") == PATH_HIDE && below(r, "s/t/u") == PATH_HIDE);
	check(below(r, "s/u") == PATH_FREE && below(r, "a/s") == PATH_FREE);
	check(below(r, "x.pem") == PATH_HIDE);

	check(may_move(r, "a", "b/c") && may_move(r, "a", "a"));
	check(!may_move(r, "a", ".git") && !may_move(r, ".git", "a") &&
	      !may_move(r, "a", ".git/hooks"));
	check(may_move(r, ".git/a", ".git/b") && may_move(r, "x/.git", ".git"));
	check(!may_move(r, "a", "m") && !may_move(r, "a", "m/x") && may_move(r, "m/a", "b/m/c"));
	check(!may_move(r, "a", "s") && may_move(r, "s/a", "b"));
	path_rules_free(r);
}

static const char *const hidden[] = {
	".env",   "a/.env",           ".env.local", "app/.env.production", "key.pem",
	"id_rsa", "x/id_ed25519",     "id_rsa.old", "id_ecdsa_sk",         "id_ed25519_work",
	".ENV",   ".env.example.bak", "id_dsa",     "certs/ca.pem",        "s/.Env.Local"
};
static const char *const guarded[] = { ".git/hooks/pre-commit",
				       "sub/.git/hooks/post-checkout",
				       ".git/modules/a/b/hooks/pre-push",
				       ".husky/pre-commit",
				       ".husky/_/husky.sh",
				       ".vscode/tasks.json",
				       ".idea/workspace.xml",
				       "web/.idea/runConfigurations/x.xml",
				       ".envrc",
				       "a/.envrc",
				       ".githooks/pre-commit",
				       "x.code-workspace",
				       ".git/hooks/pre-commit.d/x",
				       ".pre-commit-config.yaml",
				       "node_modules/x/.git/hooks/post-merge" };
static const char *const open_[] = { ".env.example",
				     "a/.env.sample",
				     "env",
				     "x.env",
				     "id_map.py",
				     "id_rsa.pub",
				     "id_ed25519.pub",
				     ".git",
				     ".git/hooks",
				     ".git/config",
				     ".git/index.lock",
				     ".git/objects/ab/cdef",
				     ".git/hooks/pre-commit.sample",
				     ".git/info/attributes",
				     ".git/rebase-merge/git-rebase-todo",
				     ".git/refs/heads/hooks/x",
				     ".git/modules/a/config",
				     ".git/worktrees/w/HEAD",
				     ".vscode/settings.json",
				     ".vscode",
				     ".husky",
				     ".idea",
				     "node_modules/a/test/key.pem",
				     "node_modules/a/.idea/x.xml",
				     "node_modules/.pnpm/a/node_modules/a/.env",
				     ".venv/lib/python3.13/site-packages/certifi/cacert.pem",
				     "vendor/bundle/cacert.pem",
				     "src/hooks/useThing.ts",
				     ".gitignore",
				     ".github/workflows/ci.yml",
				     "README.md",
				     "pem" };

static void defaults(void)
{
	struct path_rules *r = rules_of(NULL);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(hidden); i++)
		check(kind_of(r, hidden[i]) == PATH_HIDE);
	for (i = 0; i < ARRAY_SIZE(guarded); i++) {
		if (kind_of(r, guarded[i]) != PATH_PROTECT)
			(void)fprintf(stderr, "%s\n", guarded[i]);
		check(kind_of(r, guarded[i]) == PATH_PROTECT);
	}
	for (i = 0; i < ARRAY_SIZE(open_); i++) {
		if (kind_of(r, open_[i]) != PATH_FREE)
			(void)fprintf(stderr, "%s\n", open_[i]);
		check(kind_of(r, open_[i]) == PATH_FREE);
	}
	check(streq(path_rules_decide(r, "a/x.pem", 7).origin, "default"));
	check(below(r, ".git") == PATH_PROTECT && below(r, ".vscode") == PATH_PROTECT);
	check(below(r, "src") == PATH_FREE && below(r, "node_modules") == PATH_FREE);
	check(may_move(r, "src", "lib/src") && may_move(r, "node_modules/.a-x", "node_modules/a"));
	check(!may_move(r, "evil", ".husky") && !may_move(r, "secrets", "node_modules/s"));
	path_rules_free(r);
}

/* A small generator, the same in each run. */
static uint32_t seed = 1;

static uint32_t chance(uint32_t n)
{
	seed = seed * 1664525U + 1013904223U;
	return (seed >> 8) % n;
}

static void random_text(char *dst, size_t parts, const char *letters)
{
	size_t i, n, k = strlen(letters);

	for (i = 0; i < parts; i++) {
		if (i)
			*dst++ = '/';
		for (n = 1 + chance(3); n; n--)
			*dst++ = letters[chance((uint32_t)k)];
	}
	*dst = '\0';
}

enum { RANDOM_RULES = 6 };

/* What the tree says is what the plain meaning of each pattern allows it to say. */
static void compare(const struct path_rules *r, const char *path)
{
	struct path_answer a = path_rules_decide(r, path, strlen(path));
	enum path_rule_kind strictest = PATH_FREE, sure = PATH_FREE;
	size_t i, n;

	for (i = 0; i < r->n_rules; i++) {
		const struct path_rule *rule = r->rules[i];
		bool hit = slow_match(rule->text, path, rule->kind != PATH_ALLOW), freed = false;

		for (n = 0; n < r->freed[i].n; n++) {
			bool exc = slow_match(r->rules[r->frees[r->freed[i].at + n]]->text, path,
					      false);

			check(!exc || hit); /* an exception is a part of what it frees from */
			freed |= exc;
		}
		if (!hit || rule->kind == PATH_ALLOW)
			continue;
		strictest = MAX(strictest, rule->kind);
		sure = MAX(sure, freed ? PATH_FREE : rule->kind);
	}
	check(a.kind == sure && a.kind <= strictest && !a.rule == !a.kind);
	check(!a.rule || slow_match(a.rule, path, true));
}

static void at_random(void)
{
	static const char *const kinds[] = { "hide", "protect", "allow" };
	char line[64], path[64], other[64];
	unsigned round, i;
	struct err e;

	for (round = 0; round < 3000; round++) {
		struct path_builder *b;
		struct path_rules *r;

		check(path_builder_new(&b) == 0);
		for (i = 0; i < RANDOM_RULES; i++) {
			int n = snprintf(line, sizeof(line), "%s ", kinds[chance(3)]);

			random_text(line + n, 1 + chance(4), chance(2) ? "ab*?A" : "a*");
			if (path_file_add(b, line, strlen(line), "x", &e) < 0)
				check(strstr(e.msg, "'**' stands alone"));
		}
		check(path_rules_freeze(b, &r) == 0);
		path_builder_free(b);
		for (i = 0; i < 20; i++) {
			random_text(path, 1 + chance(4), "abA");
			compare(r, path);
			random_text(other, 1 + chance(3), "ab");
			if (may_move(r, path, other)) {
				char *end = path + strlen(path), *stop = other + strlen(other);

				random_text(line, 1 + chance(3), "abA");
				(void)snprintf(end, sizeof(path) - strlen(path), "/%s", line);
				(void)snprintf(stop, sizeof(other) - strlen(other), "/%s", line);
				check(kind_of(r, path) == kind_of(r, other));
			}
		}
		path_rules_free(r);
	}
}

static void limits(void)
{
	char pattern[64], deep[PATH_PATTERN_MAX + 1];
	struct path_builder *b;
	struct path_rules *r = NULL;
	struct err e;
	unsigned i;

	check(path_builder_new(&b) == 0);
	for (i = 0; i < PATH_RULES_MAX; i++) {
		(void)snprintf(pattern, sizeof(pattern), i % 2 ? "%x*" : "./%x", i);
		check(path_builder_add(b, i % 3 ? PATH_HIDE : PATH_ALLOW, pattern, "x", &e) == 0);
	}
	check(path_builder_add(b, PATH_HIDE, "a", "x", &e) == -E2BIG);
	check(path_rules_freeze(b, &r) == 0);
	check(kind_of(r, "ffe") == PATH_HIDE && kind_of(r, "xyz") == PATH_FREE);
	path_rules_free(r);
	path_builder_free(b);

	/* too many parts: patterns of 500 each that share none */
	check(path_builder_new(&b) == 0);
	for (i = 0; i < 20; i++) {
		unsigned n;

		for (n = 0; n < 1000; n++)
			deep[n] = n % 2 ? '/' : (char)('a' + i);
		deep[999] = '\0';
		check(path_builder_add(b, PATH_HIDE, deep, "x", &e) == 0);
	}
	check(path_rules_freeze(b, &r) == -E2BIG);
	path_builder_free(b);

	check(path_builder_new(&b) == 0);
	memset(deep, 'a', sizeof(deep));
	for (i = 255; i < PATH_PATTERN_MAX; i += 256)
		deep[i] = '/';
	deep[PATH_PATTERN_MAX - 1] = '\0';
	for (i = 0; i < 64; i++)
		check(path_builder_add(b, PATH_HIDE, deep, "x", &e) == 0);
	check(path_builder_add(b, PATH_HIDE, deep, "x", &e) == -E2BIG);
	path_builder_free(b);
}

/* With an argument: how long decisions take. */
static void measure(void)
{
	static const char *const paths[] = {
		"src/lib/module/file.c", "node_modules/.pnpm/a@1.0.0/node_modules/a/dist/index.js",
		".git/objects/ab/cdef0123456789abcdef0123456789abcdef", "README.md"
	};
	struct path_rules *r = rules_of(NULL);
	struct timespec a, b;
	unsigned i, n, sum = 0;

	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		size_t len = strlen(paths[i]);

		check(clock_gettime(CLOCK_MONOTONIC, &a) == 0);
		for (n = 0; n < 1000000; n++)
			sum += path_rules_decide(r, paths[i], len).kind;
		check(clock_gettime(CLOCK_MONOTONIC, &b) == 0);
		(void)printf(
			"%s: %.0f ns\n", paths[i],
			((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) /
				n);
	}
	check(sum == 0);
	path_rules_free(r);
}

int main(int argc, char **argv)
{
	(void)argv;
	patterns();
	refusals();
	precedence();
	no_paths();
	the_way();
	defaults();
	at_random();
	limits();
	if (argc > 1)
		measure();
	return 0;
}
