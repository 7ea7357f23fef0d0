#pragma once
/* The proxy that leads out of the host's network. */
#include "cli/ctx.h"

/* The settings net.upstreamProxy and net.noProxy, else what the environment of this command says, as curl reads it. Both on the heap, ""
 * where there is none. */
int upstream_get(struct ctx *c, char **ret_proxy, char **ret_no_proxy, struct err *e) _must_check_;
