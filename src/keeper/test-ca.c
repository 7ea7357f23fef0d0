/* The authority and what it makes, judged by libcrypto's own verification: for the hosts that are opened, and for no other. */
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/check.h"
#include "base/rdwr.h"
#include "keeper/ca.h"

static const int64_t now = 1800000000;

static struct cred_set *cred_of(const char *const *resources)
{
	struct buf out = BUF_INIT(CRED_TEXT_MAX);
	struct cred_set *set;
	struct err e;
	size_t n = 0;

	check(cred_text_begin(&out) == 0);
	for (; resources[n]; n++) {
		char id[32];
		struct cred_use u = { .id = id,
				      .kind = CRED_HEADER,
				      .state = CRED_READY,
				      .origin = "builtin",
				      .service = "x",
				      .key = "global/service/x",
				      .resource = resources[n],
				      .header = "authorization",
				      .format = "Bearer %s" };

		(void)snprintf(id, sizeof(id), "u%zu", n);
		check(cred_text_use(&out, &u, &e) == 0);
	}
	check(cred_text_end(&out, n) == 0);
	check(cred_text_parse((const char *)buf_data(&out), out.n, &set, &e) == 0);
	buf_done(&out);
	return set;
}

static struct ca *ca_of(const char *const *resources)
{
	struct cred_set *set = cred_of(resources);
	struct scope s;
	struct ca *c;

	check(scope_make(set, NULL, &s) == 0);
	check(ca_new("web", &c) == 0);
	check(streq(ca_pem(c), ""));
	check(ca_renew(c, &s, now) == 0);
	scope_done(&s);
	(void)cred_set_free(set);
	return c;
}

static X509 *root_of(const struct ca *c)
{
	BIO *b = BIO_new_mem_buf(ca_pem(c), -1);
	X509 *x = PEM_read_bio_X509(b, NULL, NULL, NULL);

	check(x);
	BIO_free(b);
	return x;
}

static struct host host(const char *text)
{
	struct host h;
	struct err e;

	check(host_parse(&h, text, strlen(text), &e) == 0);
	return h;
}

/* The first certificate of a chain, and that the second is the authority's. */
static X509 *leaf_of(struct ca *c, const char *name, struct ca_leaf *l)
{
	struct host h = host(name);
	const uint8_t *p;
	struct rd r;
	uint32_t n;
	X509 *x, *y, *root = root_of(c);

	check(ca_leaf(c, &h, now, l) == 0);
	r = rd_init(l->chain, l->n_chain);
	n = rd_be32(&r);
	p = rd_take(&r, n);
	x = d2i_X509(NULL, &p, n);
	n = rd_be32(&r);
	p = rd_take(&r, n);
	y = d2i_X509(NULL, &p, n);
	check(x && y && rd_done(&r) && X509_cmp(y, root) == 0);
	X509_free(y);
	X509_free(root);
	return x;
}

/* As a client does: X509_V_OK or why not. name NULL: the chain alone. */
static int verify(X509 *root, X509 *leaf, const char *name, int64_t at)
{
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	X509_VERIFY_PARAM *param;
	int r;

	check(store && ctx && X509_STORE_add_cert(store, root));
	check(X509_STORE_CTX_init(ctx, store, leaf, NULL));
	param = X509_STORE_CTX_get0_param(ctx);
	X509_VERIFY_PARAM_set_time(param, (time_t)at);
	check(X509_VERIFY_PARAM_set_purpose(param, X509_PURPOSE_SSL_SERVER));
	X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT);
	if (name && (strchr(name, ':') || !strcspn(name, "0123456789")))
		check(X509_VERIFY_PARAM_set1_ip_asc(param, name));
	else if (name)
		check(X509_VERIFY_PARAM_set1_host(param, name, 0));
	r = X509_verify_cert(ctx) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(ctx);
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	return r;
}

static int as_client(struct ca *c, const char *name, const char *asked)
{
	struct ca_leaf l;
	X509 *leaf = leaf_of(c, name, &l), *root = root_of(c);
	int r = verify(root, leaf, asked, now);

	X509_free(leaf);
	X509_free(root);
	return r;
}

enum { NOT = X509_V_ERR_PERMITTED_VIOLATION, EXCLUDED = X509_V_ERR_EXCLUDED_VIOLATION };

static void constraints(void)
{
	static const char *const opened[] = { "api.example", "*.one.example", "**.many.example",
					      "a*b.glob.example:443", NULL };
	static const struct {
		const char *name;
		int want;
	} rows[] = {
		{ "api.example", X509_V_OK },
		{ "x.api.example", X509_V_OK }, /* X.509 cannot say less */
		{ "a.one.example", X509_V_OK },
		{ "a.b.many.example", X509_V_OK },
		{ "axb.glob.example", X509_V_OK },
		{ "apix.example", NOT },
		{ "xapi.example", NOT },
		{ "example", NOT },
		{ "other.example", NOT },
		{ "localhost", NOT },
		{ "192.0.2.1", EXCLUDED },
		{ "2001:db8::1", EXCLUDED },
	};
	struct ca *c = ca_of(opened);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check(as_client(c, rows[i].name, rows[i].name) == rows[i].want);
	check(as_client(c, "api.example", "a.one.example") == X509_V_ERR_HOSTNAME_MISMATCH);
	(void)ca_free(c);
}

static void addresses(void)
{
	static const char *const v4[] = { "192.0.2.7", "198.51.100.0/24", NULL };
	static const char *const v6[] = { "2001:db8::7", "api.example", NULL };
	struct ca *c = ca_of(v4);

	check(as_client(c, "192.0.2.7", "192.0.2.7") == X509_V_OK);
	check(as_client(c, "198.51.100.9", "198.51.100.9") == X509_V_OK);
	check(as_client(c, "192.0.2.8", NULL) == NOT);
	check(as_client(c, "2001:db8::7", NULL) == NOT);
	check(as_client(c, "api.example", NULL) == NOT); /* no name is opened */
	(void)ca_free(c);
	c = ca_of(v6);
	check(as_client(c, "2001:db8::7", "2001:db8::7") == X509_V_OK);
	check(as_client(c, "2001:db8::8", NULL) == NOT);
	check(as_client(c, "192.0.2.7", NULL) == NOT);
	check(as_client(c, "api.example", "api.example") == X509_V_OK);
	(void)ca_free(c);
}

static void local(void)
{
	static const char *const opened[] = { "localhost:8080", NULL };
	struct ca *c = ca_of(opened);

	check(as_client(c, "localhost", "localhost") == X509_V_OK);
	check(as_client(c, "localhost", "host.docker.internal") == X509_V_OK);
	check(as_client(c, "localhost", "127.0.0.1") == X509_V_OK);
	check(as_client(c, "127.0.0.2", "::1") == X509_V_OK); /* host_parse(): localhost */
	check(as_client(c, "192.0.2.7", NULL) == NOT);
	check(as_client(c, "docker.internal", NULL) == NOT);
	(void)ca_free(c);
}

static void everything(void)
{
	static const char *const opened[] = { "**", NULL };
	struct ca *c = ca_of(opened);
	char name[HOST_NAME_MAX_LEN + 1];

	memset(name, 'a', sizeof(name));
	for (size_t i = 60; i < sizeof(name); i += 60)
		name[i] = '.';
	name[250] = '\0';
	check(as_client(c, "any.example", "any.example") == X509_V_OK);
	check(as_client(c, name, name) == X509_V_OK); /* no common name is so long */
	check(as_client(c, "192.0.2.7", NULL) == NOT);
	(void)ca_free(c);
}

static bool says(X509 *x, int nid, bool critical)
{
	int at = X509_get_ext_by_NID(x, nid, -1);

	return at >= 0 && X509_EXTENSION_get_critical(X509_get_ext(x, at)) == critical &&
	       X509_get_ext_by_NID(x, nid, at) < 0;
}

static int64_t seconds(const ASN1_TIME *t)
{
	struct tm tm;

	check(ASN1_TIME_to_tm(t, &tm));
	return timegm(&tm);
}

static void profile(void)
{
	static const char *const opened[] = { "api.example", NULL };
	struct ca *c = ca_of(opened);
	struct ca_leaf l;
	X509 *root = root_of(c), *leaf = leaf_of(c, "api.example", &l);
	char text[128];

	check(X509_NAME_oneline(X509_get_subject_name(root), text, sizeof(text)));
	check(streq(text, "/CN=bac sandbox web"));
	check(X509_check_ca(root) == 1 && X509_get_pathlen(root) == 0);
	check(X509_get_key_usage(root) == KU_KEY_CERT_SIGN);
	check(says(root, NID_basic_constraints, true) && says(root, NID_key_usage, true));
	check(says(root, NID_name_constraints, true));
	check(seconds(X509_get0_notBefore(root)) == now - 86400);
	check(seconds(X509_get0_notAfter(root)) == now + CA_YEAR_S);
	check(X509_get_version(leaf) == X509_VERSION_3 && X509_check_ca(leaf) == 0);
	check(X509_get_extended_key_usage(leaf) == XKU_SSL_SERVER);
	check(says(leaf, NID_subject_alt_name, false));
	check(says(leaf, NID_authority_key_identifier, false));
	check(seconds(X509_get0_notBefore(leaf)) == now - 86400);
	check(seconds(X509_get0_notAfter(leaf)) == now + CA_LEAF_S &&
	      l.not_after == now + CA_LEAF_S);
	check(verify(root, leaf, "api.example", now + CA_LEAF_S + 1) ==
	      X509_V_ERR_CERT_HAS_EXPIRED);
	check(verify(root, leaf, "api.example", now - 86401) == X509_V_ERR_CERT_NOT_YET_VALID);
	X509_free(root);
	X509_free(leaf);
	(void)ca_free(c);
}

/* The key that goes with the leaf signs for it, and is not the authority's. */
static void key(void)
{
	static const char *const opened[] = { "api.example", NULL };
	struct ca *c = ca_of(opened);
	struct ca_leaf l;
	X509 *leaf = leaf_of(c, "api.example", &l), *root = root_of(c);
	const uint8_t *p = l.key;
	EVP_PKEY *k = d2i_AutoPrivateKey(NULL, &p, (long)l.n_key);

	check(k && X509_check_private_key(leaf, k) == 1);
	check(X509_check_private_key(root, k) == 0);
	EVP_PKEY_free(k);
	X509_free(leaf);
	X509_free(root);
	(void)ca_free(c);
}

/* Another list, another serial; what was made before stays good, and so does what comes after with the old one, as far as it permits. */
static void renewed(void)
{
	static const char *const opened[] = { "api.example", NULL }, *const more[] = {
		"api.example", "b.example", NULL
	};
	struct ca *c = ca_of(opened);
	struct cred_set *set = cred_of(more);
	struct ca_leaf l;
	struct scope s;
	X509 *old = leaf_of(c, "api.example", &l), *root = root_of(c), *second, *b;

	check(scope_make(set, NULL, &s) == 0);
	check(ca_renew(c, &s, now + 10) == 0);
	second = root_of(c);
	check(ASN1_INTEGER_cmp(X509_get0_serialNumber(root), X509_get0_serialNumber(second)));
	check(verify(second, old, "api.example", now) == X509_V_OK);
	b = leaf_of(c, "b.example", &l);
	check(verify(second, b, "b.example", now) == X509_V_OK);
	check(verify(root, b, "b.example", now) == NOT);
	for (X509 **x = (X509 *[]) { old, root, second, b, NULL }; *x; x++)
		X509_free(*x);
	scope_done(&s);
	(void)cred_set_free(set);
	(void)ca_free(c);
}

static void kept(void)
{
	static const char *const opened[] = { "api.example", NULL };
	struct ca *c = ca_of(opened);
	struct host h = host("api.example");
	struct ca_leaf l;

	check(ca_leaf(c, &h, now, &l) == 0 && l.not_after == now + CA_LEAF_S);
	check(ca_leaf(c, &h, now + CA_LEAF_KEPT_S - 1, &l) == 0 && l.not_after == now + CA_LEAF_S);
	check(ca_leaf(c, &h, now + CA_LEAF_KEPT_S, &l) == 0);
	check(l.not_after == now + CA_LEAF_KEPT_S + CA_LEAF_S);
	check(ca_leaf(c, &h, now, &l) == 0 &&
	      l.not_after == now + CA_LEAF_S); /* the clock was set back */
	for (unsigned i = 0; i < 2 * CA_LEAVES_MAX; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "h%u.api.example", i % 1100);
		h = host(name);
		check(ca_leaf(c, &h, now, &l) == 0);
	}
	(void)ca_free(c);
	check(ca_new("web", &c) == 0);
	check(ca_leaf(c, &h, now, &l) < 0); /* no certificate of its own yet */
	(void)ca_free(c);
}

int main(void)
{
	constraints();
	addresses();
	local();
	everything();
	profile();
	key();
	renewed();
	kept();
	return 0;
}
