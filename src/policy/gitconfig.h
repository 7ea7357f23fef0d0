#pragma once
/* Whether a change to a repository's own files would make git run a command that it did not run
 * before, when the user next works there on the host.
 *
 * All bytes are hostile. Memory is a few times the size of the input, at most a few MiB; time is
 * n log n. */
#include "base/base.h"

#define GITCONFIG_MAX \
	(1024 * 1024) /* bytes of a file; a larger one is refused by the caller or here */

enum gitconfig_file {
	GITCONFIG_OTHER = 0,
	GITCONFIG_CONFIG, /* git reads it as configuration: ".git/config" and its like */
	GITCONFIG_MAYBE,  /* named "config" elsewhere: configuration if this is a bare repository */
	GITCONFIG_LINK,   /* ".git" or "commondir" as a file: says where the repository is */
};

/* What kind of file this path is to git; rel as for path_rules_decide(). Letters in either case.
 * CONFIG, MAYBE and LINK are to be created and changed only by a write whose result was looked at:
 * as a symlink, as the target of a link, or by rename of what was not looked at, they are refused. */
enum gitconfig_file gitconfig_file(const char *rel, size_t len);

#define GITCONFIG_KEY_MAX 128

struct gitconfig_answer {
	bool adds;                   /* refuse it */
	const char *why;             /* static: what such a key does; NULL unless adds */
	char key[GITCONFIG_KEY_MAX]; /* "core.hookspath", cut if need be; "" if it is no key */
	unsigned line;               /* in the new file, from 1; 0 if unknown */
};

/* Whether the new content of a file of that kind has a key that runs a command, or leads git to
 * one, which the old content (n 0 if there was none) did not set to the same value. What cannot be
 * read counts as adding one, except in a MAYBE, where git would refuse to work as well; a key
 * that was there stays allowed wherever it moves. Out of memory counts as adding one. */
struct gitconfig_answer gitconfig_adds(enum gitconfig_file kind, const void *old, size_t old_n,
				       const void *new, size_t new_n);
