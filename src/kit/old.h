#pragma once
/* Schema 1 and the short form, made into schema 2: a tree becomes another tree, whose nodes keep their lines and the names they had, so that what is told about them is true.
 * Each block that was renewed is told once, as a warning. */
#include "kit/take.h"
#include "kit/tree.h"

/* Has it, without a schemaVersion, what only the short form has? */
bool old_is_short(const struct yaml *tree) _must_check_;
/* 0 (faults are in the report) or -ENOMEM. */
int old_renew(struct take *t, struct yaml *tree) _must_check_;

/* The part that is about credentials: secrets, egress, credentials.sources, environment.proxyManaged, oauth, and of network serviceDomains and serviceAuth. */
void old_credentials(struct take *t, struct tree *m, struct yaml *tree, struct yaml *network);
/* "a field of schema 1, read as NEW". */
void old_warn(struct take *t, const struct yaml *y, const char *new);
