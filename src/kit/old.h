#pragma once
/* Schema 1 and the short form, made into schema 2: a tree becomes another tree, whose nodes keep their lines and the names they had, so that what is told about them is true.
 * Each block that was renewed is told once, as a warning. */
#include "kit/take.h"

/* Has it, without a schemaVersion, what only the short form has? */
bool old_is_short(const struct yaml *tree) _must_check_;
/* 0 (faults are in the report) or -ENOMEM. */
int old_renew(struct take *t, struct yaml *tree) _must_check_;
