/* Certificates.
 *
 * Of a certificate only the subject is read: what two of one authority have in common, and what OpenSSL looks for one by.
 *
 * That hash (X509_NAME_hash of OpenSSL 1.0 and later) is the first four bytes, low one first, of the SHA-1 of the canonical name: of the subject
 * without its outer header, with each text as a UTF8String, in lower case, without spaces at its ends and with one in place of several
 * (crypto/x509/x_name.c, x509_name_canon()). Names of several attributes at one place would have to be sorted again; no
 * authority of ours has them. */
#include "guest/init/cert.h"

#include "base/rdwr.h"
#include "guest/init/sum.h"

#define BEGIN "-----BEGIN CERTIFICATE-----"
#define END   "-----END CERTIFICATE-----"

enum {
	DER_UTF8 = 0x0c,
	DER_PRINTABLE = 0x13,
	DER_T61 = 0x14,
	DER_IA5 = 0x16,
	DER_VISIBLE = 0x1a,
	DER_OID = 0x06,
	DER_INTEGER = 0x02,
	DER_SEQUENCE = 0x30,
	DER_SET = 0x31,
	DER_VERSION = 0xa0,
	NAME_MAX_SIZE = 1024,
};

bool cert_next(const char *text, size_t n, size_t *at, struct cert_text *ret)
{
	const char *p = memmem(text + *at, n - *at, BEGIN, sizeof(BEGIN) - 1);
	const char *end = p ? memmem(p, n - (size_t)(p - text), END, sizeof(END) - 1) : NULL;

	if (!end)
		return false;
	end += sizeof(END) - 1;
	while (end < text + n && (*end == '\r' || *end == ' '))
		end++;
	if (end < text + n && *end == '\n')
		end++;
	*at = (size_t)(end - text);
	ret->p = p;
	ret->n = (size_t)(end - p);
	return true;
}

/* An element of DER with this tag; its content in *ret. Lengths of up to three bytes. */
static bool take(struct rd *r, uint8_t tag, struct rd *ret)
{
	uint8_t first;
	size_t n;

	if (rd_u8(r) != tag)
		r->bad = true;
	first = rd_u8(r);
	n = first;
	if (first == 0x81)
		n = rd_u8(r);
	else if (first == 0x82)
		n = rd_be16(r);
	else if (first >= 0x80)
		r->bad = true;
	*ret = rd_init(rd_take(r, n), n);
	ret->bad = r->bad;
	return !r->bad;
}

static bool pass(struct rd *r, uint8_t tag)
{
	struct rd inner;

	return take(r, tag, &inner);
}

/* Certificate ::= SEQUENCE { SEQUENCE { [0] version, serial, algorithm, issuer, validity, subject, ... }, ... } */
bool cert_find_subject(struct cert *c)
{
	struct rd r = rd_init(c->der, c->n), whole, tbs;
	bool good =
		take(&r, DER_SEQUENCE, &whole) && rd_done(&r) && take(&whole, DER_SEQUENCE, &tbs);

	if (good && tbs.n && tbs.p[0] == DER_VERSION)
		good = pass(&tbs, DER_VERSION);
	good = good && pass(&tbs, DER_INTEGER) && pass(&tbs, DER_SEQUENCE) &&
	       pass(&tbs, DER_SEQUENCE) && pass(&tbs, DER_SEQUENCE);
	if (!good)
		return false;
	c->subject = tbs.p;
	if (!pass(&tbs, DER_SEQUENCE))
		return false;
	c->n_subject = (size_t)(tbs.p - c->subject);
	return true;
}

int cert_read(const struct cert_text *t, uint8_t *mem, size_t max, struct cert *ret)
{
	const char *p = t->p + sizeof(BEGIN) - 1;
	const char *end = memmem(p, t->n - (sizeof(BEGIN) - 1), END, sizeof(END) - 1);
	struct cert c = { .der = mem };
	ssize_t n;

	if (!end)
		return -EBADMSG;
	n = sum_from_base64(mem, MIN(max, (size_t)CERT_DER_MAX), p, (size_t)(end - p));
	if (n < 0)
		return (int)n;
	c.n = (size_t)n;
	if (!cert_find_subject(&c))
		return -EBADMSG;
	*ret = c;
	return 0;
}

/* Only comments and empty lines. */
static bool is_plain(const char *p, const char *end)
{
	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		if (*p != '#' && *p != '\n' && *p != '\r')
			return false;
		p = nl ? nl + 1 : end;
	}
	return true;
}

int cert_set_read(struct cert_set *ret, const char *text, size_t n)
{
	size_t at = 0, before = 0, used = 0;
	struct cert_text t;

	ret->n = 0;
	while (cert_next(text, n, &at, &t)) {
		struct cert *c = &ret->v[ret->n];
		int r;

		if (!is_plain(text + before, t.p))
			return -EBADMSG;
		if (ret->n == CERT_SET_MAX)
			return -ENOBUFS;
		r = cert_read(&t, ret->mem + used, sizeof(ret->mem) - used, c);
		if (r < 0)
			return r;
		used += c->n;
		ret->n++;
		before = at;
	}
	return ret->n && is_plain(text + before, text + n) ? 0 : -EBADMSG;
}

static bool same(const uint8_t *a, size_t n_a, const uint8_t *b, size_t n_b)
{
	return n_a == n_b && !memcmp(a, b, n_a);
}

bool cert_set_has(const struct cert_set *s, const struct cert *c)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (same(s->v[i].subject, s->v[i].n_subject, c->subject, c->n_subject))
			return true;
	return false;
}

/* ---- the hash of a name ---- */

static bool is_space(uint8_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static size_t canonical(uint8_t *dst, const uint8_t *p, size_t n)
{
	size_t out = 0, i;

	while (n && is_space(p[0])) {
		p++;
		n--;
	}
	while (n && is_space(p[n - 1]))
		n--;
	for (i = 0; i < n; i++) {
		if (!is_space(p[i]))
			dst[out++] = p[i] >= 'A' && p[i] <= 'Z' ? (uint8_t)(p[i] | 0x20) : p[i];
		else if (!is_space(p[i + 1]))
			dst[out++] = ' ';
	}
	return out;
}

/* A header with the length as DER wants it. */
static void put_header(struct wr *w, uint8_t tag, size_t n)
{
	wr_u8(w, tag);
	if (n >= 0x100)
		wr_u8(w, 0x82);
	else if (n >= 0x80)
		wr_u8(w, 0x81);
	if (n >= 0x100)
		wr_be16(w, (uint16_t)n);
	else
		wr_u8(w, (uint8_t)n);
}

static size_t header_size(size_t n)
{
	return n >= 0x100 ? 4 : n >= 0x80 ? 3 : 2;
}

/* SET { SEQUENCE { OID, text } } */
static bool put_attribute(struct wr *w, struct rd *name)
{
	struct rd set, pair, oid, value;
	uint8_t text[NAME_MAX_SIZE], tag;
	size_t n, n_oid, n_pair;

	if (!take(name, DER_SET, &set) || !take(&set, DER_SEQUENCE, &pair) || !rd_done(&set) ||
	    !take(&pair, DER_OID, &oid) || !pair.n)
		return false;
	tag = pair.p[0];
	if (tag != DER_UTF8 && tag != DER_PRINTABLE && tag != DER_IA5 && tag != DER_VISIBLE)
		return false;
	if (!take(&pair, tag, &value) || !rd_done(&pair) || value.n > sizeof(text))
		return false;
	n = canonical(text, value.p, value.n);
	n_oid = header_size(oid.n) + oid.n;
	n_pair = n_oid + header_size(n) + n;
	put_header(w, DER_SET, header_size(n_pair) + n_pair);
	put_header(w, DER_SEQUENCE, n_pair);
	put_header(w, DER_OID, oid.n);
	wr_bytes(w, oid.p, oid.n);
	put_header(w, DER_UTF8, n);
	wr_bytes(w, text, n);
	return true;
}

bool cert_name_hash(const struct cert *c, uint32_t *ret)
{
	uint8_t form[2 * NAME_MAX_SIZE], sum[SHA1_SIZE];
	struct rd r = rd_init(c->subject, c->n_subject), name;
	struct wr w = wr_init(form, sizeof(form));
	struct sum_sha1 s;

	if (!take(&r, DER_SEQUENCE, &name))
		return false;
	while (name.n)
		if (!put_attribute(&w, &name))
			return false;
	if (!wr_ok(&w))
		return false;
	sum_sha1_init(&s);
	sum_sha1_add(&s, form, w.n);
	sum_sha1_end(&s, sum);
	*ret = (uint32_t)sum[3] << 24 | (uint32_t)sum[2] << 16 | (uint32_t)sum[1] << 8 | sum[0];
	return true;
}

/* ---- bundles ---- */

static bool goes(const struct cert_text *t, const struct cert_set *old, const struct cert_set *ours)
{
	uint8_t mem[CERT_DER_MAX];
	struct cert c;

	return cert_read(t, mem, sizeof(mem), &c) == 0 &&
	       (cert_set_has(ours, &c) || cert_set_has(old, &c));
}

int cert_bundle(struct buf *out, const char *bundle, size_t n, const struct cert_set *old,
		const struct cert_set *ours, const char *text, size_t n_text)
{
	size_t at = 0, kept = 0;
	struct cert_text t;
	int r = 0;

	while (r == 0 && cert_next(bundle, n, &at, &t)) {
		if (!goes(&t, old, ours))
			continue;
		r = buf_add(out, bundle + kept, (size_t)(t.p - bundle) - kept);
		kept = at;
	}
	if (r == 0)
		r = buf_add(out, bundle + kept, n - kept);
	if (r == 0 && out->n && buf_data(out)[out->n - 1] != '\n')
		r = buf_add(out, "\n", 1);
	if (r == 0)
		r = buf_add(out, text, n_text);
	if (r == 0 && n_text && text[n_text - 1] != '\n')
		r = buf_add(out, "\n", 1);
	return r;
}
