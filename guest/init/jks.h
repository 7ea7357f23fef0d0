#pragma once
/* Java's keystore of trusted certificates (JKS, version 2), which every JDK reads whatever its own default is. Makes no system call.
 *
 *	be32 0xfeedfeed, be32 2, be32 entries
 *	an entry: be32 2 (a certificate), text alias, be64 ms since 1970, text "X.509", be32 length, DER
 *	       or be32 1 (a key), text alias, be64 ms, be32 length, the key, be32 certificates, each: text "X.509", be32 length, DER
 *	20 bytes: SHA-1 of the password as UTF-16, big endian, "Mighty Aphrodite", and all of the above
 *
 * A text is a be16 length and that many bytes. The password is Java's customary one, "changeit": it protects nothing. Source:
 * sun.security.provider.JavaKeyStore of OpenJDK. */
#include "base/buf.h"
#include "guest/init/cert.h"

enum {
	JKS_MAX = 4 * 1024 * 1024,
	JKS_ALIAS_MAX = 255,
};

/* What a program writes goes here piece by piece. */
struct jks {
	struct buf *out; /* borrowed */
	uint32_t n;
	uint64_t now_ms;
	int r; /* the first failure */
};

/* out is empty, and nobody else's before jks_end(). */
void jks_begin(struct jks *k, struct buf *out, uint64_t now_ms);
void jks_add(struct jks *k, const char *alias, const uint8_t *der, size_t n);
/* 0, -ENOBUFS or -ENOMEM. */
int jks_end(struct jks *k) _must_check_;

/* Take over the entries of a keystore, but the certificates that have a subject of `old` or `ours`. False: it is not one that may be
 * changed (another format, another password, damaged); then k is of no more use. */
bool jks_copy(struct jks *k, const void *p, size_t n, const struct cert_set *old,
	      const struct cert_set *ours) _must_check_;
