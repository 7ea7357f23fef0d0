#include "proxy/peek.h"

#include <stdio.h>

/* HTTP/2 without TLS (RFC 9113 3.4) passes as any other protocol does: by name and port. */
static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

enum first peek_first(const uint8_t *p, size_t n, struct hello *hello)
{
	const size_t len = MIN(n, sizeof(preface) - 1);
	enum http_result http;

	switch (hello_parse(hello, p, n)) {
	case HELLO_OK:
		return FIRST_TLS;
	case HELLO_BAD:
		return FIRST_TLS_BAD;
	case HELLO_MORE:
		return n >= HELLO_MAX ? FIRST_TLS_BAD : FIRST_MORE_TLS;
	case HELLO_NOT_TLS:
		break;
	}
	if (n >= 3 && memcmp(p, preface, len) == 0)
		return n < sizeof(preface) - 1 ? FIRST_MORE_HTTP : FIRST_RAW;
	http = http_sniff(p, n);
	return http == HTTP_MORE ? FIRST_MORE_HTTP : http == HTTP_NOT ? FIRST_RAW : FIRST_HTTP;
}

const char *peek_tls_fault(const struct hello *h, const struct host *name, char *note,
			   size_t note_max)
{
	struct host sni;
	struct err e;

	note[0] = 0;
	if (h->sni_bad) {
		(void)snprintf(note, note_max, "the server name in the ClientHello is malformed");
		return "sni-mismatch";
	}
	if (!h->has_sni)
		return NULL; /* by name alone */
	(void)snprintf(note, note_max, "SNI %s%s", h->sni, h->has_ech ? " (with ECH)" : "");
	if (name->kind != HOST_NAME) /* an address was decided on: the SNI is only logged */
		return NULL;
	if (host_parse(&sni, h->sni, strlen(h->sni), &e) < 0 || !host_same(&sni, name))
		return "sni-mismatch";
	return NULL;
}
