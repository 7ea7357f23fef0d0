#pragma once
/* What rtnetlink(7) is asked for, in the namespace of the caller. Each: 0 or -errno. */
#include <stdint.h>

#include "base/base.h"

int netlink_open(int *ret_fd) _must_check_;

int netlink_up(int nl, unsigned ifindex) _must_check_;
/* addr as inet_aton(3) reads it. */
int netlink_address(int nl, unsigned ifindex, const char *addr, unsigned prefix) _must_check_;
/* addr is at this hardware address, for good: nobody asks, and nobody else can answer. */
int netlink_neighbour(int nl, unsigned ifindex, const char *addr, const uint8_t mac[6])
	_must_check_;
/* Packets with this mark are delivered here, whatever their destination: a table of its own, and a rule. */
int netlink_mark_is_local(int nl, unsigned lo_index, uint32_t mark, uint8_t table) _must_check_;
