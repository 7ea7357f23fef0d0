#pragma once
/* Which hosts are reached without the proxy of the host's network: a list as NO_PROXY has it, with commas or spaces. An entry is
 * "*", a name (it and all below it, with or without a '.' in front), or an address. */
#include "policy/host.h"

bool no_proxy_has(const char *list, const struct host *h);
