#pragma once
/* Certificates as text (PEM, RFC 7468) and as bytes (DER, RFC 5280), as far as a trust store needs them. Makes no system call. */
#include <sys/types.h>

#include "base/buf.h"

enum {
	CERT_DER_MAX = 16 * 1024, /* a longer one is none for us */
	CERT_SET_MAX = 8,
};

struct cert_text {
	const char *p; /* from BEGIN to the end of the line of END */
	size_t n;
};

struct cert {
	const uint8_t *der;
	size_t n;
	const uint8_t *subject; /* the Name, with its header; in der */
	size_t n_subject;
};

/* The certificates of one text; they borrow from mem. */
struct cert_set {
	struct cert v[CERT_SET_MAX];
	size_t n;
	uint8_t mem[2 * CERT_DER_MAX];
};

/* The first certificate at or behind *at in a text of n bytes; *at moves behind it. False: there is none. Texts around certificates may be anything. */
bool cert_next(const char *text, size_t n, size_t *at, struct cert_text *ret);

/* Take one apart into mem of max bytes. 0; -EBADMSG: it is not an X.509 certificate; -ENOBUFS. */
int cert_read(const struct cert_text *t, uint8_t *mem, size_t max, struct cert *ret) _must_check_;

/* Fill in the subject of what der and n say. False: it is not an X.509 certificate. */
bool cert_find_subject(struct cert *c);

/* A text that is nothing but one or more certificates, and lines between them that begin with '#' or are empty. 0; -EBADMSG; -ENOBUFS: too many. */
int cert_set_read(struct cert_set *ret, const char *text, size_t n) _must_check_;

/* True if c is in the set, or has a subject that is. */
bool cert_set_has(const struct cert_set *s, const struct cert *c);

/* What `openssl rehash` names its links by. False: a kind of name that this does not know. */
bool cert_name_hash(const struct cert *c, uint32_t *ret);

/* A bundle again without those of `old` and of `ours`, and then with the text of ours at its end. 0, -ENOBUFS or -ENOMEM. */
int cert_bundle(struct buf *out, const char *bundle, size_t n, const struct cert_set *old,
		const struct cert_set *ours, const char *text, size_t n_text) _must_check_;
