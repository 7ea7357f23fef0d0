#pragma once
/* Where bac keeps things: the XDG directories of the user who runs it, and its own programs.
 *
 * XDG Base Directory Specification 0.8. Without XDG_RUNTIME_DIR: /run/user/UID if it is ours, else
 * /tmp/bac-UID, made 0700 and refused if somebody else made it. */
#include "base/err.h"

struct dirs {
	char *config;  /* $XDG_CONFIG_HOME/bac */
	char *state;   /* $XDG_STATE_HOME/bac */
	char *cache;   /* $XDG_CACHE_HOME/bac */
	char *run;     /* $XDG_RUNTIME_DIR/bac */
	char *libexec; /* where bac-supervisor and bac-init are */
	char *data;    /* data files: templates' recipes, kernel configuration, kits */
};

/* All directories but libexec and data exist afterwards, 0700 and ours. 0, or -Exxx with a
 * message. dirs_done() frees. */
int dirs_get(struct dirs *ret, struct err *e) _must_check_;
/* The same names but libexec and data, which are NULL, and nothing is made: 0 if the state and run directories are
 * there and ours. */
int dirs_peek(struct dirs *ret) _must_check_;
void dirs_done(struct dirs *d);

/* dir/name on the heap, or NULL. */
char *dirs_join(const char *dir, const char *name);

/* Remove a directory and what is in it, never following a link nor crossing into another file
 * system. Missing is fine. 0 or the first -errno; the rest is still removed. */
int dirs_remove(int at, const char *name);

/* Make a directory and its parents, mode 0700 for what is new. 0 or -errno. */
int dirs_make(const char *path);

/* The heap path of one of bac's own programs ("bac-archive"), or NULL on lack of memory. */
char *dirs_program(const char *name);
