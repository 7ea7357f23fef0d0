#pragma once
/* Text to values and back: numbers, sizes, durations, names, suggestions. */
#include "base/base.h"

/* Decimal, no sign, no spaces, nothing behind. 0, -EINVAL or -ERANGE (above max). */
int text_u64(const char *s, uint64_t max, uint64_t *ret) _must_check_;

/* A size in bytes: a number with an optional unit b, k, m, g, t (binary, also kb, kib, in any
 * case); no unit means bytes. 0, -EINVAL or -ERANGE. */
int text_size(const char *s, uint64_t *ret) _must_check_;

/* A duration in milliseconds: Go's form ("1h30m", "90s", "1.5s", "250ms") or plain seconds
 * ("90"). 0 is "0". 0, -EINVAL or -ERANGE (above 10 years). */
int text_duration_ms(const char *s, uint64_t *ret) _must_check_;

/* "1.5 GiB", "512 MiB", "17 B" into dst; returns dst. */
const char *text_from_size(char *dst, size_t max, uint64_t bytes);

/* "3 days", "2 hours", "5 minutes", "12 seconds" into dst; returns dst. */
const char *text_from_ms(char *dst, size_t max, uint64_t ms);

/* Copy with a NUL. 0, or -ENAMETOOLONG with dst untouched. */
int text_copy(char *dst, size_t max, const char *src) _must_check_;
/* strndup() for bytes that no NUL need end, which it may be told not to be given. NULL: no memory. */
char *text_dup(const void *p, size_t n) _must_check_;

/* Edit distance (Damerau), 255 at most; texts over 63 bytes count as 255. */
unsigned text_distance(const char *a, const char *b);

/* The entry of list (n names, stride bytes apart, the first member a const char *) that a
 * mistyped word most likely meant, or NULL if nothing is near. */
const char *text_nearest(const char *word, const void *list, size_t n, size_t stride);

/* Sandbox names: 1 to 63 of letters, digits, '-', '.'; first and last a letter or digit; not
 * "default". NULL if fine, else what is wrong, as the rest of a sentence ("is too long ..."). */
const char *text_name_fault(const char *name);

/* Make a valid sandbox name (of at most 63 bytes, dst at least 64) out of any text. */
void text_to_name(char *dst, size_t max, const char *src);

/* True if s is well-formed UTF-8 (no surrogates, no overlong forms). */
bool text_is_utf8(const char *s, size_t n);
