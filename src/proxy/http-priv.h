#pragma once
/* What the files of the HTTP parser share. */
#include "proxy/http.h"

/* RFC 9110 5.6.2 */
bool http_is_token(uint8_t c);
bool http_word_is(const uint8_t *p, size_t n, const char *word); /* case does not matter */
char http_lower(uint8_t c);

/* Make of the request's line and its Host where it goes: form, https, host, port, path. NULL, or what is wrong. host is the
 * value of the Host field, NULL if there is none. */
const char *http_target(struct http_head *h, const uint8_t *target, size_t n, const uint8_t *host,
			size_t host_n);
/* h->body, length, keep_alive, upgrade, h2c, expect_continue, by the fields. method: of the request, as it was sent or as it is
 * answered. NULL, or what is wrong. */
const char *http_framing(struct http_head *h, const uint8_t *p, const char *method);
