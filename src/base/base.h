#pragma once
/* What every file may use: attributes, sizes, and the hand-over of ownership. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

#define _printf_(a, b) __attribute__((format(printf, a, b)))
#define _must_check_   __attribute__((warn_unused_result))
#define _noreturn_     __attribute__((noreturn))
#define _cleanup_(fn)  __attribute__((cleanup(fn)))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#undef MIN
#undef MAX
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#ifdef __clang_analyzer__
/* The analyser does not know that errno is above 0 once a call has failed. */
static inline int *base_errno(void)
{
	int *p = __errno_location();

	if (*p <= 0)
		__builtin_unreachable();
	return p;
}
#undef errno
#define errno (*base_errno())
#endif

static inline void base_freep(void *p)
{
	free(*(void **)p);
}

/* A heap pointer that is freed at the end of its scope. */
#define _free_ _cleanup_(base_freep)

/* Give a pointer away: yields it and clears the owner. */
#define take_ptr(p) \
	({ \
		__typeof__(p) *p_ = &(p); \
		__typeof__(p) v_ = *p_; \
		*p_ = NULL; \
		v_; \
	})

/* For each room's own destructor: static inline x_freep() from x_free(). */
#define DEFINE_FREEP(type, fn) \
	static inline void fn##p(type **p) \
	{ \
		fn(*p); \
	}

/* True if the two texts are equal; NULL equals only NULL. */
static inline bool streq(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static inline bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}
