#pragma once
/* Regular expressions of arguments: the subset that RE2 (the language of the specification) and PCRE2 read alike, without what makes matching expensive: no
 * references back, no looking around, no atomic or conditional groups, no possessive repeats, no recursion, no callouts. Compared with the whole value. The work is bounded: a value
 * that takes too many steps does not match. */
#include "base/err.h"

enum { PATTERN_MAX = 512 };

/* Can it be used? 0; -EINVAL with a message; -ENOMEM. */
int pattern_check(const char *pattern, struct err *e) _must_check_;
/* 1: it matches; 0: it does not; -EINVAL, -ENOMEM. */
int pattern_matches(const char *pattern, const char *value) _must_check_;
