/* What the files of a repository say about what it needs. */
#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#include "base/text.h"
#include "kit/draft-priv.h"
#include "kit/rules.h"
#include "kit/yaml.h"

enum { WORDS_MAX = 64, DEPTH_MAX = 12 };

const char draft_folder[] = ".github/workflows";

void draft_done(struct draft *d)
{
	struct draft_set *const sets[] = { &d->languages, &d->apt,  &d->npm,     &d->hosts,
					   &d->ports,     &d->vars, &d->secrets, &d->hints };

	for (size_t s = 0; s < ARRAY_SIZE(sets); s++) {
		for (size_t i = 0; i < sets[s]->n; i++)
			free(sets[s]->v[i]);
		free(sets[s]->v);
	}
	*d = (struct draft) { 0 };
}

void draft_put(struct draft *d, struct draft_set *s, const char *text, size_t n)
{
	char **v;

	if (!n || n > DRAFT_TEXT_MAX || s->n == DRAFT_SET_MAX)
		return;
	for (size_t i = 0; i < n; i++)
		if (text[i] < ' ' || text[i] > '~')
			return;
	if (memmem(text, n, "${{", 3)) /* a reference to an argument, also in a comment */
		return;
	for (size_t i = 0; i < s->n; i++)
		if (strlen(s->v[i]) == n && !strncmp(s->v[i], text, n))
			return;
	v = reallocarray(s->v, s->n + 1, sizeof(*v));
	if (v) {
		s->v = v;
		v[s->n] = text_dup(text, n);
	}
	if (!v || !v[s->n])
		d->failed = true;
	else
		s->n++;
}

static void put(struct draft *d, struct draft_set *s, const char *text)
{
	draft_put(d, s, text, strlen(text));
}

/* Words with spaces between; of "+**.x" x. */
static void put_words(struct draft *d, struct draft_set *s, const char *words)
{
	while (*words) {
		size_t n = strcspn(words, " "), off = starts_with(words, "+**.") ? 4 : 0;

		draft_put(d, s, words + off, n - off);
		words += n + (words[n] == ' ');
	}
}

/* ---- lines of a shell ---- */

static bool is_package(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!islower((unsigned char)s[i]) && !isdigit((unsigned char)s[i]) &&
		    (!i || !strchr("+-.", s[i])))
			return false;
	return n >= 2 && n <= 60;
}

static bool is_npm(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!islower((unsigned char)s[i]) && !isdigit((unsigned char)s[i]) &&
		    !strchr("@/-._~^", s[i]))
			return false;
	return n >= 2 && n <= 80 && (s[0] == '@' || isalnum((unsigned char)s[0]));
}

/* The words behind a command that installs, as far as they are names. */
static void take_packages(struct draft *d, struct draft_set *s, const char *p, size_t n,
			  bool (*is)(const char *s, size_t n))
{
	while (n) {
		size_t len = 0;

		while (n && (*p == ' ' || *p == '\t')) {
			p++;
			n--;
		}
		while (len < n && p[len] != ' ' && p[len] != '\t')
			len++;
		if (!len || strchr("&|;<>#\\", *p))
			return;
		if (is(p, len))
			draft_put(d, s, p, len);
		p += len;
		n -= len;
	}
}

static const struct {
	const char *words;
	size_t set; /* 0: a hint only, 1: apt, 2: npm */
} installs[] = {
	{ "apt-get install ", 1 }, { "apt install ", 1 },    { "npm install -g ", 2 },
	{ "npm i -g ", 2 },        { "npm ci", 0 },          { "npm install", 0 },
	{ "pip install ", 0 },     { "pip3 install ", 0 },   { "pipx install ", 0 },
	{ "uv sync", 0 },          { "poetry install", 0 },  { "cargo install ", 0 },
	{ "go install ", 0 },      { "gem install ", 0 },    { "bundle install", 0 },
	{ "composer install", 0 }, { "yarn install", 0 },    { "pnpm install", 0 },
	{ "rustup ", 0 },          { "corepack enable", 0 },
};

/* text_find: needle in n bytes. */
static const char *find(const char *p, size_t n, const char *needle)
{
	return memmem(p, n, needle, strlen(needle));
}

static void take_line(struct draft *d, const char *file, const char *p, size_t n)
{
	char hint[DRAFT_TEXT_MAX + 1];

	while (n && isspace((unsigned char)*p)) {
		p++;
		n--;
	}
	while (n && (isspace((unsigned char)p[n - 1]) || p[n - 1] == '\\'))
		n--;
	for (size_t i = 0; i < ARRAY_SIZE(installs); i++) {
		const char *at = find(p, n, installs[i].words);
		size_t len = strlen(installs[i].words);

		if (!at)
			continue;
		at += len;
		if (installs[i].set == 1)
			take_packages(d, &d->apt, at, n - (size_t)(at - p), is_package);
		else if (installs[i].set == 2)
			take_packages(d, &d->npm, at, n - (size_t)(at - p), is_npm);
		else if ((size_t)snprintf(hint, sizeof(hint), "%s: %.*s", file,
					  (int)MIN(n, (size_t)160), p) < sizeof(hint))
			put(d, &d->hints, hint);
		return;
	}
}

static void take_lines(struct draft *d, const char *file, const char *text, size_t n)
{
	while (n) {
		const char *end = memchr(text, '\n', n);
		size_t len = end ? (size_t)(end - text) : n;

		take_line(d, file, text, len);
		len += end != NULL;
		text += len;
		n -= len;
	}
}

/* ---- numbers and hosts ---- */

static void put_port(struct draft *d, const char *p, size_t n)
{
	char text[16];
	uint64_t port;
	size_t digits = 0;
	bool udp;

	while (digits < n && isdigit((unsigned char)p[digits]))
		digits++;
	if (!digits || digits > 5)
		return;
	memcpy(text, p, digits);
	text[digits] = '\0';
	udp = n - digits >= 4 && !strncmp(p + digits, "/udp", 4);
	if (text_u64(text, 65535, &port) < 0 || !port)
		return;
	(void)snprintf(text, sizeof(text), "%u%s", (unsigned)port, udp ? "/udp" : "");
	put(d, &d->ports, text);
}

/* A name with a dot: labels of 1 to 63, no '-' at their ends, the last one no number. */
static bool is_host(const char *s)
{
	size_t labels = 0;

	for (;; labels++) {
		size_t n = strcspn(s, ".");

		if (!n || n > 63 || s[0] == '-' || s[n - 1] == '-')
			return false;
		if (n > 3 && s[2] == '-' && s[3] == '-') /* not of ASCII: not guessed at */
			return false;
		if (!s[n])
			return labels > 0 && strspn(s, "0123456789-") < n;
		s += n + 1;
	}
}

/* The host of an URL that begins at p. */
static void put_host(struct draft *d, const char *p, size_t n)
{
	char host[128] = "";
	size_t len = 0;

	if (n <= 8 || strncmp(p, "https://", 8) != 0) /* ssh: by another port and another way */
		return;
	p += 8;
	n -= 8;
	while (len < n && len < sizeof(host) - 1 &&
	       (isalnum((unsigned char)p[len]) || p[len] == '-' || p[len] == '.')) {
		host[len] = (char)tolower((unsigned char)p[len]);
		len++;
	}
	for (size_t i = len; i < n && !isspace((unsigned char)p[i]) && p[i] != '/'; i++)
		if (p[i] == '@') /* it was a user's name */
			return;
	if (is_host(host))
		put(d, &d->hosts, host);
}

/* ---- files ---- */

static void read_dockerfile(struct draft *d, const char *file, const char *text, size_t n)
{
	while (n) {
		const char *end = memchr(text, '\n', n);
		size_t len = end ? (size_t)(end - text) : n, at = 0;

		while (at < len && isspace((unsigned char)text[at]))
			at++;
		if (len - at > 7 && !strncasecmp(text + at, "EXPOSE ", 7))
			for (at += 7; at < len; at++) {
				size_t word = at;

				while (word < len && text[word] != ' ')
					word++;
				put_port(d, text + at, word - at);
				at = word;
			}
		else
			take_line(d, file, text + at, len - at);
		len += end != NULL;
		text += len;
		n -= len;
	}
}

/* All "--port N", "-p N", "PORT=N" of a text. */
static void read_ports(struct draft *d, const char *text, size_t n)
{
	static const char *const words[] = { "--port ", "--port=", " -p ", "PORT=" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		const char *p = text, *at;

		while ((at = find(p, n - (size_t)(p - text), words[i]))) {
			p = at + strlen(words[i]);
			put_port(d, p, n - (size_t)(p - text));
		}
	}
}

static void read_package_json(struct draft *d, const char *file, const char *text, size_t n)
{
	static const struct {
		const char *word, *port;
	} tools[] = { { "\"next dev", "3000" },
		      { "\"vite\"", "5173" },
		      { "\"vite --host", "5173" },
		      { "\"astro dev", "4321" },
		      { "\"ng serve", "4200" } };
	bool said;

	(void)file;
	read_ports(d, text, n);
	said = d->ports.n != 0;
	for (size_t i = 0; i < ARRAY_SIZE(tools) && !said; i++)
		if (find(text, n, tools[i].word))
			put(d, &d->ports, tools[i].port);
}

/* NOLINTNEXTLINE(misc-no-recursion): at most DEPTH_MAX deep */
static void each_text(struct draft *d, const char *file, const struct yaml *y, unsigned depth,
		      void (*one)(struct draft *d, const char *file, const struct yaml *y))
{
	one(d, file, y);
	for (size_t i = 0; i < y->n && depth < DEPTH_MAX; i++)
		each_text(d, file, &y->v[i], depth + 1, one);
}

static void ci_node(struct draft *d, const char *file, const struct yaml *y)
{
	static const char *const setups[] = { "actions/setup-", "ruby/setup-ruby",
					      "oven-sh/setup-bun", "astral-sh/setup-uv",
					      "dtolnay/rust-toolchain" };
	char hint[DRAFT_TEXT_MAX + 1];

	if (y->kind != YAML_TEXT)
		return;
	if (!y->key || !streq(y->key, "uses")) {
		take_lines(d, file, y->text, strlen(y->text));
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(setups); i++)
		if (starts_with(y->text, setups[i]) &&
		    (size_t)snprintf(hint, sizeof(hint), "%s: uses %.80s", file, y->text) <
			    sizeof(hint))
			put(d, &d->hints, hint);
}

static void compose_node(struct draft *d, const char *file, const struct yaml *y)
{
	(void)file;
	if (y->kind != YAML_LIST || !y->key ||
	    (!streq(y->key, "ports") && !streq(y->key, "expose")))
		return;
	for (size_t i = 0; i < y->n; i++) {
		const struct yaml *p = &y->v[i], *target = yaml_get(p, "target");
		const char *s = p->kind == YAML_TEXT                  ? p->text
				: target && target->kind == YAML_TEXT ? target->text
								      : "",
			   *colon = strrchr(s, ':');

		s = colon ? colon + 1 : s;
		put_port(d, s, strlen(s));
	}
}

static void read_yaml(struct draft *d, const char *file, const char *text, size_t n,
		      void (*one)(struct draft *d, const char *file, const struct yaml *y))
{
	struct yaml y = { 0 };
	struct err e;

	if (yaml_parse(text, n, &y, &e) < 0) {
		char hint[DRAFT_TEXT_MAX + 1];

		(void)snprintf(hint, sizeof(hint), "%s: could not be read", file);
		put(d, &d->hints, hint);
		return;
	}
	each_text(d, file, &y, 0, one);
	yaml_done(&y);
}

static void read_ci(struct draft *d, const char *file, const char *text, size_t n)
{
	read_yaml(d, file, text, n, ci_node);
}

static void read_compose(struct draft *d, const char *file, const char *text, size_t n)
{
	read_yaml(d, file, text, n, compose_node);
}

static bool is_secret(const char *name)
{
	static const char *const words[] = { "KEY",   "TOKEN",      "SECRET",
					     "PASSW", "CREDENTIAL", "PRIVATE" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcasestr(name, words[i]))
			return true;
	return false;
}

/* NAME=value: a value with a user and password in it is a secret too. */
static void read_example(struct draft *d, const char *file, const char *text, size_t n)
{
	(void)file;
	while (n) {
		const char *end = memchr(text, '\n', n), *equal;
		size_t len = end ? (size_t)(end - text) : n, step = len + (end != NULL);
		char name[128], line[DRAFT_TEXT_MAX + 1];
		const char *p = text;

		if (len > 7 && !strncmp(p, "export ", 7)) {
			p += 7;
			len -= 7;
		}
		while (len && (p[len - 1] == '\r' || p[len - 1] == ' '))
			len--;
		equal = memchr(p, '=', len);
		text += step;
		n -= step;
		if (!equal || (size_t)(equal - p) >= sizeof(name) || len > DRAFT_TEXT_MAX ||
		    memchr(p, '\0', len))
			continue;
		memcpy(name, p, (size_t)(equal - p));
		name[equal - p] = '\0';
		memcpy(line, p, len);
		line[len] = '\0';
		if (!rules_is_variable(name) || rules_variable_fault(name) || streq(name, "PATH"))
			continue;
		if (is_secret(name) || strchr(line, '@'))
			put(d, &d->secrets, name);
		else if (line[strlen(name) + 1] && !strpbrk(line, "\"'`$\\#"))
			put(d, &d->vars, line);
	}
}

/* url = https://... of a git configuration, registry=https://... of npm, index-url of pip */
static void read_urls(struct draft *d, const char *file, const char *text, size_t n)
{
	const char *p = text, *at;

	(void)file;
	while ((at = find(p, n - (size_t)(p - text), "https://"))) {
		put_host(d, at, n - (size_t)(at - text));
		p = at + 8;
	}
}

/* As in data/policy: "+**.x" is x itself and all below it; a draft asks for no more than x. */
#define NODE   "**.npmjs.org"
#define PYTHON "+**.pypi.org **.pythonhosted.org"
#define GO     "proxy.golang.org sum.golang.org storage.googleapis.com"
#define RUST   "+**.crates.io **.crates.io static.rust-lang.org"
#define RUBY   "rubygems.org index.rubygems.org"
#define MAVEN  "repo.maven.apache.org repo1.maven.org"
#define GRADLE MAVEN " services.gradle.org plugins.gradle.org downloads.gradle.org"
#define PHP    "packagist.org repo.packagist.org api.github.com codeload.github.com"
#define DOCKER "registry-1.docker.io auth.docker.io production.cloudfront.docker.com"

static const struct {
	const char *name, *language, *apt, *hosts;
	void (*read)(struct draft *d, const char *file, const char *text, size_t n);
} files[] = {
	{ "package.json", "Node.js", "", NODE, read_package_json },
	{ "package-lock.json", "Node.js (npm)", "", NODE, NULL },
	{ "yarn.lock", "Node.js (yarn)", "", NODE " registry.yarnpkg.com repo.yarnpkg.com", NULL },
	{ "pnpm-lock.yaml", "Node.js (pnpm)", "", NODE, NULL },
	{ "bun.lock", "Bun", "", NODE " bun.sh", NULL },
	{ "bun.lockb", "Bun", "", NODE " bun.sh", NULL },
	{ ".npmrc", NULL, "", "", read_urls },
	{ "deno.json", "Deno", "", "deno.land jsr.io npm.jsr.io", NULL },
	{ "pyproject.toml", "Python", "python3-venv python3-pip", PYTHON, NULL },
	{ "requirements.txt", "Python (pip)", "python3-venv python3-pip", PYTHON, read_urls },
	{ "setup.py", "Python", "python3-venv python3-pip", PYTHON, NULL },
	{ "Pipfile", "Python (pipenv)", "python3-venv pipenv", PYTHON, NULL },
	{ "Pipfile.lock", "Python (pipenv)", "python3-venv pipenv", PYTHON, NULL },
	{ "poetry.lock", "Python (poetry)", "python3-venv python3-poetry", PYTHON, NULL },
	{ "uv.lock", "Python (uv)", "python3-venv python3-pip", PYTHON " astral.sh github.com",
	  NULL },
	{ "go.mod", "Go", "golang-go", GO, NULL },
	{ "Cargo.toml", "Rust", "cargo", RUST, NULL },
	{ "Gemfile", "Ruby", "ruby-full bundler build-essential", RUBY, NULL },
	{ "pom.xml", "Java (Maven)", "default-jdk-headless maven", MAVEN, NULL },
	{ "build.gradle", "Java (Gradle)", "default-jdk-headless", GRADLE, NULL },
	{ "build.gradle.kts", "Kotlin (Gradle)", "default-jdk-headless", GRADLE, NULL },
	{ "composer.json", "PHP", "php-cli composer unzip", PHP, NULL },
	{ "mix.exs", "Elixir", "elixir", "hex.pm repo.hex.pm builds.hex.pm", NULL },
	{ "pubspec.yaml", "Dart", "", "pub.dev storage.googleapis.com", NULL },
	{ "CMakeLists.txt", "C/C++ (CMake)", "build-essential cmake", "", NULL },
	{ "meson.build", "C/C++ (Meson)", "build-essential meson ninja-build pkg-config", "",
	  NULL },
	{ "configure.ac", "C/C++ (autotools)", "build-essential autoconf automake libtool", "",
	  NULL },
	{ "Makefile", NULL, "make", "", NULL },
	{ "Dockerfile", NULL, "", DOCKER, read_dockerfile },
	{ "compose.yaml", NULL, "", DOCKER, read_compose },
	{ "compose.yml", NULL, "", DOCKER, read_compose },
	{ "docker-compose.yaml", NULL, "", DOCKER, read_compose },
	{ "docker-compose.yml", NULL, "", DOCKER, read_compose },
	{ ".gitlab-ci.yml", NULL, "", "", read_ci },
	{ ".env.example", NULL, "", "", read_example },
	{ ".env.sample", NULL, "", "", read_example },
	{ ".env.template", NULL, "", "", read_example },
	{ ".env.dist", NULL, "", "", read_example },
	{ ".git/config", NULL, "", "", read_urls },
};

const char *const draft_names[] = {
	"package.json",       "package-lock.json", "yarn.lock",    "pnpm-lock.yaml",
	"bun.lock",           "bun.lockb",         ".npmrc",       "deno.json",
	"pyproject.toml",     "requirements.txt",  "setup.py",     "Pipfile",
	"Pipfile.lock",       "poetry.lock",       "uv.lock",      "go.mod",
	"Cargo.toml",         "Gemfile",           "pom.xml",      "build.gradle",
	"build.gradle.kts",   "composer.json",     "mix.exs",      "pubspec.yaml",
	"CMakeLists.txt",     "meson.build",       "configure.ac", "Makefile",
	"Dockerfile",         "compose.yaml",      "compose.yml",  "docker-compose.yaml",
	"docker-compose.yml", ".gitlab-ci.yml",    ".env.example", ".env.sample",
	".env.template",      ".env.dist",         ".git/config",  NULL,
};

void draft_add(struct draft *d, const char *path, const char *text, size_t n)
{
	n = MIN(n, (size_t)DRAFT_FILE_MAX);
	if (starts_with(path, draft_folder)) {
		read_ci(d, path, text, n);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		if (!streq(files[i].name, path))
			continue;
		if (files[i].language)
			put(d, &d->languages, files[i].language);
		put_words(d, &d->apt, files[i].apt);
		put_words(d, &d->hosts, files[i].hosts);
		if (files[i].read)
			files[i].read(d, path, text, n);
	}
}
