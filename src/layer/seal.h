#pragma once
/* From here on the program can move bytes between the descriptors that it has, and work on its memory: nothing is
 * opened, made, connected, started or made executable. 0 or -errno. */
#include "base/base.h"

int layer_seal(void) _must_check_;
