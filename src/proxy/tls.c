/* The layer of a chan that is OpenSSL's. Records come in by a BIO that reads the socket, as many bytes as are there; they go out by the chan's buffer, so that what is
 * written in one round is one send(2) whatever the number of records. */
#include "proxy/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <time.h>

#include "base/rdwr.h"
#include "base/text.h"
#include "proxy/chan-priv.h"
#include "proxy/hello.h"

enum {
	RECORD_MAX = 16 * 1024,
	WIRE_GOOD = 64 * 1024,
	READ_AHEAD = 4 * (RECORD_MAX + 64),
	IDENTITIES_MAX = 64,
	CERT_MAX = 64 * 1024,
};

struct tls_leaf {
	X509 *cert;
	STACK_OF(X509) * chain;
	EVP_PKEY *key;
};

struct identity {
	struct host host;
	struct tls_leaf *leaf;
};

struct tls {
	SSL_CTX *server, *client;
	BIO_METHOD *bio;
	struct identity v[IDENTITIES_MAX];
	size_t n;
};

struct conn {
	struct chan *c;
	SSL *ssl;
	uint8_t state; /* enum tls_state */
	bool server, may_go, eof, untrusted, h2, h1;
	char agreed[16];
	SSL_SESSION **session;
	char why[TLS_WHY_MAX];
};

/* ---- the BIO ---- */

static int bio_read(BIO *b, char *p, int max)
{
	struct conn *t = BIO_get_data(b);
	ssize_t n = max > 0 ? chan_receive(t->c, p, (size_t)max) : 0;

	BIO_clear_retry_flags(b);
	if (n == CHAN_WAIT)
		BIO_set_retry_read(b);
	t->eof = n == CHAN_END;
	return n > 0 ? (int)n : n == CHAN_END ? 0 : -1;
}

static int bio_write(BIO *b, const char *p, int n)
{
	struct conn *t = BIO_get_data(b);

	BIO_clear_retry_flags(b);
	if (n < 0 || buf_add(&t->c->wire, p, (size_t)n) < 0)
		return -1;
	return n;
}

static long bio_ctrl(BIO *b, int cmd, long num, void *ptr)
{
	const struct conn *t = BIO_get_data(b);

	(void)num;
	(void)ptr;
	if (cmd == BIO_CTRL_EOF)
		return t && t->eof;
	return cmd == BIO_CTRL_FLUSH;
}

static int bio_create(BIO *b)
{
	BIO_set_init(b, 1);
	return 1;
}

static BIO_METHOD *bio_method(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "chan");

	if (m && BIO_meth_set_read(m, bio_read) && BIO_meth_set_write(m, bio_write) &&
	    BIO_meth_set_ctrl(m, bio_ctrl) && BIO_meth_set_create(m, bio_create))
		return m;
	BIO_meth_free(m);
	return NULL;
}

/* ---- states ---- */

static void fail(struct conn *t, const char *what)
{
	const long verdict = t->server ? X509_V_OK : SSL_get_verify_result(t->ssl);
	const unsigned long code = ERR_peek_error();
	const char *reason = code ? ERR_reason_error_string(code) : NULL;

	t->state = TLS_FAILED;
	t->untrusted = verdict != X509_V_OK;
	if (t->untrusted)
		reason = X509_verify_cert_error_string(verdict);
	(void)snprintf(t->why, sizeof(t->why), "%s%s%s", what, reason ? ": " : "",
		       reason ? reason : "");
	ERR_clear_error();
	chan_again(t->c);
}

static void shake_failed(struct conn *t, int code)
{
	if (t->eof)
		fail(t, "the connection ended in the TLS handshake");
	else if (code == SSL_ERROR_SYSCALL)
		fail(t, "the connection broke in the TLS handshake");
	else
		fail(t, "the TLS handshake failed");
}

static void shaken(struct conn *t)
{
	const unsigned char *p = NULL;
	unsigned n = 0;

	SSL_get0_alpn_selected(t->ssl, &p, &n);
	if (n && n < sizeof(t->c->alpn)) {
		memcpy(t->c->alpn, p, n);
		t->c->alpn[n] = '\0';
	}
	t->state = TLS_READY;
}

static void tls_step(struct chan *c)
{
	struct conn *t = c->tls;
	int r;

	if (t->state > TLS_HELLO || (t->state == TLS_HELLO && !t->may_go) || c->broken)
		return;
	ERR_clear_error();
	r = SSL_do_handshake(t->ssl);
	if (r == 1) {
		shaken(t);
		return;
	}
	r = SSL_get_error(t->ssl, r);
	if (r == SSL_ERROR_WANT_CLIENT_HELLO_CB)
		t->state = TLS_HELLO;
	else if (r != SSL_ERROR_WANT_READ && r != SSL_ERROR_WANT_WRITE)
		shake_failed(t, r);
}

static ssize_t tls_read(struct chan *c, void *p, size_t max)
{
	struct conn *t = c->tls;
	size_t n = 0;
	int r;

	if (t->state != TLS_READY)
		return t->state == TLS_FAILED ? CHAN_BROKEN : CHAN_WAIT;
	ERR_clear_error();
	r = SSL_read_ex(t->ssl, p, max, &n);
	if (c->wire.n) /* a key update is answered */
		loop_again(c->loop, &c->again);
	if (r == 1)
		return (ssize_t)n;
	switch (SSL_get_error(t->ssl, r)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return CHAN_WAIT;
	case SSL_ERROR_ZERO_RETURN:
		return CHAN_END;
	default:
		return CHAN_BROKEN;
	}
}

static void tls_push(struct chan *c)
{
	struct conn *t = c->tls;

	if (t->state != TLS_READY)
		return;
	while (c->out.n && c->wire.n < WIRE_GOOD) {
		size_t n = 0;

		ERR_clear_error();
		if (SSL_write_ex(t->ssl, buf_data(&c->out), MIN(c->out.n, (size_t)RECORD_MAX),
				 &n) != 1) {
			c->broken = true;
			return;
		}
		buf_consume(&c->out, n);
	}
}

static void tls_shut(struct chan *c)
{
	struct conn *t = c->tls;

	ERR_clear_error();
	if (t->state == TLS_READY)
		(void)SSL_shutdown(t->ssl);
}

static void tls_done(struct chan *c)
{
	struct conn *t = c->tls;

	SSL_free(t->ssl);
	free(t);
	c->tls = NULL;
}

static const struct chan_layer layer = { tls_read, tls_step, tls_push, tls_shut, tls_done };

/* ---- what the peer says ---- */

static void note_protocol(struct conn *t, const uint8_t *p, size_t n)
{
	if (n == 2 && memcmp(p, "h2", 2) == 0)
		t->h2 = true;
	if (n == 8 && memcmp(p, "http/1.1", 8) == 0)
		t->h1 = true;
}

static int on_hello(SSL *ssl, int *alert, void *arg)
{
	struct conn *t = SSL_get_app_data(ssl);
	const unsigned char *p;
	size_t n;

	*alert = SSL_AD_INTERNAL_ERROR; /* of a failure, which there is none of */
	(void)arg;
	if (t->may_go)
		return SSL_CLIENT_HELLO_SUCCESS;
	if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &p,
				      &n) == 1) {
		struct rd r = { .p = p, .n = n };
		const size_t len = rd_be16(&r);

		while (len && r.n && !r.bad) {
			const size_t k = rd_u8(&r);
			const uint8_t *name = rd_take(&r, k);

			if (name)
				note_protocol(t, name, k);
		}
	}
	return SSL_CLIENT_HELLO_RETRY;
}

static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_n,
		   const unsigned char *in, unsigned n, void *arg)
{
	const struct conn *t = SSL_get_app_data(ssl);
	const size_t len = strlen(t->agreed);

	(void)arg;
	for (unsigned at = 0; len && at < n; at += in[at] + 1U) {
		if (at + 1U + in[at] > n)
			break;
		if (in[at] == len && memcmp(in + at + 1, t->agreed, len) == 0) {
			*out = in + at + 1;
			*out_n = in[at];
			return SSL_TLSEXT_ERR_OK;
		}
	}
	return SSL_TLSEXT_ERR_NOACK;
}

static int on_session(SSL *ssl, SSL_SESSION *s)
{
	struct conn *t = SSL_get_app_data(ssl);

	if (!t || !t->session || !SSL_SESSION_is_resumable(s))
		return 0;
	SSL_SESSION_free(*t->session);
	*t->session = s;
	return 1;
}

/* ---- what is shared ---- */

/* The first use of a calendar opens a file of time zones. */
void tls_prepare(void)
{
	tzset();
}

static SSL_CTX *context(const SSL_METHOD *method)
{
	SSL_CTX *x = SSL_CTX_new(method);

	if (!x)
		return NULL;
	(void)SSL_CTX_set_options(x, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	(void)SSL_CTX_set_min_proto_version(x, TLS1_2_VERSION);
	(void)SSL_CTX_set_mode(x, SSL_MODE_ENABLE_PARTIAL_WRITE |
					  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					  SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_read_ahead(x, 1);
	SSL_CTX_set_default_read_buffer_len(x, READ_AHEAD);
	return x;
}

static struct tls *destroy(struct tls *t)
{
	if (!t)
		return NULL;
	SSL_CTX_free(t->server);
	SSL_CTX_free(t->client);
	BIO_meth_free(t->bio);
	free(t);
	return NULL;
}

int tls_new(struct tls **ret)
{
	struct tls *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) == 1) {
		t->bio = bio_method();
		t->server = context(TLS_server_method());
		t->client = context(TLS_client_method());
	}
	if (!t->bio || !t->server || !t->client) {
		(void)destroy(t);
		return -ENOMEM;
	}
	SSL_CTX_set_client_hello_cb(t->server, on_hello, NULL);
	SSL_CTX_set_alpn_select_cb(t->server, on_alpn, NULL);
	(void)SSL_CTX_set_session_cache_mode(t->server, SSL_SESS_CACHE_OFF);
	(void)SSL_CTX_set_num_tickets(t->server, 1);
	SSL_CTX_set_verify(t->client, SSL_VERIFY_PEER, NULL);
	(void)SSL_CTX_set_session_cache_mode(t->client,
					     SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(t->client, on_session);
	*ret = t;
	return 0;
}

/* ---- certificates ---- */

struct tls_leaf *tls_leaf_free(struct tls_leaf *l)
{
	if (!l)
		return NULL;
	X509_free(l->cert);
	sk_X509_pop_free(l->chain, X509_free);
	EVP_PKEY_free(l->key);
	free(l);
	return NULL;
}

static struct tls_leaf *leaf_make(void)
{
	struct tls_leaf *l = calloc(1, sizeof(*l));

	if (l)
		l->chain = sk_X509_new_null();
	if (l && !l->chain)
		l = tls_leaf_free(l);
	return l;
}

/* The first is the leaf. Takes x over. */
static int leaf_add(struct tls_leaf *l, X509 *x)
{
	if (!x)
		return -EINVAL;
	if (!l->cert) {
		l->cert = x;
		return 0;
	}
	if (sk_X509_num(l->chain) >= TLS_CHAIN_MAX || sk_X509_push(l->chain, x) <= 0) {
		X509_free(x);
		return -E2BIG;
	}
	return 0;
}

int tls_leaf_new(const uint8_t *chain, size_t n, const uint8_t *key, size_t n_key,
		 struct tls_leaf **ret)
{
	struct rd r = { .p = chain, .n = n };
	struct tls_leaf *l = leaf_make();
	int y = l ? 0 : -ENOMEM;

	while (y == 0 && r.n) {
		const uint32_t len = rd_be32(&r);
		const uint8_t *p = len <= CERT_MAX ? rd_take(&r, len) : NULL;

		y = p ? leaf_add(l, d2i_X509(NULL, &p, (long)len)) : -EINVAL;
	}
	if (y == 0 && n_key <= CERT_MAX)
		l->key = d2i_AutoPrivateKey(NULL, &key, (long)n_key);
	ERR_clear_error();
	if (y < 0 || !l->cert || !l->key) {
		(void)tls_leaf_free(l);
		return y < 0 ? y : -EINVAL;
	}
	*ret = l;
	return 0;
}

/* ---- trust ---- */

static const char client_line[] = "\nclient ";

static int add_authorities(X509_STORE *store, const char *text, size_t n)
{
	BIO *b = BIO_new_mem_buf(text, (int)n);
	X509 *x;
	int found = 0;

	if (!b)
		return -ENOMEM;
	/* what is between the certificates, and one that cannot be read, is passed over */
	while ((x = PEM_read_bio_X509_AUX(b, NULL, NULL, NULL)) ||
	       (!BIO_eof(b) && ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)) {
		ERR_clear_error();
		found += x && X509_STORE_add_cert(store, x) == 1;
		X509_free(x);
	}
	ERR_clear_error();
	BIO_free(b);
	return found;
}

static int add_identity(struct tls *t, const char *host, size_t host_n, const char *text, size_t n)
{
	BIO *b = BIO_new_mem_buf(text, (int)n);
	struct tls_leaf *l = leaf_make();
	struct err ignored;
	X509 *x;
	int r = b && l ? 0 : -ENOMEM;

	while (r == 0 && (x = PEM_read_bio_X509(b, NULL, NULL, NULL)))
		r = leaf_add(l, x);
	BIO_free(b);
	b = r == 0 ? BIO_new_mem_buf(text, (int)n) : NULL;
	if (b)
		l->key = PEM_read_bio_PrivateKey(b, NULL, NULL, NULL);
	BIO_free(b);
	ERR_clear_error();
	if (r == 0 && (!l->cert || !l->key || t->n >= IDENTITIES_MAX))
		r = -EINVAL;
	if (r == 0)
		r = host_parse(&t->v[t->n].host, host, host_n, &ignored);
	if (r < 0) {
		(void)tls_leaf_free(l);
		return r;
	}
	t->v[t->n++].leaf = l;
	return 0;
}

/* Where the next "client HOST" begins, at or behind from; n: nowhere. */
static size_t next_client(const char *text, size_t n, size_t from)
{
	const char *p = memmem(text + from, n - from, client_line, sizeof(client_line) - 1);

	return p ? (size_t)(p - text) : n;
}

static void forget_identities(struct tls *t)
{
	while (t->n)
		(void)tls_leaf_free(t->v[--t->n].leaf);
}

static int take_identities(struct tls *t, const char *text, size_t n, size_t at, struct err *e)
{
	while (at < n) {
		const char *host = text + at + sizeof(client_line) - 1;
		const char *eol = memchr(host, '\n', (size_t)(text + n - host));
		size_t end;
		int r;

		if (!eol)
			return err_set(e, -EINVAL, "the list of client certificates is cut");
		end = next_client(text, n, (size_t)(eol - text));
		r = add_identity(t, host, (size_t)(eol - host), eol, (size_t)(text + end - eol));
		if (r < 0)
			return err_set(e, r, "the client certificate for %.*s cannot be used",
				       (int)MIN(eol - host, 100), host);
		at = end;
	}
	return 0;
}

int tls_trust(struct tls *t, char *text, size_t n, struct err *e)
{
	X509_STORE *store = X509_STORE_new();
	size_t at;

	if (n > TLS_TRUST_MAX)
		return err_set(e, -E2BIG, "the trusted certificates are too many");
	if (!store)
		return err_errno(e, -ENOMEM, "cannot read the trusted certificates");
	at = next_client(text, n, 0);
	if (add_authorities(store, text, at) < 0) {
		X509_STORE_free(store);
		return err_errno(e, -ENOMEM, "cannot read the trusted certificates");
	}
	SSL_CTX_set_cert_store(t->client, store); /* takes it over */
	forget_identities(t);
	return take_identities(t, text, n, at, e);
}

/* ---- connections ---- */

/* fd belongs to the result. */
static struct chan *make(struct tls *t, SSL_CTX *x, struct loop *l, int fd)
{
	struct chan *c = chan_make(l, fd, "http/1.1");
	struct conn *k = c ? calloc(1, sizeof(*k)) : NULL;
	BIO *b = NULL;

	if (!k)
		return chan_free(c, true);
	k->c = c;
	k->ssl = SSL_new(x);
	c->tls = k;
	c->layer = &layer;
	b = k->ssl ? BIO_new(t->bio) : NULL;
	if (!b)
		return chan_free(c, true);
	BIO_set_data(b, k);
	SSL_set_bio(k->ssl, b, b);
	(void)SSL_set_app_data(k->ssl, k);
	chan_again(c);
	return c;
}

struct chan *tls_server(struct tls *t, struct loop *l, int fd, const char *scope)
{
	struct chan *c = make(t, t->server, l, fd);
	unsigned char id[32];
	struct conn *k;

	if (!c)
		return NULL;
	k = c->tls;
	k->server = true;
	SSL_set_accept_state(k->ssl);
	if (EVP_Digest(scope, strlen(scope), id, NULL, EVP_sha256(), NULL) != 1 ||
	    SSL_set_session_id_context(k->ssl, id, sizeof(id)) != 1)
		return chan_free(c, true);
	return c;
}

bool tls_offers(const struct chan *c, const char *proto)
{
	const struct conn *t = c->tls;

	return streq(proto, "h2") ? t->h2 : t->h1;
}

int tls_serve(struct chan *c, const struct tls_leaf *leaf, const char *proto)
{
	struct conn *t = c->tls;

	if (SSL_use_cert_and_key(t->ssl, leaf->cert, leaf->key, leaf->chain, 1) != 1 ||
	    text_copy(t->agreed, sizeof(t->agreed), proto) < 0) {
		ERR_clear_error();
		return -EINVAL;
	}
	t->may_go = true;
	chan_again(c);
	return 0;
}

void tls_refuse(struct chan *c)
{
	uint8_t bytes[7];
	const size_t n = hello_alert(bytes);

	if (buf_add(&c->wire, bytes, n) == 0)
		chan_send(c);
}

static bool use_identity(const struct tls *t, struct conn *k, const struct host *host)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct tls_leaf *l = t->v[i].leaf;

		if (host_same(&t->v[i].host, host))
			return SSL_use_cert_and_key(k->ssl, l->cert, l->key, l->chain, 1) == 1;
	}
	return true;
}

static bool set_peer(struct conn *k, const struct host *host)
{
	if (host->kind == HOST_NAME) {
		SSL_set_hostflags(k->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
		return SSL_set1_host(k->ssl, host->text) == 1 &&
		       SSL_set_tlsext_host_name(k->ssl, host->text) == 1;
	}
	return X509_VERIFY_PARAM_set1_ip(SSL_get0_param(k->ssl), host->addr,
					 host->kind == HOST_V4 ? 4 : 16) == 1;
}

struct chan *tls_client(struct tls *t, struct loop *l, int fd, const struct tls_to *to)
{
	static const unsigned char both[] = "\x02h2\x08http/1.1", one[] = "\x08http/1.1";
	struct chan *c = make(t, t->client, l, fd);
	struct conn *k;
	int r;

	if (!c)
		return NULL;
	k = c->tls;
	SSL_set_connect_state(k->ssl);
	r = SSL_set_alpn_protos(k->ssl, to->offer_h2 ? both : one,
				(to->offer_h2 ? sizeof(both) : sizeof(one)) - 1);
	if (r != 0 || !set_peer(k, to->host) || !use_identity(t, k, to->host)) {
		ERR_clear_error();
		return chan_free(c, true);
	}
	k->session = to->session;
	if (k->session && *k->session)
		(void)SSL_set_session(k->ssl, *k->session);
	return c;
}

void tls_session_free(struct ssl_session_st *s)
{
	SSL_SESSION_free(s);
}

enum tls_state tls_state(const struct chan *c)
{
	const struct conn *t = c->tls;

	return t ? t->state : TLS_FAILED;
}

const char *tls_why(const struct chan *c, bool *ret_untrusted)
{
	const struct conn *t = c->tls;

	*ret_untrusted = t && t->untrusted;
	return t ? t->why : "";
}
