#pragma once
/* --filter until=AGE of the commands that clear away. */
#include "base/opt.h"

/* The time before which something must have happened last, in seconds since 1970: of several the earliest; INT64_MAX without
 * a filter. AGE is a duration, a time in UTC or in seconds since 1970. "since=" means the same. 0, or -EINVAL with a message. */
int cutoff_parse(const struct opt_list *l, int64_t *ret, struct err *e) _must_check_;
