#pragma once
/* What is left of the kernel's calls when the proxy serves. */
#include "base/base.h"

int seal(void) _must_check_;
