#pragma once
/* The resolver of a guest: answers out of the policy and the table of names. No question ever leaves from here. */
#include "proxy/proxy.h"

/* UDP on FD_DNS_UDP, TCP on FD_DNS_TCP. */
int dns_open(struct proxy *p) _must_check_;
