/* The database.
 *
 * It is a convenience, not the truth: the truth about a sandbox is its directory, with a sandbox.json
 * that is written once, atomically, when the sandbox is made, and a lock that tells whether it
 * runs. So the database may be cut at any byte, and state_open() makes a new one from the directories
 * (repair.c). Every write is one statement, hence one transaction. */
#include "state/state.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io/fd.h"
#include "state/known.h"
#include "state/priv.h"
#include "sys/dirs.h"
#include "sys/lock.h"

enum { SHARES_WAIT_MS = 120000 };

void sandbox_done(struct sandbox *s)
{
	free(s->name);
	free(s->agent);
	free(s->tmpl);
	free(s->tmpl_tag);
	free(s->workdir);
	shares_done(&s->shares);
	*s = (struct sandbox) { 0 };
}

struct state *state_free(struct state *s)
{
	if (!s)
		return NULL;
	if (s->db)
		(void)sqlite3_close(s->db);
	(void)fd_close(s->dir_fd);
	(void)fd_close(s->boxes_fd);
	free(s->dir);
	free(s);
	return NULL;
}

int state_sandboxes_fd(const struct state *s)
{
	return s->boxes_fd;
}

char *state_dir(const struct state *s, const char *id)
{
	char *p;

	return asprintf(&p, "%s/sandboxes/%s", s->dir, id) < 0 ? NULL : p;
}

/* Turn SQLite's last failure into one line. */
int state_fault(struct state *s, const char *doing, struct err *e)
{
	int code = s->db ? sqlite3_errcode(s->db) : SQLITE_NOMEM;

	switch (code & 0xff) {
	case SQLITE_FULL:
		return err_set(e, -ENOSPC,
			       "cannot %s: no space left in %s; free some space and try again",
			       doing, s->dir);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(e, -EBUSY,
			       "cannot %s: another bac command holds the state in %s for too "
			       "long; try again",
			       doing, s->dir);
	case SQLITE_READONLY:
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
		return err_set(e, -EACCES,
			       "cannot %s: %s/bac.db cannot be written (%s); check its owner, "
			       "mode and disk",
			       doing, s->dir, sqlite3_errmsg(s->db));
	case SQLITE_IOERR:
		return err_set(e, -EIO,
			       "cannot %s: input/output error in %s (%s); check the disk and its "
			       "free space",
			       doing, s->dir, sqlite3_errmsg(s->db));
	default:
		return err_set(e, -EIO, "cannot %s: %s/bac.db: %s", doing, s->dir,
			       s->db ? sqlite3_errmsg(s->db) : "out of memory");
	}
}

int state_prepare(struct state *s, const char *sql, sqlite3_stmt **ret, struct err *e)
{
	if (sqlite3_prepare_v2(s->db, sql, -1, ret, NULL) != SQLITE_OK)
		return state_fault(s, "read the state", e);
	return 0;
}

int state_step(struct state *s, sqlite3_stmt *st, const char *doing, struct err *e)
{
	return sqlite3_step(st) == SQLITE_DONE ? 0 : state_fault(s, doing, e);
}

char *state_column(sqlite3_stmt *st, int i)
{
	const unsigned char *t = sqlite3_column_text(st, i);

	return strdup(t ? (const char *)t : "");
}

#define COLUMNS \
	"id, name, agent, tmpl, tmpl_tag, workdir, cpus, memory, disk, created, used, made, " \
	"shares, network"

static int read_row(struct state *s, sqlite3_stmt *st, struct sandbox *ret, struct err *e)
{
	struct sandbox b = { 0 };
	int r;
	const char *id = (const char *)sqlite3_column_text(st, 0);

	(void)snprintf(b.id, sizeof(b.id), "%s", id ? id : "");
	b.name = state_column(st, 1);
	b.agent = state_column(st, 2);
	b.tmpl = state_column(st, 3);
	b.tmpl_tag = state_column(st, 4);
	b.workdir = state_column(st, 5);
	b.cpus = (uint32_t)sqlite3_column_int64(st, 6);
	b.memory = (uint64_t)sqlite3_column_int64(st, 7);
	b.disk = (uint64_t)sqlite3_column_int64(st, 8);
	b.created = sqlite3_column_int64(st, 9);
	b.used = sqlite3_column_int64(st, 10);
	b.made = sqlite3_column_int(st, 11);
	r = shares_parse((const char *)sqlite3_column_text(st, 12), &b.shares);
	b.no_network = !sqlite3_column_int(st, 13);
	b.lost = faccessat(s->boxes_fd, b.id, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
	if (!b.name || !b.agent || !b.tmpl || !b.tmpl_tag || !b.workdir)
		r = -ENOMEM;
	if (r < 0) {
		sandbox_done(&b);
		return err_errno(e, r, "cannot read the state");
	}
	*ret = b;
	return 0;
}

static void bind_row(sqlite3_stmt *st, const struct sandbox *b, const char *shares)
{
	(void)sqlite3_bind_text(st, 1, b->id, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(st, 2, b->name, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(st, 3, b->agent, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(st, 4, b->tmpl, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(st, 5, b->tmpl_tag, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(st, 6, b->workdir, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(st, 7, b->cpus);
	(void)sqlite3_bind_int64(st, 8, (int64_t)b->memory);
	(void)sqlite3_bind_int64(st, 9, (int64_t)b->disk);
	(void)sqlite3_bind_int64(st, 10, b->created);
	(void)sqlite3_bind_int64(st, 11, b->used);
	(void)sqlite3_bind_int(st, 12, b->made);
	(void)sqlite3_bind_text(st, 13, shares, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int(st, 14, !b->no_network);
}

int state_insert(struct state *s, const struct sandbox *b, struct err *e)
{
	_stmt_ sqlite3_stmt *st = NULL;
	_free_ char *shares = shares_text(&b->shares);
	int r;

	if (!shares)
		return err_errno(e, -ENOMEM, "cannot record the sandbox");
	r = state_prepare(s,
			  "INSERT INTO sandbox (" COLUMNS ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
			  &st, e);
	if (r < 0)
		return r;
	bind_row(st, b, shares);
	if (sqlite3_step(st) == SQLITE_DONE)
		return 0;
	if ((sqlite3_errcode(s->db) & 0xff) == SQLITE_CONSTRAINT)
		return err_set(e, -EEXIST,
			       "a sandbox named '%s' is there already; choose another name or "
			       "run 'bac rm %s'",
			       b->name, b->name);
	return state_fault(s, "record the sandbox", e);
}

static int delete_row(struct state *s, const char *id, struct err *e)
{
	_stmt_ sqlite3_stmt *st = NULL;
	int r = state_prepare(s, "DELETE FROM sandbox WHERE id = ?", &st, e);

	if (r < 0)
		return r;
	(void)sqlite3_bind_text(st, 1, id, -1, SQLITE_STATIC);
	r = state_step(s, st, "remove the sandbox from the state", e);
	return r == 0 ? rules_forget(s, id, e) : r;
}

static int new_id(char ret[STATE_ID_MAX + 1])
{
	uint8_t b[STATE_ID_MAX / 2];
	size_t i;

	if (getrandom(b, sizeof(b), 0) != sizeof(b))
		return -errno;
	for (i = 0; i < sizeof(b); i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", b[i]);
	return 0;
}

int state_lock(const struct state *s, const char *id, unsigned ms, int *ret_fd)
{
	_close_ int dir = openat(s->boxes_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (dir < 0)
		return -errno;
	return lock_take_within(dir, "lock", ms, ret_fd);
}

int state_is_locked(const struct state *s, const char *id)
{
	_close_ int dir = openat(s->boxes_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return dir < 0 ? 0 : lock_is_held(dir, "lock") == 1;
}

int state_add(struct state *s, struct sandbox *b, int *ret_lock, struct err *e)
{
	_close_ int lock = -1, repair = -1;
	int r;

	/* Between mkdir and INSERT the directory has no row: keep repairs out. */
	r = lock_take(s->dir_fd, "repair.lock", true, true, &repair);
	if (r == 0)
		r = new_id(b->id);
	if (r < 0)
		return err_errno(e, r, "cannot make a sandbox in %s", s->dir);
	b->created = b->used = time(NULL);
	b->made = false;
	if (mkdirat(s->boxes_fd, b->id, 0700) < 0)
		return err_errno(e, -errno, "cannot make %s/sandboxes/%s", s->dir, b->id);
	r = state_lock(s, b->id, 0, &lock);
	if (r < 0) {
		(void)dirs_remove(s->boxes_fd, b->id);
		return err_errno(e, r, "cannot lock %s/sandboxes/%s", s->dir, b->id);
	}
	r = state_insert(s, b, e);
	if (r < 0) {
		(void)dirs_remove(s->boxes_fd, b->id);
		return r;
	}
	*ret_lock = take_fd(&lock);
	return 0;
}

int state_made(struct state *s, const struct sandbox *b, struct err *e)
{
	_stmt_ sqlite3_stmt *st = NULL;
	int r;

	r = state_copy_write(s, b, e);
	if (r < 0)
		return r;
	r = state_prepare(s, "UPDATE sandbox SET made = 1, workdir = ?2 WHERE id = ?1", &st, e);
	if (r < 0)
		return r;
	(void)sqlite3_bind_text(st, 1, b->id, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(st, 2, b->workdir, -1, SQLITE_STATIC);
	return state_step(s, st, "record the sandbox", e);
}

int state_shares_lock(const struct state *s, const char *id, int *ret_fd)
{
	_close_ int dir = openat(s->boxes_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return dir < 0 ? -errno : lock_take_within(dir, "shares.lock", SHARES_WAIT_MS, ret_fd);
}

int state_shares_set(struct state *s, const struct sandbox *b, struct err *e)
{
	_stmt_ sqlite3_stmt *st = NULL;
	_free_ char *shares = shares_text(&b->shares);
	int r = shares ? state_copy_write(s, b, e)
		       : err_errno(e, -ENOMEM, "cannot record the shares");

	if (r == 0)
		r = state_prepare(s, "UPDATE sandbox SET shares = ?2 WHERE id = ?1", &st, e);
	if (r < 0)
		return r;
	(void)sqlite3_bind_text(st, 1, b->id, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(st, 2, shares, -1, SQLITE_STATIC);
	return state_step(s, st, "record the shares", e);
}

int state_remove(struct state *s, const struct sandbox *b, struct err *e)
{
	char trash[32];
	int r;

	known_forget(s->dir_fd, b->name);
	/* Renamed first: from here on it is gone for everybody, whatever happens to us. */
	(void)snprintf(trash, sizeof(trash), ".trash-%s", b->id);
	if (renameat(s->boxes_fd, b->id, s->boxes_fd, trash) < 0 && errno != ENOENT)
		return err_errno(e, -errno, "cannot remove %s/sandboxes/%s", s->dir, b->id);
	r = delete_row(s, b->id, e);
	if (r < 0) {
		(void)renameat(s->boxes_fd, trash, s->boxes_fd, b->id);
		return r;
	}
	r = dirs_remove(s->boxes_fd, trash);
	if (r < 0)
		return err_errno(
			e, r, "removed '%s', but %s/sandboxes/%s is still there; remove it by hand",
			b->name, s->dir, trash);
	return 0;
}

int state_get(struct state *s, const char *name, struct sandbox *ret, struct err *e)
{
	_stmt_ sqlite3_stmt *st = NULL;
	int r;

	r = state_prepare(s,
			  "SELECT " COLUMNS
			  " FROM sandbox WHERE made = 1 AND (name = ?1 OR id = ?1) "
			  "ORDER BY name = ?1 DESC LIMIT 1",
			  &st, e);
	if (r < 0)
		return r;
	(void)sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
	r = sqlite3_step(st);
	if (r == SQLITE_ROW)
		return read_row(s, st, ret, e);
	if (r != SQLITE_DONE)
		return state_fault(s, "read the state", e);
	return err_set(e, -ENOENT, "sandbox '%.80s' not found (see 'bac ls')", name);
}

/* All rows, made or not. */
int state_rows(struct state *s, bool made_only, struct sandbox **ret, size_t *ret_n, struct err *e)
{
	_stmt_ sqlite3_stmt *st = NULL;
	struct sandbox *v = NULL;
	size_t n = 0;
	int r, k;

	r = state_prepare(s,
			  made_only ? "SELECT " COLUMNS " FROM sandbox WHERE made = 1 ORDER BY name"
				    : "SELECT " COLUMNS " FROM sandbox ORDER BY name",
			  &st, e);
	while (r == 0 && (k = sqlite3_step(st)) != SQLITE_DONE) {
		struct sandbox *more;

		if (k != SQLITE_ROW) {
			r = state_fault(s, "read the state", e);
			break;
		}
		more = realloc(v, (n + 1) * sizeof(*v));
		if (!more) {
			r = err_errno(e, -ENOMEM, "cannot read the state");
			break;
		}
		v = more;
		r = read_row(s, st, &v[n], e);
		if (r == 0)
			n++;
	}
	if (r < 0) {
		while (n)
			sandbox_done(&v[--n]);
		free(v);
		return r;
	}
	*ret = v;
	*ret_n = n;
	return 0;
}

int state_list(struct state *s, struct sandbox **ret, size_t *ret_n, struct err *e)
{
	return state_rows(s, true, ret, ret_n, e);
}

void state_used(struct state *s, const struct sandbox *b)
{
	_stmt_ sqlite3_stmt *st = NULL;
	struct err e = { 0 };

	if (b->made)
		known_put(s->dir_fd, b->name, b->id);
	if (state_prepare(s, "UPDATE sandbox SET used = ?2 WHERE id = ?1 AND used < ?2 - 60", &st,
			  &e) < 0)
		return;
	(void)sqlite3_bind_text(st, 1, b->id, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(st, 2, time(NULL));
	(void)sqlite3_step(st);
}

int state_setting(struct state *s, const char *key, char **ret, struct err *e)
{
	_stmt_ sqlite3_stmt *st = NULL;
	char *v = NULL;
	int r;

	r = state_prepare(s, "SELECT value FROM setting WHERE key = ?", &st, e);
	if (r < 0)
		return r;
	(void)sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
	r = sqlite3_step(st);
	if (r == SQLITE_ROW) {
		v = state_column(st, 0);
		if (!v)
			return err_errno(e, -ENOMEM, "cannot read the settings");
	} else if (r != SQLITE_DONE) {
		return state_fault(s, "read the settings", e);
	}
	*ret = v;
	return 0;
}

int state_setting_put(struct state *s, const char *key, const char *value, struct err *e)
{
	_stmt_ sqlite3_stmt *st = NULL;
	int r;

	r = state_prepare(s,
			  value ? "INSERT INTO setting (key, value) VALUES (?1, ?2) "
				  "ON CONFLICT (key) DO UPDATE SET value = ?2"
				: "DELETE FROM setting WHERE key = ?1",
			  &st, e);
	if (r < 0)
		return r;
	(void)sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
	if (value)
		(void)sqlite3_bind_text(st, 2, value, -1, SQLITE_STATIC);
	return state_step(s, st, "store the setting", e);
}

int state_setting_set(struct state *s, const char *key, const char *value, struct err *e)
{
	int r = state_setting_put(s, key, value, e);

	return r < 0 ? r : state_settings_copy(s, e);
}

int state_each_setting(struct state *s,
		       void (*each)(void *user, const char *key, const char *value), void *user,
		       struct err *e)
{
	_stmt_ sqlite3_stmt *st = NULL;
	int r;

	r = state_prepare(s, "SELECT key, value FROM setting ORDER BY key", &st, e);
	if (r < 0)
		return r;
	while ((r = sqlite3_step(st)) == SQLITE_ROW)
		each(user, (const char *)sqlite3_column_text(st, 0),
		     (const char *)sqlite3_column_text(st, 1));
	return r == SQLITE_DONE ? 0 : state_fault(s, "read the settings", e);
}
