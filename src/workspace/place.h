#pragma once
/* From nodes to descriptors: where the server finds on the host what the guest means.
 *
 * Every way down begins at a share's root and takes real names only: no link is followed, no ".."
 * taken, and what is found must be the very file that the guest knows; else -ESTALE, which makes the
 * guest's kernel look again. */
#include "workspace/fs-priv.h"

/* A descriptor good for *at() calls: borrowed from a node or handle, or own, closed with place_done(). */
struct place {
	int fd;
	int own;       /* -1: borrowed */
	char text[12]; /* the number, for what is named in /proc/self/fd */
};
void place_done(struct place *p);
#define _place_ _cleanup_(place_done)

/* The descriptor of a directory, borrowed: good until the second next place_...() call. */
int place_dir(struct fs *f, struct node *n);
/* A descriptor of the file itself, whatever its type. */
int place_node(struct fs *f, struct node *n, struct place *ret);
/* Attributes now. */
int place_stat(struct fs *f, struct node *n, struct statx *ret);
/* Open a regular file or directory anew, by its names from the share's root; its attributes too. The
 * descriptor or -errno. No O_TRUNC or O_CREAT. */
int place_open(struct fs *f, struct node *n, int flags, struct statx *ret);

/* A path of real names below a share's root. The descriptor or -errno. */
int place_below(struct fs *f, const struct share *s, const char *path, int flags);

/* statx() of a descriptor, or of a name in a directory, not following. */
int place_statx(int fd, const char *name, struct statx *ret);
/* openat() with what every open of ours has; makes room for a descriptor if there is none. */
int place_openat(struct fs *f, int dir, const char *name, int flags, mode_t mode);
/* Open again what fd is of, through /proc/self/fd. */
int place_reopen(struct fs *f, int fd, int flags);

/* The names from the share's root to (parent, name), joined by '/', into dst; name may be NULL: to
 * parent itself. Its length, or -ENAMETOOLONG or -ESTALE. */
ssize_t place_path(const struct node *parent, const char *name, char *dst, size_t max);
