#pragma once
/* What names and paths of a kit may look like. */
#include "base/err.h"

/* ^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$ */
bool rules_is_name(const char *s);
/* ^[a-z][a-zA-Z0-9]*(\.[a-z][a-zA-Z0-9]*)*$ */
bool rules_is_dotted(const char *s);
/* ^[A-Za-z_][A-Za-z0-9_]*$, at most 127 bytes. */
bool rules_is_variable(const char *s);
/* Absolute, no "." or "..", no empty part, no control byte, not "/" itself, no '/' at its end. */
bool rules_is_path(const char *s);
/* The same, relative. */
bool rules_is_below(const char *s);
/* A user's name, or a number up to 65535. */
bool rules_is_user(const char *s);
/* Why a kit may not set this variable, as the rest of a sentence; NULL: it may. */
const char *rules_variable_fault(const char *name);
