#pragma once
/* What bac remembers: the sandboxes and the settings, in SQLite (WAL) under the state directory.
 *
 * Whether a sandbox runs is not written anywhere: it runs while somebody holds the lock of its
 * directory (state_lock()). Each sandbox has a directory state/sandboxes/<id> with disk.img, logs and
 * sandbox.json, a copy of its row; the settings have a copy in settings.json. From these a database that
 * is lost or damaged is rebuilt by the next command, which says so.
 *
 * Life of a row: state_add() makes it with made=false while the creator holds the lock; state_made()
 * ends the creation. A row that is not made and whose lock is free was left by a creator that died, and is
 * cleared away when the state is next opened. */
#include "base/buf.h"
#include "base/err.h"

enum { STATE_ID_MAX = 12, STATE_NOTES_MAX = 16 * 1024 };

/* A folder or file of the host that a sandbox sees. */
struct box_share {
	char *path;  /* absolute, without links: on the host and in the sandbox */
	char *alias; /* the name with links under which the user knows it, or "" */
	bool read_only;
	bool file;    /* a single file */
	bool primary; /* the workspace: commands start in it */
};

enum { SHARES_MAX = 1024 };

struct box_shares {
	struct box_share *v; /* at most SHARES_MAX */
	size_t n;
	char **rules; /* "hide PATTERN", "protect PATTERN", "allow PATTERN" */
	size_t n_rules;
};
void shares_done(struct box_shares *s);
/* Append copies. 0 or -ENOMEM. */
int shares_add(struct box_shares *s, const struct box_share *one) _must_check_;
int shares_rule(struct box_shares *s, const char *rule) _must_check_;
void shares_take_out(struct box_shares *s, size_t i);

struct sandbox {
	char id[STATE_ID_MAX + 1]; /* 12 hex digits, also its directory's name */
	char *name;
	char *agent;
	char *tmpl;     /* digest of its template */
	char *tmpl_tag; /* what the user called it */
	char *workdir;  /* default directory of commands */
	struct box_shares shares;
	uint32_t cpus;
	uint64_t memory; /* bytes */
	uint64_t disk;   /* bytes */
	int64_t created; /* seconds since 1970 */
	int64_t used;    /* last use, likewise */
	bool no_network; /* it has no network device at all */
	bool made;
	bool lost; /* its directory is not there: it can only be removed */
};
void sandbox_done(struct sandbox *s);

struct state;

/* Open the state under dir, repairing what a crash left. What was repaired is appended to notes, a line
 * each, for the user. 0, or -Exxx with a message. */
int state_open(const char *dir, struct state **ret, struct buf *notes, struct err *e) _must_check_;
struct state *state_free(struct state *s);
DEFINE_FREEP(struct state, state_free)

/* The directory state/sandboxes, as a descriptor that the state owns. */
int state_sandboxes_fd(const struct state *s);

/* state/sandboxes/<id> on the heap, or NULL. */
char *state_dir(const struct state *s, const char *id);

/* Take the lock of a sandbox's directory. 0 and *ret_fd, -EBUSY if it runs or is being worked on,
 * -ENOENT if the directory is gone. Waits at most ms. */
int state_lock(const struct state *s, const char *id, unsigned ms, int *ret_fd) _must_check_;

/* 1: it runs, or somebody works on it. 0: not. */
int state_is_locked(const struct state *s, const char *id);

/* Make the directory, lock it and add the row with made=false. b's texts are copied; its id is filled
 * in. -EEXIST with a message if the name is taken. */
int state_add(struct state *s, struct sandbox *b, int *ret_lock, struct err *e) _must_check_;

/* The creation is done: write sandbox.json and mark the row. */
int state_made(struct state *s, const struct sandbox *b, struct err *e) _must_check_;

/* One command at a time changes the shares of a sandbox: read it (again) while this lock is held. 0 or -errno. */
int state_shares_lock(const struct state *s, const char *id, int *ret_fd) _must_check_;

/* The shares have changed: write them down. */
int state_shares_set(struct state *s, const struct sandbox *b, struct err *e) _must_check_;

/* Remove the directory and the row. The caller holds the lock. What cannot be removed is named. */
int state_remove(struct state *s, const struct sandbox *b, struct err *e) _must_check_;

/* By name or id. -ENOENT with "sandbox 'x' not found". */
int state_get(struct state *s, const char *name, struct sandbox *ret, struct err *e) _must_check_;

/* All that are made, by name; a heap array: sandbox_done() each, then free. */
int state_list(struct state *s, struct sandbox **ret, size_t *ret_n, struct err *e) _must_check_;

/* Note that it was used now, and what its name is (known.h). Best effort: a full disk does not stop a command. */
void state_used(struct state *s, const struct sandbox *b);

/* ---- settings: the stored overrides, as texts ---- */

/* The stored text of a key on the heap, or NULL in *ret if there is none. */
int state_setting(struct state *s, const char *key, char **ret, struct err *e) _must_check_;
/* value NULL removes it. */
int state_setting_set(struct state *s, const char *key, const char *value, struct err *e)
	_must_check_;
