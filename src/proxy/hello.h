#pragma once
/* The ClientHello of TLS (RFC 8446 4.1.2, RFC 6066 3; SSL 2 style hellos are refused): only what decides. */
#include "base/base.h"
enum { HELLO_MAX = 64 * 1024 /* bytes of records that a hello may take */ };
enum hello_result { HELLO_OK = 0, HELLO_MORE, HELLO_NOT_TLS, HELLO_BAD };
struct hello {
	bool has_sni, has_ech;
	char sni[256]; /* as sent; host_parse() is the caller's */
	bool sni_bad; /* a NUL, two names, a type that is not host_name, an empty or overlong name */
	char alpn[64];    /* first protocols, comma separated, for the log; cut */
	uint16_t version; /* highest offered */
};
/* p is what came so far (peeked, from the first byte on). Hellos split over records and segments are put together. What begins
 * as a record of TLS is HELLO_OK or HELLO_BAD in the end, never NOT_TLS: nothing that a lenient server might take for a hello
 * passes as another protocol. *ret is set only on HELLO_OK. */
enum hello_result hello_parse(struct hello *ret, const uint8_t *p, size_t n);
/* A fatal alert access_denied (49) in a record of its own. Returns 7. */
size_t hello_alert(uint8_t ret[static 7]);
