/* Targets are settled as text, by reading links without following any: a path below the share's root whose
 * components are no links. What a link leads to outside of its share is not the guest's to change. */
#include "workspace/alias.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/fd.h"
#include "workspace/place.h"
#include "workspace/ruling.h"

/* A way from the share's root; no component of path is a link. */
struct way {
	const struct share *share;
	char path[FS_PATH_MAX];
	size_t len;
	unsigned links;
};

static bool push(struct way *w, const char *name, size_t n)
{
	if (w->len + n + 2 > sizeof(w->path))
		return false;
	if (w->len)
		w->path[w->len++] = '/';
	memcpy(w->path + w->len, name, n);
	w->len += n;
	w->path[w->len] = 0;
	return true;
}

static bool pop(struct way *w)
{
	if (!w->len)
		return false;
	while (w->len && w->path[w->len - 1] != '/')
		w->len--;
	w->len -= w->len > 0;
	w->path[w->len] = 0;
	return true;
}

/* What of an absolute target lies in the share; NULL: nothing. */
static const char *inside(const struct share *s, const char *target)
{
	size_t n = strlen(s->path);

	while (n && s->path[n - 1] == '/')
		n--;
	return strncmp(target, s->path, n) == 0 && (!target[n] || target[n] == '/') ? target + n
										    : NULL;
}

static bool take(struct way *w, const char *text);

static bool take_one(struct way *w, const char *name, size_t n) /* NOLINT(misc-no-recursion) */
{
	char target[FS_PATH_MAX];
	const char *rest = target;
	ssize_t got;

	if (n == 2 && memcmp(name, "..", 2) == 0)
		return pop(w);
	if (n == 0 || (n == 1 && *name == '.'))
		return true;
	if (!push(w, name, n))
		return false;
	got = readlinkat(w->share->fd, w->path, target, sizeof(target) - 1);
	if (got < 0)
		return true; /* no link, or nothing there */
	if (got == sizeof(target) - 1 || ++w->links > ALIAS_LINKS)
		return false;
	target[got] = 0;
	(void)pop(w);
	if (target[0] == '/') {
		rest = inside(w->share, target);
		w->len = 0;
		w->path[0] = 0;
	}
	return rest && take(w, rest);
}

/* Go along text. False: it leads out of the share, or is too long or winding. As deep in calls as there are links
 * in links, at most ALIAS_LINKS. */
static bool take(struct way *w, const char *text) /* NOLINT(misc-no-recursion): as said */
{
	while (*text) {
		size_t n = strcspn(text, "/");

		if (!take_one(w, text, n))
			return false;
		text += n + (text[n] == '/');
	}
	return true;
}

static bool on_the_way(const struct fs *f, const char *path, size_t len)
{
	return path_rules_decide(f->cfg.rules, path, len).kind != PATH_FREE ||
	       path_rules_below(f->cfg.rules, path, len) != PATH_FREE;
}

static void add(struct fs *f, const struct share *s, const char *at, const char *to)
{
	struct alias a = { .share = s, .at_len = strlen(at), .to_len = strlen(to) };

	for (size_t i = 0; i < f->n_aliases; i++)
		if (f->aliases[i].share == s && streq(f->aliases[i].at, at) &&
		    streq(f->aliases[i].to, to))
			return;
	if (f->n_aliases == ALIAS_MAX) {
		(void)ruling_refuse(f, "LINK", s, at, "too many links lead to ruled files");
		return;
	}
	if (!f->aliases)
		f->aliases = calloc(ALIAS_MAX, sizeof(*f->aliases));
	a.at = strdup(at);
	a.to = strdup(to);
	if (!f->aliases || !a.at || !a.to) {
		free(a.at);
		free(a.to);
		return;
	}
	f->aliases[f->n_aliases++] = a;
	f->rule_epoch++;
}

/* What follows the target in path: "" at the target itself; NULL: it is elsewhere. */
static const char *behind(const struct alias *a, const struct share *s, const char *path)
{
	if (a->share != s || strncmp(path, a->to, a->to_len) != 0)
		return NULL;
	if (!a->to_len)
		return path;
	if (!path[a->to_len])
		return path + a->to_len;
	return path[a->to_len] == '/' ? path + a->to_len + 1 : NULL;
}

/* Path as it is by the link, in f->alias_path. Its length, or 0 if that is too long. */
static size_t by_link(struct fs *f, const struct alias *a, const char *rest)
{
	size_t n = strlen(rest), len = a->at_len;

	if (len + n + 2 > sizeof(f->alias_path))
		return 0;
	memcpy(f->alias_path, a->at, len);
	if (n)
		f->alias_path[len++] = '/';
	memcpy(f->alias_path + len, rest, n + 1);
	return len + n;
}

/* A link on a ruled way; also where that way leads through the target of another. */
static void found(struct fs *f, const struct share *s, const char *at)
{
	struct way w = { .share = s };
	size_t n = f->n_aliases, len = strlen(at);

	if (!take(&w, at) || streq(w.path, at))
		return;
	if (on_the_way(f, at, len))
		add(f, s, at, w.path);
	for (size_t i = 0; i < n; i++) {
		const char *rest = behind(&f->aliases[i], s, at);

		len = rest ? by_link(f, &f->aliases[i], rest) : 0;
		if (len && on_the_way(f, f->alias_path, len))
			add(f, s, f->alias_path, w.path);
	}
}

void alias_met(struct fs *f, const struct node *parent, const char *name)
{
	char at[FS_PATH_MAX];

	if (f->cfg.rules && parent->share && place_path(parent, name, at, sizeof(at)) > 0)
		found(f, parent->share, at);
}

/* Folders that are still to be read, nearest first. */
struct scan {
	struct fs *f;
	const struct share *share;
	char *queue[ALIAS_QUEUE];
	size_t first, last, entries;
	char at[FS_PATH_MAX];
	_Alignas(8) char buf[16384];
};

struct host_dirent { /* of getdents64(2) */
	uint64_t ino, off;
	uint16_t len;
	uint8_t type;
	char name[];
};

static unsigned depth(const char *path)
{
	unsigned n = *path != 0;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

static void entry(struct scan *s, const char *dir, const struct host_dirent *e)
{
	int n = snprintf(s->at, sizeof(s->at), "%s%s%s", dir, *dir ? "/" : "", e->name);

	if (streq(e->name, ".") || streq(e->name, "..") || n < 0 || (size_t)n >= sizeof(s->at))
		return;
	if (e->type == DT_LNK)
		found(s->f, s->share, s->at);
	/* large, and nothing in them is ruled */
	if (e->type != DT_DIR || streq(e->name, "objects") || streq(e->name, "node_modules"))
		return;
	if (s->last < ALIAS_QUEUE && depth(s->at) < ALIAS_DEPTH)
		s->queue[s->last] = strdup(s->at);
	if (s->last < ALIAS_QUEUE && s->queue[s->last])
		s->last++;
}

static void scan_dir(struct scan *s, const char *dir)
{
	_close_ int fd = place_below(s->f, s->share, *dir ? dir : ".", O_RDONLY | O_DIRECTORY);
	long got, at;

	while (fd >= 0 && s->entries < ALIAS_SCAN &&
	       (got = syscall(SYS_getdents64, fd, s->buf, sizeof(s->buf))) > 0)
		for (at = 0; at < got;) {
			const struct host_dirent *e = (const void *)(s->buf + at);

			at += e->len;
			s->entries++;
			entry(s, dir, e);
		}
}

void alias_scan(struct fs *f, const struct share *share)
{
	struct scan *s = f->cfg.rules ? calloc(1, sizeof(*s)) : NULL;

	if (!s)
		return;
	s->f = f;
	s->share = share;
	scan_dir(s, "");
	while (s->first < s->last) {
		scan_dir(s, s->queue[s->first]);
		free(s->queue[s->first++]);
	}
	free(s);
}

void alias_drop(struct fs *f, const struct share *s)
{
	size_t i, kept = 0;

	for (i = 0; i < f->n_aliases; i++) {
		struct alias *a = &f->aliases[i];

		if (s && a->share != s) {
			f->aliases[kept++] = *a;
			continue;
		}
		free(a->at);
		free(a->to);
	}
	f->n_aliases = kept;
	if (!s) {
		free(f->aliases);
		f->aliases = NULL;
	}
}

struct path_answer alias_decide(struct fs *f, const struct share *s, const char *path, size_t len,
				struct path_answer a)
{
	for (size_t i = 0; i < f->n_aliases && len; i++) {
		const char *rest = behind(&f->aliases[i], s, path);
		struct path_answer b = { .kind = PATH_PROTECT, .rule = "path too long" };
		size_t n;

		if (!rest)
			continue;
		n = by_link(f, &f->aliases[i], rest);
		if (n)
			b = path_rules_decide(f->cfg.rules, f->alias_path, n);
		if (b.kind > a.kind)
			a = b;
	}
	return a;
}

bool alias_near(const struct fs *f, const struct share *s, const char *path, size_t len)
{
	for (size_t i = 0; i < f->n_aliases; i++) {
		const struct alias *a = &f->aliases[i];

		if (a->share == s && strncmp(a->to, path, len) == 0 &&
		    (!a->to[len] || a->to[len] == '/'))
			return true;
		if (behind(a, s, path))
			return true;
	}
	return false;
}
