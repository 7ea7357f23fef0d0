#pragma once
/* What the path rules say to an operation: the one place that asks them.
 *
 * A hidden file may be listed and looked up, and nothing else; a protected name may not come to be,
 * change or go. Without rules everything is free. All refusals are -EACCES and are told to the owner of
 * the file system (fs_config.refused). op is for that message. */
#include "workspace/fs-priv.h"

/* What holds for what lies at a place moves with it: a name leaves one and comes to another. */
struct ruling_move {
	struct node *from, *to; /* directories */
	const char *old, *new;
	uint16_t type; /* S_IFMT bits of what moves */
	bool exchange; /* it changes places with new */
};

bool ruling_hides(struct fs *f, struct node *n);
/* The name in parent is made, removed or replaced. */
int ruling_name(struct fs *f, const char *op, struct node *parent, const char *name);
/* A symbolic link comes to be there: not on the way to anything ruled. */
int ruling_symlink(struct fs *f, const char *op, struct node *parent, const char *name);
/* Besides ruling_name() of both ends; leaves the two paths in f->rule_path[0] and [1]. -EXDEV: a directory with which the answers for files inside would
 * change; the guest's mv(1) then moves them one by one. */
int ruling_moves(struct fs *f, const char *op, const struct ruling_move *m);
/* What the file is to git: enum gitconfig_kind; OTHER where there are no rules. */
unsigned ruling_git(struct fs *f, struct node *n);
/* Tell of a refusal for another reason than a rule: -EACCES. */
int ruling_refuse(struct fs *f, const char *op, const struct share *s, const char *path,
		  const char *why);
/* The file is opened; write: not only to read. */
int ruling_open(struct fs *f, const char *op, struct node *n, bool write);
/* After n was opened for writing by way of a descriptor: is it where we know it, or at least where there is no
 * rule? Others move files too. False: -ESTALE, and the guest looks again. */
bool ruling_there(struct fs *f, const struct node *n, int fd);
/* Its attributes change, or it gets one more name. */
int ruling_change(struct fs *f, const char *op, struct node *n);
