#pragma once
/* The server's last words, and its few others: one line on stderr each. */
#include "base/base.h"

/* At most 511 bytes; "bac-workspace: " goes in front, a newline behind. */
void say(const char *fmt, ...) _printf_(1, 2);
