#pragma once
/* What the server may do from which moment on. */
#include "base/base.h"

/* Before the first byte that a guest may have had a hand in: from here on only the system calls of the list in seal.c, in
 * all threads, or the process dies. 0 or -errno. */
int seal(void) _must_check_;
