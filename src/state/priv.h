#pragma once
/* What the files of this room share: the database's handle, and the steps of its repair. */
#include <sqlite3.h>

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
