#pragma once
/* Whether a change to a repository's own files would make git run a command that it did not run
 * before, when the user next works there on the host.
 *
 * All bytes are hostile. Memory: the file once more, and a key and value for each of at most
 * GITCONFIG_ENTRIES_MAX entries. */
#include "base/base.h"

#define GITCONFIG_MAX         (1024UL * 1024) /* bytes of a file; what is larger counts as adding */
#define GITCONFIG_KEY_MAX     1024            /* bytes of a key; likewise */
#define GITCONFIG_ENTRIES_MAX 4096            /* entries that run commands; likewise */

enum gitconfig_kind {
	GITCONFIG_OTHER = 0,
	GITCONFIG_CONFIG, /* git reads it as configuration: ".git/config" and its like */
	GITCONFIG_MAYBE, /* of that name elsewhere: configuration if the folder is a bare repository */
	GITCONFIG_LINK, /* ".git" or ".git/commondir" as a file: says where the repository is */
};

/* What a file at this path is to git; rel as for path_rules_decide(). Letters in either case.
 *
 * All but OTHER may come about only by what gitconfig_adds() was asked about: a write, or a rename
 * or link of a file onto the path, whose content the caller looks at. A symlink there is refused. */
enum gitconfig_kind gitconfig_kind(const char *rel, size_t len);

struct gitconfig_answer {
	bool adds;       /* refuse it */
	const char *why; /* what is wrong, static: "runs a command when ..."; NULL unless adds */
	char key[GITCONFIG_KEY_MAX]; /* "core.hookspath"; "" if it is about no key. Hostile bytes */
	unsigned line;               /* in the new content, from 1; 0 if it is about no line */
};

/* Whether the new content of the file at rel has a key that runs a command, or leads git to one,
 * which the old content (n 0 if there was none) did not set to the same value. What cannot be read
 * counts as adding, except in a MAYBE, where git cannot read it either; equal bytes never do. What
 * was there stays allowed wherever it moves within the file. Out of memory counts as adding. */
struct gitconfig_answer gitconfig_adds(const char *rel, size_t len, const void *old, size_t old_n,
				       const void *new, size_t new_n);
