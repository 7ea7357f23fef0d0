/* A record read back. The grammar is JSON without what audit_line() never writes: no space, nothing nested, no bytes beyond
 * ASCII. Keys that are not known are read over, so that an older bac can show what a newer one wrote. */
#include "state/audit.h"

struct cursor {
	const char *p, *end;
	char *out, *out_end; /* decoded texts go here */
	bool bad;
};

enum { KEY_MAX = 24 };

#define NUMBER(name) \
	{ \
#name, offsetof(struct audit_record, name), true \
	}
#define TEXT(name) \
	{ \
#name, offsetof(struct audit_record, name), false \
	}
static const struct key {
	const char *name;
	size_t off;
	bool number;
} keys[] = {
	NUMBER(seq),   TEXT(time),     TEXT(sandbox), TEXT(event),      TEXT(kind),
	TEXT(via),     TEXT(decision), TEXT(host),    NUMBER(port),     TEXT(address),
	TEXT(method),  TEXT(path),     TEXT(rule),    TEXT(reason),     TEXT(note),
	NUMBER(count), NUMBER(flow),   NUMBER(sent),  NUMBER(received), NUMBER(duration_ms),
	NUMBER(file),  NUMBER(first),  NUMBER(last),  TEXT(last_hash),  TEXT(prev),
	TEXT(hash),
};
#undef NUMBER
#undef TEXT

static bool take(struct cursor *c, char want)
{
	if (c->p == c->end || *c->p != want) {
		c->bad = true;
		return false;
	}
	c->p++;
	return true;
}

static void put(struct cursor *c, unsigned byte)
{
	if (c->out == c->out_end)
		c->bad = true;
	else
		*c->out++ = (char)byte;
}

static void put_char(struct cursor *c, uint32_t u)
{
	if (!u || (u >= 0xd800 && u < 0xe000))
		u = 0xfffd;
	if (u < 0x80) {
		put(c, u);
		return;
	}
	if (u < 0x800) {
		put(c, 0xc0 | u >> 6);
	} else {
		if (u < 0x10000) {
			put(c, 0xe0 | u >> 12);
		} else {
			put(c, 0xf0 | u >> 18);
			put(c, 0x80 | (u >> 12 & 0x3f));
		}
		put(c, 0x80 | (u >> 6 & 0x3f));
	}
	put(c, 0x80 | (u & 0x3f));
}

static uint32_t take_hex(struct cursor *c)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++) {
		const int ch = c->p < c->end ? (uint8_t)*c->p++ : 0;

		if (ch >= '0' && ch <= '9')
			v = v << 4 | (uint32_t)(ch - '0');
		else if ((ch | 0x20) >= 'a' && (ch | 0x20) <= 'f')
			v = v << 4 | (uint32_t)((ch | 0x20) - 'a' + 10);
		else
			c->bad = true;
	}
	return v;
}

static void take_escape(struct cursor *c)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const int ch = c->p < c->end ? (uint8_t)*c->p++ : 0;
	const char *at = ch ? strchr(from, ch) : NULL;
	uint32_t u, low;

	if (at) {
		put(c, (unsigned char)to[at - from]);
		return;
	}
	if (ch != 'u') {
		c->bad = true;
		return;
	}
	u = take_hex(c);
	if (u >= 0xd800 && u < 0xdc00 && c->end - c->p >= 6 && c->p[0] == '\\' && c->p[1] == 'u') {
		struct cursor ahead = *c;

		ahead.p += 2;
		low = take_hex(&ahead);
		if (!ahead.bad && low >= 0xdc00 && low < 0xe000) {
			u = 0x10000 + ((u & 0x3ff) << 10) + (low & 0x3ff);
			c->p = ahead.p;
		}
	}
	put_char(c, u);
}

/* Decoded, with a NUL; never longer than it was written. */
static const char *take_string(struct cursor *c)
{
	const char *start = c->out;

	(void)take(c, '"');
	while (!c->bad && c->p < c->end && *c->p != '"') {
		const char ch = *c->p++;

		if (ch < ' ' || ch > '~') /* char may be signed or not */
			c->bad = true;
		else if (ch == '\\')
			take_escape(c);
		else
			put(c, (unsigned char)ch);
	}
	(void)take(c, '"');
	put(c, 0);
	return start;
}

/* What is behind the point does not count. */
static uint64_t take_number(struct cursor *c)
{
	const char *start = c->p;
	uint64_t v = 0;

	for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++) {
		const uint64_t d = (uint64_t)(*c->p - '0');

		if (v > (UINT64_MAX - d) / 10)
			c->bad = true;
		v = v * 10 + d;
	}
	if (c->p == start)
		c->bad = true;
	if (c->p < c->end && *c->p == '.')
		for (c->p++; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++)
			;
	return v;
}

static const struct key *take_key(struct cursor *c, uint64_t *seen)
{
	const char *name = take_string(c);

	if (c->bad)
		return NULL;
	c->out -= strlen(name) + 1; /* it need not be kept */
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (!streq(keys[i].name, name))
			continue;
		if (*seen & 1ULL << i)
			c->bad = true;
		*seen |= 1ULL << i;
		return &keys[i];
	}
	return NULL;
}

static void take_member(struct cursor *c, struct audit_record *r, uint64_t *seen)
{
	const struct key *k = take_key(c, seen);
	const bool text = c->p + 1 < c->end && c->p[1] == '"';

	if (!take(c, ':'))
		return;
	if (k && k->number == text) {
		c->bad = true;
	} else if (text) {
		const char *s = take_string(c);

		if (k)
			*(const char **)((char *)r + k->off) = s;
	} else {
		uint64_t v = take_number(c);

		if (k)
			*(uint64_t *)((char *)r + k->off) = v;
	}
}

static bool is_hash(const char *s)
{
	return strlen(s) == AUDIT_HASH && strspn(s, "0123456789abcdef") == AUDIT_HASH;
}

int audit_record_parse(struct audit_record *ret, const char *line, size_t n)
{
	struct cursor c = { line, line + n, ret->text, ret->text + sizeof(ret->text), false };
	uint64_t seen = 0;

	memset(ret, 0, offsetof(struct audit_record, text));
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!keys[i].number)
			*(const char **)((char *)ret + keys[i].off) = "";
	if (n >= AUDIT_LINE_MAX || !take(&c, '{'))
		return -EBADMSG;
	do
		take_member(&c, ret, &seen);
	while (!c.bad && c.p < c.end && *c.p == ',' && c.p++);
	(void)take(&c, '}');
	if (c.bad || c.p != c.end || !ret->seq || !is_hash(ret->prev) || !is_hash(ret->hash))
		return -EBADMSG;
	return 0;
}
