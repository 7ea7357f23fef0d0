#pragma once
/* Directories that a copy made, with the mode and time that they shall have at the end: a mode may
 * forbid to put anything into them, and what is put into them changes the time. The last one noted
 * comes back first. There may be any number: what does not fit into memory goes to a file that has
 * no name, in the directory that the copy goes to. */
#include "base/buf.h"
#include "wire/copy.h"

struct tree_notes {
	struct buf buf;
	int fd;
	uint64_t len; /* bytes in the file; those in buf come after them */
};

void tree_notes_init(struct tree_notes *n);
void tree_notes_done(struct tree_notes *n);

/* path, mode and time of m. dir is where the file is made when it is needed. 0 or -errno. */
int tree_notes_add(struct tree_notes *n, int dir, const struct copy_record *m) _must_check_;

/* Take the last one back: 1, 0 when there is none, or -errno. Its path goes into path. */
int tree_notes_pop(struct tree_notes *n, struct copy_record *ret, char path[WIRE_PATH_MAX + 1])
	_must_check_;
