/* Opening the state, and what crashes may have left.
 *
 * Four things can be wrong: the database is damaged or empty (moved aside, a new one is filled from
 * the copies), a directory has no row (taken in), a row is not made and nobody makes it
 * (cleared away), a removal was cut short (ended). All are done under one lock so that twenty commands
 * at once do them once. Opening an undamaged state costs one directory listing. */
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io/fd.h"
#include "state/known.h"
#include "state/priv.h"
#include "sys/dirs.h"
#include "sys/lock.h"

enum { SCHEMA = 3, BUSY_MS = 10000 };

#define RULES_SCHEMA \
	"CREATE TABLE IF NOT EXISTS rule (id TEXT PRIMARY KEY, sandbox TEXT NOT NULL, " \
	"allow INTEGER NOT NULL, resource TEXT NOT NULL, method TEXT NOT NULL, " \
	"path TEXT NOT NULL, via TEXT NOT NULL, grp TEXT NOT NULL, created INTEGER NOT NULL) " \
	"STRICT;" \
	"CREATE TABLE IF NOT EXISTS policy (one INTEGER PRIMARY KEY CHECK (one = 1), " \
	"preset TEXT NOT NULL) STRICT;"

static const char schema[] =
	"CREATE TABLE IF NOT EXISTS sandbox (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, "
	"agent TEXT NOT NULL, tmpl TEXT NOT NULL, tmpl_tag TEXT NOT NULL, workdir TEXT NOT NULL, "
	"cpus INTEGER NOT NULL, memory INTEGER NOT NULL, disk INTEGER NOT NULL, "
	"created INTEGER NOT NULL, used INTEGER NOT NULL, made INTEGER NOT NULL, "
	"shares TEXT NOT NULL, network INTEGER NOT NULL) STRICT;"
	"CREATE TABLE IF NOT EXISTS setting (key TEXT PRIMARY KEY, value TEXT NOT NULL) "
	"STRICT;" RULES_SCHEMA "PRAGMA user_version = 3;";

/* From each version to the next. */
static const char *const upgrades[SCHEMA] = {
	[1] = "BEGIN IMMEDIATE;"
	      "ALTER TABLE sandbox ADD COLUMN shares TEXT NOT NULL DEFAULT "
	      "'{\"rules\":[],\"shares\":[]}';"
	      "PRAGMA user_version = 2; COMMIT;",
	[2] = "BEGIN IMMEDIATE;"
	      "ALTER TABLE sandbox ADD COLUMN network INTEGER NOT NULL DEFAULT 1;" RULES_SCHEMA
	      "PRAGMA user_version = 3; COMMIT;",
};

static int one_int(sqlite3 *db, const char *sql, int *ret)
{
	sqlite3_stmt *st = NULL;
	int r = sqlite3_prepare_v2(db, sql, -1, &st, NULL);

	if (r == SQLITE_OK) {
		r = sqlite3_step(st);
		if (r == SQLITE_ROW)
			*ret = sqlite3_column_int(st, 0);
	}
	(void)sqlite3_finalize(st);
	return r == SQLITE_ROW ? 0 : r == SQLITE_DONE ? SQLITE_CORRUPT : r;
}

/* Whole: no page is missing or wrong. */
static bool is_sound(sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	bool sound = false;

	if (sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &st, NULL) == SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW)
		sound = streq((const char *)sqlite3_column_text(st, 0), "ok");
	(void)sqlite3_finalize(st);
	return sound;
}

enum health { SOUND, FRESH, DAMAGED, UNUSABLE, NEWER };

static enum health open_db(struct state *s)
{
	_free_ char *path = dirs_join(s->dir, "bac.db");
	int version = 0, r;

	if (!path)
		return UNUSABLE;
	r = sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
	if (r != SQLITE_OK)
		return UNUSABLE;
	(void)sqlite3_extended_result_codes(s->db, 1);
	(void)sqlite3_busy_timeout(s->db, BUSY_MS);
	/* A command lives for milliseconds: the log is folded in when it is long, not at each end. */
	(void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	r = sqlite3_exec(s->db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;", NULL,
			 NULL, NULL);
	if (r == SQLITE_OK)
		r = one_int(s->db, "PRAGMA user_version", &version);
	switch (r & 0xff) {
	case SQLITE_OK:
		break;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return DAMAGED;
	default:
		return UNUSABLE;
	}
	if (version > SCHEMA)
		return NEWER;
	if (!is_sound(s->db))
		return (sqlite3_errcode(s->db) & 0xff) == SQLITE_BUSY ? UNUSABLE : DAMAGED;
	return version == SCHEMA ? SOUND : FRESH;
}

/* The database is there and in WAL mode (https://www.sqlite.org/fileformat.html, 1.3: both format versions are 2).
 * If not, the mode must be set, for which SQLite wants the file for itself and does not wait for others who want the
 * same: that is done under our lock. */
static bool is_begun(const struct state *s)
{
	_close_ int fd = openat(s->dir_fd, "bac.db", O_RDONLY | O_CLOEXEC);
	uint8_t head[20];

	return fd >= 0 && pread(fd, head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
	       head[18] == 2 && head[19] == 2;
}

static int too_new(const struct state *s, struct err *e)
{
	return err_set(e, -EPROTO,
		       "%s/bac.db was made by a newer bac; use that one, or move the file away",
		       s->dir);
}

/* A line for the user. Best effort: a repair does not fail for want of memory for its report. */
_printf_(2, 3) static void note(struct buf *notes, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (buf_printf(notes, "%s", line) < 0)
		return;
}

/* Put the damaged files aside under a name of their own; they are never deleted. */
static int put_aside(struct state *s, struct buf *notes, struct err *e)
{
	static const char *const files[] = { "bac.db", "bac.db-wal", "bac.db-shm" };
	char stamp[32], to[64];
	time_t now = time(NULL);
	struct tm tm;
	size_t i;

	(void)sqlite3_close(s->db);
	s->db = NULL;
	(void)strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%S", gmtime_r(&now, &tm));
	for (i = 0; i < ARRAY_SIZE(files); i++) {
		(void)snprintf(to, sizeof(to), "damaged-%s-%s", stamp, files[i]);
		if (renameat(s->dir_fd, files[i], s->dir_fd, to) < 0 && errno != ENOENT)
			return err_errno(e, -errno,
					 "the state %s/bac.db is damaged and cannot be put "
					 "aside",
					 s->dir);
	}
	note(notes,
	     "the state was damaged and is rebuilt from the sandboxes' own records; the "
	     "damaged files are %s/damaged-%s-*",
	     s->dir, stamp);
	return 0;
}

static int make_schema(struct state *s, struct err *e)
{
	int version = 0;

	if (one_int(s->db, "PRAGMA user_version", &version) != SQLITE_OK)
		return state_fault(s, "set up the state", e);
	for (; version > 0 && version < SCHEMA; version++)
		if (sqlite3_exec(s->db, upgrades[version], NULL, NULL, NULL) != SQLITE_OK)
			return state_fault(s, "bring the state up to date", e);
	return sqlite3_exec(s->db, schema, NULL, NULL, NULL) == SQLITE_OK
		       ? 0
		       : state_fault(s, "set up the state", e);
}

static bool has_row(const struct sandbox *v, size_t n, const char *id)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (streq(v[i].id, id))
			return true;
	return false;
}

/* A directory without a row. */
static int adopt(struct state *s, const char *id, struct buf *notes, struct err *e)
{
	struct sandbox b = { 0 };
	int r, fd = -1;

	if (state_copy_read(s, id, &b) < 0) {
		/* Without its record it is a creation that was cut short, or one under way. */
		r = state_lock(s, id, 0, &fd);
		if (r < 0)
			return 0;
		(void)dirs_remove(s->boxes_fd, id);
		(void)fd_close(fd);
		return 0;
	}
	r = state_insert(s, &b, e);
	if (r == -EEXIST) {
		char name[80];

		(void)snprintf(name, sizeof(name), "%.40s-%.12s", b.name, b.id);
		free(b.name);
		b.name = strdup(name);
		r = b.name ? state_insert(s, &b, e)
			   : err_errno(e, -ENOMEM, "cannot repair the state");
	}
	if (r == 0)
		r = rules_restore(s, id, e);
	if (r == 0)
		note(notes, "found the sandbox '%s' again (%s)", b.name, id);
	sandbox_done(&b);
	return r;
}

/* Each entry of the directory of sandboxes. */
static int repair_entry(struct state *s, const char *name, const struct sandbox *v, size_t n,
			struct buf *notes, struct err *e)
{
	if (starts_with(name, ".trash-")) {
		(void)dirs_remove(s->boxes_fd, name);
		return 0;
	}
	if (name[0] == '.' || strlen(name) != STATE_ID_MAX || has_row(v, n, name))
		return 0;
	return adopt(s, name, notes, e);
}

static int repair_dirs(struct state *s, const struct sandbox *v, size_t n, struct buf *notes,
		       struct err *e)
{
	int copy = openat(s->boxes_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *de;

	if (!d) {
		(void)fd_close(copy);
		return err_errno(e, -errno, "cannot read %s/sandboxes", s->dir);
	}
	while (r == 0 && (de = readdir(d)))
		r = repair_entry(s, de->d_name, v, n, notes, e);
	(void)closedir(d);
	return r;
}

/* Rows whose creator died. */
static int repair_rows(struct state *s, const struct sandbox *v, size_t n, struct buf *notes,
		       struct err *e)
{
	size_t i;
	int r = 0;

	for (i = 0; i < n && r == 0; i++) {
		_close_ int lock = -1;

		if (v[i].made)
			continue;
		r = state_lock(s, v[i].id, 0, &lock);
		if (r < 0 && r != -ENOENT) {
			r = 0;
			continue;
		}
		r = state_remove(s, &v[i], e);
		if (r == 0)
			note(notes, "cleared away the half-made sandbox '%s' (%s)", v[i].name,
			     v[i].id);
	}
	return r;
}

static bool needs_work(struct state *s, const struct sandbox *v, size_t n)
{
	int copy = openat(s->boxes_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *de;
	bool work = !d;
	size_t i;

	for (i = 0; i < n; i++)
		work |= !v[i].made && !state_is_locked(s, v[i].id);
	while (!work && (de = readdir(d)))
		work = starts_with(de->d_name, ".trash-") ||
		       (de->d_name[0] != '.' && !has_row(v, n, de->d_name));
	if (d)
		(void)closedir(d);
	else
		(void)fd_close(copy);
	return work;
}

static void free_rows(struct sandbox *v, size_t n)
{
	while (n)
		sandbox_done(&v[--n]);
	free(v);
}

static int reconcile(struct state *s, struct buf *notes, struct err *e)
{
	_close_ int lock = -1;
	struct sandbox *v;
	size_t n;
	int r;

	r = state_rows(s, false, &v, &n, e);
	if (r < 0)
		return r;
	if (!needs_work(s, v, n)) {
		free_rows(v, n);
		return 0;
	}
	free_rows(v, n);
	r = lock_take_within(s->dir_fd, "repair.lock", BUSY_MS, &lock);
	if (r < 0)
		return 0; /* somebody else is at it */
	known_forget_all(s->dir_fd);
	r = state_rows(s, false, &v, &n, e);
	if (r < 0)
		return r;
	r = repair_rows(s, v, n, notes, e);
	if (r == 0)
		r = repair_dirs(s, v, n, notes, e);
	free_rows(v, n);
	return r;
}

static int renew(struct state *s, struct buf *notes, struct err *e)
{
	int r = put_aside(s, notes, e);

	if (r < 0)
		return r;
	if (open_db(s) != FRESH)
		return state_fault(s, "make a new state", e);
	return 0;
}

/* Under the repair lock: a database that is not simply sound. */
static int open_unsound(struct state *s, struct buf *notes, struct err *e)
{
	_close_ int lock = -1;
	enum health h;
	int r = lock_take_within(s->dir_fd, "repair.lock", BUSY_MS, &lock);

	if (r < 0)
		return err_errno(e, r, "cannot lock %s/repair.lock", s->dir);
	known_forget_all(s->dir_fd);
	(void)sqlite3_close(s->db);
	s->db = NULL;
	h = open_db(s);
	if (h == SOUND)
		return 0;
	if (h == UNUSABLE)
		return state_fault(s, "open the state", e);
	if (h == NEWER)
		return too_new(s, e);
	if (h == DAMAGED)
		r = renew(s, notes, e);
	if (r == 0)
		r = make_schema(s, e);
	if (r < 0)
		return r;
	r = rules_restore(s, "", e);
	if (r < 0)
		return r;
	r = state_settings_restore(s);
	if (r == -ENOENT && h == DAMAGED)
		note(notes,
		     "the settings are lost with it: defaults apply; see 'bac settings "
		     "ls'%s%s",
		     "", "");
	return 0;
}

static int open_dirs(struct state *s, struct err *e)
{
	s->dir_fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir_fd < 0)
		return err_errno(e, -errno, "cannot open %s", s->dir);
	if (mkdirat(s->dir_fd, "sandboxes", 0700) < 0 && errno != EEXIST)
		return err_errno(e, -errno, "cannot make %s/sandboxes", s->dir);
	s->boxes_fd = openat(s->dir_fd, "sandboxes", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->boxes_fd < 0)
		return err_errno(e, -errno, "cannot open %s/sandboxes", s->dir);
	return 0;
}

static int open_all(struct state *s, struct buf *notes, struct err *e)
{
	int r = open_dirs(s, e);

	if (r < 0)
		return r;
	switch (is_begun(s) ? open_db(s) : FRESH) {
	case SOUND:
		break;
	case NEWER:
		return too_new(s, e);
	case UNUSABLE:
		return state_fault(s, "open the state", e);
	case FRESH:
	case DAMAGED:
		r = open_unsound(s, notes, e);
		if (r < 0)
			return r;
	}
	return reconcile(s, notes, e);
}

static struct state *state_new(const char *dir)
{
	struct state *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->dir_fd = s->boxes_fd = -1;
	s->dir = strdup(dir);
	return s->dir ? s : state_free(s);
}

int state_open(const char *dir, struct state **ret, struct buf *notes, struct err *e)
{
	_cleanup_(state_freep) struct state *s = state_new(dir);
	int r;

	if (!s)
		return err_errno(e, -ENOMEM, "cannot open the state");
	r = open_all(s, notes, e);
	if (r < 0)
		return r;
	*ret = take_ptr(s);
	return 0;
}
