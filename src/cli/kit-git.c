/* Kits in git repositories.
 *
 * Nothing of the repository is run, and nothing of it configures git: it is fetched into a bare repository of our own that is gone afterwards, the
 * user's and the system's configuration are not read, and files are taken out of the object store by their ids (ls-tree, cat-file), so that no
 * checkout, filter, attribute, hook, submodule or LFS has a say. Only the one transport of the URL is there; git asks nobody; it has a deadline and
 * may write no file above a limit. A key for ssh comes from the user's agent and ~/.ssh, as for every ssh. */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/kit-fetch.h"
#include "cli/kit-tree.h"
#include "io/fd.h"
#include "sys/dirs.h"
#include "sys/spawn.h"

enum {
	LIST_MAX = 4 * 1024 * 1024,
	ID_MAX = 64,
	WORDS_MAX = 40,
	FETCH_MS = 300 * 1000,
	READ_MS = 60 * 1000
};

static const char *const before[] = {
	"prlimit",  "--fsize=268435456",
	"--core=0", "git", /* 256 MiB: of a pack */
	"-c",       "core.hooksPath=/dev/null",
	"-c",       "core.fsmonitor=false",
	"-c",       "core.attributesFile=/dev/null",
	"-c",       "credential.helper=",
	"-c",       "gc.auto=0",
	"-c",       "fetch.recurseSubmodules=false",
	"-c",       "submodule.recurse=false",
	"-c",       "fetch.fsckObjects=false",
	"-c",       "http.followRedirects=initial",
	"-C",
};

/* From our own environment, what ways out need and no more. */
static const char *const passed[] = {
	"PATH",       "HOME",        "USER",           "LOGNAME",       "SSH_AUTH_SOCK",
	"http_proxy", "https_proxy", "no_proxy",       "HTTPS_PROXY",   "ALL_PROXY",
	"all_proxy",  "NO_PROXY",    "GIT_SSL_CAINFO", "SSL_CERT_FILE",
};

static const char *const set[] = {
	"LC_ALL=C",
	"GIT_CONFIG_NOSYSTEM=1",
	"GIT_CONFIG_GLOBAL=/dev/null",
	"GIT_ATTR_NOSYSTEM=1",
	"GIT_NO_REPLACE_OBJECTS=1",
	"GIT_TERMINAL_PROMPT=0",
	"GIT_ASKPASS=/bin/false",
	"SSH_ASKPASS=/bin/false",
	"GIT_LFS_SKIP_SMUDGE=1",
	("GIT_SSH_COMMAND=ssh -oBatchMode=yes -oConnectTimeout=20 -oPermitLocalCommand=no "
	 "-oForwardAgent=no -oClearAllForwardings=yes"),
};

struct git {
	const struct kit_fetch *f;
	char *env[ARRAY_SIZE(passed) + ARRAY_SIZE(set) + 2];
	char commit[ID_MAX + 1];
};

/* A variable: what the settings say, else what we have ourselves, or NULL. */
static const char *value_of(const struct git *g, const char *name)
{
	const size_t n = strlen(name);

	for (size_t i = 0; g->f->env[i]; i++)
		if (strncmp(g->f->env[i], name, n) == 0 && g->f->env[i][n] == '=')
			return g->f->env[i] + n + 1;
	return getenv(name);
}

static int git_env(struct git *g, struct err *e)
{
	const char *url = g->f->ref->where;
	size_t n = 0, i;
	_free_ char *there = NULL;
	bool fine = true;

	if (sys_find("git", &there, e) < 0)
		return e->code;
	for (i = 0; i < ARRAY_SIZE(passed); i++) {
		const char *v = value_of(g, passed[i]);

		if (v)
			fine = asprintf(&g->env[n++], "%s=%s", passed[i], v) >= 0 && fine;
	}
	for (i = 0; i < ARRAY_SIZE(set); i++)
		fine = (g->env[n++] = strdup(set[i])) && fine;
	fine = asprintf(&g->env[n], "GIT_ALLOW_PROTOCOL=%.*s", (int)strcspn(url, ":"), url) >= 0 &&
	       fine;
	return fine ? 0 : err_errno(e, -ENOMEM, "cannot run git");
}

/* git in our repository, with these words (NULL-terminated). */
static int git(struct git *g, const char *const *words, const void *in, size_t n_in,
	       struct buf *out, uint64_t ms, struct err *e)
{
	const char *argv[WORDS_MAX] = { NULL };
	size_t n = 0, i;

	for (i = 0; i < ARRAY_SIZE(before); i++)
		argv[n++] = before[i];
	argv[n++] = g->f->work;
	for (i = 0; words[i] && n + 1 < WORDS_MAX; i++)
		argv[n++] = words[i];
	return sys_run(&(struct sys_cmd) { .argv = argv,
					   .env = (const char *const *)g->env,
					   .group = true,
					   .in = in,
					   .n_in = n_in,
					   .out = out,
					   .deadline_ms = ms },
		       e);
}

static int wrong(struct err *e, int r, const char *what)
{
	char words[ERR_MSG_MAX];
	const char *p = strstr(e->msg, "failed: "); /* "prlimit failed: fatal: ..." */

	if (r > 0 && p) {
		(void)snprintf(words, sizeof(words), "%s", p + strlen("failed: "));
		return err_set(e, -EIO, "%s: git: %s", what, words);
	}
	if (r > 0)
		e->code = -EIO;
	return r ? err_ctx(e, "%s", what) : 0;
}

static int fetch_spec(struct git *g, const char *depth, const char *spec, const char *more,
		      struct err *e)
{
	const char *words[] = { "fetch",
				"-q",
				"--no-tags",
				"--no-recurse-submodules",
				"--no-write-fetch-head",
				"--no-auto-maintenance",
				depth,
				"--",
				g->f->ref->where,
				spec,
				more,
				NULL };

	return git(g, words, NULL, 0, NULL, FETCH_MS, e);
}

/* Some servers give a commit only to who fetches a branch that has it, and some know no depth. */
static int fetch(struct git *g, struct err *e)
{
	const struct kit_ref *k = g->f->ref;
	const char *const init[] = { "init", "-q", "--bare", "--template=", ".", NULL };
	char spec[KIT_REF_MAX + 32];
	int r = git(g, init, NULL, 0, NULL, READ_MS, e);

	if (r != 0)
		return wrong(e, r, "git");
	(void)snprintf(spec, sizeof(spec), "+%s:refs/bac/kit", k->rev ? k->rev : "HEAD");
	r = fetch_spec(g, "--depth=1", spec, NULL, e);
	if (r > 0 && !k->commit)
		r = fetch_spec(g, "-q", spec, NULL, e);
	else if (r > 0)
		r = fetch_spec(g, "-q", "+refs/heads/*:refs/bac/h/*", "+refs/tags/*:refs/bac/t/*",
			       e);
	return wrong(e, r, "cannot fetch it");
}

static int find_commit(struct git *g, struct err *e)
{
	const struct kit_ref *k = g->f->ref;
	struct buf out = BUF_INIT(ID_MAX + 2);
	char want[ID_MAX + 16];
	const char *words[] = { "rev-parse", "--verify", "-q", "--end-of-options", want, NULL };
	size_t n;
	int r;

	(void)snprintf(want, sizeof(want), "%s^{commit}", k->commit ? k->rev : "refs/bac/kit");
	r = git(g, words, NULL, 0, &out, READ_MS, e);
	n = out.n ? out.n - 1 : 0;
	if (r == 0 && (n < 40 || n > ID_MAX || buf_data(&out)[n] != '\n'))
		r = -EPROTO;
	if (r == 0) {
		memcpy(g->commit, buf_data(&out), n);
		g->commit[n] = '\0';
		if (strspn(g->commit, "0123456789abcdef") != n)
			r = -EPROTO;
	}
	buf_done(&out);
	return r ? err_set(e, -ENOENT, "the repository has no commit '%.100s'",
			   k->rev ? k->rev : "HEAD")
		 : 0;
}

/* ---- what is in it ---- */

struct blob {
	char *path;
	char id[ID_MAX + 1];
	uint64_t size;
	bool exec, link;
};

struct list {
	struct blob *v;
	size_t n;
	uint64_t bytes;
};

static void list_done(struct list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].path);
	free(l->v);
}

static bool path_fine(const char *path)
{
	for (;;) {
		size_t n = strcspn(path, "/");

		if (!n || (n == 1 && path[0] == '.') ||
		    (n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += n;
		if (!*path++)
			return true;
	}
}

/* "100644 blob ID    SIZE\tPATH". What git says of a repository is as hostile as the repository. */
static int take_line(struct list *l, const char *line, struct err *e)
{
	struct blob b = { 0 };
	char mode[8], kind[8], size[24];
	const char *path = strchr(line, '\t');
	struct blob *v;

	if (!path || sscanf(line, "%7s %7s %64s %23s", mode, kind, b.id, size) != 4)
		return err_set(e, -EPROTO, "git said something odd");
	path++;
	if (!streq(kind, "blob"))
		return err_set(e, -EINVAL, "'%.200s' is a submodule, which a kit cannot have",
			       path);
	if (text_u64(size, UINT32_MAX, &b.size) < 0 || strlen(path) > KIT_TREE_PATH_MAX ||
	    !path_fine(path) || strspn(b.id, "0123456789abcdef") != strlen(b.id))
		return err_set(e, -EINVAL, "'%.200s' is not a path that a kit can have", path);
	b.exec = streq(mode, "100755");
	b.link = streq(mode, "120000");
	l->bytes += b.size;
	if (l->bytes > KIT_TREE_BYTES_MAX || l->n == KIT_TREE_ENTRIES_MAX)
		return err_set(e, -EFBIG, "it has more than %d files or %d MiB",
			       KIT_TREE_ENTRIES_MAX, KIT_TREE_BYTES_MAX / 1024 / 1024);
	b.path = strdup(path);
	v = b.path ? reallocarray(l->v, l->n + 1, sizeof(*v)) : NULL;
	if (!v) {
		free(b.path);
		return err_errno(e, -ENOMEM, "cannot read it");
	}
	l->v = v;
	l->v[l->n++] = b;
	return 0;
}

static int list_tree(struct git *g, struct list *l, struct err *e)
{
	const struct kit_ref *k = g->f->ref;
	struct buf out = BUF_INIT(LIST_MAX);
	char tree[ID_MAX + KIT_REF_MAX + 2];
	const char *words[] = { "ls-tree", "-r",        "-z",       "-l",    "--full-tree", tree,
				"--",      "spec.yaml", "spec.yml", "files", NULL };
	const char *p, *end;
	int r;

	(void)snprintf(tree, sizeof(tree), "%s:%s", g->commit, k->dir ? k->dir : "");
	r = git(g, words, NULL, 0, &out, READ_MS, e);
	if (r > 0)
		r = err_set(e, -ENOENT, "the repository has no folder '%.200s'",
			    k->dir ? k->dir : ".");
	if (r == 0 && out.n == out.max)
		r = err_set(e, -EFBIG, "it has too many files");
	p = r == 0 ? buf_str(&out) : NULL;
	end = p ? p + out.n : NULL;
	for (; p && p < end && r == 0; p += strlen(p) + 1)
		r = take_line(l, p, e);
	buf_done(&out);
	return r;
}

/* The folders above a file. */
static int make_parents(int raw, const char *path, struct err *e)
{
	char dir[KIT_TREE_PATH_MAX + 1];

	for (const char *s = strchr(path, '/'); s; s = strchr(s + 1, '/')) {
		memcpy(dir, path, (size_t)(s - path));
		dir[s - path] = '\0';
		if (mkdirat(raw, dir, 0700) < 0 && errno != EEXIST)
			return err_errno(e, -errno, "cannot copy '%.200s'", path);
	}
	return 0;
}

static int put_blob(int raw, const struct blob *b, const uint8_t *p, struct err *e)
{
	_close_ int fd = -1;
	char link[KIT_TREE_PATH_MAX + 1];
	int r = make_parents(raw, b->path, e);

	if (r < 0)
		return r;
	if (b->link) {
		if (b->size > KIT_TREE_PATH_MAX || memchr(p, '\0', b->size) || !b->size)
			return err_set(e, -EINVAL, "'%.200s' is a link that cannot be read",
				       b->path);
		memcpy(link, p, b->size);
		link[b->size] = '\0';
		return symlinkat(link, raw, b->path) < 0
			       ? err_errno(e, -errno, "cannot copy '%.200s'", b->path)
			       : 0;
	}
	fd = openat(raw, b->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    b->exec ? 0700 : 0600);
	r = fd < 0 ? -errno : fd_write_all(fd, p, b->size);
	return r < 0 ? err_errno(e, r, "cannot copy '%.200s'", b->path) : 0;
}

/* "ID blob SIZE\n", the bytes, "\n": for each, in the order that was asked. Links last, so that no file goes through one. */
static int put_all(const struct git *g, const struct list *l, struct buf *out, struct err *e)
{
	for (int links = 0; links < 2; links++) {
		struct rd_at {
			const uint8_t *p;
			size_t n;
		} at = { buf_data(out), out->n };

		for (size_t i = 0; i < l->n; i++) {
			const struct blob *b = &l->v[i];
			char head[ID_MAX + 40];
			size_t n = (size_t)snprintf(head, sizeof(head), "%s blob %llu\n", b->id,
						    (unsigned long long)b->size);
			int r;

			if (!at.p || at.n < n || memcmp(at.p, head, n) != 0 ||
			    at.n - n < b->size + 1)
				return err_set(e, -EPROTO, "git did not give '%.200s'", b->path);
			r = b->link == links ? put_blob(g->f->raw_fd, b, at.p + n, e) : 0;
			if (r < 0)
				return r;
			at.p += n + b->size + 1;
			at.n -= n + b->size + 1;
		}
	}
	return 0;
}

static int take_files(struct git *g, const struct list *l, struct err *e)
{
	static const char *const words[] = { "cat-file", "--batch", NULL };
	struct buf in = BUF_INIT(KIT_TREE_ENTRIES_MAX * (ID_MAX + 1UL)),
		   out = BUF_INIT(KIT_TREE_BYTES_MAX + KIT_TREE_ENTRIES_MAX * (ID_MAX + 40UL));
	int r = 0;

	for (size_t i = 0; i < l->n && r == 0; i++)
		r = buf_printf(&in, "%s\n", l->v[i].id);
	if (r < 0)
		(void)err_errno(e, r, "cannot read it");
	if (r == 0)
		r = wrong(e, git(g, words, buf_data(&in), in.n, &out, READ_MS, e),
			  "cannot read it");
	if (r == 0)
		r = put_all(g, l, &out, e);
	buf_done(&in);
	buf_done(&out);
	return r;
}

int kit_fetch_git(const struct kit_fetch *f, char **ret_text, struct err *e)
{
	struct git g = { .f = f };
	struct list l = { 0 };
	char *text = NULL;
	int r = git_env(&g, e);

	if (r == 0)
		r = fetch(&g, e);
	if (r == 0)
		r = find_commit(&g, e);
	if (r == 0)
		r = list_tree(&g, &l, e);
	if (r == 0)
		r = take_files(&g, &l, e);
	if (r == 0 && asprintf(&text, "git+%s#ref=%s%s%s", f->ref->where, g.commit,
			       f->ref->dir ? "&dir=" : "", f->ref->dir ? f->ref->dir : "") < 0)
		r = err_errno(e, -ENOMEM, "cannot fetch it");
	if (r == 0)
		*ret_text = text;
	list_done(&l);
	for (size_t i = 0; i < ARRAY_SIZE(g.env); i++)
		free(g.env[i]);
	return r;
}
