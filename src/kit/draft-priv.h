#pragma once
/* draft.c looks at files, draft-write.c writes; this is between. */
#include "kit/draft.h"

/* Once, if it is printable ASCII of DRAFT_TEXT_MAX bytes at most and there is room; else it is left out. */
void draft_put(struct draft *d, struct draft_set *s, const char *text, size_t n);
