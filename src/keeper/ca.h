#pragma once
/* The sandbox's own certificate authority, and the certificates that the proxy shows in the place of servers.
 *
 * The key of the authority is made here, is never written anywhere, and ends with the process. Its certificate says what it may certify (RFC 5280 4.2.1.10,
 * critical), so that it is of no use for anything else even if the key were lost. One key serves all leaves of the process. A certificate of the authority that is
 * made anew has the same key and subject: leaves that it made before stay good. */
#include "keeper/scope.h"

enum {
	CA_YEAR_S = 365 * 86400,
	CA_BEFORE_S = 86400, /* clocks differ */
	CA_LEAF_S = 48 * 3600,
	CA_LEAF_KEPT_S = 24 * 3600, /* and then made anew */
	CA_CHAIN_MAX = 16 * 1024,
	CA_KEY_MAX = 4096,
	CA_PEM_MAX = 16 * 1024,
	CA_LEAVES_MAX = 1024, /* kept at once */
};

struct ca;

struct ca_leaf {
	const uint8_t *
		chain; /* be32 length and DER: the leaf, the authority. The ca's, until the next call */
	size_t n_chain;
	const uint8_t *key; /* PKCS 8, DER. The ca's */
	size_t n_key;
	int64_t not_after; /* seconds since 1970 */
};

/* Makes the keys. 0, -ENOMEM, -EIO. */
int ca_new(const char *sandbox, struct ca **ret) _must_check_;
/* Wipes. NULL is fine. */
struct ca *ca_free(struct ca *c);
DEFINE_FREEP(struct ca, ca_free)

/* A certificate for what s permits. now: seconds since 1970. 0, -ENOMEM, -EIO: then the one before stays. */
int ca_renew(struct ca *c, const struct scope *s, int64_t now) _must_check_;
/* PEM; "" before the first ca_renew(). The ca's, until the next. */
const char *ca_pem(const struct ca *c);

/* The certificate of a host: one that was made, or a new one. 0, -ENOMEM, -EIO. */
int ca_leaf(struct ca *c, const struct host *h, int64_t now, struct ca_leaf *ret) _must_check_;
