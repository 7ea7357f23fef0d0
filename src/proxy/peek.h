#pragma once
/* What a client's first bytes are, which are looked at and left where they are. */
#include "proxy/hello.h"
#include "proxy/http.h"

enum first {
	FIRST_MORE_TLS,  /* the beginning of a ClientHello */
	FIRST_MORE_HTTP, /* could become a request */
	FIRST_TLS,
	FIRST_TLS_BAD, /* begins as TLS, and is no ClientHello that all would read alike */
	FIRST_HTTP,
	FIRST_RAW,
};

/* hello is set for FIRST_TLS. */
enum first peek_first(const uint8_t *p, size_t n, struct hello *hello);

/* May this TLS connection go to this name? NULL: yes; else the reason, with what is wrong in note. */
const char *peek_tls_fault(const struct hello *h, const struct host *name, char *note,
			   size_t note_max);
