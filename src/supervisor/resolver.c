#include "supervisor/resolver.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "io/fd.h"

#define CONF  "/etc/resolv.conf"
#define HOSTS "/etc/hosts"

enum {
	LINKS_MAX = 8,
	NEWS = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_ONLYDIR
};

/* path is cut at its last slash and made whole again. */
static void watch_name(struct resolver *v, char *path)
{
	char *slash = strrchr(path, '/');
	int wd;

	if (!slash || v->n == RESOLVER_WATCHES || strlen(slash + 1) >= sizeof(v->at[0].name))
		return;
	*slash = '\0';
	wd = inotify_add_watch(v->notes, slash == path ? "/" : path, NEWS);
	*slash = '/';
	if (wd < 0)
		return;
	v->at[v->n].wd = wd;
	(void)snprintf(v->at[v->n].name, sizeof(v->at[0].name), "%s", slash + 1);
	v->n++;
}

/* A link and where it leads, step by step: each may be replaced by itself. */
static void watch_file(struct resolver *v, const char *file)
{
	char path[PATH_MAX], to[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s", file);
	for (int i = 0; i < LINKS_MAX; i++) {
		ssize_t n;
		size_t dir;

		watch_name(v, path);
		n = readlink(path, to, sizeof(to) - 1);
		if (n <= 0)
			return;
		to[n] = '\0';
		dir = to[0] == '/' ? 0 : (size_t)(strrchr(path, '/') - path) + 1;
		if (dir + (size_t)n >= sizeof(path))
			return;
		memcpy(path + dir, to, (size_t)n + 1);
	}
}

/* The file itself: in a container it is often a mount, whose folder elsewhere hears of changes and ours does not. */
static void watch_content(struct resolver *v, const char *file)
{
	int wd = v->n == RESOLVER_WATCHES ? -1 : inotify_add_watch(v->notes, file, IN_CLOSE_WRITE);

	if (wd < 0)
		return;
	v->at[v->n].wd = wd;
	v->at[v->n].name[0] = '\0';
	v->n++;
}

void resolver_watch(struct resolver *v)
{
	v->notes = fd_close(v->notes);
	v->n = 0;
	v->notes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (v->notes < 0)
		return;
	watch_file(v, CONF);
	watch_file(v, HOSTS);
	watch_content(v, CONF);
	watch_content(v, HOSTS);
}

bool resolver_news(struct resolver *v)
{
	char bytes[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	bool ours = false;
	ssize_t n;

	while ((n = read(v->notes, bytes, sizeof(bytes))) > 0) {
		const struct inotify_event *ev;

		for (ssize_t at = 0; at < n; at += (ssize_t)(sizeof(*ev) + ev->len)) {
			ev = (const void *)(bytes + at);
			ours |= (ev->mask & (IN_IGNORED | IN_Q_OVERFLOW)) != 0;
			for (unsigned i = 0; i < v->n; i++)
				ours |= ev->wd == v->at[i].wd &&
					streq(ev->len ? ev->name : "", v->at[i].name);
		}
	}
	return ours;
}

static char *text_of(const char *path, size_t max)
{
	char *text = NULL;

	return fd_read_file(AT_FDCWD, path, max, &text, NULL) == 0 ? text : strdup("");
}

char *resolver_conf(size_t max)
{
	return text_of(CONF, max);
}

char *resolver_hosts(size_t max)
{
	return text_of(HOSTS, max);
}
