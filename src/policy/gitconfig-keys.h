#pragma once
/* The keys of git's configuration by which a command is run or reached, each with the reason.
 *
 * Sources: git's Documentation/config/, its source where that is silent, and tools that keep
 * their own commands there (git-lfs, git-svn, git-annex, gitflow, git-secrets, tig, delta). */
#include "base/base.h"

struct gitconfig_key {
	const char *pattern; /* as for path_part_matches(), against the whole key, in either case */
	const char *why;     /* "the key ..." */
	/* whether this value runs nothing after all; NULL: each value counts */
	bool (*harmless)(const char *key, const char *value);
};

/* The row that says why this key with this value runs something, or NULL. */
const struct gitconfig_key *gitconfig_key_find(const char *key, const char *value);
