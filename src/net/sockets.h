#pragma once
/* The ends of the wire, made in the namespace of the caller. */
#include "base/err.h"

/* The tap device NET_DEVICE; the caller owns *ret_fd. 0, or -Exxx with a message. */
int sockets_tap(int *ret_fd, struct err *e) _must_check_;

/* DNS_TCP, DNS_UDP, TCP and DROPS into fds, which is indexed by enum net_fd and the caller's. The addresses and the filter
 * must be there, or something could come in that they would have kept out. */
int sockets_make(int *fds, struct err *e) _must_check_;
