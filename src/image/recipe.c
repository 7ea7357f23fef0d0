/* What a build starts from. */
#include "image/recipe.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "image/apt.h"
#include "io/fd.h"
#include "sys/dirs.h"
#include "sys/spawn.h"

/* Changes when the same recipe would come out differently. */
#define BUILDER "bac template 1, erofs lz4 16k"

enum { CONF_MAX = 1 << 20, ASK_MS = 20000, ANSWER_MAX = 64 * 1024 };

/* The files of data/template that go into a template. */
static const char *const files[] = { "packages", "dpkg.cfg", "apt.conf",  "customize.sh",
				     "sudoers",  "bashrc",   "persistent" };

void image_recipe_done(struct image_recipe *r)
{
	free(r->suite);
	free(r->dir);
	free(r->include);
	while (r->n_sources)
		free(r->sources[--r->n_sources]);
	while (r->n_env)
		free(r->env[--r->n_env]);
	*r = (struct image_recipe) { 0 };
}

/* ---- the host's apt ---- */

static bool has_suffix(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && streq(s + n - m, end);
}

static void read_conf(struct image_apt *a, int dir, const char *name, const char *codename)
{
	_free_ char *text = NULL;

	if (fd_read_file(dir, name, CONF_MAX, &text, NULL) == 0)
		image_apt_read(a, text, has_suffix(name, ".sources"), codename);
}

/* A list of mirrors in a file: its first address takes the place of the list's. */
static void follow_list(char uri[IMAGE_URI_MAX])
{
	_free_ char *text = NULL;
	char *path, *line, *rest = NULL;

	if (!starts_with(uri, "mirror+file:"))
		return;
	path = uri + strlen("mirror+file:");
	while (path[0] == '/' && path[1] == '/')
		path++;
	if (fd_read_file(AT_FDCWD, path, CONF_MAX, &text, NULL) < 0) {
		uri[0] = '\0';
		return;
	}
	uri[0] = '\0';
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		line[strcspn(line, " \t\r")] = '\0';
		if (image_apt_is_uri(line)) {
			(void)snprintf(uri, IMAGE_URI_MAX, "%s", line);
			return;
		}
	}
}

static void host_apt(struct image_apt *a)
{
	_free_ char *release = NULL;
	char codename[64];
	struct dirent **v = NULL;
	int i, n;

	*a = (struct image_apt) { 0 };
	if (fd_read_file(AT_FDCWD, "/etc/os-release", CONF_MAX, &release, NULL) < 0 ||
	    !image_apt_codename(release, codename, sizeof(codename)))
		return;
	read_conf(a, AT_FDCWD, "/etc/apt/sources.list", codename);
	n = scandir("/etc/apt/sources.list.d", &v, NULL, alphasort);
	for (i = 0; i < n; i++) {
		_free_ char *path = dirs_join("/etc/apt/sources.list.d", v[i]->d_name);

		if (path && (has_suffix(path, ".list") || has_suffix(path, ".sources")))
			read_conf(a, AT_FDCWD, path, codename);
		free(v[i]);
	}
	free(v);
	follow_list(a->mirror);
	follow_list(a->security);
}

/* ---- sources ---- */

static int add_source(struct image_recipe *r, const char *uri, const char *suite, const char *more)
{
	char *line;

	if (asprintf(&line,
		     "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s%s main",
		     uri, suite, more) < 0)
		return -ENOMEM;
	r->sources[r->n_sources++] = line;
	return 0;
}

/* Suites that are updated in place have no suites of updates beside them. */
static bool is_rolling(const char *suite)
{
	static const char *const rolling[] = { "sid", "unstable", "testing", "experimental" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rolling); i++)
		if (streq(rolling[i], suite))
			return true;
	return false;
}

static int fill_sources(struct image_recipe *r, const struct image_build *b)
{
	struct image_apt host = { 0 };
	const char *mirror = b->mirror;
	int k;

	if (!mirror || !*mirror) {
		host_apt(&host);
		mirror = host.mirror;
	}
	if (!*mirror)
		return 0;
	k = add_source(r, mirror, r->suite, "");
	if (k == 0 && !is_rolling(r->suite))
		k = add_source(r, mirror, r->suite, "-updates");
	if (k == 0 && !is_rolling(r->suite) && host.security[0])
		k = add_source(r, host.security, r->suite, "-security");
	return k;
}

static int check_names(const struct image_build *b, const char *suite, struct err *e)
{
	if (!*suite || strspn(suite, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(suite) ||
	    suite[0] == '-')
		return err_set(e, -EINVAL, "'%.60s' is not the name of a Debian suite", suite);
	if (b->mirror && *b->mirror && !image_apt_is_uri(b->mirror))
		return err_set(e, -EINVAL,
			       "'%.200s' is not the address of a mirror: it begins with http:// or "
			       "https://",
			       b->mirror);
	return 0;
}

int image_recipe_sources(const struct image_build *b, struct image_recipe *ret, struct err *e)
{
	const char *suite = b->suite && *b->suite ? b->suite : "trixie";
	struct image_recipe r = { 0 };
	int k = check_names(b, suite, e);

	if (k < 0)
		return k;
	r.suite = strdup(suite);
	k = r.suite ? fill_sources(&r, b) : -ENOMEM;
	if (k < 0) {
		image_recipe_done(&r);
		return err_errno(e, k, "cannot read the host's apt configuration");
	}
	*ret = r;
	return 0;
}

/* ---- the template's recipe ---- */

/* "a,b,c" from lines of words and comments. */
static int read_packages(struct image_recipe *r, int dir)
{
	struct buf out = BUF_INIT(64UL * 1024);
	_free_ char *text = NULL;
	char *line, *word, *rest = NULL, *more;
	int k = fd_read_file(dir, "packages", CONF_MAX, &text, NULL);
	const char *s;

	if (k < 0)
		return k;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		line[strcspn(line, "#")] = '\0';
		for (word = strtok_r(line, " \t", &more); k == 0 && word;
		     word = strtok_r(NULL, " \t", &more))
			k = buf_printf(&out, "%s%s", out.n ? "," : "", word);
	}
	s = k == 0 ? buf_str(&out) : NULL;
	r->include = s ? strdup(s) : NULL;
	buf_done(&out);
	return r->include ? 0 : k < 0 ? k : -ENOMEM;
}

static int digest(struct image_recipe *r, int dir)
{
	struct image_digest d;
	size_t i;

	image_digest_init(&d);
	image_digest_text(&d, BUILDER);
	image_digest_text(&d, r->suite);
	for (i = 0; i < r->n_sources; i++)
		image_digest_text(&d, r->sources[i]);
	for (i = 0; i < ARRAY_SIZE(files); i++) {
		image_digest_text(&d, files[i]);
		image_digest_file(&d, dir, files[i]);
	}
	image_digest_file(&d, dir, "../kernel/modules");
	return image_digest_end(&d, r->inputs);
}

int image_recipe_template(const struct image_build *b, struct image_recipe *ret, struct err *e)
{
	struct image_recipe r = { 0 };
	_close_ int dir = -1;
	int k = image_recipe_sources(b, &r, e);

	if (k < 0)
		return k;
	r.dir = dirs_join(b->data, "template");
	dir = r.dir ? open(r.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	k = dir < 0 ? -errno : read_packages(&r, dir);
	if (k == 0)
		k = digest(&r, dir);
	if (k < 0) {
		k = err_errno(e, k, "cannot read the template's recipe in %s", r.dir ? r.dir : "?");
		image_recipe_done(&r);
		return k;
	}
	*ret = r;
	return 0;
}

/* ---- the way out ---- */

static _printf_(2, 3) int add_env(struct image_recipe *r, const char *fmt, ...)
{
	char *s;
	va_list ap;
	int n;

	if (r->n_env == IMAGE_ENV_MAX)
		return -E2BIG;
	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -ENOMEM;
	r->env[r->n_env++] = s;
	return 0;
}

/* Acquire::http::Proxy "http://..."; lines of apt-config become the variables that everybody reads. */
static int add_proxy(struct image_recipe *r, char *answer, const char *key, const char *var)
{
	char *line, *rest = NULL, *quote, *end;
	int k = 0;

	if (getenv(var))
		return 0;
	for (line = strtok_r(answer, "\n", &rest); k == 0 && line;
	     line = strtok_r(NULL, "\n", &rest)) {
		if (!starts_with(line, key) || line[strlen(key)] != ' ')
			continue;
		quote = strchr(line, '"');
		end = quote ? strchr(quote + 1, '"') : NULL;
		if (!end)
			continue;
		*end = '\0';
		if (image_apt_is_uri(quote + 1))
			k = add_env(r, "%s=%s", var, quote + 1);
	}
	return k;
}

static int add_proxies(struct image_recipe *r)
{
	static const struct {
		const char *key, *var;
	} proxies[] = {
		{ "Acquire::http::Proxy", "http_proxy" },
		{ "Acquire::https::Proxy", "https_proxy" },
	};
	size_t i;
	int k = 0;

	for (i = 0; k == 0 && i < ARRAY_SIZE(proxies); i++) {
		const char *const argv[] = { "apt-config", "dump", proxies[i].key, NULL };
		struct buf out = BUF_INIT(ANSWER_MAX);
		struct sys_cmd c = { .argv = argv, .out = &out, .deadline_ms = ASK_MS };
		struct err e;

		if (sys_run(&c, &e) == 0 && buf_str(&out))
			k = add_proxy(r, (char *)buf_str(&out), proxies[i].key, proxies[i].var);
		buf_done(&out);
	}
	return k;
}

/* What npm on this host is set to; without npm the variable alone; else the template's own way. */
static int add_registry(struct image_recipe *r)
{
	static const char *const argv[] = { "npm", "config", "get", "registry", NULL };
	struct buf out = BUF_INIT(ANSWER_MAX);
	struct sys_cmd c = {
		.argv = argv, .dir = "/", .out = &out, .group = true, .deadline_ms = ASK_MS
	};
	const char *uri = getenv("npm_config_registry");
	struct err e;
	int k = 0;

	if (sys_run(&c, &e) == 0 && buf_str(&out)) {
		char *s = (char *)buf_str(&out);

		s[strcspn(s, "\r\n")] = '\0';
		uri = s;
	}
	if (uri && image_apt_is_uri(uri))
		k = add_env(r, "BAC_NPM_REGISTRY=%s", uri);
	buf_done(&out);
	return k;
}

int image_recipe_env(struct image_recipe *r, const char *tmpdir, bool npm, struct err *e)
{
	const char *path = getenv("PATH");
	int k = add_env(r, "PATH=%s:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin",
			path ? path : "/usr/local/bin");

	if (k == 0)
		k = add_env(r, "LC_ALL=C.UTF-8");
	if (k == 0)
		k = add_env(r, "TMPDIR=%s", tmpdir);
	if (k == 0)
		k = add_env(r, "BAC_SUITE=%s", r->suite);
	if (k == 0 && r->dir)
		k = add_env(r, "BAC_RECIPE=%s", r->dir);
	if (k == 0)
		k = add_proxies(r);
	if (k == 0 && npm)
		k = add_registry(r);
	return k < 0 ? err_errno(e, k, "cannot prepare the build") : 0;
}
