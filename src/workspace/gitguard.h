#pragma once
/* Files that git reads as configuration (policy/gitconfig.h): they may be written, but not so that git would
 * run a command on the host that it did not run before. Only where there are path rules.
 *
 * Each write is judged by what the file would be, against what it was when its handle was opened, so that a
 * program may empty it and write it again. What is judged is a private copy, and that is what is written.
 *
 * A file that moves to such a name is judged as it is, and another sandbox with the same folder may have it open
 * for writing under its old name, of which its server knows nothing. So the file is held by a lease (fcntl(2)
 * F_SETLEASE) from before it is judged until it has moved: there is none while anybody has it open for
 * writing, and whoever opens it meanwhile fails. Who opens it later asks the host for its name (ruling_there()).
 * Handles of this server's own guest are not in the way: they are opened anew for reading, and for writing again at the next
 * write, which is judged. Where the file's mode (0444, say) has nobody open it for writing again, its one descriptor, if it can read as
 * well, gets the lease itself: one for writing, which the kernel gives only if there is no other, not even a reader. The file keeps that
 * writer afterwards, so that no other sandbox moves it. Where there is a reader, or the descriptor is one that only writes, the next write
 * fails with EACCES. File systems without leases do without. */
#include "workspace/fs-priv.h"
#include "workspace/ruling.h"

#define GITGUARD_FILES 64U /* open for writing at a time */

/* h was opened for writing, and is not yet emptied: note what the file is. 0, -ENFILE, -errno. */
int gitguard_opened(struct fs *f, struct node *n, struct handle *h);
/* True if changes of this file are judged: only by the two below. */
bool gitguard_minds(struct fs *f, struct node *n);
/* Write these bytes, which are private, at off (UINT64_MAX: the end). Bytes written or -errno. */
ssize_t gitguard_write(struct fs *f, const char *op, struct handle *h, void *p, size_t n,
		       uint64_t off, int flags);
/* Its size is about to change; h: the handle, or NULL. */
int gitguard_size(struct fs *f, const char *op, struct node *n, const struct handle *h,
		  uint64_t size);
/* What keeps others from writing a file until it has moved: a lease of a descriptor of its own, or of a handle's. -1: none. */
struct gitguard_held {
	int own, handle;
};
/* What is called m->old in from_fd moves to another name; the paths are in f->rule_path[0] and [1].
 * *ret_held is for gitguard_moved(). -EXDEV: somebody has it open for writing; programs then copy. */
int gitguard_moves(struct fs *f, const char *op, const struct ruling_move *m, int from_fd,
		   int to_fd, struct gitguard_held *ret_held);
/* It has moved, or has not: the lease goes. */
void gitguard_moved(struct gitguard_held *held);
/* h, which was made unable to write while its file moved, can write again. 0, -ESTALE or -errno. */
int gitguard_wake(struct fs *f, struct handle *h);
/* A file gets another name: not from or to one that git reads. The answer is -EXDEV, since programs then
 * copy. */
int gitguard_link(struct fs *f, struct node *n, struct node *parent, const char *name);
/* True if the name in parent is of a file that git reads. */
bool gitguard_name(struct fs *f, struct node *parent, const char *name);
