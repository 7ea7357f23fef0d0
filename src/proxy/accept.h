#pragma once
/* Connections of the guest's, taken as long as there is room for them. */
#include "proxy/proxy.h"

int accept_open(struct proxy *p) _must_check_;
/* There may be room again. */
void accept_room(struct proxy *p);
