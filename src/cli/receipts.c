/* Finding logs: each is a folder named by an id, with the sandbox's name in a file. */
#include "cli/receipts.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/text.h"

static void read_name(struct receipts_log *l)
{
	_free_ char *text = NULL;
	size_t n;

	memcpy(l->name, l->id, sizeof(l->id));
	if (fd_read_file(l->dir, AUDIT_NAME, AUDIT_NAME_MAX + 1, &text, &n) < 0 || !n)
		return;
	text[n - (text[n - 1] == '\n')] = '\0';
	if (!text_name_fault(text) && text_copy(l->name, sizeof(l->name), text) < 0)
		memcpy(l->name, l->id, sizeof(l->id));
}

static bool is_id(const char *s)
{
	return strlen(s) == STATE_ID_MAX && strspn(s, "0123456789abcdef") == STATE_ID_MAX;
}

/* One folder, if it is a log that was asked for. */
static int take(struct receipts_logs *l, int top, const char *id, const char *want,
		const char *want_id)
{
	struct receipts_log one = { .dir = -1 }, *more;

	if (!is_id(id))
		return 0;
	memcpy(one.id, id, sizeof(one.id));
	one.dir = openat(top, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (one.dir < 0)
		return 0;
	read_name(&one);
	if (want && !streq(want, one.name) && !streq(want, one.id) && !streq(want_id, one.id)) {
		(void)fd_close(one.dir);
		return 0;
	}
	more = reallocarray(l->v, l->n + 1, sizeof(*l->v));
	if (!more) {
		(void)fd_close(one.dir);
		return -ENOMEM;
	}
	l->v = more;
	l->v[l->n++] = one;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct receipts_log *x = a, *y = b;
	int d = strcmp(x->name, y->name);

	return d ? d : strcmp(x->id, y->id);
}

static void closedirp(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

int receipts_find(const struct ctx *c, const char *name, struct receipts_logs *ret, struct err *e)
{
	_free_ char *path = dirs_join(c->dirs.state, "audit");
	_cleanup_(closedirp) DIR *d = NULL;
	struct sandbox b = { 0 };
	struct dirent *entry;
	struct err none;
	int r = 0;

	memset(ret, 0, sizeof(*ret));
	if (!path)
		return err_errno(e, -ENOMEM, "cannot look for logs");
	/* a log that was begun a moment ago may not have its name yet */
	if (name)
		(void)!state_get(c->state, name, &b, &none);
	d = opendir(path);
	if (!d && errno != ENOENT)
		r = err_errno(e, -errno, "cannot read %s", path);
	while (d && r == 0 && (entry = readdir(d)))
		r = take(ret, dirfd(d), entry->d_name, name, b.id);
	sandbox_done(&b);
	if (r < 0)
		return d ? err_errno(e, r, "cannot look for logs") : r;
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), compare);
	return 0;
}

void receipts_done(struct receipts_logs *l)
{
	for (size_t i = 0; i < l->n; i++)
		(void)fd_close(l->v[i].dir);
	free(l->v);
	*l = (struct receipts_logs) { 0 };
}
