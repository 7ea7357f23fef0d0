/* Hellos, built piece by piece, split in every way, and cut at every byte. */
#include <stdio.h>

#include "base/check.h"
#include "base/rdwr.h"
#include "proxy/hello.h"

struct bytes {
	const char *p;
	size_t n;
};
#define B(s) ((struct bytes) { s, sizeof(s) - 1 })

#define SNI(len2, len1, len, name) "\0\0\0" len2 "\0" len1 "\0\0" len name
#define SNI_A                      SNI("\x0e", "\x0c", "\x09", "a.example")

/* A hello with these extensions, as one message. */
static size_t message(uint8_t *p, struct bytes ext, bool none)
{
	struct wr w = wr_init(p, 70000);
	size_t n;

	wr_be32(&w, 0x01000000);
	wr_be16(&w, 0x0303);
	for (int i = 0; i < 32; i++)
		wr_u8(&w, (uint8_t)i);
	wr_u8(&w, 32);
	for (int i = 0; i < 32; i++)
		wr_u8(&w, (uint8_t)i);
	wr_be16(&w, 4);
	wr_be32(&w, 0x1a1a1301); /* GREASE and one */
	wr_be16(&w, 0x0100);
	if (!none) {
		wr_be16(&w, (uint16_t)ext.n);
		wr_bytes(&w, ext.p, ext.n);
	}
	check(wr_ok(&w));
	n = w.n - 4;
	p[1] = (uint8_t)(n >> 16);
	p[2] = (uint8_t)(n >> 8);
	p[3] = (uint8_t)n;
	return w.n;
}

/* In records of at most step bytes. */
static size_t records(uint8_t *dst, const uint8_t *msg, size_t n, size_t step)
{
	struct wr w = wr_init(dst, 500000);

	for (size_t at = 0; at < n; at += step) {
		size_t len = MIN(step, n - at);

		wr_u8(&w, 22);
		wr_be16(&w, at ? 0x0303 : 0x0301);
		wr_be16(&w, (uint16_t)len);
		wr_bytes(&w, msg + at, len);
	}
	check(wr_ok(&w));
	return w.n;
}

static enum hello_result parse(struct hello *h, const uint8_t *p, size_t n)
{
	_free_ uint8_t *own = malloc(n + !n);

	check(own);
	memcpy(own, p, n);
	return hello_parse(h, own, n);
}

static uint8_t msg[70000], rec[500000];

static enum hello_result hello(struct hello *h, struct bytes ext)
{
	return parse(h, rec, records(rec, msg, message(msg, ext, false), 16384));
}

#define OK(h, ext) check(hello(h, B(ext)) == HELLO_OK)
#define BAD(ext)   check(hello(&(struct hello) { 0 }, B(ext)) == HELLO_BAD)

static void names(void)
{
	struct hello h;

	OK(&h, SNI_A);
	check(h.has_sni && !h.sni_bad && streq(h.sni, "a.example") && !h.has_ech && !h.alpn[0]);
	OK(&h, "");
	check(!h.has_sni && !h.sni_bad && !h.sni[0] && h.version == 0x0303);
	check(parse(&h, rec, records(rec, msg, message(msg, B(""), true), 16384)) == HELLO_OK);
	check(!h.has_sni);
	OK(&h, SNI_A SNI("\x0e", "\x0c", "\x09", "b.example"));
	check(h.has_sni && h.sni_bad && !h.sni[0]); /* two extensions */
	OK(&h, "\0\0\0\x1a\0\x18\0\0\x09"
	       "a.example\0\0\x09"
	       "b.example");
	check(h.has_sni && h.sni_bad && !h.sni[0]); /* two names */
	OK(&h, SNI("\x0e", "\x0c", "\x09", "a.e\0ample"));
	check(h.sni_bad && !h.sni[0]);
	OK(&h, "\0\0\0\x06\0\x04\1\0\1a"); /* not a host_name */
	check(h.sni_bad);
	OK(&h, "\0\0\0\x05\0\x03\0\0\0"); /* empty name */
	check(h.sni_bad);
	OK(&h, "\0\0\0\0"); /* as a server answers */
	check(h.has_sni && h.sni_bad);
	OK(&h, "\0\0\0\x06\0\x03\0\0\1a"); /* list shorter than the extension */
	check(h.sni_bad);
	OK(&h, "\0\0\0\x06\0\x05\0\0\1a"); /* longer */
	check(h.sni_bad);
	OK(&h, "\0\0\0\x06\0\x04\0\0\2a"); /* name longer */
	check(h.sni_bad);
}

static void long_name(size_t len, bool good)
{
	char ext[400] = { 0 };
	struct wr w = wr_init(ext, sizeof(ext));
	struct hello h;

	wr_be16(&w, 0);
	wr_be16(&w, (uint16_t)(len + 5));
	wr_be16(&w, (uint16_t)(len + 3));
	wr_u8(&w, 0);
	wr_be16(&w, (uint16_t)len);
	memset(wr_room(&w, len), 'n', len);
	check(hello(&h, (struct bytes) { ext, w.n }) == HELLO_OK);
	check(h.has_sni && h.sni_bad == !good && strlen(h.sni) == (good ? len : 0));
}

static void others(void)
{
	struct hello h;

	OK(&h, "\xfe\x0d\0\1x" SNI_A "\x0a\x0a\0\0"
	       "\x1a\x1a\0\1\0");
	check(h.has_ech && h.has_sni && streq(h.sni, "a.example")); /* and GREASE */
	OK(&h, "\xff\xce\0\0");
	check(h.has_ech && !h.has_sni);
	OK(&h, "\0\x2b\0\x07\x06\x2a\x2a\x03\x04\x03\x03");
	check(h.version == 0x0304);
	OK(&h, "\0\x2b\0\x03\x02\x7f\x1c"); /* a draft alone */
	check(h.version == 0x0303);
	BAD("\0\x2b\0\x02\x01\x03");
	BAD("\0\x2b\0\x01\0");
	BAD("\0\x2b\0\0");
	OK(&h, "\0\x10\0\x0e\0\x0c\2h2\x08http/1.1");
	check(streq(h.alpn, "h2,http/1.1"));
	OK(&h, "\0\x10\0\x06\0\x04\3\x1b,a");
	check(streq(h.alpn, "??a"));
	BAD("\0\x10\0\x02\0\0");
	BAD("\0\x10\0\x03\0\1\0");
	BAD("\0\x10\0\x04\0\2\5h");
	BAD("\0\x10\0\x03\0\2h");
	BAD("\0");
	BAD("\0\x10\0");
	BAD(SNI_A "\0\x10\0\x05\0\3\2h");
}

/* ALPN that is longer than the log wants is cut between names. */
static void long_alpn(void)
{
	char ext[6 + 10 * 11] = "\0\x10\0\x70\0\x6e";
	struct hello h;

	for (int i = 0; i < 10; i++)
		memcpy(ext + 6 + i * 11, "\x0aprotocol-x", 11);
	check(hello(&h, (struct bytes) { ext, sizeof(ext) }) == HELLO_OK);
	check(streq(h.alpn, "protocol-x,protocol-x,protocol-x,protocol-x,protocol-x"));
}

/* Records of every size, and every prefix of each: MORE until it is whole, and then it stays. */
static void split(void)
{
	const size_t n = message(msg, B("\xfe\x0d\0\1x" SNI_A), false);

	for (size_t step = 1; step <= n; step++) {
		size_t len = records(rec, msg, n, step);
		struct hello h = { .version = 7 };

		for (size_t cut = 0; cut < len; cut++)
			check(parse(&h, rec, cut) == HELLO_MORE && h.version == 7);
		check(parse(&h, rec, len) == HELLO_OK && streq(h.sni, "a.example") && h.has_ech);
		rec[len] = 20; /* what follows is somebody else's */
		check(parse(&h, rec, len + 1) == HELLO_OK);
	}
}

static void starts(void)
{
	static const struct {
		struct bytes in;
		enum hello_result want;
	} rows[] = {
		{ B(""), HELLO_MORE },
		{ B("G"), HELLO_NOT_TLS },
		{ B("\0"), HELLO_NOT_TLS },
		{ B("\x13"), HELLO_NOT_TLS },
		{ B("\x19\x03"), HELLO_NOT_TLS },
		{ B("\x16"), HELLO_MORE },
		{ B("\x16\x02"), HELLO_NOT_TLS },
		{ B("\x16\xfe\xfd"), HELLO_NOT_TLS }, /* DTLS */
		{ B("\x16\x03"), HELLO_MORE },
		{ B("\x15"), HELLO_MORE },
		{ B("\x15\x03"), HELLO_BAD }, /* an alert ahead of the hello: OpenSSL skips it */
		{ B("\x14\x03"), HELLO_BAD },
		{ B("\x17\x03\x03"), HELLO_BAD },
		{ B("\x18\x03\x03"), HELLO_BAD },
		{ B("\x16\x03\x01\0\0"), HELLO_BAD },     /* empty record */
		{ B("\x16\x03\x01\x40\x01"), HELLO_BAD }, /* too long */
		{ B("\x16\x03\x01\x40\x00"), HELLO_MORE },
		{ B("\x16\x03\x01\0\1\2"), HELLO_BAD }, /* server_hello */
		{ B("\x16\x03\x01\0\1\1\x16\x04"), HELLO_BAD },
		{ B("\x16\x03\x01\0\1\1\x17"), HELLO_BAD },
		{ B("\x16\x03\x01\0\4\1\1\0\0"), HELLO_BAD }, /* over HELLO_MAX */
		{ B("\x16\x03\x01\0\4\1\0\0\0"), HELLO_BAD }, /* empty body */
		{ B("\x80\x2e\1\3\1"), HELLO_BAD },
		{ B("\x80\x2e\1\3"), HELLO_BAD },
		{ B("\x80\x2e\1"), HELLO_MORE },
		{ B("\x80\x2e\2"), HELLO_NOT_TLS },
		{ B("\x80\x2e\1\0"), HELLO_NOT_TLS },
	};
	struct hello h;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		enum hello_result res = parse(&h, (const uint8_t *)rows[i].in.p, rows[i].in.n);

		if (res != rows[i].want)
			(void)fprintf(stderr, "start %zu: %d\n", i, res);
		check(res == rows[i].want);
	}
}

/* Each field of the body, bent. */
static void bodies(void)
{
	static const struct {
		size_t at;
		uint8_t value;
	} bent[] = {
		{ 4, 2 },               /* version */
		{ 38, 33 },             /* session */
		{ 71, 1 },              /* ciphers: too long */
		{ 72, 3 },              /* odd */
		{ 72, 0 },   { 77, 0 }, /* compression: none */
		{ 77, 200 }, { 79, 1 }, /* extensions */
		{ 80, 0 },
	};
	const size_t n = message(msg, B(SNI_A), false);
	struct hello h;

	for (size_t i = 0; i < ARRAY_SIZE(bent); i++) {
		uint8_t was = msg[bent[i].at];

		msg[bent[i].at] = bent[i].value;
		check(parse(&h, rec, records(rec, msg, n, 16384)) == HELLO_BAD);
		msg[bent[i].at] = was;
	}
	check(parse(&h, rec, records(rec, msg, n, 16384)) == HELLO_OK);
	msg[n] = 0; /* something behind the message in its record */
	check(parse(&h, rec, records(rec, msg, n + 1, 16384)) == HELLO_BAD);
}

static void limits(void)
{
	static char ext[HELLO_MAX];
	struct wr w = wr_init(ext, sizeof(ext));
	const size_t pad = 65000 - 4;
	struct hello h;
	size_t n, len;

	wr_be16(&w, 21);
	wr_be16(&w, (uint16_t)pad);
	check(wr_room(&w, pad));
	n = message(msg, (struct bytes) { ext, w.n }, false);
	len = records(rec, msg, n, 16384);
	check(len <= HELLO_MAX && parse(&h, rec, len) == HELLO_OK);
	len = records(rec, msg, n, 100); /* headers count */
	check(len > HELLO_MAX);
	check(parse(&h, rec, HELLO_MAX - 1) == HELLO_MORE);
	check(parse(&h, rec, HELLO_MAX) == HELLO_BAD);
	check(parse(&h, rec, len) == HELLO_BAD);
}

int main(void)
{
	uint8_t alert[7];

	names();
	long_name(255, true);
	long_name(256, false);
	others();
	long_alpn();
	split();
	starts();
	bodies();
	limits();
	check(hello_alert(alert) == 7 && !memcmp(alert, "\x15\x03\x01\0\2\2\x31", 7));
	return 0;
}
