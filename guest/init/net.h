#pragma once
/* The guest's network devices: addresses are the same in every sandbox (wire/proxy.h), so nobody has to ask for one. */
#include "base/base.h"

/* lo and, where there is one, the wire to the proxy: up, with address, default route and the gateway's hardware address. IPv6
 * goes nowhere, so only lo has it: a client then does not even try. True if there is a wire. Failures are only noted. */
bool net_up(void);
