#pragma once
/* What the packet filter dropped is on the log too: seen on a packet socket, folded for a second. */
#include "proxy/proxy.h"

int dropped_open(struct proxy *p) _must_check_;
