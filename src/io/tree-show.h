#pragma once
/* Paths in messages. */
#include "base/err.h"

enum { TREE_SHOW_MAX = 320 }; /* leaves room in an error for the cause */

/* "top/path", or only its end behind "..." if it is long; returns dst. */
const char *tree_show(char dst[TREE_SHOW_MAX], const char *top, const char *path);

/* err_errno() with "what 'top/path'". Returns code. */
int tree_fault(struct err *e, int code, const char *what, const char *top, const char *path);
