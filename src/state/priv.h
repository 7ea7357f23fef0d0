#pragma once
/* What the files of this room share: the database's handle, and the steps of its repair. */
#include <sqlite3.h>

#include "state/rules.h"
#include "state/state.h"

struct state {
	sqlite3 *db;
	char *dir;
	int dir_fd;
	int boxes_fd;
};

/* SQLite's last failure as a message; returns the -Exxx. */
int state_fault(struct state *s, const char *doing, struct err *e);

int state_insert(struct state *s, const struct sandbox *b, struct err *e) _must_check_;
int state_rows(struct state *s, bool made_only, struct sandbox **ret, size_t *ret_n, struct err *e)
	_must_check_;
int state_setting_put(struct state *s, const char *key, const char *value, struct err *e)
	_must_check_;
int state_each_setting(struct state *s,
		       void (*each)(void *user, const char *key, const char *value), void *user,
		       struct err *e) _must_check_;

int state_prepare(struct state *s, const char *sql, sqlite3_stmt **ret, struct err *e) _must_check_;
/* A statement that yields no row. */
int state_step(struct state *s, sqlite3_stmt *st, const char *doing, struct err *e) _must_check_;
/* A text on the heap; NULL: no memory. */
char *state_column(sqlite3_stmt *st, int i);

static inline void state_finalizep(sqlite3_stmt **st)
{
	(void)sqlite3_finalize(*st);
}
#define _stmt_ _cleanup_(state_finalizep)

/* shares.c: as text, on the heap (NULL: no memory), and back: 0, -EINVAL or -ENOMEM. */
char *shares_text(const struct box_shares *s);
int shares_parse(const char *text, struct box_shares *ret) _must_check_;

/* copy.c: sandbox.json and settings.json, written whole or not at all. */
int state_copy_write(struct state *s, const struct sandbox *b, struct err *e) _must_check_;
/* 0, or -errno if there is none or it is not whole. */
int state_copy_read(struct state *s, const char *id, struct sandbox *ret) _must_check_;
int state_settings_copy(struct state *s, struct err *e) _must_check_;
/* Put the copied settings into the database. 0, or -errno if there is no whole copy. */
int state_settings_restore(struct state *s) _must_check_;
struct json_t;
/* Frees j. 0 or -errno. */
int state_json_write(int dir, const char *path, struct json_t *j) _must_check_;
/* NULL: there is none, or it is not whole. */
struct json_t *state_json_read(int dir, const char *path);

/* rules-copy.c. sandbox "": those of every sandbox. */
int rules_copy(struct state *s, const char *sandbox, struct err *e) _must_check_;
/* 0 also where there is no whole copy: then nothing is allowed. */
int rules_restore(struct state *s, const char *sandbox, struct err *e) _must_check_;
/* rules.c: a removed sandbox's rules go with it. */
int rules_forget(struct state *s, const char *sandbox, struct err *e) _must_check_;
/* Those of a copy; what is there with the same id is replaced. preset NULL: none in it. */
int rules_put_back(struct state *s, const char *preset, const struct box_rules *rules,
		   struct err *e) _must_check_;
