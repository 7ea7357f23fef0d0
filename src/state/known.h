#pragma once
/* Names that the database gave an answer for within the last minute: state/names/NAME, a link whose text is the id.
 *
 * It exists so that the commonest command, exec in a sandbox that runs, need not open a database. It is a memory of
 * an answer, not a second list: it is believed for KNOWN_SECONDS, by the link's time; it is only good for finding
 * the socket of a supervisor, which is there while that very sandbox runs; and an id is never used twice. So a link
 * that was left behind leads nowhere, and the database is asked. Removing a sandbox takes its link away first, and
 * a repair of the state takes all. */
#include "base/base.h"

enum { KNOWN_SECONDS = 60, KNOWN_ID = 12 };

/* Remember, or renew. Best effort. state_fd: the state directory. */
void known_put(int state_fd, const char *name, const char *id);

/* 0 and the id; -ENOENT if there is none, it is too old or from the future, or not what known_put() makes. */
int known_find(const char *state_dir, const char *name, char ret_id[KNOWN_ID + 1]) _must_check_;

void known_forget(int state_fd, const char *name);
void known_forget_all(int state_fd);
