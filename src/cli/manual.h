#pragma once
/* The manual page, bac(1), printed from the tables that also parse the command line. */
#include "base/opt.h"

/* The page in the language man(7) of roff. cmds ends with a NULL name. 0, -ENOBUFS or -ENOMEM. */
int manual_page(struct buf *out, const struct cmd *cmds) _must_check_;
