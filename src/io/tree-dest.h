#pragma once
/* Where a tree is received to: everything that tree_recv() does to the file system.
 *
 * Life: tree_dest_open() finds or makes the place, then entries in any order, tree_dest_finish()
 * sets what can be set only at the end, tree_dest_done(). At most one file is open at a time, from
 * tree_dest_file() to tree_dest_commit() or tree_dest_drop().
 *
 * Paths are relative to the top, "" is the top itself; they have passed copy_path_ok(). Each
 * function returns 0, or -errno with *e set. */
#include <sys/stat.h>

#include "io/tree-made.h"
#include "io/tree-notes.h"
#include "io/tree-tmp.h"
#include "io/tree.h"

/* A file that has not got its name yet. */
struct tree_file {
	int fd; /* -1: there is none */
	int parent;
	char path[WIRE_PATH_MAX + 1]; /* as the stream calls it, */
	char name[COPY_NAME_MAX + 1]; /* and what it will be called in parent */
	char tmp[TREE_TMP_MAX];       /* its name for now, or "" if it has none */
	uint32_t mode;
	struct timespec mtime;
	uid_t uid; /* with set_owner */
	gid_t gid;
};

struct tree_dest {
	const struct tree_recv_opts *o; /* borrowed */
	int root;                       /* the top, or the directory that holds a leaf */
	char leaf[COPY_NAME_MAX + 1];   /* what a top that is no directory is called there */
	char *shown;                    /* the top, for messages */
	int parent;                     /* the directory of the last entry, */
	char *parent_path;              /* and which it is */
	struct tree_file file;
	struct tree_notes notes; /* directories we made, and what they shall be */
	struct tree_made *made;  /* files that a HARD may name */
};

/* name is what the top is called, dir whether it is a directory (then mode and time are for it if
 * it is made), dest what the user wrote. */
int tree_dest_open(struct tree_dest *d, const char *dest, const struct tree_recv_opts *o,
		   const char *name, const struct copy_record *top, struct err *e) _must_check_;
void tree_dest_done(struct tree_dest *d);

int tree_dest_dir(struct tree_dest *d, const struct copy_record *m, struct err *e) _must_check_;
int tree_dest_link(struct tree_dest *d, const struct copy_record *m, struct err *e) _must_check_;
int tree_dest_hard(struct tree_dest *d, const struct copy_record *m, struct err *e) _must_check_;

int tree_dest_file(struct tree_dest *d, const struct copy_record *m, struct err *e) _must_check_;
int tree_dest_write(struct tree_dest *d, uint64_t offset, const void *p, size_t n, struct err *e)
	_must_check_;
int tree_dest_commit(struct tree_dest *d, struct err *e) _must_check_; /* none open: 0 */
void tree_dest_drop(struct tree_dest *d);

int tree_dest_finish(struct tree_dest *d, struct err *e) _must_check_;
