#pragma once
/* What bac-keeper may do from which moment on. */
#include "base/base.h"

/* Before the first message of a proxy: from here on only the system calls of the list in seal.c, or the process dies. 0 or -errno. */
int seal(void) _must_check_;
