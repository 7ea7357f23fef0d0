/* DNS messages. The reader goes over the bytes once and follows no pointer: a question has no reason to be compressed,
 * and an OPT record has the root's name. The writer points back to the question, which is at a fixed place. */
#include "proxy/dns-msg.h"

#include <stdio.h>

#include "base/rdwr.h"
#include "base/text.h"

enum {
	HEADER = 12,
	F_QR = 0x8000,
	F_TC = 0x0200,
	F_RD = 0x0100,
	F_RA = 0x0080,
	LABEL_MAX = 63,
	WIRE_NAME_MAX = 255,
	T_OPT = 41,
	CLASS_IN = 1,
	UDP_MIN = 512,
	EDE_OPTION = 15,
	EDE_BLOCKED = 15,
	EDE_TEXT_MAX = 400,
	POINTER_TO_QUESTION = 0xc000 | HEADER,
};

static bool plain(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

static void put_label(struct wr *w, const uint8_t *p, size_t n)
{
	char esc[5];

	for (size_t i = 0; i < n; i++) {
		if (plain(p[i])) {
			wr_u8(w, p[i]);
			continue;
		}
		(void)snprintf(esc, sizeof(esc), "\\%03u", p[i]);
		wr_bytes(w, esc, 4);
	}
}

static bool read_question(struct rd *r, struct dns_query *q)
{
	const uint8_t *start = r->p;
	struct wr w = wr_init(q->name, sizeof(q->name));
	uint8_t len;

	while ((len = rd_u8(r))) {
		const uint8_t *label;

		if (len > LABEL_MAX)
			return false; /* also the two bits of a pointer */
		label = rd_take(r, len);
		if (!label || r->p - start >= WIRE_NAME_MAX)
			return false;
		if (w.n)
			wr_u8(&w, '.');
		put_label(&w, label, len);
	}
	q->type = rd_be16(r);
	q->class = rd_be16(r);
	wr_u8(&w, 0);
	if (r->bad || !wr_ok(&w))
		return false;
	q->question_len = (uint16_t)(r->p - start);
	memcpy(q->question, start, q->question_len);
	return true;
}

/* RFC 6891 6.1.2. Options are for those who want them: none of ours. */
static bool read_opt(struct rd *r, struct dns_query *q, uint8_t *ret_version)
{
	uint8_t root = rd_u8(r);
	uint16_t type = rd_be16(r), size = rd_be16(r);
	uint32_t ttl = rd_be32(r);

	(void)rd_take(r, rd_be16(r));
	if (r->bad || root || type != T_OPT)
		return false;
	q->edns = true;
	q->udp_size = size < UDP_MIN ? UDP_MIN : MIN(size, DNS_UDP_MAX);
	*ret_version = (uint8_t)(ttl >> 16);
	return true;
}

static int read_sections(struct rd *r, struct dns_query *q)
{
	uint16_t qd = rd_be16(r), an = rd_be16(r), ns = rd_be16(r), ar = rd_be16(r);
	uint8_t version = 0;

	if (q->opcode)
		return DNS_NOTIMP;
	if (qd != 1 || an || ns || ar > 1)
		return DNS_FORMERR;
	if (!read_question(r, q)) {
		q->name[0] = '\0';
		return DNS_FORMERR;
	}
	if (ar && !read_opt(r, q, &version))
		return DNS_FORMERR;
	if (!rd_done(r))
		return DNS_FORMERR;
	if (version)
		return DNS_BADVERS;
	return q->class == CLASS_IN ? 0 : DNS_REFUSED;
}

int dns_parse(struct dns_query *ret, const uint8_t *p, size_t n)
{
	struct rd r = rd_init(p, n);
	uint16_t flags;

	if (n < HEADER || n > DNS_QUERY_MAX)
		return -EINVAL;
	memset(ret, 0, sizeof(*ret));
	ret->id = rd_be16(&r);
	flags = rd_be16(&r);
	if (flags & F_QR)
		return -EINVAL;
	ret->opcode = flags >> 11 & 0xf;
	ret->rd = flags & F_RD;
	ret->udp_size = UDP_MIN;
	return flags & F_TC ? DNS_FORMERR : read_sections(&r, ret);
}

/* A name of ours as labels; 0: it is none. */
static size_t name_to_wire(const char *s, uint8_t *dst, size_t max)
{
	struct wr w = wr_init(dst, max);

	while (*s) {
		size_t len = strcspn(s, ".");

		if (!len || len > LABEL_MAX)
			return 0;
		wr_u8(&w, (uint8_t)len);
		wr_bytes(&w, s, len);
		s += len + (s[len] == '.');
	}
	wr_u8(&w, 0);
	return wr_ok(&w) ? w.n : 0;
}

static uint16_t put_record(struct wr *w, const struct dns_answer *a)
{
	uint8_t name[WIRE_NAME_MAX];
	const uint8_t *data = a->addr;
	uint16_t type = a->addr_len == 16 ? DNS_AAAA : DNS_A;
	size_t len = a->addr_len;

	if (a->addr && len != 4 && len != 16)
		return 0;
	if (!a->addr) {
		len = a->ptr ? name_to_wire(a->ptr, name, sizeof(name)) : 0;
		data = name;
		type = DNS_PTR;
	}
	if (!len)
		return 0;
	wr_be16(w, POINTER_TO_QUESTION);
	wr_be16(w, type);
	wr_be16(w, CLASS_IN);
	wr_be32(w, a->ttl);
	wr_be16(w, (uint16_t)len);
	wr_bytes(w, data, len);
	return 1;
}

static void put_opt(struct wr *w, uint8_t rcode, const char *why)
{
	size_t len = why ? strnlen(why, EDE_TEXT_MAX) : 0;

	while (len && !text_is_utf8(why, len))
		len--; /* cut within a character */
	wr_u8(w, 0);
	wr_be16(w, T_OPT);
	wr_be16(w, DNS_UDP_MAX);
	wr_be32(w, (uint32_t)(rcode >> 4) << 24);
	wr_be16(w, (uint16_t)(why ? len + 6 : 0));
	if (!why)
		return;
	wr_be16(w, EDE_OPTION);
	wr_be16(w, (uint16_t)(len + 2));
	wr_be16(w, EDE_BLOCKED);
	wr_bytes(w, why, len);
}

static size_t put_message(const struct dns_query *q, const struct dns_answer *a, bool cut,
			  const char *why, uint8_t *p, size_t max)
{
	uint8_t record[HEADER + WIRE_NAME_MAX];
	struct wr w = wr_init(p, max), rec = wr_init(record, sizeof(record));
	uint16_t n_rec = q->question_len && !cut ? put_record(&rec, a) : 0;

	wr_be16(&w, q->id);
	wr_be16(&w, (uint16_t)(F_QR | q->opcode << 11 | (cut ? F_TC : 0) | (q->rd ? F_RD : 0) |
			       F_RA | (a->rcode & 0xf)));
	wr_be16(&w, q->question_len ? 1 : 0);
	wr_be16(&w, n_rec);
	wr_be16(&w, 0);
	wr_be16(&w, q->edns ? 1 : 0);
	wr_bytes(&w, q->question, q->question_len);
	wr_bytes(&w, record, n_rec ? rec.n : 0);
	if (q->edns)
		put_opt(&w, a->rcode, why);
	return wr_ok(&w) ? w.n : 0;
}

size_t dns_answer(const struct dns_query *q, const struct dns_answer *a, uint8_t *p, size_t max)
{
	size_t room = a->tcp ? max : MIN(max, q->udp_size), n;

	n = put_message(q, a, false, a->why, p, room);
	if (!n && a->why)
		n = put_message(q, a, false, NULL, p, room);
	if (!n)
		n = put_message(q, a, true, NULL, p, room);
	return n;
}
