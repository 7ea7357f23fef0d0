#pragma once
/* One component of a path pattern: '*' is any run of bytes, '?' one byte, all else itself. */
#include "base/base.h"

/* Letters of ASCII in lower case; all other bytes as they are. */
static inline unsigned char path_fold(char c)
{
	unsigned char u = (unsigned char)c;

	return (unsigned char)(u - 'A') < 26 ? u | 0x20 : u;
}

/* Whether the pattern matches the whole name. fold: letters of ASCII in either case. Time is at
 * most the product of the lengths. */
bool path_part_matches(const char *pattern, size_t pn, const char *name, size_t n, bool fold);

/* Whether wide (which folds) matches each name that narrow (which does not) matches. */
bool path_part_includes(const char *wide, size_t wn, const char *narrow, size_t n);
