#pragma once
/* For tests: the meaning of a pattern once more, as simply as it can be said, to compare with. */
#include <stdio.h>

#include "policy/path.h"

static bool slow_part(const char *p, const char *p_end, const char *s, const char *s_end, bool fold)
{
	if (p == p_end)
		return s == s_end;
	if (*p == '*')
		return slow_part(p + 1, p_end, s, s_end, fold) ||
		       (s < s_end && slow_part(p, p_end, s + 1, s_end, fold));
	if (s == s_end)
		return false;
	if (*p != '?' && (fold ? strncasecmp(p, s, 1) != 0 : *p != *s))
		return false;
	return slow_part(p + 1, p_end, s + 1, s_end, fold);
}

static bool slow_parts(const char *p, const char *s, bool fold)
{
	const char *p_end = strchrnul(p, '/'), *s_end = strchrnul(s, '/');

	if (!*s)
		return false;
	if (p_end == p + 2 && !memcmp(p, "**", 2)) {
		if (!*p_end || slow_parts(p_end + 1, s, fold))
			return true;
		return *s_end && slow_parts(p, s_end + 1, fold);
	}
	if (!slow_part(p, p_end, s, s_end, fold))
		return false;
	if (!*p_end)
		return true;
	return *s_end && slow_parts(p_end + 1, s_end + 1, fold);
}

/* Whether pattern p (not refused by path_builder_add()) matches path s or a directory above it. */
static bool slow_match(const char *p, const char *s, bool fold)
{
	char any[PATH_PATTERN_MAX + 4];

	if (strchr(p, '/'))
		return slow_parts(starts_with(p, "./") ? p + 2 : p, s, fold);
	(void)snprintf(any, sizeof(any), "**/%s", p);
	return slow_parts(any, s, fold);
}
