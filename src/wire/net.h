#pragma once
/* What bac-net sends back, and the fixed names and addresses of the wire that it makes.
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

/* The addresses inside: fixed, the same in every sandbox (RFC 2544's range, which no host uses). */
#define NET_GATEWAY_TEXT \
	"198.18.0.1" /* resolver, and forward proxy on 3128: gateway.docker.internal */
#define NET_GUEST_TEXT "198.18.0.2"
#define NET_HOST_TEXT  "198.18.0.5" /* host.docker.internal */
enum { NET_PREFIX = 30, NET_FORWARD_PORT = 3128 };
/* Names get addresses from 198.18.1.0 to 198.18.255.255 (allowed) and 198.19.0.0/16 (refused: the connection is told why). */
