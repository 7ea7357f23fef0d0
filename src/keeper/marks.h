#pragma once
/* Leak marks (base/leak.h) of all values that this keeper has seen: those in force, and the one before each, which somebody may still hold. */
#include "base/leak.h"

enum { MARKS_MAX = 1500 /* what fits into a message with names as long as they may be */ };

struct marks;

int marks_new(uint64_t key, struct marks **ret) _must_check_; /* 0, -ENOMEM */
struct marks *marks_free(struct marks *m);
DEFINE_FREEP(struct marks, marks_free)

/* The value of what `key` names. name: for people. 1: the set is another now; 0: it was known; -ENOMEM. */
int marks_set(struct marks *m, const char *key, const char *name, const uint8_t *value, size_t n)
	_must_check_;
/* As leak_set_put(). 0; 1: there are more than MARKS_MAX, the oldest are not in it; -Exxx. */
int marks_put(const struct marks *m, struct buf *out) _must_check_;
