#pragma once
/* The one name of a destination. Everything that says where a connection goes (a rule, a DNS question, SNI, Host, CONNECT,
 * `policy check`) is parsed here once, and policy, log and dial use the result.
 *
 * A host is a name (LDH labels, RFC 1123 2.1, '_' allowed as RFC 2181 11 does; at most 253 bytes and 63 a label; lower
 * case; no trailing dot; IDNA A-labels, RFC 5891: UTF-8 is converted by libidn2) or an address. What inet_aton(3) of some
 * client would take for an address (127.1, 0x7f000001, 2130706433, 017700000001) is that address, never a name; so is
 * "[::1]", and "::ffff:1.2.3.4" is 1.2.3.4. What ends in a number and is no address (1.2.3.4.5, 09.0.0.1) is refused.
 *
 * All spellings of the host's own loopback are one: "localhost", "*.localhost", "host.docker.internal", 127.0.0.0/8, ::1,
 * 0.0.0.0 and :: become the name "localhost". */
#include "base/base.h"
#include "base/err.h"

enum { HOST_NAME_MAX_LEN = 253, HOST_LABEL_MAX = 63 };

enum host_kind { HOST_NONE = 0, HOST_NAME, HOST_V4, HOST_V6 };

struct host {
	uint8_t kind;     /* enum host_kind */
	uint8_t addr[16]; /* V4: the first 4; network order */
	char text
		[HOST_NAME_MAX_LEN +
		 1]; /* canonical, NUL-terminated; an address as inet_ntop(3) writes it, without brackets */
};

/* n bytes of text, without port; one trailing dot is dropped. 0; -EINVAL with a message (which says what is wrong and at which column, from 1). A NUL,
 * a space, a control byte, '%', an empty or overlong label, '-' at a label's ends are refused. *ret is set only on 0. */
int host_parse(struct host *ret, const char *text, size_t n, struct err *e) _must_check_;

/* "host", "host:port", "[v6]:port". *ret_port is 0 where there is none. */
int host_port_parse(struct host *ret, uint16_t *ret_port, const char *text, size_t n, struct err *e)
	_must_check_;

/* From 4 or 16 bytes in network order; v4-mapped becomes V4, loopback becomes "localhost". */
void host_from_addr(struct host *ret, const uint8_t *addr, size_t n);

bool host_same(const struct host *a, const struct host *b);

/* What an address is that `**` never opens; NULL for a public one. A word for people: "loopback", "private", "link-local",
 * "metadata" (169.254.169.254, fd00:ec2::254, 100.100.100.200, 168.63.129.16 and their like), "carrier-grade NAT",
 * "multicast", "benchmark" (198.18.0.0/15: our own), "reserved". IPv6 that carries an IPv4 address (NAT64, 6to4, mapped,
 * compatible, ISATAP, Teredo) is judged by that address too. n is 4 or 16. */
const char *host_addr_class(const uint8_t *addr, size_t n);

/* The same, and how narrow a rule must be to name such an address: a CIDR of at least *ret_bits bits. 169.254.0.0/16 names
 * link-local addresses, and not 169.254.169.254 in it. *ret_bits is 0 for a public address. */
const char *host_addr_range(const uint8_t *addr, size_t n, unsigned *ret_bits);

/* The IPv4 addresses (at most HOST_INNER_MAX) that an IPv6 address of 16 bytes carries; how many. */
enum { HOST_INNER_MAX = 2 };
size_t host_addr_inner(const uint8_t addr[16], uint8_t ret[HOST_INNER_MAX][4]);
