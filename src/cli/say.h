#pragma once
/* A word to the user. */
#include "base/err.h"

/* One line to stderr, with "bac: " in front. */
void say(const char *fmt, ...) _printf_(1, 2);

/* Flush stdout; a full disk or closed pipe is an error. */
int flush_out(struct err *e) _must_check_;
