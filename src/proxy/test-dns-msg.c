/* DNS: questions of every bad shape, and answers read back by hand. */
#include <stdio.h>

#include "base/check.h"
#include "proxy/dns-msg.h"

#define HEAD(flags, qd, an, ns, ar) "\x12\x34" flags "\0" qd "\0" an "\0" ns "\0" ar
#define ONE                         HEAD("\x01\x00", "\1", "\0", "\0", "\0")
#define EDNS                        HEAD("\x01\x00", "\1", "\0", "\0", "\1")
#define AX                          "\1a\1x\0\0\1\0\1"
#define OPT(size)                   "\0\0\x29" size "\0\0\0\0\0\0"
#define L63                         "0123456789012345678901234567890123456789012345678901234567890123"

static const struct {
	const char *name;
	int want;
	const char *p;
	size_t n;
	const char *text;
} rows[] = {
#define R(name, want, bytes, text) \
	{ \
		name, want, bytes, sizeof(bytes) - 1, text \
	}
	R("plain", 0, ONE AX, "a.x"),
	R("case is kept", 0, ONE "\1A\1x\0\0\1\0\1", "A.x"),
	R("root", 0, ONE "\0\0\1\0\1", ""),
	R("edns", 0, EDNS AX OPT("\x04\xd0"), "a.x"),
	R("edns with an option", 0, EDNS AX "\0\0\x29\x04\xd0\0\0\0\0\0\x08\0\x0a\0\x04YYYY",
	  "a.x"),
	R("edns version 1", DNS_BADVERS, EDNS AX "\0\0\x29\x04\xd0\0\1\0\0\0\0", "a.x"),
	R("odd bytes", 0, ONE "\5a.\0\xff\x20\1x\0\0\1\0\1", "a\\046\\000\\255\\032.x"),
	R("a backslash", 0, ONE "\1\\\0\0\1\0\1", "\\092"),
	R("underscore", 0, ONE "\4_tcp\1x\0\0\x21\0\1", "_tcp.x"),
	R("empty", -EINVAL, "", ""),
	R("half a header", -EINVAL, "\x12\x34\x01\x00\0\1\0\0\0\0\0", ""),
	R("a response", -EINVAL, HEAD("\x81\x00", "\1", "\0", "\0", "\0") AX, ""),
	R("notify", DNS_NOTIMP, HEAD("\x20\x00", "\1", "\0", "\0", "\0") AX, ""),
	R("update", DNS_NOTIMP, HEAD("\x28\x00", "\1", "\0", "\0", "\0") AX, ""),
	R("cut", DNS_FORMERR, HEAD("\x03\x00", "\1", "\0", "\0", "\0") AX, ""),
	R("no question", DNS_FORMERR, HEAD("\x01\x00", "\0", "\0", "\0", "\0"), ""),
	R("two questions", DNS_FORMERR, HEAD("\x01\x00", "\2", "\0", "\0", "\0") AX AX, ""),
	R("two said, one there", DNS_FORMERR, HEAD("\x01\x00", "\2", "\0", "\0", "\0") AX, ""),
	R("one said, two there", DNS_FORMERR, ONE AX AX, "a.x"),
	R("an answer in it", DNS_FORMERR, HEAD("\x01\x00", "\1", "\1", "\0", "\0") AX, ""),
	R("authority in it", DNS_FORMERR, HEAD("\x01\x00", "\1", "\0", "\1", "\0") AX, ""),
	R("two additional", DNS_FORMERR,
	  HEAD("\x01\x00", "\1", "\0", "\0", "\2") AX OPT("\x04\xd0") OPT("\x04\xd0"), ""),
	R("additional, no OPT", DNS_FORMERR, EDNS AX "\0\0\1\0\1\0\0\0\0\0\4\1\2\3\4", "a.x"),
	R("OPT with a name", DNS_FORMERR, EDNS AX "\1a\0\0\x29\x04\xd0\0\0\0\0\0\0", "a.x"),
	R("OPT cut", DNS_FORMERR, EDNS AX "\0\0\x29\x04\xd0\0\0\0\0\0", "a.x"),
	R("OPT longer than there is", DNS_FORMERR, EDNS AX "\0\0\x29\x04\xd0\0\0\0\0\0\1", "a.x"),
	R("bytes left over", DNS_FORMERR, ONE AX "\0", "a.x"),
	R("a pointer to itself", DNS_FORMERR, ONE "\xc0\x0c\0\1\0\1", ""),
	R("a pointer behind a label", DNS_FORMERR, ONE "\1a\xc0\x0c\0\1\0\1", ""),
	R("label type 01", DNS_FORMERR, ONE "\x41" L63 "\0\0\1\0\1", ""),
	R("label type 10", DNS_FORMERR, ONE "\x81" L63 "\0\0\1\0\1", ""),
	R("no end", DNS_FORMERR, ONE "\1a\1x", ""),
	R("label runs out", DNS_FORMERR,
	  ONE "\x08"
	      "abc",
	  ""),
	R("no type", DNS_FORMERR, ONE "\1a\0", ""),
	R("no class", DNS_FORMERR, ONE "\1a\0\0\1", ""),
	R("half a class", DNS_FORMERR, ONE "\1a\0\0\1\0", ""),
	R("chaos", DNS_REFUSED, ONE "\7version\4bind\0\0\x10\0\3", "version.bind"),
	R("class any", DNS_REFUSED, ONE "\1a\0\0\1\0\xff", "a"),
#undef R
};

/* Of the very length, so that a byte too far is noticed. */
static int parse(struct dns_query *q, const void *p, size_t n)
{
	_free_ uint8_t *own = malloc(n + !n);

	check(own);
	memcpy(own, p, n);
	return dns_parse(q, own, n);
}

static void table(void)
{
	struct dns_query q;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int r = parse(&q, rows[i].p, rows[i].n);

		if (r != rows[i].want)
			(void)fprintf(stderr, "%s: %d\n", rows[i].name, r);
		check(r == rows[i].want);
		if (r < 0)
			continue;
		check(q.id == 0x1234);
		check(r == DNS_FORMERR || streq(q.name, rows[i].text) || !q.question_len);
		if (!r)
			check(streq(q.name, rows[i].text) && q.question_len && q.class == 1);
	}
}

/* Whatever is missing, it is no question. */
static void every_cut(void)
{
	static const char whole[] = EDNS AX OPT("\x04\xd0");
	struct dns_query q;

	for (size_t n = 0; n < sizeof(whole) - 1; n++)
		check(parse(&q, whole, n) == (n < 12 ? -EINVAL : DNS_FORMERR));
	check(parse(&q, whole, sizeof(whole) - 1) == 0);
}

static void long_names(void)
{
	uint8_t m[600] = "\x12\x34\x01\x00\0\1\0\0\0\0\0";
	struct dns_query q;
	size_t at = 12;

	for (int i = 0; i < 4; i++) { /* 3 * 64 + 62 + 1 = 255 */
		uint8_t len = i < 3 ? 63 : 61;

		m[at++] = len;
		memset(m + at, 0xff, len);
		at += len;
	}
	m[at++] = 0;
	memcpy(m + at, "\0\1\0\1", 4);
	check(at - 12 == 255 && parse(&q, m, at + 4) == 0);
	check(strlen(q.name) == 250 * 4 + 3 && q.question_len == 259);
	m[at - 63] = 62; /* one byte more */
	m[at] = 0;
	memcpy(m + at + 1, "\0\1\0\1", 4);
	check(parse(&q, m, at + 5) == DNS_FORMERR && !q.question_len);
	check(parse(&q, m, 12) == DNS_FORMERR);
}

static void sizes(void)
{
	static const struct {
		uint8_t said[2];
		uint16_t want;
	} sz[] = { { { 0, 0 }, 512 },       { { 1, 0xff }, 512 },  { { 2, 0 }, 512 },
		   { { 4, 0xd0 }, 1232 },   { { 4, 0xcf }, 1231 }, { { 4, 0xd1 }, 1232 },
		   { { 0xff, 0xff }, 1232 } };
	char m[] = EDNS AX OPT("zz");
	struct dns_query q;

	for (size_t i = 0; i < ARRAY_SIZE(sz); i++) {
		memcpy(m + sizeof(m) - 1 - 8, sz[i].said, 2);
		check(parse(&q, m, sizeof(m) - 1) == 0 && q.edns && q.udp_size == sz[i].want);
	}
	check(parse(&q, ONE AX, sizeof(ONE AX) - 1) == 0 && !q.edns && q.udp_size == 512);
}

static size_t answer(const char *ask, size_t n, const struct dns_answer *a, uint8_t *out)
{
	struct dns_query q;
	int r = parse(&q, ask, n);
	struct dns_answer with = *a;

	check(r >= 0);
	if (r)
		with.rcode = (uint8_t)r;
	n = dns_answer(&q, &with, out, DNS_ANSWER_MAX);
	check(n >= 12 && (with.tcp || n <= q.udp_size));
	return n;
}

#define ANSWER(ask, a) answer(ask, sizeof(ask) - 1, a, out)
#define SAYS(bytes)    check(n == sizeof(bytes) - 1 && !memcmp(out, bytes, n))

static void answers(void)
{
	static const uint8_t v4[4] = { 198, 18, 1, 7 };
	static const uint8_t v6[16] = { 0x20, 1, 0xd, 0xb8, [15] = 1 };
	uint8_t out[DNS_ANSWER_MAX];
	size_t n;

	n = ANSWER(ONE AX, (&(struct dns_answer) { .addr = v4, .addr_len = 4, .ttl = 30 }));
	SAYS("\x12\x34\x81\x80\0\1\0\1\0\0\0\0" AX "\xc0\x0c\0\1\0\1\0\0\0\x1e\0\4\xc6\x12\1\7");
	n = ANSWER(EDNS AX OPT("\x04\xd0"), (&(struct dns_answer) { .addr = v4, .addr_len = 4 }));
	SAYS("\x12\x34\x81\x80\0\1\0\1\0\0\0\1" AX
	     "\xc0\x0c\0\1\0\1\0\0\0\0\0\4\xc6\x12\1\7" OPT("\x04\xd0"));
	n = ANSWER(ONE AX, (&(struct dns_answer) { .addr = v6, .addr_len = 16, .ttl = 1 }));
	SAYS("\x12\x34\x81\x80\0\1\0\1\0\0\0\0" AX
	     "\xc0\x0c\0\x1c\0\1\0\0\0\1\0\x10\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\1");
	n = ANSWER(ONE AX, (&(struct dns_answer) { .ptr = "b.example", .ttl = 1 }));
	SAYS("\x12\x34\x81\x80\0\1\0\1\0\0\0\0" AX
	     "\xc0\x0c\0\x0c\0\1\0\0\0\1\0\x0b\1b\7example\0");
	n = ANSWER(ONE AX, (&(struct dns_answer) { .rcode = DNS_NXDOMAIN, .why = "no" }));
	SAYS("\x12\x34\x81\x83\0\1\0\0\0\0\0\0" AX);
	n = ANSWER(EDNS AX OPT("\x04\xd0"), (&(struct dns_answer) { .rcode = 5, .why = "no" }));
	SAYS("\x12\x34\x81\x85\0\1\0\0\0\0\0\1" AX "\0\0\x29\x04\xd0\0\0\0\0\0\x08\0\x0f\0\4\0\x0f"
	     "no");
	n = ANSWER(HEAD("\x29\x00", "\1", "\0", "\0", "\0") AX, (&(struct dns_answer) { 0 }));
	SAYS("\x12\x34\xa9\x84\0\0\0\0\0\0\0\0");
	n = ANSWER(EDNS AX "\0\0\x29\x04\xd0\0\1\0\0\0\0", (&(struct dns_answer) { 0 }));
	SAYS("\x12\x34\x81\x80\0\1\0\0\0\0\0\1" AX "\0\0\x29\x04\xd0\1\0\0\0\0\0");
	n = ANSWER(HEAD("\x00\x00", "\0", "\0", "\0", "\0"),
		   (&(struct dns_answer) { .addr = v4, .addr_len = 4 }));
	SAYS("\x12\x34\x80\x81\0\0\0\0\0\0\0\0");
}

/* What does not fit: first the text goes, then the record. */
static void too_long(void)
{
	static char why[2000], ptr[254];
	uint8_t m[300] = "\x12\x34\x01\x00\0\1\0\0\0\0\0", out[DNS_ANSWER_MAX];
	struct dns_answer a = { .ptr = ptr, .why = why };
	struct dns_query q;
	size_t at = 12, n;

	for (int i = 0; i < 3; i++) {
		m[at] = 63;
		memset(m + at + 1, 'q', 63);
		memset(ptr + (size_t)i * 64, 'p', 63);
		ptr[i * 64 + 63] = '.';
		at += 64;
	}
	memset(ptr + 192, 'z', 61);
	memcpy(m + at, "\0\0\x0c\0\1", 5);
	memset(why, 'w', sizeof(why) - 1);
	check(parse(&q, m, at + 5) == 0);
	n = dns_answer(&q, &a, out, sizeof(out)); /* 12 + 197 + 12 + 255 = 476: room */
	check(n == 476 && !(out[2] & 2) && out[7] == 1);
	q.edns = true; /* 487 with OPT, and 406 of text is too much */
	n = dns_answer(&q, &a, out, sizeof(out));
	check(n == 487 && !(out[2] & 2) && out[7] == 1 && out[11] == 1);
	q.udp_size = 486;
	n = dns_answer(&q, &a, out, sizeof(out));
	check(n == 220 && (out[2] & 2) && out[7] == 0);
	a.tcp = true;
	n = dns_answer(&q, &a, out, sizeof(out));
	check(n == 487 + 6 + 400 && !(out[2] & 2));
	memcpy(why + 399, "\xc3\xa4", 2); /* a character across the cut */
	check(dns_answer(&q, &a, out, sizeof(out)) == 487 + 6 + 399);
	ptr[10] = '.';
	ptr[11] = '.'; /* not a name: no record */
	n = dns_answer(&q, &a, out, sizeof(out));
	check(out[7] == 0);
}

int main(void)
{
	table();
	every_cut();
	long_names();
	sizes();
	answers();
	too_long();
	return 0;
}
