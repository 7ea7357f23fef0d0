#pragma once
/* TLS on a chan (chan.h), by OpenSSL: TLS 1.2 and 1.3, no renegotiation, no 0-RTT, nothing read from a file.
 *
 * Until the handshake is over a chan's owner hears edge() whenever its state has changed, and looks at it. A server's handshake stops at the client's hello until
 * tls_serve() says by what it goes on. A client verifies: there is no way to have it not. */
#include "base/err.h"
#include "policy/host.h"
#include "proxy/chan.h"

enum { TLS_WHY_MAX = 300, TLS_TRUST_MAX = 8 * 1024 * 1024, TLS_CHAIN_MAX = 4 };

enum tls_state {
	TLS_SHAKING,
	TLS_HELLO, /* server: the client has said what it speaks */
	TLS_READY,
	TLS_FAILED,
};

/* Before the seal: what OpenSSL needs the first time, and is not permitted later. */
void tls_prepare(void);

/* What all connections of a process share. Made at the first use: it takes a megabyte or two. */
struct tls;
int tls_new(struct tls **ret) _must_check_;

/* The authorities that servers are verified against, as PEM, then lines "client HOST", each followed by PEM of a certificate (and its chain) and its key.
 * Takes the place of what was there. Certificates that cannot be read are left out. 0 or -errno with a message. */
int tls_trust(struct tls *t, char *text, size_t n, struct err *e) _must_check_;

/* A certificate that we show: certificates as DER, each with be32 length, leaf first; key as DER. */
struct tls_leaf;
int tls_leaf_new(const uint8_t *chain, size_t n, const uint8_t *key, size_t n_key,
		 struct tls_leaf **ret) _must_check_;
struct tls_leaf *tls_leaf_free(struct tls_leaf *l);

/* Towards the guest; its ClientHello may be in the socket's queue. scope: sessions are resumed only where it is the same (host and port). fd is taken over. NULL: no
 * memory. */
struct chan *tls_server(struct tls *t, struct loop *l, int fd, const char *scope) _must_check_;
/* In TLS_HELLO. */
bool tls_offers(const struct chan *c, const char *proto);
/* Go on with the handshake, with this certificate (copied) and, if the client offers it, this protocol. 0, -ENOMEM, -EINVAL. */
int tls_serve(struct chan *c, const struct tls_leaf *leaf, const char *proto) _must_check_;
/* In TLS_HELLO: an alert instead. */
void tls_refuse(struct chan *c);

struct ssl_session_st;
/* Towards a server. *session: NULL or a session to resume, and the place where a new one is put while the chan lives; the owner frees it. */
struct tls_to {
	const struct host *host;
	uint16_t port;
	bool offer_h2;
	struct ssl_session_st **session;
};
struct chan *tls_client(struct tls *t, struct loop *l, int fd, const struct tls_to *to)
	_must_check_;
void tls_session_free(struct ssl_session_st *s);

enum tls_state tls_state(const struct chan *c);
/* TLS_FAILED: what happened, for people; *ret_untrusted: the server's certificate is the reason. */
const char *tls_why(const struct chan *c, bool *ret_untrusted);
