/* Receipts: numbers at fixed places, then the texts of one table. */
#include "wire/receipt.h"

#include "wire/frame.h"

static const char *const events[] = {
	[RECEIPT_DECISION] = "decision", [RECEIPT_END] = "end", [RECEIPT_NOTE] = "note"
};
static const char *const kinds[] = {
	[RK_DNS] = "dns",       [RK_TCP] = "tcp",         [RK_TLS] = "tls", [RK_HTTP] = "http",
	[RK_UDP] = "udp",       [RK_ICMP] = "icmp",       [RK_IP] = "ip",   [RK_FILE] = "file",
	[RK_POLICY] = "policy", [RK_SANDBOX] = "sandbox",
};
static const char *const vias[] = {
	[RV_NONE] = "",           [RV_TRANSPARENT] = "transparent",
	[RV_FORWARD] = "forward", [RV_FORWARD_BYPASS] = "forward-bypass",
	[RV_NETWORK] = "network", [RV_DNS] = "dns",
};

static const struct {
	size_t off, max;
} texts[] = {
	{ offsetof(struct receipt, host), RECEIPT_HOST_MAX },
	{ offsetof(struct receipt, address), RECEIPT_ADDRESS_MAX },
	{ offsetof(struct receipt, method), RECEIPT_METHOD_MAX },
	{ offsetof(struct receipt, path), RECEIPT_TEXT_MAX },
	{ offsetof(struct receipt, rule), RECEIPT_RULE_MAX },
	{ offsetof(struct receipt, reason), RECEIPT_REASON_MAX },
	{ offsetof(struct receipt, note), RECEIPT_TEXT_MAX },
};

const char *receipt_event_name(uint8_t event)
{
	return event < ARRAY_SIZE(events) ? events[event] : NULL;
}

const char *receipt_kind_name(uint8_t kind)
{
	return kind < ARRAY_SIZE(kinds) ? kinds[kind] : NULL;
}

const char *receipt_via_name(uint8_t via)
{
	return via < ARRAY_SIZE(vias) ? vias[via] : NULL;
}

int receipt_put(struct buf *out, const struct receipt *r)
{
	uint8_t p[RECEIPT_MAX];
	struct wr w = wr_init(p, sizeof(p));

	wr_u8(&w, r->event);
	wr_u8(&w, r->kind);
	wr_u8(&w, r->via);
	wr_u8(&w, r->allowed);
	wr_be16(&w, r->port);
	wr_be32(&w, r->count ? r->count : 1);
	wr_be64(&w, r->flow);
	wr_be64(&w, r->sent);
	wr_be64(&w, r->received);
	wr_be64(&w, r->duration_us);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		wr_cut(&w, *(const char *const *)((const char *)r + texts[i].off), texts[i].max);
	return wr_ok(&w) ? buf_add(out, p, w.n) : -ENOBUFS;
}

int receipt_get(struct rd *in, struct receipt *ret)
{
	struct receipt r = { 0 };
	uint8_t allowed;

	r.event = rd_u8(in);
	r.kind = rd_u8(in);
	r.via = rd_u8(in);
	allowed = rd_u8(in);
	r.allowed = allowed == 1;
	r.port = rd_be16(in);
	r.count = rd_be32(in);
	r.flow = rd_be64(in);
	r.sent = rd_be64(in);
	r.received = rd_be64(in);
	r.duration_us = rd_be64(in);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		*(const char **)((char *)&r + texts[i].off) = rd_str(in, texts[i].max);
	if (in->bad || allowed > 1 || !r.count || !receipt_event_name(r.event) ||
	    !receipt_kind_name(r.kind) || !receipt_via_name(r.via))
		return WIRE_E_MALFORMED;
	*ret = r;
	return WIRE_OK;
}

size_t receipt_answer_put(const struct receipt_answer *a, uint8_t p[static RECEIPT_ANSWER_MAX])
{
	struct wr w = wr_init(p, RECEIPT_ANSWER_MAX);

	wr_be64(&w, a->alarm ? a->code : a->count);
	if (a->alarm)
		wr_cut(&w, a->text, RECEIPT_ALARM_TEXT_MAX);
	return w.n;
}

int receipt_answer_get(struct receipt_answer *ret, const void *p, size_t n)
{
	struct rd r = rd_init(p, n);
	struct receipt_answer a = { .count = rd_be64(&r), .text = "" };

	a.alarm = n > 8;
	if (a.alarm) {
		a.code = (uint32_t)a.count;
		a.text = rd_str(&r, RECEIPT_ALARM_TEXT_MAX);
	}
	if (!rd_done(&r) || (a.alarm && a.count > UINT16_MAX))
		return WIRE_E_MALFORMED;
	*ret = a;
	return WIRE_OK;
}

int receipt_order_put(struct buf *out, const struct receipt_order *o)
{
	uint8_t p[RECEIPT_ORDER_MAX];
	struct wr w = wr_init(p, sizeof(p));

	wr_str(&w, o->sandbox);
	wr_be64(&w, o->file_size);
	wr_be64(&w, o->total_size);
	return wr_ok(&w) ? buf_add(out, p, w.n) : -ENOBUFS;
}

int receipt_order_get(struct receipt_order *ret, const void *p, size_t n)
{
	struct rd r = rd_init(p, n);
	struct receipt_order o;

	o.sandbox = rd_str(&r, RECEIPT_ORDER_MAX);
	o.file_size = rd_be64(&r);
	o.total_size = rd_be64(&r);
	if (!rd_done(&r))
		return WIRE_E_MALFORMED;
	*ret = o;
	return WIRE_OK;
}
