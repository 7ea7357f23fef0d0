/* libcrypto's part. Each function that makes something of it yields NULL or false if any step failed: which one it was helps nobody, since
 * what can fail here is memory. */
#include "keeper/ca.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/rdwr.h"
#include "wire/net.h"

/* A kept leaf: where its host's hash puts it, the one before goes. */
struct kept {
	char *host;
	uint8_t *der;
	int n;
	int64_t made;
};

struct ca {
	EVP_PKEY *key, *leaf_key;
	X509 *cert;
	X509_NAME *subject;
	char *pem;
	uint8_t *der; /* of cert */
	int n_der;
	uint8_t *leaf_p8;
	int n_leaf_p8;
	struct kept kept[CA_LEAVES_MAX];
	uint8_t chain[CA_CHAIN_MAX];
};

/* What one name stands for on a host: the same as host_parse() makes one. */
static const char *const local_names[] = { "localhost", "*.localhost", "host.docker.internal" };
static const char *const local_addrs[] = { "127.0.0.1", "::1", NET_HOST_TEXT };

static void x509_freep(X509 **x)
{
	X509_free(*x);
}
static void nc_freep(NAME_CONSTRAINTS **x)
{
	NAME_CONSTRAINTS_free(*x);
}
static void names_freep(GENERAL_NAMES **x)
{
	GENERAL_NAMES_free(*x);
}
static void name_freep(X509_NAME **x)
{
	X509_NAME_free(*x);
}
static void wipe_free(uint8_t *p, int n)
{
	if (p)
		OPENSSL_clear_free(p, (size_t)n);
}

/* ---- names ---- */

static GENERAL_NAME *general_name(int type, const void *p, size_t n)
{
	GENERAL_NAME *g = GENERAL_NAME_new();
	ASN1_STRING *s =
		ASN1_STRING_type_new(type == GEN_DNS ? V_ASN1_IA5STRING : V_ASN1_OCTET_STRING);

	if (g && s && ASN1_STRING_set(s, p, (int)n)) {
		GENERAL_NAME_set0_value(g, type, s);
		return g;
	}
	GENERAL_NAME_free(g);
	ASN1_STRING_free(s);
	return NULL;
}

static bool add_alt(GENERAL_NAMES *v, int type, const void *p, size_t n)
{
	GENERAL_NAME *g = general_name(type, p, n);

	if (g && sk_GENERAL_NAME_push(v, g) > 0)
		return true;
	GENERAL_NAME_free(g);
	return false;
}

static bool add_alt_addr(GENERAL_NAMES *v, const char *text)
{
	uint8_t a[16];

	if (inet_pton(AF_INET, text, a) == 1)
		return add_alt(v, GEN_IPADD, a, 4);
	return inet_pton(AF_INET6, text, a) == 1 && add_alt(v, GEN_IPADD, a, 16);
}

static bool add_alts(GENERAL_NAMES *v, const struct host *h)
{
	bool ok = true;

	if (h->kind != HOST_NAME)
		return add_alt(v, GEN_IPADD, h->addr, h->kind == HOST_V4 ? 4 : 16);
	if (!streq(h->text, "localhost"))
		return add_alt(v, GEN_DNS, h->text, strlen(h->text));
	for (size_t i = 0; i < ARRAY_SIZE(local_names); i++)
		ok = ok && add_alt(v, GEN_DNS, local_names[i], strlen(local_names[i]));
	for (size_t i = 0; i < ARRAY_SIZE(local_addrs); i++)
		ok = ok && add_alt_addr(v, local_addrs[i]);
	return ok;
}

static X509_NAME *subject_of(const char *before, const char *name)
{
	char text[ub_common_name + 1];
	X509_NAME *n = X509_NAME_new();

	(void)snprintf(text, sizeof(text), "%s%s", before, name);
	if (n && X509_NAME_add_entry_by_NID(n, NID_commonName, MBSTRING_UTF8,
					    (const unsigned char *)text, -1, -1, 0))
		return n;
	X509_NAME_free(n);
	return NULL;
}

/* ---- name constraints ---- */

static bool add_tree(STACK_OF(GENERAL_SUBTREE) * *v, int type, const void *p, size_t n)
{
	GENERAL_SUBTREE *t = GENERAL_SUBTREE_new();
	GENERAL_NAME *g = general_name(type, p, n);

	if (!*v)
		*v = sk_GENERAL_SUBTREE_new_null();
	if (t && g) {
		GENERAL_NAME_free(t->base);
		t->base = g;
		if (*v && sk_GENERAL_SUBTREE_push(*v, t) > 0)
			return true;
		g = NULL; /* goes with the tree */
	}
	GENERAL_NAME_free(g);
	GENERAL_SUBTREE_free(t);
	return false;
}

/* Address and mask. */
static bool add_range(STACK_OF(GENERAL_SUBTREE) * *v, const uint8_t *addr, size_t n, unsigned bits)
{
	uint8_t p[32] = { 0 };

	if (n)
		memcpy(p, addr, n);
	for (unsigned i = 0; i < bits && i < n * 8; i++)
		p[n + i / 8] |= (uint8_t)(0x80 >> i % 8);
	return add_tree(v, GEN_IPADD, p, 2 * n);
}

static bool add_text_range(STACK_OF(GENERAL_SUBTREE) * *v, const char *text)
{
	uint8_t a[16];

	if (inet_pton(AF_INET, text, a) == 1)
		return add_range(v, a, 4, 32);
	return inet_pton(AF_INET6, text, a) == 1 && add_range(v, a, 16, 128);
}

static bool permit_names(NAME_CONSTRAINTS *nc, const struct scope *s, bool *ret_local)
{
	static const char nothing[] =
		"invalid"; /* RFC 6761 6.4: a list without names would permit all */
	STACK_OF(GENERAL_SUBTREE) **v = &nc->permittedSubtrees;

	*ret_local = s->all;
	if (s->all)
		return true;
	for (size_t i = 0; i < s->n_names; i++) {
		if (!add_tree(v, GEN_DNS, s->names[i], strlen(s->names[i])))
			return false;
		if (!streq(s->names[i], "localhost"))
			continue;
		*ret_local = true;
		if (!add_tree(v, GEN_DNS, local_names[2], strlen(local_names[2])))
			return false;
	}
	return s->n_names || add_tree(v, GEN_DNS, nothing, sizeof(nothing) - 1);
}

/* A family of which nothing is permitted is excluded as a whole. */
static bool permit_ranges(NAME_CONSTRAINTS *nc, const struct scope *s, bool local)
{
	static const uint8_t zeros[16];
	bool four = local, six = local;

	for (size_t i = 0; i < s->n_ranges; i++) {
		const struct net_span *r = &s->ranges[i];

		if (!add_range(&nc->permittedSubtrees, r->addr, r->n_addr, r->bits))
			return false;
		four = four || r->n_addr == 4;
		six = six || r->n_addr == 16;
	}
	for (size_t i = 0; local && i < ARRAY_SIZE(local_addrs); i++)
		if (!add_text_range(&nc->permittedSubtrees, local_addrs[i]))
			return false;
	return (four || add_range(&nc->excludedSubtrees, zeros, 4, 0)) &&
	       (six || add_range(&nc->excludedSubtrees, zeros, 16, 0));
}

static bool constrain(X509 *x, const struct scope *s)
{
	_cleanup_(nc_freep) NAME_CONSTRAINTS *nc = NAME_CONSTRAINTS_new();
	bool local;

	return nc && permit_names(nc, s, &local) && permit_ranges(nc, s, local) &&
	       X509_add1_ext_i2d(x, NID_name_constraints, nc, 1, X509V3_ADD_DEFAULT) > 0;
}

/* ---- certificates ---- */

static bool add_ext(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;
	bool ok;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	ok = e && X509_add_ext(x, e, -1);
	X509_EXTENSION_free(e);
	return ok;
}

/* 127 random bits: not negative, and not to be foreseen (CA/Browser Forum asks for 64). */
static bool set_serial(X509 *x)
{
	uint8_t p[16];
	BIGNUM *bn;
	bool ok;

	if (RAND_bytes(p, sizeof(p)) != 1)
		return false;
	p[0] = (uint8_t)((p[0] & 0x7f) | 0x40);
	bn = BN_bin2bn(p, sizeof(p), NULL);
	ok = bn && BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(x));
	BN_free(bn);
	return ok;
}

static bool set_times(X509 *x, int64_t now, int64_t seconds)
{
	return ASN1_TIME_set(X509_getm_notBefore(x), (time_t)(now - CA_BEFORE_S)) &&
	       ASN1_TIME_set(X509_getm_notAfter(x), (time_t)(now + seconds));
}

static X509 *certificate(const struct ca *c, EVP_PKEY *key, X509_NAME *subject, int64_t now,
			 int64_t seconds)
{
	X509 *x = X509_new();

	if (x && X509_set_version(x, X509_VERSION_3) && set_serial(x) &&
	    set_times(x, now, seconds) && X509_set_subject_name(x, subject) &&
	    X509_set_issuer_name(x, c->subject) && X509_set_pubkey(x, key))
		return x;
	X509_free(x);
	return NULL;
}

static bool finish(const struct ca *c, X509 *x, X509 *issuer)
{
	return add_ext(x, issuer, NID_subject_key_identifier, "hash") &&
	       add_ext(x, issuer, NID_authority_key_identifier, "keyid:always") &&
	       X509_sign(x, c->key, EVP_sha256()) > 0;
}

static char *pem_of(X509 *x)
{
	BIO *b = BIO_new(BIO_s_mem());
	char *text = NULL, *p;
	long n;

	if (b && PEM_write_bio_X509(b, x)) {
		n = BIO_get_mem_data(b, &p);
		text = n > 0 && n <= CA_PEM_MAX ? calloc(1, (size_t)n + 1) : NULL;
		if (text)
			memcpy(text, p, (size_t)n);
	}
	BIO_free(b);
	return text;
}

int ca_renew(struct ca *c, const struct scope *s, int64_t now)
{
	_cleanup_(x509_freep) X509 *x = certificate(c, c->key, c->subject, now, CA_YEAR_S);
	_free_ char *pem = NULL;
	uint8_t *der = NULL;
	int n;

	if (!x || !add_ext(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
	    !add_ext(x, x, NID_key_usage, "critical,keyCertSign") || !constrain(x, s) ||
	    !finish(c, x, x))
		return -EIO;
	n = i2d_X509(x, &der);
	pem = pem_of(x);
	if (n <= 0 || !pem) {
		OPENSSL_free(der);
		return -ENOMEM;
	}
	X509_free(c->cert);
	OPENSSL_free(c->der);
	free(c->pem);
	c->cert = take_ptr(x);
	c->pem = take_ptr(pem);
	c->der = der;
	c->n_der = n;
	return 0;
}

const char *ca_pem(const struct ca *c)
{
	return c->pem ? c->pem : "";
}

/* A name that is too long for a subject stands in the alternative names alone, which then are critical (RFC 5280 4.2.1.6). A
 * common name that looks like a host would have to be permitted as one, which an address is not. */
static X509_NAME *leaf_subject(const struct host *h)
{
	if (h->kind != HOST_NAME)
		return subject_of("the address ", h->text);
	return strlen(h->text) <= ub_common_name ? subject_of("", h->text) : X509_NAME_new();
}

static X509 *make_leaf(const struct ca *c, const struct host *h, int64_t now)
{
	_cleanup_(name_freep) X509_NAME *subject = leaf_subject(h);
	bool named = subject && X509_NAME_entry_count(subject);
	_cleanup_(names_freep) GENERAL_NAMES *alts = GENERAL_NAMES_new();
	X509 *x = subject ? certificate(c, c->leaf_key, subject, now, CA_LEAF_S) : NULL;

	if (x && alts && add_alts(alts, h) &&
	    X509_add1_ext_i2d(x, NID_subject_alt_name, alts, !named, X509V3_ADD_DEFAULT) > 0 &&
	    add_ext(x, c->cert, NID_basic_constraints, "critical,CA:FALSE") &&
	    add_ext(x, c->cert, NID_key_usage, "critical,digitalSignature") &&
	    add_ext(x, c->cert, NID_ext_key_usage, "serverAuth") && finish(c, x, c->cert))
		return x;
	X509_free(x);
	return NULL;
}

static struct kept *slot(struct ca *c, const char *host)
{
	uint32_t h = 2166136261U;

	for (const char *p = host; *p; p++)
		h = (h ^ (uint8_t)*p) * 16777619U;
	return &c->kept[(h ^ h >> 16) % CA_LEAVES_MAX];
}

static void drop(struct kept *k)
{
	free(k->host);
	OPENSSL_free(k->der);
	memset(k, 0, sizeof(*k));
}

static int keep(const struct ca *c, struct kept *k, const struct host *h, int64_t now)
{
	_cleanup_(x509_freep) X509 *x = make_leaf(c, h, now);
	struct kept new = { .made = now };

	if (!x)
		return -EIO;
	new.host = strdup(h->text);
	new.n = new.host ? i2d_X509(x, &new.der) : 0;
	if (new.n <= 0) {
		drop(&new);
		return -ENOMEM;
	}
	drop(k);
	*k = new;
	return 0;
}

int ca_leaf(struct ca *c, const struct host *h, int64_t now, struct ca_leaf *ret)
{
	struct kept *k = slot(c, h->text);
	struct wr w = wr_init(c->chain, sizeof(c->chain));
	int r = 0;

	if (!c->cert)
		return -EIO;
	if (!streq(k->host, h->text) || now - k->made >= CA_LEAF_KEPT_S || now < k->made)
		r = keep(c, k, h, now);
	if (r < 0)
		return r;
	wr_be32(&w, (uint32_t)k->n);
	wr_bytes(&w, k->der, (size_t)k->n);
	wr_be32(&w, (uint32_t)c->n_der);
	wr_bytes(&w, c->der, (size_t)c->n_der);
	if (!wr_ok(&w))
		return -EIO;
	*ret = (struct ca_leaf) { .chain = c->chain,
				  .n_chain = w.n,
				  .key = c->leaf_p8,
				  .n_key = (size_t)c->n_leaf_p8,
				  .not_after = k->made + CA_LEAF_S };
	return 0;
}

/* ---- birth and death ---- */

static int pkcs8(EVP_PKEY *key, uint8_t **ret)
{
	PKCS8_PRIV_KEY_INFO *p8 = EVP_PKEY2PKCS8(key);
	int n = p8 ? i2d_PKCS8_PRIV_KEY_INFO(p8, ret) : -1;

	PKCS8_PRIV_KEY_INFO_free(p8);
	return n;
}

static int make_keys(struct ca *c, const char *sandbox)
{
	c->key = EVP_EC_gen("P-256");
	c->leaf_key = EVP_EC_gen("P-256");
	c->subject = subject_of("bac sandbox ", sandbox);
	if (!c->key || !c->leaf_key || !c->subject)
		return -EIO;
	c->n_leaf_p8 = pkcs8(c->leaf_key, &c->leaf_p8);
	return c->n_leaf_p8 > 0 && c->n_leaf_p8 <= CA_KEY_MAX ? 0 : -EIO;
}

int ca_new(const char *sandbox, struct ca **ret)
{
	struct ca *c = calloc(1, sizeof(*c));
	int r = c ? make_keys(c, sandbox) : -ENOMEM;

	if (r < 0)
		(void)ca_free(c);
	else
		*ret = c;
	return r;
}

struct ca *ca_free(struct ca *c)
{
	if (!c)
		return NULL;
	for (size_t i = 0; i < CA_LEAVES_MAX; i++)
		drop(&c->kept[i]);
	EVP_PKEY_free(c->key);
	EVP_PKEY_free(c->leaf_key);
	X509_free(c->cert);
	X509_NAME_free(c->subject);
	OPENSSL_free(c->der);
	wipe_free(c->leaf_p8, MAX(c->n_leaf_p8, 0));
	free(c->pem);
	free(c);
	return NULL;
}
