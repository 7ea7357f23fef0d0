#pragma once
/* Reads git's configuration format as git's own config.c does, byte by byte:
 *
 *   - the mark of UTF-8 at the start is skipped; CR LF is LF; a lone CR is a blank, as are space and tab
 *   - [section], [section "sub\"section"], [section.sub]: letters, digits, '-' and '.'; keys may follow on
 *     the same line; '#' and ';' begin comments
 *   - key (alone: no value) or key = value; '"' quotes, \\ \" \n \t \b and \ before the end of the line
 *     escape; blanks at both ends of an unquoted value go
 *   - git keeps names and values as C strings, so that a NUL ends either unseen:
 *     [core "editor\0"] x = y  sets core.editor */
#include "base/base.h"

enum gitconfig_read {
	GITCONFIG_READ = 0,
	GITCONFIG_READ_BAD,  /* git refuses the file at this line */
	GITCONFIG_READ_LONG, /* git would go on, we do not: a key over GITCONFIG_KEY_MAX */
};

struct gitconfig_entry {
	const char *key;   /* "section.sub.name", section and name in lower case */
	const char *value; /* NULL: none, which git takes for true */
	unsigned line;     /* on which it ends, from 1 */
};

/* Calls fn for each entry until it answers other than 0, which is then the answer. Else one of enum
 * gitconfig_read, with the line where it ended, or -ENOMEM. The entry's texts last until fn returns. */
int gitconfig_read(const void *p, size_t n,
		   int (*fn)(void *user, const struct gitconfig_entry *entry), void *user,
		   unsigned *ret_line);
