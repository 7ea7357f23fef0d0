/* The store as a file: secrets.json of the configuration directory.
 *
 * Every change reads it whole, under a lock, and puts a new one in its place; what cannot be read is never written over. Values are in base64, so that a glance
 * at the file shows none; nothing else protects them but its mode. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/fd.h"
#include "secrets/priv.h"
#include "sys/dirs.h"
#include "sys/lock.h"

enum { FILE_MAX = 24 * 1024 * 1024, LOCK_MS = 20000 };

static const char name[] = "secrets.json";

/* ---- may it be trusted? ---- */
static int check_owner(const char *path, const struct stat *st, mode_t wanted, struct err *e)
{
	if (st->st_uid != geteuid())
		return err_set(e, -EPERM,
			       "%s belongs to user %u, not to you: no secret is kept there", path,
			       st->st_uid);
	if (st->st_mode & 077)
		return err_set(
			e, -EPERM,
			"%s can be opened by others (mode %03o); look who may have read it, then: "
			"chmod %o %s",
			path, st->st_mode & 0777, wanted, path);
	return 0;
}

static int open_dir(struct store *s, bool make, int *ret, struct err *e)
{
	_close_ int fd = -1;
	struct stat st;
	int r = make ? dirs_make(s->dir) : 0;

	if (r < 0)
		return err_errno(e, r, "cannot make %s", s->dir);
	fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && !make)
		return 1;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, -errno, "cannot open %s", s->dir);
	r = check_owner(s->dir, &st, 0700, e);
	if (r == 0)
		*ret = take_fd(&fd);
	return r;
}

static int damaged(const struct store *s, const char *what, struct err *e)
{
	return err_set(e, -EINVAL,
		       "%s is damaged (%s), and was left as it is; mend it, or move it away (mv %s "
		       "%s.damaged) and set the secrets again",
		       s->path, what, s->path, s->path);
}

/* ---- reading ---- */
static int read_text(struct store *s, int fd, size_t n, char **ret, struct err *e)
{
	char *text = malloc(n + 1);
	ssize_t k = text ? fd_read_all(fd, text, n) : -ENOMEM;

	if (k < 0 || (size_t)k != n) {
		store_value_free(text, text ? n : 0);
		return k < 0 ? err_errno(e, (int)k, "cannot read %s", s->path)
			     : damaged(s, "it became shorter", e);
	}
	*ret = text;
	return 0;
}

/* 1: there is none. */
static int open_file(struct store *s, int dir, int *ret, size_t *ret_n, struct err *e)
{
	_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	int r;

	if (fd < 0 && errno == ENOENT)
		return 1;
	if (fd < 0 && errno == ELOOP)
		return err_set(e, -ELOOP, "%s is a link: put the file itself there", s->path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, -errno, "cannot open %s", s->path);
	/* no name at all: another took its place just now, and this is what it was */
	if (!S_ISREG(st.st_mode) || st.st_nlink > 1)
		return err_set(e, -EINVAL, "%s is not a file with one name", s->path);
	r = check_owner(s->path, &st, 0600, e);
	if (r < 0)
		return r;
	if (st.st_size > FILE_MAX)
		return damaged(s, "it is too large", e);
	*ret_n = (size_t)st.st_size;
	*ret = take_fd(&fd);
	return 0;
}

static int check_whole(struct store *s, const json_t *root, struct err *e)
{
	const char *where = json_string_value(json_object_get(root, "where"));
	struct store_entry *v;
	size_t n;
	int r;

	if (json_integer_value(json_object_get(root, "version")) != 1)
		return damaged(s, "not of version 1", e);
	if (!streq(where, "file") && !streq(where, "service"))
		return damaged(s, "where the secrets are is not said", e);
	r = entry_read_all(json_object_get(root, "entries"), &v, &n);
	if (r == -EINVAL)
		return damaged(s, "an entry is not as bac writes it", e);
	if (r < 0)
		return err_errno(e, r, "cannot read %s", s->path);
	store_list_done(v, n);
	return 0;
}

/* What is there; NULL in *ret if there is none. */
static int load(struct store *s, int dir, json_t **ret, struct err *e)
{
	_close_ int fd = -1;
	json_error_t fault;
	char *text = NULL, what[64];
	json_t *root;
	size_t n = 0;
	int r = open_file(s, dir, &fd, &n, e);

	*ret = NULL;
	if (r != 0)
		return r < 0 ? r : 0;
	r = read_text(s, fd, n, &text, e);
	if (r < 0)
		return r;
	root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &fault);
	store_value_free(text, n);
	(void)snprintf(what, sizeof(what), "line %d, column %d", fault.line, fault.column);
	r = root ? check_whole(s, root, e) : damaged(s, what, e);
	if (r < 0)
		json_decref(root);
	else
		*ret = root;
	return r;
}

/* ---- writing ---- */
static int save(struct store *s, int dir, const json_t *root, struct err *e)
{
	char *text = json_dumps(root, JSON_INDENT(1) | JSON_SORT_KEYS);
	int r = text ? fd_replace_file(dir, name, 0600, text, strlen(text)) : -ENOMEM;

	entry_text_free(text);
	return r < 0 ? err_errno(e, r, "cannot write %s", s->path) : 0;
}

struct change {
	int dir, lock;
	json_t *root;
};

static void change_done(struct change *ch)
{
	json_decref(ch->root);
	ch->lock = fd_close(ch->lock);
	ch->dir = fd_close(ch->dir);
}

/* Nobody else changes it until change_done(). */
static int begin(struct store *s, struct change *ch, struct err *e)
{
	int r = open_dir(s, true, &ch->dir, e);

	if (r < 0)
		return r;
	r = lock_take_within(ch->dir, "secrets.lock", LOCK_MS, &ch->lock);
	if (r < 0)
		return err_errno(e, r, "cannot lock %s", s->path);
	r = load(s, ch->dir, &ch->root, e);
	if (r == 0 && !ch->root) {
		ch->root = json_pack("{s:i, s:s, s:{}}", "version", 1, "where", "file", "entries");
		if (!ch->root)
			return err_errno(e, -ENOMEM, "cannot write %s", s->path);
	}
	return r;
}

static int put(struct store *s, const struct store_entry *entry, const char *value, size_t n,
	       struct err *e)
{
	_cleanup_(change_done) struct change ch = { .dir = -1, .lock = -1 };
	json_t *entries, *before, *j;
	int r = begin(s, &ch, e);

	if (r < 0)
		return r;
	entries = json_object_get(ch.root, "entries");
	before = json_object_get(entries, entry->key);
	if (!before && json_object_size(entries) >= STORE_ENTRIES_MAX)
		return err_set(e, -ENOSPC, "%s holds %d secrets at most", s->path,
			       STORE_ENTRIES_MAX);
	j = entry_merge(entry, value, n, before);
	if (!j || json_object_set_new(entries, entry->key, j) < 0 ||
	    json_object_set_new(ch.root, "where", json_string("file")) < 0)
		return err_errno(e, -ENOMEM, "cannot write %s", s->path);
	return save(s, ch.dir, ch.root, e);
}

static int remove_some(struct store *s, const char *key, bool prefix, struct err *e)
{
	_cleanup_(change_done) struct change ch = { .dir = -1, .lock = -1 };
	const char *one;
	json_t *entries, *j;
	int n = 0, r = begin(s, &ch, e);
	void *next;

	if (r < 0)
		return r;
	entries = json_object_get(ch.root, "entries");
	json_object_foreach_safe(entries, next, one, j)
	{
		if (!(prefix ? starts_with(one, key) : streq(one, key)))
			continue;
		(void)json_object_del(entries, one);
		n++;
	}
	r = n ? save(s, ch.dir, ch.root, e) : 0;
	return r < 0 ? r : n;
}

int file_note_where(struct store *s, const char *where, struct err *e)
{
	_cleanup_(change_done) struct change ch = { .dir = -1, .lock = -1 };
	int r = begin(s, &ch, e);

	if (r == 0 && json_object_set_new(ch.root, "where", json_string(where)) < 0)
		r = err_errno(e, -ENOMEM, "cannot write %s", s->path);
	return r == 0 ? save(s, ch.dir, ch.root, e) : r;
}

/* ---- asking ---- */
static int load_now(struct store *s, json_t **ret, struct err *e)
{
	_close_ int dir = -1;
	int r = open_dir(s, false, &dir, e);

	*ret = NULL;
	return r == 0 ? load(s, dir, ret, e) : MIN(r, 0);
}

int file_where(struct store *s, char ret[16], size_t *ret_n, struct err *e)
{
	const char *where;
	json_t *root;
	int r = load_now(s, &root, e);

	if (r < 0)
		return r;
	where = json_string_value(json_object_get(root, "where"));
	(void)snprintf(ret, 16, "%s", where ? where : "");
	*ret_n = json_object_size(json_object_get(root, "entries"));
	json_decref(root);
	return 0;
}

static int list(struct store *s, struct store_entry **ret, size_t *ret_n, struct err *e)
{
	json_t *root, *none = NULL;
	int r = load_now(s, &root, e);

	if (r < 0)
		return r;
	if (!root)
		none = json_object();
	r = entry_read_all(root ? json_object_get(root, "entries") : none, ret, ret_n);
	json_decref(root);
	json_decref(none);
	return r < 0 ? err_errno(e, r, "cannot read %s", s->path) : 0;
}

static int get(struct store *s, const char *key, struct store_entry *ret, char **ret_value,
	       size_t *ret_n, struct err *e)
{
	json_t *root, *j;
	int r = load_now(s, &root, e);

	if (r < 0)
		return r;
	j = json_object_get(json_object_get(root, "entries"), key);
	if (!j)
		r = err_set(e, -ENOENT, "no secret is stored as %s", key);
	else if (entry_read(key, j, ret, ret_value, ret_n) < 0)
		r = damaged(s, "an entry is not as bac writes it", e);
	json_decref(root);
	return r;
}

const struct store_kind store_file = {
	.list = list, .get = get, .put = put, .remove = remove_some
};
