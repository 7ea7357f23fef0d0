#pragma once
/* Base 64 (RFC 4648): section 4, with '=' at its end, and section 5, for URLs, without. */
#include "base/base.h"

enum base64_kind { BASE64, BASE64_URL };

/* What n bytes become, at most. */
#define BASE64_SIZE(n) (((n) + 2) / 3 * 4)

/* n bytes of p at to, which has room for BASE64_SIZE(n). Returns the place behind what was written; no NUL is. */
char *base64_put(char *to, const void *p, size_t n, enum base64_kind kind);

/* The bytes that n of p stand for, at to, which has room for n. '=' at the end may be there or not (never in a URL's), bits that are left over there are not looked at. 0 with *ret_n;
 * -EINVAL: a length or a byte that there is not. */
int base64_get(uint8_t *to, const char *p, size_t n, enum base64_kind kind, size_t *ret_n)
	_must_check_;
