/* Receipts: there and back, cut texts, and every byte that may not be. */
#include "wire/receipt.h"

#include "base/check.h"
#include "wire/frame.h"

static const struct receipt full = {
	.event = RECEIPT_END,
	.kind = RK_HTTP,
	.via = RV_FORWARD,
	.allowed = true,
	.port = 443,
	.count = 7,
	.flow = 0x0102030405060708,
	.sent = 1,
	.received = UINT64_MAX,
	.duration_us = 3,
	.host = "a.example",
	.address = "192.0.2.1",
	.method = "GET",
	.path = "/x\n\x1b",
	.rule = "id",
	.reason = "domain-allowed",
	.note = "",
};

static bool same(const struct receipt *a, const struct receipt *b)
{
	return a->event == b->event && a->kind == b->kind && a->via == b->via &&
	       a->allowed == b->allowed && a->port == b->port && a->count == b->count &&
	       a->flow == b->flow && a->sent == b->sent && a->received == b->received &&
	       a->duration_us == b->duration_us && streq(a->host, b->host) &&
	       streq(a->address, b->address) && streq(a->method, b->method) &&
	       streq(a->path, b->path) && streq(a->rule, b->rule) && streq(a->reason, b->reason) &&
	       streq(a->note, b->note);
}

static void there_and_back(void)
{
	struct buf b = BUF_INIT(RECEIPT_DATAGRAM_MAX);
	struct receipt r = { 0 }, small = { .event = RECEIPT_NOTE, .kind = RK_SANDBOX };
	struct rd in;

	check(receipt_put(&b, &full) == 0 && receipt_put(&b, &small) == 0);
	in = rd_init(buf_data(&b), b.n);
	check(receipt_get(&in, &r) == WIRE_OK && same(&r, &full) && !rd_done(&in));
	check(receipt_get(&in, &r) == WIRE_OK && rd_done(&in));
	check(r.event == RECEIPT_NOTE && r.count == 1 && !r.allowed && streq(r.host, ""));
	check(receipt_get(&in, &r) == WIRE_E_MALFORMED);
	buf_done(&b);
}

static void every_cut(void)
{
	struct buf b = BUF_INIT(RECEIPT_MAX);
	struct receipt r = { .event = 99 };

	check(receipt_put(&b, &full) == 0);
	for (size_t n = 0; n < b.n; n++) {
		_free_ uint8_t *own = malloc(n + !n);
		struct rd in = rd_init(own, n);

		check(own);
		memcpy(own, buf_data(&b), n);
		check(receipt_get(&in, &r) == WIRE_E_MALFORMED && r.event == 99);
	}
	buf_done(&b);
}

/* Every value of the first four bytes. */
static void bad_words(void)
{
	struct buf b = BUF_INIT(RECEIPT_MAX);
	uint8_t p[RECEIPT_MAX];
	struct receipt r;

	check(receipt_put(&b, &full) == 0);
	for (unsigned at = 0; at < 4; at++) {
		for (unsigned v = 0; v < 256; v++) {
			struct rd in = rd_init(p, b.n);
			bool good = at == 0   ? v >= 1 && v <= RECEIPT_NOTE
				    : at == 1 ? v >= 1 && v <= RK_SANDBOX
				    : at == 2 ? v <= RV_DNS
					      : v <= 1;

			memcpy(p, buf_data(&b), b.n);
			p[at] = (uint8_t)v;
			check((receipt_get(&in, &r) == WIRE_OK) == good);
		}
	}
	memcpy(p, buf_data(&b), b.n);
	memset(p + 6, 0, 4); /* a count of 0 */
	check(receipt_get(&(struct rd) { .p = p, .n = b.n }, &r) == WIRE_E_MALFORMED);
	buf_done(&b);
}

static void long_texts(void)
{
	static char big[5000];
	struct receipt r = full, got;
	struct buf b = BUF_INIT(RECEIPT_MAX), none = BUF_INIT(100);
	struct rd in;

	memset(big, 'x', sizeof(big) - 1);
	r.host = r.address = r.method = r.path = r.rule = r.reason = r.note = big;
	check(receipt_put(&b, &r) == 0 && receipt_put(&none, &r) == -ENOBUFS && !none.n);
	in = rd_init(buf_data(&b), b.n);
	check(receipt_get(&in, &got) == WIRE_OK && rd_done(&in));
	check(strlen(got.host) == RECEIPT_HOST_MAX && strlen(got.address) == RECEIPT_ADDRESS_MAX);
	check(strlen(got.path) == RECEIPT_TEXT_MAX && strlen(got.note) == RECEIPT_TEXT_MAX);
	check(strlen(got.rule) == RECEIPT_RULE_MAX && strlen(got.method) == RECEIPT_METHOD_MAX);
	check(b.n * 20 <= RECEIPT_DATAGRAM_MAX); /* of the largest a datagram holds a good many */
	buf_done(&b);
	buf_done(&none);
}

static void answers(void)
{
	uint8_t p[RECEIPT_ANSWER_MAX + 1] = { 0 };
	struct receipt_answer a = { .count = UINT64_MAX }, got;
	static char big[2 * RECEIPT_ALARM_TEXT_MAX];
	size_t n = receipt_answer_put(&a, p);

	check(n == 8 && receipt_answer_get(&got, p, n) == WIRE_OK && !got.alarm);
	check(got.count == UINT64_MAX);
	for (size_t k = 0; k < 8; k++)
		check(receipt_answer_get(&got, p, k) == WIRE_E_MALFORMED);
	a = (struct receipt_answer) { .alarm = true, .code = ENOSPC, .text = "full" };
	n = receipt_answer_put(&a, p);
	check(receipt_answer_get(&got, p, n) == WIRE_OK && got.alarm && got.code == ENOSPC);
	check(streq(got.text, "full"));
	for (size_t k = 9; k < n; k++)
		check(receipt_answer_get(&got, p, k) == WIRE_E_MALFORMED);
	check(receipt_answer_get(&got, p, n + 1) == WIRE_E_MALFORMED);
	p[0] = 1; /* a code that is no errno */
	check(receipt_answer_get(&got, p, n) == WIRE_E_MALFORMED);
	memset(big, 'x', sizeof(big) - 1);
	a = (struct receipt_answer) { .alarm = true, .text = big };
	n = receipt_answer_put(&a, p);
	check(n == RECEIPT_ANSWER_MAX && receipt_answer_get(&got, p, n) == WIRE_OK && !got.code);
	check(strlen(got.text) == RECEIPT_ALARM_TEXT_MAX);
	a.text = NULL;
	check(receipt_answer_get(&got, p, receipt_answer_put(&a, p)) == WIRE_OK && got.alarm);
}

static void names(void)
{
	check(streq(receipt_kind_name(RK_SANDBOX), "sandbox") && !receipt_kind_name(0));
	check(!receipt_kind_name(RK_SANDBOX + 1) && !receipt_event_name(0) &&
	      !receipt_event_name(4));
	check(streq(receipt_via_name(RV_NONE), "") && !receipt_via_name(RV_DNS + 1));
	check(streq(receipt_via_name(RV_FORWARD_BYPASS), "forward-bypass"));
	check(streq(receipt_event_name(RECEIPT_END), "end"));
}

static void orders(void)
{
	const struct receipt_order o = { "web", 8, UINT64_MAX };
	struct buf b = BUF_INIT(RECEIPT_ORDER_MAX);
	struct receipt_order got;

	check(receipt_order_put(&b, &o) == 0);
	check(receipt_order_get(&got, buf_data(&b), b.n) == WIRE_OK && streq(got.sandbox, "web"));
	check(got.file_size == 8 && got.total_size == UINT64_MAX);
	for (size_t n = 0; n < b.n; n++)
		check(receipt_order_get(&got, buf_data(&b), n) == WIRE_E_MALFORMED);
	buf_done(&b);
}

int main(void)
{
	orders();
	there_and_back();
	every_cut();
	bad_words();
	long_texts();
	answers();
	names();
	return 0;
}
