#pragma once
/* What bac-net sends back, and the fixed names of the wire that it makes (addresses: wire/proxy.h).
 *
 * bac-net is started with a SEQPACKET socket on descriptor 3 and without arguments. It answers with one datagram for each
 * descriptor of the table, one byte long: which of them it is; or with one that begins with NET_FAILED, followed by a line for people,
 * and ends. The network namespace lives as long as one of the descriptors is open somewhere. */

#define NET_FDS(X) \
	X(TAP)     /* QEMU's end of the wire: IFF_TAP, IFF_NO_PI, IFF_VNET_HDR */ \
	X(TCP)     /* listener, transparent: where a connection was going to is getsockname() */ \
	X(DNS_TCP) /* listener of port 53 of any address, transparent */ \
	X(DNS_UDP) /* port 53 of any address: IP_TRANSPARENT, IP_FREEBIND, IP_RECVORIGDSTADDR */ \
	X(DROPS)   /* packet socket: what goes to neither of them */

enum net_fd {
#define X(n) NET_FD_##n,
	NET_FDS(X)
#undef X
		NET_FD_N,
	NET_FAILED = 255,
};

enum { NET_ANSWER_MAX = 512, NET_SOCKET_FD = 3 };

#define NET_DEVICE      "bac0"
#define NET_GATEWAY_MAC "02:ba:c0:00:00:01"
#define NET_GUEST_MAC   "02:ba:c0:00:00:02"
