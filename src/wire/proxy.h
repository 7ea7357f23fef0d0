#pragma once
/* The conversations of bac-proxy: with its supervisor (descriptor 3, SEQPACKET) and its minder (4, SEQPACKET), which
 * looks after what a sealed process cannot: reads the host's resolver configuration.
 *
 * Descriptors of bac-proxy at start: 3 supervisor, 4 minder, 5 bac-audit (wire/receipt.h), 6 TCP listener in the sandbox's
 * network namespace (IP_TRANSPARENT; the original destination is getsockname()), 7 TCP listener of DNS on GATEWAY:53 (also transparent: any port 53),
 * 8 UDP socket for DNS (IP_TRANSPARENT, IP_RECVORIGDSTADDR), 9 packet socket (AF_PACKET, SOCK_DGRAM) that
 * sees what was dropped. Its arguments: none. CONFIG and POLICY come first; until both are there it answers nothing.
 *
 * Both are built from the same tree: the format is not kept compatible. What the proxy says is hostile. */
#include <sys/types.h>

#include "wire/msg.h"
#include "wire/net.h"

/* type, number, sender: S supervisor, M minder, P proxy; descriptors */
#define PROXY_TYPES(X) \
	X(CONFIG, 1, 'S', 0) /* struct proxy_config */ \
	X(POLICY, 2, 'S', 1) /* number of this policy; a memory file of net_text */ \
	X(PING, 3, 'S', \
	  0) /* number; answered by PONG at once: a proxy that is stuck is replaced */ \
	X(CREDENTIALS, 4, 'S', \
	  1) /* number, of one sequence with POLICY's; a memory file of cred_text (policy/cred.h). Answered by APPLIED with that number */ \
	X(MARKS, 5, 'S', \
	  0) /* bytes of a leak_set (base/leak.h): of all values that may be injected */ \
	X(RESOLVER, 16, 'M', 0) /* text of resolv.conf, text of hosts */ \
	X(KEEPER, 17, 'M', \
	  1) /* the socket to bac-keeper (wire/keeper.h); a later one takes the place of an earlier */ \
	X(TRUST, 18, 'M', \
	  1) /* a memory file: PEM of the authorities that are trusted, then for each client certificate a line "client HOST" and PEM of certificates and key. Read by pread() when it is needed */ \
	X(PONG, 64, 'P', 0)    /* number */ \
	X(APPLIED, 65, 'P', 0) /* number of the policy or credentials; code 0 or -errno; text */ \
	X(READY, 66, 'P', 0)   /* sealed, listening */ \
	X(SAY, 67, 'P', 0)     /* a line for the sandbox's log */

enum {
	PROXY_MSG_MAX = 192 * 1024,
	PROXY_RESOLV_MAX = 64 * 1024,
	PROXY_HOSTS_MAX = 96 * 1024,
	PROXY_MARKS_MAX = 128 * 1024,
	PROXY_TRUST_MAX = 4 * 1024 * 1024, /* the memory file of TRUST */
	PROXY_CONNECT_MAX = 64
};

struct proxy_config {
	const char *sandbox;  /* its name */
	const char *upstream; /* "", "http://[user:pass@]host:port" or "socks5[h]://..." */
	const char *no_proxy; /* comma list, as NO_PROXY */
	uint32_t
		generation; /* how often the proxy has been started for this sandbox: names get other addresses each time */
	uint32_t n_connect;
	const char *connect[PROXY_CONNECT_MAX]; /* "host:port=address:port" */
};

struct proxy_msg {
	uint8_t type; /* enum proxy_type */
	union {
		struct proxy_config config;
		uint32_t number; /* POLICY, CREDENTIALS, PING, PONG */
		struct {
			const uint8_t *p;
			uint32_t n;
		} marks;
		struct {
			const char *conf, *hosts;
		} resolver;
		struct {
			uint32_t number;
			int32_t code;
			const char *text;
		} applied;
		const char *say;
	};
};

enum { PROXY_TEXT_MAX = 1023, PROXY_URL_MAX = 1023, PROXY_LIST_MAX = 4095 };

#define X(name, num, from, fds) PROXY_##name = (num),
enum proxy_type { PROXY_TYPES(X) };
#undef X

/* One datagram. Texts for people (APPLIED, SAY) are cut at PROXY_TEXT_MAX. Bytes, or -ENOBUFS; max is at most PROXY_MSG_MAX. */
ssize_t proxy_put(const struct proxy_msg *m, void *p, size_t max) _must_check_;

/* Take one apart that came from 'S', 'M' or 'P' with n_fds descriptors. WIRE_OK or WIRE_E_*; texts borrow from the bytes, *ret is set only on
 * WIRE_OK. */
int proxy_parse(struct proxy_msg *ret, char from, const void *p, size_t n, size_t n_fds);
