#pragma once
/* An id_token (OpenID Connect Core 1.0, 2), the signed text that says who has logged in, and what stands for it inside.
 *
 * Clients that have got theirs from the token endpoint itself read the claims and do not look at the signature (3.1.3.7, 6), for one Codex (its login/src/token_data.rs). So what stands for it is a token
 * of the claims that they need, as they were, the algorithm "none", and a sentinel in the place of the signature: no server takes it for the real one. */
#include "base/base.h"

enum {
	ID_TOKEN_MAX = 16 * 1024,
	ID_STAND_IN_MAX = 1711,
	ID_ACCOUNT_MAX = 127,
};

struct id_token {
	char stand_in[ID_STAND_IN_MAX + 1]; /* base64url (RFC 4648 5) and two dots */
	char account[ID_ACCOUNT_MAX + 1];   /* letters, digits and "-_.:@+|/=", or "": not said */
};

/* Hostile bytes are fine. 0; -EINVAL: it is none, or longer than ID_TOKEN_MAX; -ENOMEM. A claim that is not known, too long, or has another byte than an account's is left out. The
 * stand-in of a stand-in is itself. */
int id_token_read(const char *token, size_t n, struct id_token *ret) _must_check_;
