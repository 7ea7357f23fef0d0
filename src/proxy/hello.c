/* A ClientHello is a handshake message, and a handshake message may lie in any number of records. So there are two
 * readers: gather() takes the records apart and puts their payload together, as far as the message goes; parse_body() reads
 * the message. Once the bytes have begun as TLS, nothing makes them something else: a server that is more lenient than
 * this must not get a hello that was not looked at. */
#include "proxy/hello.h"

#include "base/rdwr.h"

enum {
	R_FIRST = 20, /* change_cipher_spec */
	R_HANDSHAKE = 22,
	R_LAST = 24, /* heartbeat */
	R_HEADER = 5,
	R_MAX = 1 << 14,
	H_CLIENT_HELLO = 1,
	H_HEADER = 4,
	X_SNI = 0,
	X_ALPN = 16,
	X_VERSIONS = 43,
	X_ECH = 0xfe0d,
	X_ESNI = 0xffce, /* what ECH was before */
	V_SSL3 = 0x0300,
	V_TLS13 = 0x0304,
};

static size_t message_size(const uint8_t *msg)
{
	return H_HEADER + ((size_t)msg[1] << 16 | (size_t)msg[2] << 8 | msg[3]);
}

/* Is the message whole, or can it never be? */
static enum hello_result judge(const uint8_t *msg, size_t have)
{
	if (have && msg[0] != H_CLIENT_HELLO)
		return HELLO_BAD;
	if (have < H_HEADER)
		return HELLO_MORE;
	if (message_size(msg) > HELLO_MAX)
		return HELLO_BAD;
	if (have < message_size(msg))
		return HELLO_MORE;
	/* nothing may follow in the record: the server's turn is next */
	return have == message_size(msg) ? HELLO_OK : HELLO_BAD;
}

static enum hello_result gather(const uint8_t *p, size_t n, uint8_t *msg, size_t *ret_have)
{
	enum hello_result res = HELLO_MORE;
	size_t at = 0, have = 0;

	while (res == HELLO_MORE && n - at >= 1) {
		const uint8_t *rec = p + at;
		size_t left = n - at, len, here;

		if (rec[0] != R_HANDSHAKE || (left > 1 && rec[1] != 3))
			return HELLO_BAD;
		if (left < R_HEADER)
			return HELLO_MORE;
		len = (size_t)rec[3] << 8 | rec[4];
		if (!len || len > R_MAX)
			return HELLO_BAD;
		here = MIN(len, left - R_HEADER);
		memcpy(msg + have, rec + R_HEADER, here);
		have += here;
		at += R_HEADER + here;
		res = judge(msg, have);
		if (res == HELLO_OK && here < len)
			res = HELLO_BAD;
	}
	*ret_have = have;
	return res;
}

/* The one name of type host_name, or it is bad. */
static void read_sni(struct hello *h, struct rd x)
{
	uint16_t list = rd_be16(&x), len;
	const uint8_t *name;
	uint8_t type;

	if (h->has_sni || list != x.n)
		h->sni_bad = true;
	h->has_sni = true;
	type = rd_u8(&x);
	len = rd_be16(&x);
	name = rd_take(&x, len);
	if (type || !name || !rd_done(&x) || !len || len >= sizeof(h->sni) || memchr(name, 0, len))
		h->sni_bad = true;
	if (h->sni_bad)
		h->sni[0] = '\0';
	else
		memcpy(h->sni, name, len);
}

static bool read_alpn(struct hello *h, struct rd x)
{
	uint16_t list = rd_be16(&x);
	size_t at = 0;

	if (list != x.n || !list)
		return false;
	while (x.n) {
		uint8_t len = rd_u8(&x);
		const uint8_t *name = rd_take(&x, len);

		if (!name || !len)
			return false;
		if (at + len + 2 > sizeof(h->alpn))
			continue; /* cut, but still checked */
		if (at)
			h->alpn[at++] = ',';
		for (uint8_t i = 0; i < len; i++) {
			h->alpn[at] = '?';
			if (name[i] > ' ' && name[i] < 0x7f && name[i] != ',')
				h->alpn[at] = (char)name[i];
			at++;
		}
	}
	return true;
}

static bool read_versions(struct hello *h, struct rd x)
{
	uint8_t list = rd_u8(&x);
	uint16_t best = 0;

	if (list != x.n || !list || list % 2)
		return false;
	while (x.n) {
		uint16_t v = rd_be16(&x);

		if (v >= V_SSL3 && v <= V_TLS13 && v > best)
			best = v; /* the others are GREASE (RFC 8701) and drafts */
	}
	if (best)
		h->version = best;
	return true;
}

static bool read_extensions(struct hello *h, struct rd *r)
{
	while (r->n) {
		uint16_t type = rd_be16(r), len = rd_be16(r);
		const uint8_t *p = rd_take(r, len);
		struct rd x;

		if (!p)
			return false;
		x = rd_init(p, len);
		if (type == X_SNI)
			read_sni(h, x);
		else if (type == X_ECH || type == X_ESNI)
			h->has_ech = true;
		else if ((type == X_ALPN && !read_alpn(h, x)) ||
			 (type == X_VERSIONS && !read_versions(h, x)))
			return false;
	}
	return true;
}

static bool parse_body(struct hello *h, const uint8_t *p, size_t n)
{
	struct rd r = rd_init(p, n);
	uint16_t ciphers, ext;
	uint8_t len;

	h->version = rd_be16(&r);
	(void)rd_take(&r, 32); /* random */
	len = rd_u8(&r);
	(void)rd_take(&r, len); /* session */
	if (len > 32 || h->version >> 8 != 3)
		return false;
	ciphers = rd_be16(&r);
	(void)rd_take(&r, ciphers);
	len = rd_u8(&r);
	(void)rd_take(&r, len); /* compression */
	if (r.bad || !ciphers || ciphers % 2 || !len)
		return false;
	if (!r.n)
		return true; /* before TLS 1.2 there need not be extensions */
	ext = rd_be16(&r);
	return !r.bad && ext == r.n && read_extensions(h, &r);
}

/* As SSL 2 did: two bytes of length with the high bit set, 1, the version. */
static enum hello_result old_style(const uint8_t *p, size_t n)
{
	static const uint8_t want[] = { 1, 3 };

	for (size_t i = 2; i < n && i < 4; i++)
		if (p[i] != want[i - 2])
			return HELLO_NOT_TLS;
	return n < 4 ? HELLO_MORE : HELLO_BAD;
}

enum hello_result hello_parse(struct hello *ret, const uint8_t *p, size_t n)
{
	uint8_t msg[HELLO_MAX];
	struct hello h = { 0 };
	enum hello_result res;
	size_t have;

	if (!n)
		return HELLO_MORE;
	if (p[0] & 0x80)
		return old_style(p, n);
	if (p[0] < R_FIRST || p[0] > R_LAST || (n > 1 && p[1] != 3))
		return HELLO_NOT_TLS;
	if (n < 2)
		return HELLO_MORE;
	res = gather(p, MIN(n, HELLO_MAX), msg, &have);
	if (res == HELLO_MORE && n >= HELLO_MAX)
		return HELLO_BAD;
	if (res != HELLO_OK)
		return res;
	if (!parse_body(&h, msg + H_HEADER, have - H_HEADER))
		return HELLO_BAD;
	*ret = h;
	return HELLO_OK;
}

size_t hello_alert(uint8_t ret[static 7])
{
	static const uint8_t alert[7] = { 21, 3, 1, 0, 2, 2, 49 };

	memcpy(ret, alert, sizeof(alert));
	return sizeof(alert);
}
