/* Both questions are one: walk the pattern and a row of symbols together, and when they differ let
 * the last '*' swallow one symbol more. For a name the symbols are its bytes. For another pattern
 * they are that pattern's own: a '*' of it may only be swallowed by a '*', a '?' moreover be met by
 * a '?'. No earlier '*' need be tried again, since the last one reaches whatever it would reach. */
#include "policy/path-part.h"

enum how {
	EXACT,
	FOLDED,
	SYMBOLS, /* the row is a pattern, too */
};

static bool meets(char p, char c, enum how how)
{
	if (how == SYMBOLS) {
		if (c == '*' || (c == '?' && p != '?'))
			return false;
		return p == '?' || path_fold(p) == path_fold(c);
	}
	return p == '?' || (how == EXACT ? p == c : path_fold(p) == path_fold(c));
}

static bool walk(const char *p, size_t pn, const char *s, size_t n, enum how how)
{
	size_t i = 0, j = 0, star = SIZE_MAX, from = 0;

	while (j < n) {
		if (i < pn && p[i] == '*') {
			star = i++;
			from = j;
		} else if (i < pn && meets(p[i], s[j], how)) {
			i++;
			j++;
		} else if (star != SIZE_MAX) {
			i = star + 1;
			j = ++from;
		} else {
			return false;
		}
	}
	while (i < pn && p[i] == '*')
		i++;
	return i == pn;
}

bool path_part_matches(const char *pattern, size_t pn, const char *name, size_t n, bool fold)
{
	return walk(pattern, pn, name, n, fold ? FOLDED : EXACT);
}

bool path_part_includes(const char *wide, size_t wn, const char *narrow, size_t n)
{
	return walk(wide, wn, narrow, n, SYMBOLS);
}
