/* Java's keystore. */
#include "guest/init/jks.h"

#include "base/rdwr.h"
#include "guest/init/sum.h"

#define SALT "Mighty Aphrodite"
#define X509 "X.509"

static const uint8_t password[] = {
	0, 'c', 0, 'h', 0, 'a', 0, 'n', 0, 'g', 0, 'e', 0, 'i', 0, 't'
};

enum { MAGIC = 0xfeedfeed, VERSION = 2, HEAD = 12, KEY = 1, CERT = 2 };

static void put(struct jks *k, const void *p, size_t n)
{
	if (k->r == 0)
		k->r = buf_add(k->out, p, n);
}

static void put_head(uint8_t head[HEAD], uint32_t n)
{
	struct wr w = wr_init(head, HEAD);

	wr_be32(&w, MAGIC);
	wr_be32(&w, VERSION);
	wr_be32(&w, n);
}

void jks_begin(struct jks *k, struct buf *out, uint64_t now_ms)
{
	uint8_t head[HEAD];

	*k = (struct jks) { .out = out, .now_ms = now_ms };
	put_head(head, 0); /* the number follows at the end */
	put(k, head, HEAD);
}

void jks_add(struct jks *k, const char *alias, const uint8_t *der, size_t n)
{
	uint8_t b[4 + 2 + JKS_ALIAS_MAX + 8 + 2 + sizeof(X509) + 4];
	struct wr w = wr_init(b, sizeof(b));
	size_t len = MIN(strlen(alias), (size_t)JKS_ALIAS_MAX);

	wr_be32(&w, CERT);
	wr_be16(&w, (uint16_t)len);
	wr_bytes(&w, alias, len);
	wr_be64(&w, k->now_ms);
	wr_be16(&w, sizeof(X509) - 1);
	wr_bytes(&w, X509, sizeof(X509) - 1);
	wr_be32(&w, (uint32_t)n);
	put(k, b, w.n);
	put(k, der, n);
	k->n++;
}

static void digest(const uint8_t *p, size_t n, uint8_t ret[SHA1_SIZE])
{
	struct sum_sha1 s;

	sum_sha1_init(&s);
	sum_sha1_add(&s, password, sizeof(password));
	sum_sha1_add(&s, SALT, sizeof(SALT) - 1);
	sum_sha1_add(&s, p, n);
	sum_sha1_end(&s, ret);
}

int jks_end(struct jks *k)
{
	uint8_t sum[SHA1_SIZE];

	if (k->r < 0)
		return k->r;
	/* all of it is in one piece, and ours */
	put_head(k->out->p + k->out->off, k->n);
	digest(buf_data(k->out), k->out->n, sum);
	put(k, sum, sizeof(sum));
	return k->r;
}

/* ---- taking over ---- */

/* type and DER; the DER goes to *ret */
static void pass_cert(struct rd *r, const uint8_t **ret, size_t *ret_n)
{
	(void)rd_take(r, rd_be16(r));
	*ret_n = rd_be32(r);
	*ret = rd_take(r, *ret_n);
}

/* Passes one entry. *ret_der is NULL for a key. */
static void pass_entry(struct rd *r, const uint8_t **ret_der, size_t *ret_n)
{
	uint32_t tag = rd_be32(r), n;

	*ret_der = NULL;
	*ret_n = 0;
	(void)rd_take(r, rd_be16(r));
	(void)rd_be64(r);
	if (tag == CERT) {
		pass_cert(r, ret_der, ret_n);
		return;
	}
	r->bad |= tag != KEY;
	(void)rd_take(r, rd_be32(r));
	for (n = rd_be32(r); n && !r->bad; n--) {
		const uint8_t *der;

		pass_cert(r, &der, ret_n);
	}
}

/* An entry that is replaced. */
static bool goes(struct cert *c, const struct cert_set *old, const struct cert_set *ours)
{
	return c->der && cert_find_subject(c) && (cert_set_has(old, c) || cert_set_has(ours, c));
}

bool jks_copy(struct jks *k, const void *p, size_t n, const struct cert_set *old,
	      const struct cert_set *ours)
{
	struct rd r = rd_init(p, n < SHA1_SIZE ? 0 : n - SHA1_SIZE);
	uint8_t sum[SHA1_SIZE];
	const uint32_t magic = rd_be32(&r), version = rd_be32(&r);
	uint32_t count, i;

	if (magic != MAGIC || version != VERSION)
		return false;
	digest(p, n - SHA1_SIZE, sum);
	if (memcmp(sum, (const uint8_t *)p + n - SHA1_SIZE, SHA1_SIZE) != 0)
		return false;
	count = rd_be32(&r);
	for (i = 0; i < count && !r.bad; i++) {
		const uint8_t *begin = r.p;
		struct cert c = { 0 };

		pass_entry(&r, &c.der, &c.n);
		if (r.bad)
			return false;
		if (goes(&c, old, ours))
			continue;
		put(k, begin, (size_t)(r.p - begin));
		k->n++;
	}
	return rd_done(&r);
}
