#pragma once
/* Links that the host made on the way to ruled files. A program on the host follows them: what lies at their target is
 * ruled as if it lay at the link. ".git/hooks -> ../hooks" makes "hooks/" as protected as ".git/hooks/". A guest cannot make
 * such links (ruling_symlink()).
 *
 * They are found when a share is added, in its first folders (ALIAS_SCAN entries, nearest first), and whenever the guest
 * meets one. What a link pointed to when it was found stays ruled until the share goes. */
#include "policy/path.h"
#include "workspace/fs-priv.h"

enum {
	ALIAS_MAX = 256, /* in all shares together; more are not followed, and the owner is told */
	ALIAS_SCAN = 8192,  /* entries read of a new share */
	ALIAS_QUEUE = 1024, /* folders read of it */
	ALIAS_DEPTH = 6,    /* how deep below its root */
	ALIAS_LINKS = 40,   /* links on one way: as many as Linux follows */
};

struct alias {
	const struct share *share;
	char *at, *to; /* paths from the share's root; to is real, and may not exist */
	size_t at_len, to_len;
};

/* Look for such links in a share that has come. Without rules, and out of memory, it does nothing. */
void alias_scan(struct fs *f, const struct share *s);
/* The guest has met this link for the first time. */
void alias_met(struct fs *f, const struct node *parent, const char *name);
/* Forget those of a share; NULL: all. */
void alias_drop(struct fs *f, const struct share *s);

/* The stricter of a and what holds for path because of links. */
struct path_answer alias_decide(struct fs *f, const struct share *s, const char *path, size_t len,
				struct path_answer a);
/* The path is a target, or on the way to one, or below one: no link and no folder may come to be there unseen. */
bool alias_near(const struct fs *f, const struct share *s, const char *path, size_t len);
