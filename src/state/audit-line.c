/* A record as a line: ASCII throughout, so that a terminal, an editor and grep are safe from what a guest called its
 * hosts. */
#define OPENSSL_API_COMPAT \
	0x10100000L /* the low level: it links to nothing else (see bac-audit's size) */
#include <openssl/sha.h>
#include <stdio.h>

#include "base/rdwr.h"
#include "state/audit-priv.h"

const char audit_zeros[AUDIT_HASH + 1] =
	"0000000000000000000000000000000000000000000000000000000000000000";

static const char hex[] = "0123456789abcdef";
static const char hash_key[] = ",\"hash\":\"";
enum { TAIL = sizeof(hash_key) - 1 + AUDIT_HASH + 2 }; /* ,"hash":"..."} */

void audit_hash(const void *p, size_t n, const void *q, size_t m, char ret[static AUDIT_HASH + 1])
{
	uint8_t md[SHA256_DIGEST_LENGTH];
	SHA256_CTX c;

	(void)SHA256_Init(&c);
	(void)SHA256_Update(&c, p, n);
	(void)SHA256_Update(&c, q, m);
	(void)SHA256_Final(md, &c);
	for (size_t i = 0; i < sizeof(md); i++) {
		ret[2 * i] = hex[md[i] >> 4];
		ret[2 * i + 1] = hex[md[i] & 15];
	}
	ret[AUDIT_HASH] = '\0';
}

static void put(struct wr *w, const char *s)
{
	wr_bytes(w, s, strlen(s));
}

static void put_u16(struct wr *w, unsigned v)
{
	char t[6] = {
		'\\', 'u', hex[v >> 12 & 15], hex[v >> 8 & 15], hex[v >> 4 & 15], hex[v & 15]
	};

	wr_bytes(w, t, sizeof(t));
}

/* One character of UTF-8 (RFC 3629); 0: it is none, take one byte. */
static size_t character(const uint8_t *p, uint32_t *ret)
{
	const size_t n = p[0] >= 0xf0 && p[0] < 0xf5 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc2 ? 2 : 0;
	uint32_t c = n ? p[0] & (0xffU >> (n + 1)) : 0;

	if (p[0] >= 0xf5 || !n)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0; /* also the NUL at the end */
		c = c << 6 | (p[i] & 0x3f);
	}
	if ((n == 3 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) ||
	    (n == 4 && (c < 0x10000 || c > 0x10ffff)))
		return 0;
	*ret = c;
	return n;
}

static void put_escaped(struct wr *w, const char *s, bool json)
{
	const uint8_t *p = (const uint8_t *)s;

	while (*p && !w->bad) {
		uint32_t c = 0xfffd;
		size_t n = 1;

		if (*p >= ' ' && *p < 0x7f) {
			if ((*p == '"' && json) || *p == '\\')
				wr_u8(w, '\\');
			wr_u8(w, *p++);
			continue;
		}
		if (*p < 0x80)
			c = *p;
		else
			n = MAX(character(p, &c), (size_t)1);
		if (c > 0xffff)
			put_u16(w, 0xd800 + ((c - 0x10000) >> 10));
		put_u16(w, c > 0xffff ? 0xdc00 + ((c - 0x10000) & 0x3ff) : c);
		p += n;
	}
}

static void put_string(struct wr *w, const char *s)
{
	wr_u8(w, '"');
	put_escaped(w, s, true);
	wr_u8(w, '"');
}

const char *audit_escape(char *dst, size_t max, const char *s)
{
	struct wr w = wr_init(dst, max - 1);

	put_escaped(&w, s, false);
	dst[w.n] = '\0';
	if (!wr_ok(&w) && max > 4)
		memcpy(dst + MIN(w.n, max - 4), "...", 4);
	return dst;
}

static void put_number(struct wr *w, uint64_t v)
{
	char t[20];
	size_t at = sizeof(t);

	do {
		t[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	wr_bytes(w, t + at, sizeof(t) - at);
}

/* ,"key":"text" */
static void text(struct wr *w, const char *key, const char *s)
{
	if (!s || !s[0])
		return;
	put(w, ",\"");
	put(w, key);
	put(w, "\":");
	put_string(w, s);
}

static void number(struct wr *w, const char *key, uint64_t v)
{
	put(w, ",\"");
	put(w, key);
	put(w, "\":");
	put_number(w, v);
}

/* The C library's would read the time zone from a file. Days to a date: the year begins in March, so that the leap day is its
 * last. */
static void put_time(struct wr *w, uint64_t real_ns)
{
	const uint64_t s = real_ns / 1000000000, day = s / 86400 + 719468, era = day / 146097;
	const unsigned doe = (unsigned)(day % 146097), sec = (unsigned)(s % 86400);
	const unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	const unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
	const unsigned month = mp < 10 ? mp + 3 : mp - 9;
	char t[64];

	(void)snprintf(t, sizeof(t), "%04u-%02u-%02uT%02u:%02u:%02u.%06uZ",
		       (unsigned)(yoe + era * 400 + (month <= 2)) % 10000, month,
		       doy - (153 * mp + 2) / 5 + 1, sec / 3600, sec / 60 % 60, sec % 60,
		       (unsigned)(real_ns / 1000 % 1000000));
	put(w, t);
}

static void put_duration(struct wr *w, uint64_t us)
{
	char t[64];

	(void)snprintf(t, sizeof(t), ",\"duration_ms\":%llu.%03u", (unsigned long long)(us / 1000),
		       (unsigned)(us % 1000));
	put(w, t);
}

static void put_receipt(struct wr *w, const struct receipt *r)
{
	text(w, "event", receipt_event_name(r->event));
	text(w, "kind", receipt_kind_name(r->kind));
	text(w, "via", receipt_via_name(r->via));
	if (r->event != RECEIPT_NOTE)
		text(w, "decision", r->allowed ? "allow" : "deny");
	text(w, "host", r->host);
	if (r->port)
		number(w, "port", r->port);
	text(w, "address", r->address);
	text(w, "method", r->method);
	text(w, "path", r->path);
	text(w, "rule", r->rule);
	text(w, "reason", r->reason);
	text(w, "note", r->note);
	if (r->event == RECEIPT_DECISION)
		number(w, "count", r->count);
	if (r->flow)
		number(w, "flow", r->flow);
	if (r->event != RECEIPT_END)
		return;
	number(w, "sent", r->sent);
	number(w, "received", r->received);
	put_duration(w, r->duration_us);
}

static void put_word(struct wr *w, const struct audit_word *x)
{
	text(w, "event", x->event);
	text(w, "kind", "log");
	text(w, "note", x->note);
	if (!x->file)
		return;
	number(w, "file", x->file);
	number(w, "first", x->first);
	number(w, "last", x->last);
	text(w, "last_hash", x->last_hash);
}

size_t audit_line(char dst[static AUDIT_LINE_MAX], const struct audit_stamp *s,
		  const struct receipt *r, const struct audit_word *x,
		  char ret_hash[static AUDIT_HASH + 1])
{
	struct wr w = wr_init(dst, AUDIT_LINE_MAX);

	put(&w, "{\"seq\":");
	put_number(&w, s->seq);
	put(&w, ",\"time\":\"");
	put_time(&w, s->real_ns);
	put(&w, "\"");
	text(&w, "sandbox", s->sandbox);
	if (r)
		put_receipt(&w, r);
	else
		put_word(&w, x);
	text(&w, "prev", s->prev);
	audit_hash(dst, w.n, "}", 1, ret_hash);
	put(&w, hash_key);
	put(&w, ret_hash);
	put(&w, "\"}\n");
	return wr_ok(&w) ? w.n : 0;
}

bool audit_line_holds(const char *line, size_t n)
{
	char want[AUDIT_HASH + 1];

	if (n <= TAIL || memcmp(line + n - TAIL, hash_key, sizeof(hash_key) - 1) != 0 ||
	    memcmp(line + n - 2, "\"}", 2) != 0)
		return false;
	audit_hash(line, n - TAIL, "}", 1, want);
	return !memcmp(line + n - 2 - AUDIT_HASH, want, AUDIT_HASH);
}
