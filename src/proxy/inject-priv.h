#pragma once
/* What the files of inject share: placeholders in texts that may be percent-encoded, base64, and memory that is wiped. */
#include "proxy/inject.h"

/* How a value is written where a placeholder was: as it is (percent-encoded where the placeholder was), percent-encoded, inside a JSON string. */
enum inject_as { INJECT_AS_SEEN, INJECT_AS_PERCENT, INJECT_AS_JSON };

struct inject_swap {
	const char *placeholder;
	const uint8_t *value;
	size_t n;
};

/* Is it in there? Each of its bytes may be percent-encoded. */
bool inject_seen(const char *p, size_t n, const char *placeholder);
/* All occurrences -> value. *ret_n says how many. out is empty, and grows once. 0, -ENOBUFS, -ENOMEM. */
int inject_swap(struct buf *out, const char *p, size_t n, const struct inject_swap *s,
		enum inject_as as, size_t *ret_n) _must_check_;
/* A value, written as. 0, -ENOBUFS, -ENOMEM. */
int inject_put(struct buf *out, const uint8_t *value, size_t n, enum inject_as as) _must_check_;
/* How long that is. */
size_t inject_put_size(const uint8_t *value, size_t n, enum inject_as as);

/* RFC 4648 4; padding may be missing. 0, -EINVAL, -ENOBUFS, -ENOMEM. */
int inject_unbase64(struct buf *out, const char *p, size_t n) _must_check_;
int inject_base64(struct buf *out, const uint8_t *p, size_t n) _must_check_;
/* The base64 of an Authorization field of scheme Basic, or NULL. */
const char *inject_basic(const struct hfield *f, size_t *ret_n);

/* "proxy-managed", "sk-ant-oat01-proxy-managed": one word of letters, digits and "._~-" with that in it. */
bool inject_is_sentinel(const char *p, size_t n);

static inline void inject_wipe(struct buf *b)
{
	if (b->p)
		explicit_bzero(b->p, b->cap);
	buf_done(b);
}
#define _wipe_ _cleanup_(inject_wipe)
